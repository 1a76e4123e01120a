//! Waits as futures: when they are ready, who is woken, and what they leave behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod task;
}

use native_fence::gpu::NodePolicy;
use native_fence::shared::Block;
use native_fence::{CommandList, Delivery, Fence, WaitError, WaitFuture, WaitManyError};
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;
use support::bench::{
    Bench, LONG, Moment, each, fences, monitored_value, monitored_values, native, nobody_waits,
    on_every_bench, signal, until,
};
use support::task::{Woken, block_on};

/// Stores CurrentValue as an engine would: into the memory, with no call.
fn store(fence: &Fence, value: u64) {
    let (region, offset) = native(fence).current_value_place();
    let words = Block::whole(&region.map().unwrap());
    words.word(offset).publish(value);
}

/// What is there at the first poll is ready, with no call and nobody to be woken; and a wait for a
/// closed handle is an error whatever the value. Nothing begins before the first poll.
///
/// Kills `a-future-begins-when-it-is-made` and `a-future-does-not-ask-the-handle`.
#[test]
fn nf_22_a_future_of_what_is_there_is_ready_at_once() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, woken) = (bench.fence(4), Woken::new());
        let later = fence.wait_async(5);
        assert_eq!(monitored_value(&fence), u64::MAX);
        assert_eq!(native(&fence).waits(), 0);
        drop(later);
        let mut later = fence.wait_async(5);
        fence.signal(5).unwrap();
        bench.spy.take();
        assert_eq!(woken.poll(&mut later), Poll::Ready(Ok(())));
        for value in [0, 4, 5] {
            let mut wait = fence.wait_async(value);
            assert_eq!(woken.poll(&mut wait), Poll::Ready(Ok(())));
        }
        assert_eq!(bench.spy.updates(), 0);
        assert_eq!(native(&fence).waits(), 0);

        fence.close();
        for value in [0, 5, 6] {
            let mut wait = fence.wait_async(value);
            let closed = Err(WaitError::Closed);
            assert_eq!(woken.poll(&mut wait), Poll::Ready(closed));
        }
        assert_eq!(woken.times(), 0);
        assert_eq!(Arc::strong_count(&woken), 1);
    });
}

/// The task is woken once, by a CPU signal before that returns and by a GPU signal with one interrupt;
/// a task that is polled meanwhile is woken once all the same. When it is ready it waits no more.
///
/// Kills `no-task-is-woken` and `a-ready-future-stands-on`.
#[test]
fn nf_22_a_signal_wakes_the_task_once() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, woken) = (bench.fence(0), Woken::new());
        let mut queue = bench.then_parked(|| bench.queue());
        let [mut three, mut five] = [3, 5].map(|value| fence.wait_async(value));
        for _ in 0..3 {
            assert_eq!(woken.poll(&mut five), Poll::Pending);
            assert_eq!(woken.poll(&mut three), Poll::Pending);
            assert_eq!(monitored_value(&fence), 2);
        }
        assert_eq!(native(&fence).waits(), 2);
        fence.signal(2).unwrap();
        assert_eq!(woken.times(), 0);
        fence.signal(4).unwrap();
        assert_eq!(woken.times(), 1);
        assert_eq!(monitored_value(&fence), 4);
        signal(bench, &mut queue, &fence, 7);
        woken.until(2);
        assert_eq!(bench.spy.raised(native(&fence).id()), [7]);
        assert_eq!(monitored_value(&fence), u64::MAX);
        for wait in [&mut three, &mut five] {
            assert_eq!(woken.poll(wait), Poll::Ready(Ok(())));
        }
        assert_eq!(woken.times(), 2);
        assert_eq!(Arc::strong_count(&woken), 1);

        let waits = fences(bench, 2);
        let mut any = Fence::wait_any_async(&each(&waits, &[1, 1])).unwrap();
        assert_eq!(woken.poll(&mut any), Poll::Pending);
        waits[1].signal(1).unwrap();
        assert_eq!(woken.times(), 3);
        assert_eq!(woken.poll(&mut any), Poll::Ready(Ok(1)));
        assert!(nobody_waits(&waits), "it is ready, though not dropped");
    });
}

/// A future that is dropped is cancelled: when that has returned, MonitoredValue is that of the waits
/// that are left, and the task is woken no more and let go.
///
/// Kills `a-dropped-wait-stays-monitored` and `a-cancelled-task-is-woken`.
#[test]
fn nf_04_a_dropped_future_leaves_the_monitored_value_right() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, woken) = (bench.fence(0), Woken::new());
        let [mut three, mut five] = [3, 5].map(|value| fence.wait_async(value));
        assert_eq!(woken.poll(&mut three), Poll::Pending);
        assert_eq!(woken.poll(&mut five), Poll::Pending);
        drop(three);
        assert_eq!(monitored_value(&fence), 4);
        store(&fence, 9);
        drop(five);
        assert_eq!(monitored_value(&fence), u64::MAX);
        assert_eq!(woken.times(), 0);
        assert_eq!(Arc::strong_count(&woken), 1);

        let fences = fences(bench, 3);
        let mut all = Fence::wait_all_async(&each(&fences, &[1, 2, 3])).unwrap();
        assert_eq!(woken.poll(&mut all), Poll::Pending);
        assert_eq!(monitored_values(&fences), [0, 1, 2]);
        fences[1].signal(2).unwrap();
        drop(all);
        assert!(nobody_waits(&fences));
        assert_eq!(woken.times(), 0);
        assert_eq!(Arc::strong_count(&woken), 1);
    });
}

