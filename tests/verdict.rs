//! Why queues make no progress, told apart on real engines (TD-15).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::{DriverOptions, HwQueueHandle};
use native_fence::os::{Cycle, CycleLink, QueueStop, QueueVerdict, Verdict};
use native_fence::{
    CommandList, Device, FenceOptions, HwQueue, HwQueueOptions, KernelQueueError, TdrPolicy,
    WaitError,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use support::bench::{
    Bench, Ended, LONG, Moment, TdrCall, complete, hang_until_aborted, large, native,
    on_benches_of, on_every_bench, on_patient_benches, on_recovering_benches, soon, until,
    until_completed, until_sleeping,
};

const ORPHANED: WaitError = WaitError::QueueStopped(QueueStop::Orphaned);
const DEADLOCKED: WaitError = WaitError::QueueStopped(QueueStop::Deadlocked);
const WAITING: Verdict = Verdict::Waiting { suspicion: None };

fn verdicts(bench: &Bench) -> Vec<QueueVerdict> {
    bench.adapter.os().verdicts()
}

fn handle(queue: &HwQueue) -> HwQueueHandle {
    queue.os().handle()
}

fn of(queue: &HwQueue, verdict: Verdict) -> QueueVerdict {
    let hw_queue = handle(queue);
    QueueVerdict { hw_queue, verdict }
}

/// A queue of a node, which waits for nothing yet.
fn queue_on(device: &Device, node_ordinal: u32) -> HwQueue {
    let options = HwQueueOptions {
        node_ordinal,
        ..HwQueueOptions::default()
    };
    device.create_hw_queue_with(options).unwrap()
}

/// Has a queue wait for the progress of another to be `value`.
fn wait_for(queue: &mut HwQueue, other: &HwQueue, value: u64) {
    let list = CommandList::new()
        .wait(other.progress_fence(), value)
        .clone();
    queue.submit(&list).unwrap();
}

fn until_stopped(queue: &HwQueue) -> WaitError {
    until("the queue is stopped", || queue.error().is_some());
    queue.error().unwrap()
}

/// Engines that were asked whether they answer, oldest first.
fn asked(bench: &Bench) -> Vec<u32> {
    let node = |call| match call {
        TdrCall::QueryEngineStatus(node) => Some(node),
        _ => None,
    };
    bench.spy.tdr_calls().into_iter().filter_map(node).collect()
}

/// TD-15: somebody can still signal: a queue that stands at a wait waits, however long, and an idle one is
/// nobody's concern. To ask costs the GPU nothing, and changes nothing: no engine is asked about a wait.
///
/// Kills `engines-are-asked-about-waits`.
#[test]
fn td_15_a_queue_whose_value_somebody_can_signal_waits() {
    on_patient_benches(1, |bench| {
        let fence = bench.fence(0);
        let (mut queue, _idle) = (bench.queue(), bench.queue());
        let value = queue.submit(CommandList::new().wait(&fence, 7)).unwrap();
        bench.until_parked();
        let slices = bench.counters().slices;
        for _ in 0..2 {
            assert_eq!(verdicts(bench), [of(&queue, WAITING)]);
        }
        assert!(asked(bench).is_empty());
        assert_eq!(bench.counters().slices, slices);
        fence.signal(7).unwrap();
        assert_eq!(queue.progress_fence().wait(value, LONG), Ok(()));
        bench.until_parked();
        assert_eq!(verdicts(bench), []);
        assert_eq!(bench.adapter.os().certain_verdicts(), []);
    });
}

/// TD-15, TD-19: a queue that is at work is hung if its engine answers nothing, by the driver: one whose slice
/// does not begin. One that stands at a wait is not asked about.
///
/// Kills `every-engine-answers` and `no-engine-is-asked`.
#[test]
fn td_15_a_queue_is_hung_whose_slice_does_not_begin() {
    on_patient_benches(2, |bench| {
        let fence = bench.fence(0);
        let (mut stands, mut works) = (bench.queue_on(1), bench.queue_on(0));
        stands.submit(CommandList::new().wait(&fence, 1)).unwrap();
        bench.until_parked();
        let gate = bench.engines[0].close();
        let value = works.submit(CommandList::new().nop()).unwrap();
        let expected = [of(&works, Verdict::Hung), of(&stands, WAITING)];
        assert_eq!(verdicts(bench), expected);
        assert_eq!(asked(bench), [0]);
        drop(gate);
        assert_eq!(works.progress_fence().wait(value, LONG), Ok(()));
        bench.until_parked();
        assert_eq!(verdicts(bench), [of(&stands, WAITING)]);
    });
}

/// TD-15: the same of an engine in a packet that heeds no request, before it has timed out; a queue that stands
/// at a wait on that engine waits. Of one whose engine copies for long nothing is said, since it answers.
///
/// Kills `every-engine-answers`, `no-engine-is-asked`, `no-engine-answers` and `a-wait-is-a-hang`.
#[test]
fn td_15_a_queue_is_hung_whose_engine_answers_nothing() {
    let late = TdrPolicy {
        delay: Duration::from_secs(600),
        ..soon()
    };
    on_recovering_benches(2, late, &DriverOptions::default(), |bench| {
        let mut works = bench.queue_on(1);
        let [from, to] = [0, 1].map(|_| large(bench));
        let mut list = CommandList::new();
        for _ in 0..8 {
            list.copy(&from, 0..from.bytes(), &to, 0);
        }
        let value = works.submit(&list).unwrap();
        while works.progress_fence().current_value() < value {
            assert_eq!(verdicts(bench), [], "it copies");
        }
        assert!(asked(bench).contains(&1));

        let (fence, mut stands) = (bench.fence(0), bench.queue_on(0));
        stands.submit(CommandList::new().wait(&fence, 1)).unwrap();
        bench.until_parked();
        let mut hangs = bench.queue_on(0);
        hang_until_aborted(&mut hangs);
        bench.until_stalled();
        let driver = bench.parking_driver();
        let expected = [of(&stands, WAITING), of(&hangs, Verdict::Hung)];
        for _ in 0..2 {
            assert_eq!(verdicts(bench), expected);
        }
        assert_eq!(hangs.error(), None);
        driver.node(0).unwrap().abort_stall();
        until("the packet has ended", || hangs.error().is_some());
        bench.until_parked();
        assert_eq!(verdicts(bench), [of(&stands, WAITING)]);
    });
}

/// TD-15, TD-18: who asks engines is alone in that: while a thread submits to another engine, nobody is asked, and
/// the verdicts come when it has left.
///
/// Kills `who-asks-for-verdicts-is-not-alone`.
#[test]
fn td_18_engines_are_asked_by_one_thread_at_a_time() {
    on_patient_benches(2, |bench| {
        let (mut works, mut kernel) = (
            bench.queue_on(0),
            bench.device.create_kernel_queue_on(1).unwrap(),
        );
        bench.initialised(1);
        bench.until_parked();
        let _gate = bench.engines[0].close();
        works.submit(CommandList::new().nop()).unwrap();
        let [is_inside, goes_on] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (inside, leaves) = (Arc::clone(&is_inside), Arc::clone(&goes_on));
        bench.spy.once(Moment::InSubmitCommand, move || {
            inside.store(true, Ordering::Release);
            until("the test lets it go", || leaves.load(Ordering::Acquire));
        });
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            let ends = Ended(&goes_on);
            let submits = scope.spawn(|| kernel.submit(CommandList::new().nop()).map(drop));
            until("a thread is inside", || is_inside.load(Ordering::Acquire));
            let asks = scope.spawn(move || {
                tell.send(rustix::thread::gettid()).unwrap();
                verdicts(bench)
            });
            until_sleeping(told.recv().unwrap());
            assert!(asked(bench).is_empty());
            drop(ends);
            assert!(asks.join().unwrap().contains(&of(&works, Verdict::Hung)));
            submits.join().unwrap().unwrap();
        });
        assert!(asked(bench).contains(&0));
        let (calls, met) = bench.spy.level_one();
        assert_eq!(met, 0, "of {calls}");
    });
}

