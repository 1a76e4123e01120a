//! What vkd3d-proton's tests of `ID3D12Fence` assert of plain and of shared fences alike: releases and rewinds while
//! queues stand, several fences at once, and stress. Of a shared fence the second queue is another device's, which has
//! opened it. `tests/ports/README.md` has the table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::{
    CommandList, Device, EventHandle, Fence, FenceOptions, HwQueue, WaitError, WaitManyError,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use support::bench::{Bench, Ended, LONG, Waiter, complete, on_every_bench, until_completed};

/// Two queues, and fences that both may name.
struct Pair<'a> {
    bench: &'a Bench,
    /// Of the second queue, where fences are shared.
    other: Option<Device>,
}

impl Pair<'_> {
    fn queues(&self) -> (HwQueue, HwQueue) {
        let second = self.other.as_ref().unwrap_or(&self.bench.device);
        (self.bench.queue(), second.create_hw_queue().unwrap())
    }

    /// A fence: the first queue's handle, and the second's.
    fn fence(&self, initial: u64) -> (Fence, Fence) {
        let Some(other) = &self.other else {
            let fence = self.bench.fence(initial);
            return (fence.clone(), fence);
        };
        let options = FenceOptions {
            initial,
            shared: true,
            ..FenceOptions::default()
        };
        let fence = self.bench.device.create_fence_with(options).unwrap();
        let opened = other.open_fence(&fence.share().unwrap()).unwrap();
        (fence, opened)
    }
}