/// The waker of the last poll counts; the one before is let go at that poll.
///
/// Kills `the-first-waker-is-kept`.
#[test]
fn nf_22_the_waker_of_the_last_poll_is_woken() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let (first, second) = (Woken::new(), Woken::new());
        let mut wait = fence.wait_async(1);
        assert_eq!(first.poll(&mut wait), Poll::Pending);
        assert_eq!(Arc::strong_count(&first), 2);
        assert_eq!(second.poll(&mut wait), Poll::Pending);
        assert_eq!(Arc::strong_count(&first), 1);
        signal(bench, &mut bench.queue(), &fence, 1);
        second.until(1);
        assert_eq!(first.times(), 0);
        // Another thread has it now.
        let wait = thread::spawn(move || block_on(wait));
        assert_eq!(wait.join().unwrap(), Ok(()));
    });
}

/// A value that can be seen makes a future ready that is polled, though nothing has told of it yet,
/// and the task is not woken for what it finds itself. What was satisfied stays so.
///
/// Nor is it for what comes while the wait is armed, of which it is told instead.
///
/// Kills `a-task-wakes-itself`, `an-armed-wait-asks-nothing` and `a-listener-comes-too-late`.
#[test]
fn nf_26_a_value_that_is_there_makes_a_future_ready() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, woken) = (bench.fence(0), Woken::new());
        bench.until_parked();
        let [mut three, mut four] = [3, 4].map(|value| fence.wait_async(value));
        assert_eq!(woken.poll(&mut three), Poll::Pending);
        assert_eq!(woken.poll(&mut four), Poll::Pending);
        store(&fence, 3);
        assert_eq!(woken.poll(&mut three), Poll::Ready(Ok(())));
        assert_eq!(monitored_value(&fence), 3);
        assert_eq!(woken.times(), 0);
        fence.signal(4).unwrap();
        assert_eq!(woken.times(), 1);
        fence.rewind(0).unwrap();
        fence.close();
        assert_eq!(woken.poll(&mut four), Poll::Ready(Ok(())));

        let late = bench.fence(0);
        let (mut six, comes) = (late.wait_async(6), late.clone());
        let moment = Moment::AfterUpdateOfMonitoredValues;
        bench.spy.once(moment, move || store(&comes, 6));
        assert_eq!(woken.poll(&mut six), Poll::Ready(Ok(())));
        assert_eq!(woken.times(), 1);
    });
}

/// A handle that is closed, a queue that is stopped and a device that is lost end futures with the
/// blocking wait's errors, and the task is woken for it. A future keeps the handle open.
///
/// Open: a device that the driver reports as lost; here the engine says so in its stead.
///
/// Kills `a-failed-wait-tells-nobody` and `closing-ends-no-wait`.
#[test]
fn nf_22_a_future_without_a_chance_ends_with_an_error() {
    let bench = Bench::new();
    let woken = Woken::new();
    let pending = |wait: &mut WaitFuture| assert_eq!(woken.poll(wait), Poll::Pending);
    let closed = bench.fence(0);
    let mut kept = closed.clone().wait_async(1);
    pending(&mut kept);
    closed.close();
    assert_eq!(woken.times(), 1);
    let ended = woken.poll(&mut kept);
    assert_eq!(ended, Poll::Ready(Err(WaitError::Closed)));

    let mut stopped = bench.queue();
    let mut progress = stopped.progress_fence().wait_async(1);
    pending(&mut progress);
    stopped
        .submit(CommandList::new().signal(&closed, 1))
        .unwrap();
    woken.until(2);
    let ended = woken.poll(&mut progress);
    assert!(
        matches!(ended, Poll::Ready(Err(WaitError::QueueFaulted(_)))),
        "{ended:?}"
    );

    let mut alone = bench.fence(0).wait_async(1);
    pending(&mut alone);

    let bench = Bench::new();
    let fence = bench.fence(0);
    let gate = bench.engine.close();
    let queue = bench.queue();
    until("a slice is in flight", || bench.engine.at_gate() > 0);
    let mut waits = [fence.wait_async(1), queue.progress_fence().wait_async(1)];
    waits.iter_mut().for_each(pending);
    bench.engine.lose();
    woken.until(4);
    for wait in &mut waits {
        let lost = Err(WaitError::DeviceLost);
        assert_eq!(woken.poll(wait), Poll::Ready(lost));
    }
    drop(gate);
}