/// TD-15: queues that wait for each other's progress, which nobody else can bring: it is found when the engine
/// parks, with no one asking. The youngest wait fails, and is told with the circle; the others then wait for
/// what nobody is left to reach, and fail at once, and so do CPU waits for their progress. A queue that is in
/// no circle goes on.
///
/// Kills `a-circle-is-left-to-itself`, `the-oldest-wait-fails` and `parking-is-no-event`.
#[test]
fn td_15_a_deadlock_is_found_and_its_youngest_wait_fails() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut well = bench.queue();
        let mut queues = [bench.queue(), bench.queue(), bench.queue()];
        let waiters = [0, 1, 2].map(|at| bench.waiter(queues[at].progress_fence(), 1));
        // The last closes the circle, and has waited for the shortest time.
        for at in [1, 0, 2] {
            let (fence, list) = (
                queues[(at + 1) % 3].progress_fence().clone(),
                &mut CommandList::new(),
            );
            queues[at].submit(list.wait(&fence, 1)).unwrap();
            if at != 2 {
                bench.until_parked();
            }
        }
        let errors = [0, 1, 2].map(|at| until_stopped(&queues[at]));
        assert_eq!(errors, [ORPHANED, ORPHANED, DEADLOCKED]);
        for (waiter, error) in waiters.into_iter().zip(errors) {
            assert_eq!(waiter.join(), Err(error));
        }
        let link = |at: usize| CycleLink {
            hw_queue: handle(&queues[at]),
            fence: native(queues[(at + 1) % 3].progress_fence()).id(),
            value: 1,
        };
        let cycle = Cycle(vec![link(0), link(1), link(2)]);
        let told = bench.adapter.os().certain_verdicts();
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(told[0], of(&queues[2], Verdict::Deadlocked { cycle }));
        assert!(
            told[1..]
                .iter()
                .all(|told| told.verdict == Verdict::Orphaned)
        );
        assert_eq!(verdicts(bench), []);
        complete(&mut well, CommandList::new().nop());
    });
}

