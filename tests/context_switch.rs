//! Context switches of kernel-mode queues (PR-12): the engine lets go of what it has executed.
//!
//! Of user-mode queues SuspendContext does this (`suspend`). Open: the OS moves nothing that a kernel-mode
//! queue uses, so what it submits a switch for is the end of a queue.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::Packet;
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{
    DdiError, DriverOptions, HwQueueHandle, Interrupt, PreemptCommand, SubmitCommand,
    SubmitCommandFlags,
};
use native_fence::os::SystemDevice;
use native_fence::{CommandList, KernelQueue};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use support::bench::{
    Bench, Call, Ended, LONG, Moment, fill, is_sleeping, large, on_benches_with, on_every_bench,
    short, until, words,
};

const NEW: SubmitCommandFlags = SubmitCommandFlags(0);
const AGAIN: SubmitCommandFlags = SubmitCommandFlags::RESUBMISSION;
const SWITCH: SubmitCommandFlags = SubmitCommandFlags::CONTEXT_SWITCH;
const PAGING: SubmitCommandFlags = SubmitCommandFlags::PAGING;

/// Hands a queue a command, as the OS does.
fn submit(
    bench: &Bench,
    queue: &KernelQueue,
    submission_id: u64,
    (packets, progress_value): (&[Packet], u64),
    flags: SubmitCommandFlags,
) -> Result<(), DdiError> {
    let driver = bench.spy.driver();
    driver.submit_command_to_hw_queue(&SubmitCommand {
        hw_queue: queue.os().handle(),
        submission_id,
        packets,
        flags,
        progress_value,
    })
}

/// Ids that have completed, in the order in which the OS was told.
fn completed(bench: &Bench) -> Vec<u64> {
    let id = |told| match told {
        Interrupt::DmaCompleted { submission_id, .. } => Some(submission_id),
        _ => None,
    };
    let told = bench.spy.interrupts().into_iter();
    told.filter_map(id).collect()
}

fn until_completed(bench: &Bench, id: u64) {
    until("the command completes", || completed(bench).contains(&id));
}

fn progress(queue: &KernelQueue) -> u64 {
    queue.progress_fence().current_value()
}

/// Queue, id and flags of what the driver was handed, in their order.
fn handed(bench: &Bench) -> Vec<(HwQueueHandle, u64, SubmitCommandFlags)> {
    let command = |call| match call {
        Call::SubmitCommand {
            hw_queue,
            submission_id,
            flags,
        } => Some((hw_queue, submission_id, flags)),
        _ => None,
    };
    bench.spy.calls().into_iter().filter_map(command).collect()
}

/// PR-12: a queue that has completed all stays in the engine's slices. A switch of it completes with its id,
/// when the slice in flight that may know the queue has ended and not before; from then on no slice has it,
/// while another queue runs. The next command brings it back. A switch of a queue that no slice knows is
/// answered within the call, and touches no engine.
///
/// Kills `a-context-switch-is-answered-at-once`, `a-switched-context-stays-in-slices`,
/// `a-switch-is-not-told`.
#[test]
fn pr_12_a_context_switch_lets_go_of_the_context() {
    on_every_bench(NodePolicy::default(), |bench| {
        let [mut one, other] = [(); 2].map(|()| bench.device.create_kernel_queue().unwrap());
        let before = bench.initialised(0);
        let end = one.submit(CommandList::new().nop()).unwrap();
        one.progress_fence().wait(end, LONG).unwrap();
        until_completed(bench, before + 1);
        bench.until_parked();
        // The OS's own has initialised their areas, and stays in the engine's slices.
        let of_os = 1;
        // This test is the OS from here on.
        bench.spy.keep_interrupts();
        let nop = [Packet::nop()];
        bench.engine.take_works();
        let gate = bench.engine.close();
        submit(bench, &other, before + 2, (&nop, 1), NEW).unwrap();
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        let queues = bench.engine.take_works()[0].queues;
        assert_eq!(queues, of_os + 2, "its state is there");
        submit(bench, &one, before + 3, (&[], 0), SWITCH).unwrap();
        submit(bench, &one, before + 4, (&[], 0), SWITCH).expect_err("one has not completed");
        assert_eq!(completed(bench).last(), Some(&(before + 1)));
        drop(gate);
        until_completed(bench, before + 3);
        until_completed(bench, before + 2);
        bench.until_parked();

        bench.engine.take_works();
        submit(bench, &other, before + 5, (&nop, 2), NEW).unwrap();
        until_completed(bench, before + 5);
        bench.until_parked();
        let works = bench.engine.take_works();
        let is_without = |queues| queues == of_os + 1;
        assert!(!works.is_empty() && works.iter().all(|work| is_without(work.queues)));
        let slices = bench.counters().slices;
        submit(bench, &one, before + 6, (&[], 0), SWITCH).unwrap();
        until_completed(bench, before + 6);
        assert!(bench.is_parked(0));
        assert_eq!(bench.counters().slices, slices);

        submit(bench, &one, before + 7, (&nop, 2), NEW).unwrap();
        until_completed(bench, before + 7);
        assert_eq!((progress(&one), progress(&other)), (2, 2));
    });
}