fn on_plain(body: impl Fn(&Pair<'_>)) {
    on_every_bench(NodePolicy::default(), |bench| {
        body(&Pair { bench, other: None });
    });
}

fn on_shared(body: impl Fn(&Pair<'_>)) {
    on_every_bench(NodePolicy::default(), |bench| {
        let other = Some(bench.adapter.create_device());
        body(&Pair { bench, other });
    });
}

/// Fences are released while queues and a thread wait for them, one of them for what never comes. Nothing hangs: the
/// event is signalled and says why, the queue that stood at the wait is stopped and says so (NF-31), and what was
/// executed before stays. The other goes on, and so does a queue that is made afterwards.
fn wait_robustness(pair: &Pair<'_>) {
    let bench = pair.bench;
    let [signal, wait, drain] = [0; 3].map(|initial| pair.fence(initial));
    let gate = pair.fence(0);
    let (mut first, mut second) = pair.queues();
    let mut list = CommandList::new();
    let signals = list.wait(&gate.0, 1).signal(&signal.0, 1);
    first.submit(signals).unwrap();
    let mut list = CommandList::new();
    list.wait(&signal.1, u64::MAX)
        .signal(&wait.1, 1)
        .wait(&wait.1, 1)
        .signal(&drain.1, 1);
    let value = second.submit(&list).unwrap();
    let event = EventHandle::new().unwrap();
    let sleeper = bench.waiter(&wait.0, 1);
    sleeper.until_asleep();
    bench.until_parked();
    for fence in [&signal, &wait, &drain] {
        assert_eq!(fence.0.current_value(), 0);
    }

    // The event does not keep it: it is closed for all that have a clone.
    let armed = signal.0.wait_event(u64::MAX, &event);
    signal.1.close();
    signal.0.close();
    wait.1.close();
    wait.0.close();
    assert_eq!(armed.outcome(), Some(Err(WaitError::Closed)));
    assert_eq!(event.reset(), 1);
    assert_eq!(sleeper.join(), Err(WaitError::Closed));
    let ended = second.progress_fence().wait(value, LONG);
    assert!(
        matches!(ended, Err(WaitError::QueueFaulted(_))),
        "{ended:?}"
    );
    assert_eq!(drain.0.current_value(), 0);

    let (_, mut anew) = pair.queues();
    complete(&mut anew, CommandList::new().signal(&drain.1, 1));
    assert_eq!(drain.0.wait(1, LONG), Ok(()));
    assert_eq!((drain.0.current_value(), drain.1.current_value()), (1, 1));
}

#[test]
fn d3d12_test_fence_wait_robustness() {
    on_plain(wait_robustness);
}

#[test]
fn d3d12_test_fence_wait_robustness_shared() {
    on_shared(wait_robustness);
}

/// Any and all of several fences: the event is signalled once, when the first has come or the last, and not again by
/// the others; a thread waits the same way; bad lists are refused.
fn wait_multiple(pair: &Pair<'_>) {
    let event = EventHandle::new().unwrap();
    let (mut queue, _) = pair.queues();
    for by_queue in [false, true] {
        let fences = [0; 3].map(|initial| pair.fence(initial));
        let values = [1, 2, 3];
        let waits: Vec<_> = fences.iter().map(|fence| &fence.1).zip(values).collect();
        let mut signal = |at: usize, value| {
            if by_queue {
                complete(&mut queue, CommandList::new().signal(&fences[at].0, value));
                pair.bench.until_told();
            } else {
                fences[at].0.signal(value).unwrap();
            }
        };
        let any = Fence::wait_any_event(&waits, &event).unwrap();
        let all_event = EventHandle::new().unwrap();
        let all = Fence::wait_all_event(&waits, &all_event).unwrap();
        let (any_thread, all_thread) = (Waiter::for_any(&waits), Waiter::for_all(&waits));
        // Too little of the third.
        signal(2, 2);
        assert_eq!((event.reset(), any.outcome()), (0, None));
        signal(1, 2);
        assert_eq!((event.reset(), any.outcome()), (1, Some(Ok(1))));
        assert_eq!(any_thread.join(), Ok(1));
        signal(0, 7);
        assert_eq!((event.reset(), all_event.reset()), (0, 0));
        all_thread.until_asleep();
        signal(2, 3);
        assert_eq!((event.reset(), all_event.reset()), (0, 1));
        assert_eq!((all_thread.join(), all.outcome()), (Ok(()), Some(Ok(()))));
        signal(1, 9);
        assert_eq!((event.reset(), all_event.reset()), (0, 0));
        // And of what has come there is no waiting.
        let there = Fence::wait_any_event(&waits, &event).unwrap();
        assert_eq!((event.reset(), there.outcome()), (1, Some(Ok(0))));
        assert_eq!(Fence::wait_all(&waits, Duration::ZERO), Ok(()));
    }
    let fence = pair.fence(0);
    let many = [(&fence.0, 0); 33];
    let refused = Fence::wait_any_event(&[], &event).map(drop);
    assert_eq!(refused, Err(WaitManyError::NoFence));
    let refused = Fence::wait_all_event(&many, &event).map(drop);
    assert_eq!(refused, Err(WaitManyError::TooMany));
    assert_eq!(event.reset(), 0);
}

#[test]
fn d3d12_test_fence_wait_multiple() {
    on_plain(wait_multiple);
}

#[test]
fn d3d12_test_fence_wait_multiple_shared() {
    on_shared(wait_multiple);
}

/// Two threads have a queue each signal two fences, and each time an event says that all four have come.
#[test]
fn load_d3d12_test_concurrent_signal_stress() {
    const ROUNDS: u64 = 100;
    const SIGNALS: u64 = 10;
    on_every_bench(NodePolicy::default(), |bench| {
        let fences = [0; 4].map(|initial| bench.fence(initial));
        let mut queues = [bench.queue(), bench.queue()];
        let event = EventHandle::new().unwrap();
        for round in 0..ROUNDS {
            let values = round * SIGNALS + 1..=(round + 1) * SIGNALS;
            let waits = fences.each_ref().map(|fence| (fence, *values.end()));
            let all = Fence::wait_all_event(&waits, &event).unwrap();
            thread::scope(|scope| {
                for (queue, fences) in queues.iter_mut().zip(fences.chunks(2)) {
                    let values = values.clone();
                    scope.spawn(move || {
                        for value in values {
                            let mut list = CommandList::new();
                            for fence in fences {
                                list.signal(fence, value);
                            }
                            queue.submit_blocking(&list, LONG).unwrap();
                        }
                    });
                }
            });
            assert_eq!(Fence::wait_all(&waits, LONG), Ok(()));
            bench.until_told();
            assert_eq!((all.outcome(), event.reset()), (Some(Ok(())), 1), "{round}");
        }
    });
}

/// The CPU takes a fence back to 0 while a queue has a signal pending: it reads 0, and another queue's wait for what
/// was there before passes by the pending signal alone, which has then been made.
fn pending_signal_cpu_rewind(pair: &Pair<'_>) {
    for _ in 0..16 {
        let (fence, passed, gate) = (pair.fence(8), pair.fence(0), pair.fence(0));
        let (mut first, mut second) = pair.queues();
        let mut list = CommandList::new();
        list.signal(&fence.0, 9).wait(&gate.0, 1);
        first.submit(list.signal(&fence.0, 10)).unwrap();
        fence.0.wait(9, LONG).unwrap();
        assert_eq!(fence.0.current_value(), 9);
        fence.1.rewind(0).unwrap();
        assert_eq!((fence.0.current_value(), fence.1.current_value()), (0, 0));
        let mut list = CommandList::new();
        list.wait(&fence.1, 9);
        second.submit(list.signal(&passed.1, 1)).unwrap();
        let event = EventHandle::new().unwrap();
        let wait = passed.0.wait_event(1, &event);
        pair.bench.until_parked();
        assert_eq!((passed.0.current_value(), wait.outcome()), (0, None));
        gate.0.signal(1).unwrap();
        passed.0.wait(1, LONG).unwrap();
        assert_eq!(fence.0.current_value(), 10);
    }
}

/// Kills `a-rewind-is-a-signal`.
#[test]
fn d3d12_test_fence_pending_signal_cpu_rewind_plain() {
    on_plain(pending_signal_cpu_rewind);
}

#[test]
fn d3d12_test_fence_pending_signal_cpu_rewind_shared() {
    on_shared(pending_signal_cpu_rewind);
}

/// Three queues wait for each other's signals before those are submitted, in a duel and a chain, and the CPU takes the
/// fence back each time: it always ends.
fn signal_order_deadlock_stress(pair: &Pair<'_>, rounds: u64) {
    let (fence, duel) = (pair.fence(0), pair.fence(0));
    let (mut chain, mut a) = pair.queues();
    let mut b = pair.bench.queue();
    for round in 0..rounds {
        fence.0.rewind(0).unwrap();
        let mut list = CommandList::new();
        for value in (1..10).step_by(2) {
            list.wait(&fence.0, value).signal(&fence.0, value + 1);
        }
        let chained = chain.submit(&list).unwrap();
        let mut list = CommandList::new();
        list.signal(&duel.1, 1).wait(&duel.1, 2);
        for value in (1..10).step_by(2) {
            list.signal(&fence.1, value).wait(&fence.1, value + 1);
        }
        let ended = a.submit(list.signal(&duel.1, 0)).unwrap();
        let mut list = CommandList::new();
        list.wait(&duel.0, 1);
        b.submit(list.signal(&duel.0, 2)).unwrap();
        assert_eq!(fence.0.wait(10, LONG), Ok(()), "{round}");
        // Here a wait is over when its queue has looked, and no sooner: the value stays until then (NF-09).
        a.progress_fence().wait(ended, LONG).unwrap();
        chain.progress_fence().wait(chained, LONG).unwrap();
    }
}

#[test]
fn load_d3d12_test_fence_signal_order_deadlock_stress_plain() {
    on_plain(|pair| signal_order_deadlock_stress(pair, 2_000));
}

#[test]
fn load_d3d12_test_fence_signal_order_deadlock_stress_shared() {
    on_shared(|pair| signal_order_deadlock_stress(pair, 2_000));
}

/// What holds here of `test_fence_ping_pong_deadlock_stress`, where the CPU takes back the very fence that the queues
/// wait for: a chain of 4096 steps between two queues ends, though the CPU takes back all the time what both store
/// beside it.
fn ping_pong_beside_rewinds(pair: &Pair<'_>) {
    const STEPS: u64 = 4096;
    let (fence, beside, over) = (pair.fence(0), pair.fence(0), AtomicBool::new(false));
    let (mut first, mut second) = pair.queues();
    let pass_on = |queue: &mut HwQueue, fence: &Fence, beside: &Fence, from: u64| {
        for step in (from..STEPS).step_by(2) {
            let mut list = CommandList::new();
            list.wait(fence, step).signal(beside, step + 1);
            queue
                .submit_blocking(list.signal(fence, step + 1), LONG)
                .unwrap();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                beside.0.rewind(0).unwrap();
            }
        });
        let _ended = Ended(&over);
        thread::scope(|scope| {
            scope.spawn(|| pass_on(&mut first, &fence.0, &beside.0, 0));
            scope.spawn(|| pass_on(&mut second, &fence.1, &beside.1, 1));
        });
        assert_eq!(fence.0.wait(STEPS, 3 * LONG), Ok(()));
    });
    assert_eq!(fence.1.current_value(), STEPS);
}