/// TD-15: the same across engines, of queues of two nodes; and of one queue that waits for itself.
///
/// Kills `a-circle-is-left-to-itself`.
#[test]
fn td_15_a_deadlock_across_engines_or_of_one_queue_is_found() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let [mut one, mut other] = [bench.queue_on(0), bench.queue_on(1)];
        wait_for(&mut one, &other, 1);
        wait_for(&mut other, &one, 1);
        let mut errors = [until_stopped(&one), until_stopped(&other)];
        errors.sort_by_key(|error| *error == DEADLOCKED);
        assert_eq!(errors, [ORPHANED, DEADLOCKED]);
        let mut alone = bench.queue_on(0);
        let own = alone.progress_fence().clone();
        alone.submit(CommandList::new().wait(&own, 1)).unwrap();
        assert_eq!(until_stopped(&alone), DEADLOCKED);
    });
}

/// TD-15: kernel-mode queues that wait for each other's progress. The youngest wait fails, and the other's ends
/// with that.
///
/// Kills `a-kernel-mode-wait-is-no-event`.
#[test]
fn td_15_a_deadlock_of_kernel_mode_queues_is_found() {
    on_every_bench(NodePolicy::default(), |bench| {
        let create = || bench.device.create_kernel_queue().unwrap();
        let (mut one, mut other) = (create(), create());
        let (of_one, of_other) = (one.progress_fence().clone(), other.progress_fence().clone());
        one.wait(&of_other, 1).unwrap();
        assert_eq!(one.error(), None);
        let refused = other.wait(&of_one, 1).map(drop);
        assert_eq!(refused, Err(KernelQueueError::Stopped(DEADLOCKED)));
        assert_eq!(other.error(), Some(DEADLOCKED));
        let stop = WaitError::QueueStopped(QueueStop::OtherQueue);
        assert_eq!(one.error(), Some(stop));
    });
}