/// PR-12, PR-04: a switch has no packets, and comes when the commands before it have completed or were taken
/// back. A fill that was preempted in the middle is let go of; back on the engine it goes on from its saved
/// state.
///
/// Kills `a-switch-overtakes-commands`, `a-switch-has-packets`.
#[test]
fn pr_12_a_preempted_context_is_let_go_of() {
    on_every_bench(short(), |bench| {
        let target = large(bench);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let before = bench.initialised(0);
        bench.until_parked();
        let gate = bench.engine.close();
        let end = queue.submit(&fill(&target, 7)).unwrap();
        until("the fill has begun", || {
            let mut word = [0];
            target.read(0, &mut word);
            if word[0] == 0 && bench.engine.at_gate() > 0 {
                gate.let_pass(1);
            }
            word[0] != 0
        });
        // This test is the OS from here on.
        bench.spy.keep_interrupts();
        submit(bench, &queue, before + 2, (&[], 0), SWITCH).expect_err("it has not completed");
        let preempt = PreemptCommand {
            preemption_id: 1,
            node_ordinal: 0,
            engine_ordinal: 0,
        };
        bench.spy.driver().preempt_command(&preempt).unwrap();
        drop(gate);
        let is_answer = |told: &Interrupt| matches!(told, Interrupt::DmaPreempted { .. });
        bench.spy.until_handled(is_answer).unwrap();
        bench.until_parked();
        let nop = [Packet::nop()];
        submit(bench, &queue, before + 3, (&nop, 0), SWITCH).expect_err("it has a packet");
        submit(bench, &queue, before + 4, (&[], 0), SWITCH).unwrap();
        // Told by this thread, or by one that was telling already.
        until_completed(bench, before + 4);
        assert_eq!(words(&target).last(), Some(&0), "in the middle");
        assert_eq!(progress(&queue), 0);
        submit(bench, &queue, before + 5, (&nop, end), AGAIN).unwrap();
        until_completed(bench, before + 5);
        let last: Vec<_> = completed(bench)
            .into_iter()
            .filter(|id| *id > before)
            .collect();
        assert_eq!(last, [before + 4, before + 5]);
        assert!(words(&target).iter().all(|word| *word == 7));
    });
}

/// PR-12: before the OS has the driver free a kernel-mode queue that has run, it submits a switch of it, with
/// the engine's next id, which completes as the queue goes; of the system device's queue with Paging
/// too. A queue that never ran has no state on the engine, and gets none. One that is dropped with a fill
/// half done is let go of as well, and nothing more of it is stored.
///
/// Kills `a-queue-is-freed-under-its-engine`, `a-switch-of-paging-does-not-say-so`,
/// `a-queue-that-never-ran-is-switched`.
#[test]
fn pr_12_a_queue_is_let_go_of_before_it_is_freed() {
    on_every_bench(short(), |bench| {
        let target = large(bench);
        let system = SystemDevice::open(bench.adapter.os(), 0).unwrap();
        let paged = system.open_allocation(target.os()).unwrap();
        let paged_in = system.fill(&paged, 0..64, 1).unwrap();
        let is_in = || system.progress_fence().fence().current_value() >= paged_in;
        until("the paging packet completes", is_in);
        let mut ran = bench.device.create_kernel_queue().unwrap();
        let end = ran.submit(CommandList::new().nop()).unwrap();
        ran.progress_fence().wait(end, LONG).unwrap();
        let quiet = bench.device.create_kernel_queue().unwrap();
        let mut fills = bench.device.create_kernel_queue().unwrap();
        let begun = bench.initialised(0) + 1;
        bench.until_parked();
        let gate = bench.engine.close();
        fills.submit(&fill(&target, 7)).unwrap();
        until("the fill has begun", || {
            if words(&target)[0] == 1 && bench.engine.at_gate() > 0 {
                gate.let_pass(1);
            }
            words(&target)[0] == 7
        });
        drop(gate);
        let [of_ran, of_fills] = [&ran, &fills].map(|queue| queue.os().handle());
        let of_system = system.queue().handle();
        let calls = bench.spy.calls().len();
        drop(fills);
        let stored = words(&target);
        drop(ran);
        drop(quiet);
        drop(paged);
        drop(system);
        bench.until_parked();
        assert!(stored == words(&target), "nothing more of it");
        let handed = handed(bench);
        let switched = [of_fills, of_ran, of_system].into_iter().zip(begun + 1..);
        let flags = [SWITCH, SWITCH, SWITCH.with(PAGING)];
        let expected: Vec<_> = switched
            .zip(flags)
            .map(|((of, id), flags)| (of, id, flags))
            .collect();
        assert_eq!(handed[handed.len() - 3..], expected);
        let ids = || -> Vec<u64> {
            let completed = completed(bench).into_iter();
            completed.filter(|id| *id > begun).collect()
        };
        // Another thread may be telling the OS of something.
        until("each has completed", || ids().len() == 3);
        assert_eq!(ids(), [begun + 1, begun + 2, begun + 3]);
        let ids = bench.adapter.os().submission_ids(0);
        assert_eq!(ids, (begun + 3, begun + 3));
        let calls = bench.spy.calls().split_off(calls);
        for queue in [of_fills, of_ran, of_system] {
            let switched = |call: &Call| matches!(call, Call::SubmitCommand { hw_queue, .. } if *hw_queue == queue);
            let freed = |call: &Call| *call == Call::DestroyHwQueue(queue);
            let [switched, freed] = [
                calls.iter().position(switched),
                calls.iter().position(freed),
            ];
            assert!(switched.is_some() && switched < freed);
        }
    });
}