/// Any and all of several fences, as the blocking waits: which came, the first that fails, and how
/// many there may be. The same fence may be named twice.
///
/// Kills `any-future-is-all` and `all-future-is-any`.
#[test]
fn nf_22_futures_of_any_and_all() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fences, woken) = (fences(bench, 3), Woken::new());
        let waits = each(&fences, &[1, 2, 3]);
        let mut queue = bench.queue();
        let mut any = Fence::wait_any_async(&waits).unwrap();
        let mut all = Fence::wait_all_async(&waits).unwrap();
        assert_eq!(woken.poll(&mut any), Poll::Pending);
        assert_eq!(woken.poll(&mut all), Poll::Pending);
        signal(bench, &mut queue, &fences[1], 2);
        woken.until(1);
        assert_eq!(woken.poll(&mut any), Poll::Ready(Ok(1)));
        assert_eq!(woken.poll(&mut all), Poll::Pending);
        fences[0].signal(1).unwrap();
        assert_eq!(woken.times(), 1);
        fences[0].rewind(0).unwrap();
        assert_eq!(monitored_values(&fences), [u64::MAX, u64::MAX, 2]);
        signal(bench, &mut queue, &fences[2], 3);
        woken.until(2);
        assert_eq!(woken.poll(&mut all), Poll::Ready(Ok(())));

        let twice = [(&fences[0], 5), (&fences[0], 3)];
        let mut any = Fence::wait_any_async(&twice).unwrap();
        let mut all = Fence::wait_all_async(&twice).unwrap();
        assert_eq!(woken.poll(&mut any), Poll::Pending);
        assert_eq!(woken.poll(&mut all), Poll::Pending);
        fences[0].signal(3).unwrap();
        assert_eq!(woken.poll(&mut any), Poll::Ready(Ok(1)));
        fences[0].close();
        let error = WaitError::Closed;
        let failed = Err(WaitManyError::Failed { index: 0, error });
        assert_eq!(woken.poll(&mut all), Poll::Ready(failed));
        assert_eq!(woken.times(), 4);

        let many: Vec<_> = (0..33).map(|_| (&fences[1], 2)).collect();
        let ready = |waits| Fence::wait_all_async(waits).map(block_on);
        assert_eq!(ready(&many[1..]), Ok(Ok(())));
        assert_eq!(ready(&many), Err(WaitManyError::TooMany));
        assert_eq!(ready(&[]), Err(WaitManyError::NoFence));
        let any = Fence::wait_any_async(&many).map(block_on);
        assert_eq!(any, Err(WaitManyError::TooMany));
    });
}

/// Where interrupts are polled for, and nobody watches, the task is woken when the slice ends.
///
/// Kills `polled-records-wait-for-a-watcher`.
#[test]
fn nf_06_a_future_is_woken_though_nobody_polls_for_interrupts() {
    let policy = NodePolicy {
        delivery: Delivery::Polled,
        wait_spin: Duration::ZERO,
        ..NodePolicy::default()
    };
    on_every_bench(policy, |bench| {
        let (fence, woken) = (bench.fence(0), Woken::new());
        let mut queue = bench.then_parked(|| bench.queue());
        let interrupts = bench.counters().interrupts;
        for value in 1..=20 {
            let mut wait = fence.wait_async(value);
            assert_eq!(woken.poll(&mut wait), Poll::Pending);
            queue
                .submit(CommandList::new().signal(&fence, value))
                .unwrap();
            woken.until(value);
            assert_eq!(woken.poll(&mut wait), Poll::Ready(Ok(())));
        }
        assert_eq!(
            bench.counters().interrupts,
            interrupts,
            "no slice ended to interrupt"
        );
    });
}

/// Two threads await each other's signals through two executors, the test's own and a library's, and
/// a third awaits the GPU's: none is lost.
///
/// Kills `no-task-is-woken`.
#[test]
fn nf_06_load_no_future_is_lost() {
    const ROUNDS: u64 = 1_000;
    on_every_bench(NodePolicy::default(), |bench| {
        let (ping, pong, gpu) = (bench.fence(0), bench.fence(0), bench.fence(0));
        let mut queue = bench.queue();
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    block_on(ping.wait_async(round)).unwrap();
                    pong.signal(round).unwrap();
                }
            });
            scope.spawn(|| {
                pollster::block_on(async {
                    for round in 1..=ROUNDS {
                        ping.signal(round).unwrap();
                        pong.wait_async(round).await.unwrap();
                    }
                });
            });
            for value in 1..=ROUNDS {
                let mut wait = gpu.wait_async(value);
                if value % 3 == 0 {
                    assert_eq!(Woken::new().poll(&mut wait), Poll::Pending);
                }
                queue
                    .submit_blocking(CommandList::new().signal(&gpu, value), LONG)
                    .unwrap();
                block_on(wait).unwrap();
            }
        });
        assert!(nobody_waits(&[ping, pong, gpu]));
    });
}

/// A future says so when it is polled again after it was ready.
#[test]
#[should_panic(expected = "polled again after it was ready")]
fn a_future_that_was_ready_is_not_polled_again() {
    let bench = Bench::new();
    let mut wait = bench.fence(1).wait_async(1);
    for _ in 0..2 {
        assert_eq!(Woken::new().poll(&mut wait), Poll::Ready(Ok(())));
    }
}