/// TD-15: a kernel-mode queue that is held at a wait for its own progress waits in no circle while its engine has what
/// brings it. Once that is done, what nobody is left to bring is found, with no one asking.
///
/// Kills `what-an-engine-has-is-forgotten` and `a-completion-is-no-event`.
#[test]
fn td_15_a_kernel_mode_queue_waits_for_what_its_engine_has() {
    on_every_bench(NodePolicy::default(), |bench| {
        let target = bench.device.create_allocation(1 << 22).unwrap();
        let mut fill = CommandList::new();
        fill.fill(&target, 0..1 << 22, 7);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let own = queue.progress_fence().clone();
        for _ in 0..4 {
            let value = queue.submit(&fill).unwrap();
            queue.wait(&own, value).unwrap();
        }
        let value = queue.submit(CommandList::new().nop()).unwrap();
        own.wait(value, LONG).unwrap();
        assert_eq!(queue.error(), None);
        // One more than it can come to before that wait is over. Where the engine has done it by then, the call finds it.
        let value = queue.submit(&fill).unwrap();
        let queued = queue.wait(&own, value + 1).map(drop);
        assert!(
            matches!(queued, Ok(()) | Err(KernelQueueError::Stopped(DEADLOCKED))),
            "{queued:?}"
        );
        until("the circle is found", || queue.error() == Some(DEADLOCKED));
    });
}

/// TD-15: a wait that stands behind another is judged where it comes to stand, when that one is over: whoever ends it
/// is the last that does anything with the queue.
///
/// Kills `a-kernel-mode-wait-is-no-event`.
#[test]
fn td_15_a_kernel_mode_wait_is_judged_when_the_one_before_it_is_over() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let own = queue.progress_fence().clone();
        queue.wait_native(&fence, 1).unwrap();
        queue.wait(&own, 1).unwrap();
        // Behind both, so that it comes too late.
        queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(queue.error(), None);
        fence.signal(1).unwrap();
        until("the circle is found", || queue.error() == Some(DEADLOCKED));
    });
}

/// TD-15: the circle is a suspicion where its fences could be signalled by somebody else as well, a handle for
/// the CPU being enough: it is told to who asks, no wait fails, and the CPU opens it.
///
/// Kills `a-suspicion-is-not-told` and `a-process-cannot-signal`.
#[test]
fn td_15_a_circle_that_the_cpu_can_open_is_a_suspicion() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let (a, b) = (bench.fence(0), bench.fence(0));
        let [mut one, mut other] = [bench.queue_on(0), bench.queue_on(1)];
        let ends = [
            one.submit(CommandList::new().wait(&a, 1).signal(&b, 2))
                .unwrap(),
            other
                .submit(CommandList::new().wait(&b, 2).signal(&a, 1))
                .unwrap(),
        ];
        bench.until_parked();
        let link = |queue: &HwQueue, fence, value| CycleLink {
            hw_queue: handle(queue),
            fence: native(fence).id(),
            value,
        };
        let cycle = Cycle(vec![link(&one, &a, 1), link(&other, &b, 2)]);
        let suspicion = Some(cycle);
        let suspected = Verdict::Waiting { suspicion };
        let expected = [of(&one, suspected.clone()), of(&other, suspected)];
        assert_eq!(verdicts(bench), expected);
        assert_eq!((one.error(), other.error()), (None, None));
        assert_eq!(bench.adapter.os().certain_verdicts(), []);
        a.signal(1).unwrap();
        until_completed(&one, ends[0]);
        until_completed(&other, ends[1]);
    });
}