/// Drops a queue that has run while the driver takes no switch of it, until it does: the switch comes all the
/// same, completes, and is before the end of the queue.
fn drop_meanwhile(bench: &Bench, ran: KernelQueue, then: impl FnOnce()) {
    let of_ran = ran.os().handle();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let drops = scope.spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            drop(ran);
        });
        let thread = told.recv().unwrap();
        until("it waits, or is gone", || {
            drops.is_finished() || is_sleeping(thread)
        });
        then();
    });
    let calls = bench.spy.calls();
    let is_switch = |call: &Call| matches!(call, Call::SubmitCommand { hw_queue, flags, .. } if *hw_queue == of_ran && *flags == SWITCH);
    let switched = calls.iter().position(is_switch);
    let freed = Call::DestroyHwQueue(of_ran);
    let freed = calls.iter().position(|call| *call == freed);
    assert!(
        switched.is_some() && switched < freed,
        "{switched:?} {freed:?}"
    );
    let (_, last, _) = *handed(bench).last().unwrap();
    until_completed(bench, last);
    assert_eq!(bench.adapter.os().submission_ids(0), (last, last));
}

/// One that has run, and another.
fn ran_and_other(bench: &Bench) -> [KernelQueue; 2] {
    let [mut ran, other] = [(); 2].map(|()| bench.device.create_kernel_queue().unwrap());
    let end = ran.submit(CommandList::new().nop()).unwrap();
    ran.progress_fence().wait(end, LONG).unwrap();
    bench.initialised(0);
    bench.until_parked();
    [ran, other]
}

/// PR-12: where another thread is in the driver and hands commands over, the switch of a queue that goes comes
/// after these, and before its end.
///
/// Kills `a-switch-is-not-waited-for`.
#[test]
fn pr_12_a_queue_is_let_go_of_beside_a_thread_that_hands_over() {
    on_every_bench(NodePolicy::default(), |bench| {
        let [ran, mut other] = ran_and_other(bench);
        let (goes_on, is_inside) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
        let is_inside = Arc::new(is_inside);
        let (may_go_on, inside) = (Arc::clone(&goes_on), Arc::clone(&is_inside));
        bench.spy.once(Moment::InSubmitCommand, move || {
            inside.store(true, Ordering::Release);
            until("the other has come", || may_go_on.load(Ordering::Acquire));
        });
        let submitted = bench.adapter.os().submission_ids(0).0 + 1;
        thread::scope(|scope| {
            let _ends = Ended(&goes_on);
            let submits = scope.spawn(|| other.submit(CommandList::new().nop()).unwrap());
            until("a thread hands over", || is_inside.load(Ordering::Acquire));
            drop_meanwhile(bench, ran, || {
                goes_on.store(true, Ordering::Release);
                submits.join().unwrap();
                until_completed(bench, submitted);
            });
        });
    });
}

/// PR-12: the same while the engine is being preempted, and takes nothing until it has answered.
///
/// Kills `a-switch-is-not-waited-for`.
#[test]
fn pr_12_a_queue_is_let_go_of_beside_a_preemption() {
    on_every_bench(NodePolicy::default(), |bench| {
        let [ran, mut third] = ran_and_other(bench);
        let gate = bench.engine.close();
        third.submit(CommandList::new().nop()).unwrap();
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        bench.adapter.os().preempt(0).unwrap();
        drop_meanwhile(bench, ran, || {
            drop(gate);
            third.progress_fence().wait(1, LONG).unwrap();
        });
    });
}

/// PR-12, FQ-05: a driver that is not PreemptionAware is given no switch.
///
/// Kills `a-switch-without-preemption`.
#[test]
fn pr_12_without_preemption_nothing_is_switched() {
    let options = DriverOptions {
        not_preemption_aware: true,
        ..DriverOptions::default()
    };
    on_benches_with(1, NodePolicy::default(), &options, |bench| {
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let end = queue.submit(CommandList::new().nop()).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        drop(queue);
        let switches = handed(bench)
            .into_iter()
            .filter(|(.., flags)| flags.has(SWITCH));
        assert_eq!(switches.count(), 0);
    });
}
