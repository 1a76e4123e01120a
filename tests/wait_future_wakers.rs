//! Wakers are foreign code: what they may do while they run, on whichever thread that is.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod task;
}

#[path = "support/engines.rs"]
mod engines;

use native_fence::gpu::NodePolicy;
use native_fence::kmd::{Interrupt, Parking};
use native_fence::shared::Block;
use native_fence::{Adapter, CommandList, Fence, WaitError};
use std::panic;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::thread;
use support::bench::{
    Bench, LONG, Moment, fences, monitored_value, native, nobody_waits, on_benches_of,
    on_every_bench, signal, until, until_completed,
};
use support::task::{Inline, Woken, block_on, waker_that};

/// Stores CurrentValue as an engine would: into the memory, with no call.
fn store(fence: &Fence, value: u64) {
    let (region, offset) = native(fence).current_value_place();
    let words = Block::whole(&region.map().unwrap());
    words.word(offset).publish(value);
}

/// Polls a future with a waker of its own, and leaves it standing.
fn listen<F: Future + Unpin>(mut future: F, waker: &Waker) -> F {
    let polled = Pin::new(&mut future).poll(&mut Context::from_waker(waker));
    assert!(polled.is_pending());
    future
}

/// Releases a wait for 1 by each kind of thread that may: the one that signals, the interrupt's, the
/// one that closes the handle, and one that looks for itself.
fn by_every_thread(bench: &Bench, mut arm: impl FnMut(&Fence)) {
    let mut queue = bench.queue();
    for by in 0..4 {
        let fence = bench.fence(0);
        arm(&fence);
        match by {
            0 => fence.signal(1).unwrap(),
            1 => signal(bench, &mut queue, &fence, 1),
            2 => fence.close(),
            _ => {
                let list = CommandList::new().signal(&fence, 1).clone();
                queue.submit(&list).unwrap();
                fence.wait(1, LONG).unwrap();
            }
        }
    }
}

/// A task that is polled at once by whoever wakes it waits again on the same fence and on another,
/// signals, submits, makes fences and drops its own, and ends there; its future is dropped there.
///
/// Kills `wakers-run-under-the-lock`.
#[test]
fn nf_22_a_waker_may_poll_at_once() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (over, ends) = mpsc::channel();
        let mut tasks = 0;
        by_every_thread(bench, |fence| {
            let (device, fence, over) = (bench.device.clone(), fence.clone(), over.clone());
            let mut queue = device.create_hw_queue().unwrap();
            tasks += 1;
            let task = Inline::spawn(async move {
                let first = fence.wait_async(1).await;
                let next = device.create_fence(0).unwrap();
                next.signal(7).unwrap();
                next.wait_async(7).await.unwrap();
                let armed = next.arm(8);
                queue.submit(CommandList::new().signal(&next, 9)).unwrap();
                next.wait_async(9).await.unwrap();
                assert_eq!(armed.outcome(), Some(Ok(())));
                let unreached = fence.wait_async(u64::MAX);
                let still = Inline::spawn(async {
                    let _ = unreached.await;
                });
                assert_eq!(still.polls(), 1);
                over.send(first).unwrap();
            });
            assert_eq!(task.polls(), 1);
        });
        for _ in 0..tasks {
            let first = ends.recv_timeout(LONG).unwrap();
            assert!(
                matches!(first, Ok(()) | Err(WaitError::Closed)),
                "{first:?}"
            );
        }
    });
}

/// A waker cancels other waits of the same signal, and closes and drops fences, its own among them.
/// A waker that is replaced may do the same when it is dropped.
///
/// Kills `wakers-run-under-the-lock` and `a-signal-wakes-under-its-locks`.
#[test]
fn nf_22_a_waker_may_end_other_waits() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut kept = Vec::new();
        by_every_thread(bench, |fence| {
            let others = fences(bench, 2);
            let woken = Woken::new();
            let rest = [
                listen(fence.wait_async(2), &woken.waker()),
                listen(others[0].wait_async(1), &woken.waker()),
            ];
            let gone = Mutex::new(Some((rest, fence.clone(), others[1].clone())));
            let waker = waker_that(move || {
                let gone = gone.lock().unwrap().take();
                if let Some((rest, fence, closed)) = gone {
                    drop(rest);
                    // Refused where the handle is closed.
                    let _ = fence.signal(9);
                    closed.close();
                }
            });
            kept.push((listen(fence.wait_async(1), &waker), fence.clone(), woken));
        });
        for (by, (wait, fence, others)) in kept.into_iter().enumerate() {
            // Who looks for itself may be quicker than the interrupt thread, which runs the waker.
            until("the waker has run", || Arc::strong_count(&others) == 1);
            assert!(nobody_waits(&[fence]));
            // They were cancelled, but for the one that had ended by the same close.
            assert_eq!(others.times(), u64::from(by == 2));
            drop(wait);
        }

        let fence = bench.fence(0);
        let held = listen(fence.wait_async(3), Waker::noop());
        let held = Mutex::new(Some((held, fence.clone())));
        let waker = waker_that(move || drop(held.lock().unwrap().take()));
        let wait = listen(fence.wait_async(5), &waker);
        drop(waker);
        assert_eq!(monitored_value(&fence), 2);
        let wait = listen(wait, Waker::noop());
        assert_eq!(
            monitored_value(&fence),
            4,
            "the waker is dropped, and its wait"
        );
        drop(wait);
        assert!(nobody_waits(&[fence]));
    });
}