/// TD-15: a queue waits for the progress of one that is destroyed, or stopped at a packet, or lost with its
/// device's reset: its wait fails at once, with what waits for it in turn. While the other is there and idle
/// the wait stands.
///
/// Open: an engine that does not park again, since others keep it at work: there the fault and the end of the
/// queue are the events, and here the parking is one as well.
///
/// Kills `a-stopped-queue-may-signal`.
#[test]
fn td_15_what_nobody_is_left_to_reach_is_orphaned_at_once() {
    for destroyed in [true, false] {
        on_benches_of(2, NodePolicy::default(), |bench| {
            let closed = bench.fence(0);
            let mut goes = bench.queue_on(0);
            let [mut first, mut second] = [bench.queue_on(1), bench.queue_on(0)];
            wait_for(&mut first, &goes, 5);
            wait_for(&mut second, &first, 1);
            let waiter = bench.waiter(second.progress_fence(), 1);
            bench.until_parked();
            assert_eq!(verdicts(bench).len(), 2);
            assert_eq!((first.error(), second.error()), (None, None));
            // The user may keep the fence of a queue that is gone.
            let _progress = goes.progress_fence().clone();
            if destroyed {
                drop(goes);
            } else {
                closed.close();
                goes.submit(CommandList::new().signal(&closed, 1)).unwrap();
            }
            assert_eq!(waiter.join(), Err(ORPHANED));
            let errors = [&first, &second].map(until_stopped);
            assert_eq!(errors, [ORPHANED, ORPHANED]);
        });
    }
}

/// TD-15, NF-23: a queue waits for what nobody may signal, in whatever process.
///
/// Kills `a-process-may-signal-whatever-its-right`.
#[test]
fn td_15_a_fence_that_nobody_may_signal_orphans_its_queue() {
    on_every_bench(NodePolicy::default(), |bench| {
        let options = FenceOptions {
            initial: 3,
            no_signal: true,
            ..FenceOptions::default()
        };
        let fence = bench.device.create_fence_with(options).unwrap();
        let (mut passes, mut stands) = (queue_on(&bench.device, 0), queue_on(&bench.device, 0));
        complete(&mut passes, CommandList::new().wait(&fence, 3));
        stands.submit(CommandList::new().wait(&fence, 4)).unwrap();
        assert_eq!(until_stopped(&stands), ORPHANED);
        assert_eq!(passes.error(), None);
    });
}

/// What becomes of a queue and a CPU wait whose value is reached while no interrupt comes.
fn lose_notifications(bench: &Bench, act: impl FnOnce(&Bench)) {
    let (fence, other) = (bench.fence(0), bench.fence(0));
    let [mut signals, mut stands] = [bench.queue_on(0), bench.queue_on(1)];
    let end = stands.submit(CommandList::new().wait(&fence, 1)).unwrap();
    bench.until_parked();
    let cpu = other.arm(1);
    bench.until_told();
    bench.spy.keep_interrupts();
    let list = &mut CommandList::new();
    signals
        .submit(list.signal(&fence, 1).signal(&other, 1))
        .unwrap();
    until("the values are stored", || other.current_value() == 1);
    assert_eq!(fence.current_value(), 1);
    assert_eq!(
        stands.progress_fence().current_value(),
        0,
        "nobody was woken"
    );
    assert_eq!(bench.adapter.os().lost_notifications(), 0);
    act(bench);
    until_completed(&stands, end);
    drop(cpu);
}

/// TD-15: the value is reached and nobody was woken: who asks is told, the queue is woken, and so is who waits
/// on the CPU; both are counted, and nothing is reset.
///
/// Kills `lost-notifications-are-not-counted` and `a-cpu-waiter-is-left-asleep`.
#[test]
fn td_15_a_lost_notification_is_woken_and_counted() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        lose_notifications(bench, |bench| {
            let told = verdicts(bench);
            assert_eq!(told.len(), 1, "{told:?}");
            assert_eq!(told[0].verdict, Verdict::LostNotification);
            assert_eq!(bench.adapter.os().lost_notifications(), 2);
        });
    });
}

/// TD-15: a CPU wait that expires is reason enough to look, whatever it waited for.
///
/// Kills `an-expired-wait-is-no-event` and `a-lost-notification-is-not-woken`.
#[test]
fn td_15_an_expired_wait_finds_a_lost_notification() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let elsewhere = bench.fence(0);
        lose_notifications(bench, |bench| {
            let expired = elsewhere.wait(1, Duration::from_millis(1));
            assert_eq!(expired, Err(WaitError::TimedOut));
            assert_eq!(bench.adapter.os().lost_notifications(), 1);
        });
    });
}