#[test]
fn load_d3d12_a_ping_pong_ends_beside_rewinds_plain() {
    on_plain(ping_pong_beside_rewinds);
}

#[test]
fn load_d3d12_a_ping_pong_ends_beside_rewinds_shared() {
    on_shared(ping_pong_beside_rewinds);
}

/// What holds here of `test_fence_signal_availability`, where D3D12's queues remember each value that a fence had while
/// a wait for it was queued: a queue's wait passes by the value that stands when the queue looks (NF-09), so that one
/// which is taken back before that is not seen, by whomever it was stored; a wait of the CPU that it satisfied stays so
/// (NF-26).
#[test]
fn d3d12_a_queue_waits_for_what_stands_when_it_looks() {
    on_every_bench(NodePolicy::default(), |bench| {
        for by_queue in [false, true] {
            let [fence, between, progress] = [0; 3].map(|initial| bench.fence(initial));
            let (mut queue, mut other) = (bench.queue(), bench.queue());
            let mut list = CommandList::new();
            for value in 1..=4 {
                list.wait(&fence, value);
            }
            list.signal(&progress, 1).wait(&between, 1);
            for value in 5..=8 {
                list.wait(&fence, value);
            }
            let end = queue.submit(list.signal(&progress, 2)).unwrap();
            let kept = [5, 6, 7, 8].map(|value| fence.arm(value));
            if by_queue {
                complete(&mut other, CommandList::new().signal(&fence, 8));
            } else {
                fence.signal(8).unwrap();
            }
            progress.wait(1, LONG).unwrap();
            fence.rewind(0).unwrap();
            between.signal(1).unwrap();
            bench.until_parked();
            assert_eq!(progress.current_value(), 1);
            assert!(kept.iter().all(|wait| wait.outcome() == Some(Ok(()))));
            fence.signal(8).unwrap();
            until_completed(&queue, end);
            assert_eq!(progress.current_value(), 2);
        }
    });
}