/// A waker that panics keeps nobody else from being woken, the thread goes on, and so does the
/// adapter.
///
/// Kills `a-panic-is-everybodys`.
#[test]
fn nf_22_a_waker_that_panics_takes_nobody_along() {
    // What it says is said to nobody, and the test's own panics are.
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some("a waker's own") {
            usual(info);
        }
    }));
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        for round in 1..=4 {
            let (fence, woken) = (bench.fence(0), Woken::new());
            let panics = waker_that(|| panic!("a waker's own"));
            let _waits = [
                listen(fence.wait_async(1), &panics),
                listen(fence.wait_async(1), &woken.waker()),
                listen(fence.wait_async(1), &panics),
                listen(fence.wait_async(1), &woken.waker()),
            ];
            if round % 2 == 0 {
                fence.signal(1).unwrap();
                assert_eq!(woken.times(), 2);
            } else {
                signal(bench, &mut queue, &fence, 1);
                woken.until(2);
            }
        }
    });
}

/// Threads of this process that are called so.
fn threads_called(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let comms = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
    let called = comms.filter(|comm| comm.as_ref().is_ok_and(|comm| comm.starts_with(name)));
    called.count()
}

/// A task that has all that there is of an adapter, and drops it where it is woken: on which thread
/// that was.
fn end_of(adapter: Adapter) -> String {
    let (tell, told) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let here = thread::current().id();
    let device = adapter.create_device();
    let fence = device.create_fence(0).unwrap();
    let queue = Arc::new(Mutex::new(device.create_hw_queue().unwrap()));
    let (wait, all) = (fence.clone(), (adapter, device, Arc::clone(&queue)));
    let task = Inline::spawn(async move {
        wait.wait_async(1).await.unwrap();
        let thread = thread::current();
        if thread.id() != here {
            // Until nobody else has anything of it.
            may_go.recv_timeout(LONG).unwrap();
        }
        drop((wait, all));
        tell.send(thread.name().unwrap_or_default().to_owned())
            .unwrap();
    });
    drop(task);
    let submitted = queue
        .lock()
        .unwrap()
        .submit(CommandList::new().signal(&fence, 1));
    submitted.unwrap();
    drop((fence, queue));
    // Nobody waits for it where this thread has woken the task itself.
    let _ = go.send(());
    told.recv_timeout(LONG).unwrap()
}

/// The task has all that there is of the adapter, and is dropped on the interrupt thread that wakes
/// it: the adapter is stopped nevertheless, and not by that thread, which would wait for itself.
///
/// Kills `the-interrupt-thread-stops-its-driver`.
#[test]
fn nf_22_a_waker_may_drop_all_of_an_adapter() {
    // A thread of the driver that panics fails no test by itself.
    static PANICS: AtomicBool = AtomicBool::new(false);
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICS.store(true, Ordering::Relaxed);
        usual(info);
    }));
    // The thread that submits may take the report itself.
    let on_the_interrupts = |adapter: &mut dyn FnMut() -> Adapter| {
        until("a task ends on the interrupt thread", || {
            end_of(adapter()).starts_with("nf-irq")
        });
    };
    on_the_interrupts(&mut || engines::model().0);
    if engines::shader().is_some() {
        on_the_interrupts(&mut || engines::shader().unwrap());
    }
    until("the drivers are stopped", || threads_called("nf-") == 0);
    assert!(
        !PANICS.load(Ordering::Relaxed),
        "a thread waited for itself"
    );
}

/// An engine that goes to sleep at a wait finds the value there, and with it a future: while its waker
/// runs another engine comes to rest, whose parking is kept by the same book.
///
/// Kills `wakers-run-while-an-engine-parks`.
#[test]
fn nf_22_a_waker_runs_beside_the_parking_of_engines() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let (gate, mut stands, other) = (bench.fence(0), bench.queue_on(0), bench.queue_on(1));
        bench.until_parked();
        let (tell, told) = mpsc::channel();
        let gated = gate.clone();
        let (other, spy) = (Mutex::new(other), Arc::clone(&bench.spy));
        let waker = waker_that(move || {
            let mut other = other.lock().unwrap();
            spy.take();
            other.submit(CommandList::new().wait(&gated, 1)).unwrap();
            spy.until_handled(|interrupt| match interrupt {
                Interrupt::EngineParking {
                    node_ordinal,
                    parking: Parking::Asked { .. },
                } => *node_ordinal == 1,
                _ => false,
            })
            .unwrap();
            tell.send(()).unwrap();
        });
        let wait = listen(fence.wait_async(5), &waker);
        // Comes when the engine's waiter for 3 has been posted, and the value read again.
        let comes = fence.clone();
        let moment = Moment::AfterUpdateOfMonitoredValues;
        bench.spy.once(moment, move || store(&comes, 5));
        stands.submit(CommandList::new().wait(&fence, 3)).unwrap();
        told.recv_timeout(LONG).unwrap();
        assert_eq!(block_on(wait), Ok(()));
        until_completed(&stands, 1);
    });
}
