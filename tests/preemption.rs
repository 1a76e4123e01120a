//! Preemption of kernel-mode queues (PR-04, PR-05, PR-07, PR-16, PR-18): the engine gives back what it was
//! handed, and it is handed over again.
//!
//! Open: what follows when an engine does not answer in time (the time-out is another rule's).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{PACKET_BYTES, Packet};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{
    DriverOptions, Interrupt, PreemptCommand, SubmitCommand, SubmitCommandFlags, VidSchCaps,
};
use native_fence::os::{OsError, Record, SystemDevice};
use native_fence::{Allocation, CommandList};
use support::bench::{
    Bench, Call, Closed, Failing, fill, finish, large, on_benches_with, on_every_bench, short,
    until, words,
};

const PAGING: SubmitCommandFlags = SubmitCommandFlags::PAGING;
const AGAIN: SubmitCommandFlags = SubmitCommandFlags::RESUBMISSION;
const NEW: SubmitCommandFlags = SubmitCommandFlags(0);

/// Ids and flags of what the driver was handed, in their order.
fn submitted(bench: &Bench) -> Vec<(u64, SubmitCommandFlags)> {
    let command = |call| match call {
        Call::SubmitCommand {
            submission_id,
            flags,
            ..
        } => Some((submission_id, flags)),
        _ => None,
    };
    bench.spy.calls().into_iter().filter_map(command).collect()
}

/// What the OS was told of node 0: ids that have completed, and of answers `None` with the last completed
/// id.
fn told(bench: &Bench) -> Vec<Result<u64, u64>> {
    let told = |interrupt| match interrupt {
        Interrupt::DmaCompleted { submission_id, .. } => Some(Ok(submission_id)),
        Interrupt::DmaPreempted {
            last_completed_id, ..
        } => Some(Err(last_completed_id)),
        _ => None,
    };
    bench
        .spy
        .interrupts()
        .into_iter()
        .filter_map(told)
        .collect()
}

fn requests(bench: &Bench) -> usize {
    bench
        .spy
        .count(|call| matches!(call, Call::PreemptCommand(_)))
}

fn until_answered(bench: &Bench) {
    until("the preemption is answered", || {
        bench.adapter.os().preemption(0).1
    });
}

/// Slices pass one by one, until some of a fill is done; the gate stays closed.
fn begin(bench: &Bench, gate: &Closed, target: &Allocation) {
    let mut word = [0];
    until("the fill has begun", || {
        if word[0] == 0 && bench.engine.at_gate() > 0 {
            gate.let_pass(1);
        }
        target.read(0, &mut word);
        word[0] != 0
    });
    until("the next slice is in flight", || bench.engine.at_gate() > 0);
}

/// PR-04, PR-03, PR-16: of three commands the first has completed, the second is a fill that is half done.
/// The request is answered when no slice refers to the queue any more: with its id and the last completed
/// one, behind the completion of that. The two others are handed over again with new ids, before what was
/// queued after the request; the fill goes on, no word of the ring's packets is changed, and each completes
/// once.
///
/// Kills `a-preemption-is-answered-at-once`, `a-preempted-command-keeps-its-id`,
/// `a-resubmission-is-not-marked`, `what-is-preempted-waits-for-new-work`.
#[test]
fn pr_04_what_has_not_completed_is_preempted() {
    on_every_bench(short(), |bench| {
        let target = large(bench);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let first = bench.initialised(0) + 1;
        bench.spy.take();
        queue.submit(CommandList::new().nop()).unwrap();
        finish(&mut queue);
        until("the OS is told", || told(bench).len() == 1);
        bench.until_parked();

        let gate = bench.engine.close();
        queue.submit(&fill(&target, 7)).unwrap();
        queue.submit(CommandList::new().nop()).unwrap();
        until("both are handed over", || submitted(bench).len() == 3);
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        begin(bench, &gate, &target);
        // Every packet that stands anywhere in a ring: its length makes it more than a write index.
        let rings = || -> Vec<(usize, u64, [u64; 8])> {
            let mut found = Vec::new();
            for (ring, mapped) in bench.engine.named("hw-queue-ring").iter().enumerate() {
                for at in (0..mapped.bytes as u64).step_by(PACKET_BYTES as usize) {
                    let words = mapped.host.peek_words(at);
                    if words[0] > 0xff {
                        found.push((ring, at, words));
                    }
                }
            }
            found
        };
        let before = rings();
        let of_os = 2;
        assert_eq!(before.len(), of_os + 6, "three packets with their ends");
        bench.adapter.os().preempt(0).unwrap();
        queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(requests(bench), 1);
        assert_eq!(told(bench), [Ok(first)]);
        assert_eq!(
            submitted(bench).len(),
            3,
            "nothing is handed over meanwhile"
        );
        drop(gate);
        until_answered(bench);
        finish(&mut queue);
        assert!(words(&target).iter().all(|word| *word == 7));
        until("the OS is told", || told(bench).len() == 5);
        let again = [Ok(first + 3), Ok(first + 4), Ok(first + 5)];
        assert_eq!(told(bench)[..2], [Ok(first), Err(first)]);
        assert_eq!(told(bench)[2..], again);
        let handed = [
            (first, NEW),
            (first + 1, NEW),
            (first + 2, NEW),
            (first + 3, AGAIN),
            (first + 4, AGAIN),
            (first + 5, NEW),
        ];
        assert_eq!(submitted(bench), handed);
        let last = first + 5;
        assert_eq!(bench.adapter.os().submission_ids(0), (last, last));
        // The last command came behind them.
        assert_eq!(rings()[..before.len()], before);
    });
}

/// PR-05: paging packets of the system device, which fill and copy an allocation of another process, are
/// handed over again with the same ids, in the same order and before all others; render packets that were
/// submitted before them get new ids, and come before what came after the request.
///
/// Kills `a-paging-packet-gets-a-new-id`, `paging-packets-wait-for-others`, `broken-paging-packets-in-reverse`,
/// `broken-the-driver-takes-back-in-reverse`.
#[test]
fn pr_05_paging_packets_run_first_with_their_ids() {
    on_every_bench(short(), |bench| {
        let [from, to, render] = [large(bench), large(bench), large(bench)];
        let system = SystemDevice::open(bench.adapter.os(), 0).unwrap();
        let paged = [&from, &to].map(|target| system.open_allocation(target.os()).unwrap());
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let first = bench.initialised(0) + 1;
        bench.until_parked();
        bench.spy.take();
        let gate = bench.engine.close();
        queue.submit(&fill(&render, 5)).unwrap();
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        system.fill(&paged[0], 0..from.bytes(), 7).unwrap();
        let (source, destination) = ((&paged[0], 0), (&paged[1], 0));
        let paged_in = system.copy(destination, source, to.bytes()).unwrap();
        begin(bench, &gate, &render);
        bench.adapter.os().preempt(0).unwrap();
        queue.submit(CommandList::new().nop()).unwrap();
        drop(gate);
        until_answered(bench);
        finish(&mut queue);
        let progress = system.progress_fence();
        until("the paging packets complete", || {
            progress.fence().current_value() >= paged_in
        });
        assert!(words(&to).iter().all(|word| *word == 7));
        assert!(words(&render).iter().all(|word| *word == 5));
        let handed = [
            (first, NEW),
            (first + 1, PAGING),
            (first + 2, PAGING),
            (first + 1, PAGING.with(AGAIN)),
            (first + 2, PAGING.with(AGAIN)),
            (first + 3, AGAIN),
            (first + 4, NEW),
        ];
        assert_eq!(submitted(bench), handed);
        let last = first + 4;
        until("all have completed", || {
            bench.adapter.os().submission_ids(0) == (last, last)
        });
    });
}

/// PR-07: a request that comes when nothing is left is answered within the call, with the last completed id,
/// and no slice is submitted for it.
///
/// Kills `an-idle-engine-is-touched`.
#[test]
fn pr_07_an_idle_engine_is_not_touched() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let only = bench.initialised(0) + 1;
        bench.spy.take();
        queue.submit(CommandList::new().nop()).unwrap();
        finish(&mut queue);
        until("the OS is told", || told(bench).len() == 1);
        bench.until_parked();
        // A slice in flight that refers to nothing of it is not asked to end either.
        let slices = bench.counters().slices;
        bench.adapter.os().preempt(0).unwrap();
        // By this thread, or by the one that told of the completion and has not come back from that.
        until_answered(bench);
        assert_eq!(bench.adapter.os().preemption(0), (1, true));
        assert_eq!(told(bench), [Ok(only), Err(only)]);
        assert!(bench.is_parked(0));
        assert_eq!(bench.counters().slices, slices);
        // And it goes on.
        queue.submit(CommandList::new().nop()).unwrap();
        finish(&mut queue);
    });
}

/// PR-16, PR-04: what stands in the ring behind the buffer that was submitted again is not the engine's: it
/// executes that one, and nothing behind it until that is submitted as well. Another order, or a new buffer
/// first, is refused.
///
/// Kills `a-resubmission-shows-the-whole-ring`, `a-resubmission-comes-in-any-order`,
/// `a-preempted-queue-stays-in-slices`.
#[test]
fn pr_16_the_engine_sees_what_was_submitted_again() {
    on_every_bench(short(), |bench| {
        let [first, second] = [large(bench), large(bench)];
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let before = bench.initialised(0);
        bench.until_parked();
        bench.spy.take();
        let gate = bench.engine.close();
        let values = [&first, &second].map(|target| queue.submit(&fill(target, 7)).unwrap());
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        begin(bench, &gate, &first);
        // This test is the OS from here on.
        bench.spy.keep_interrupts();
        let preempt = PreemptCommand {
            preemption_id: 1,
            node_ordinal: 0,
            engine_ordinal: 0,
        };
        bench.spy.driver().preempt_command(&preempt).unwrap();
        let another = bench.spy.driver().preempt_command(&preempt);
        another.expect_err("one is not answered yet");
        drop(gate);
        bench
            .spy
            .until_handled(|interrupt| matches!(interrupt, Interrupt::DmaPreempted { .. }))
            .unwrap();
        bench.until_parked();
        assert_eq!(words(&first).last(), Some(&0), "in the middle");

        let nop = [Packet::nop()];
        let submit = |submission_id, progress_value, flags| {
            let hw_queue = queue.os().handle();
            bench
                .spy
                .driver()
                .submit_command_to_hw_queue(&SubmitCommand {
                    hw_queue,
                    submission_id,
                    packets: &nop,
                    flags,
                    progress_value,
                })
        };
        let (third, fourth) = (before + 3, before + 4);
        submit(third, values[1], AGAIN).expect_err("not the oldest");
        submit(third, values[1] + 1, NEW).expect_err("others come first");
        submit(third, values[0], AGAIN).unwrap();
        let progress = || queue.progress_fence().current_value();
        until("the first completes", || progress() == values[0]);
        bench.until_parked();
        assert!(words(&first).iter().all(|word| *word == 7));
        assert!(words(&second).iter().all(|word| *word == 0));
        submit(fourth, values[1], AGAIN).unwrap();
        until("the second completes", || progress() == values[1]);
        assert!(words(&second).iter().all(|word| *word == 7));
        until("the OS is told", || told(bench).len() == 3);
        assert_eq!(told(bench), [Err(before), Ok(third), Ok(fourth)]);
    });
}

/// PR-18: a request that the driver refuses stops the adapter with 0x119, P1 = 2.
///
/// Kills `a-failed-preemption-is-nothing`.
#[test]
fn pr_18_a_refused_preemption_stops_the_adapter() {
    on_every_bench(NodePolicy::default(), |bench| {
        bench.spy.fail(Failing::PreemptCommand);
        bench.adapter.os().preempt(0).unwrap();
        let record = bench.adapter.os().stopped().unwrap();
        assert_eq!(record.code, Record::VIDEO_SCHEDULER_INTERNAL_ERROR);
        assert_eq!(record.parameters[0], 2);
        bench.take_records();
    });
}

/// PR-18: an answer whose last completed id was never submitted, or goes back, and one that nobody asked
/// for, stop the adapter with 0x119, P1 = 1.
///
/// Kills `any-last-completed-id-will-do`.
#[test]
fn pr_18_a_last_completed_id_that_cannot_be_stops_the_adapter() {
    for (asked, is_at) in [(true, 2), (true, 0), (false, 1)] {
        on_every_bench(NodePolicy::default(), |bench| {
            let mut queue = bench.device.create_kernel_queue().unwrap();
            let last_completed_id = bench.initialised(0) + is_at;
            bench.spy.take();
            queue.submit(CommandList::new().nop()).unwrap();
            finish(&mut queue);
            until("the OS is told", || told(bench).len() == 1);
            bench.adapter.os().preempt(0).unwrap();
            assert!(bench.adapter.os().stopped().is_none());
            bench.spy.on_interrupt(move |interrupt| {
                if let Interrupt::DmaPreempted {
                    last_completed_id: last,
                    ..
                } = interrupt
                {
                    *last = last_completed_id;
                }
            });
            if asked {
                bench.adapter.os().preempt(0).unwrap();
            } else {
                bench.spy.interrupt(Interrupt::DmaPreempted {
                    preemption_id: 1,
                    last_completed_id,
                    node_ordinal: 0,
                    engine_ordinal: 0,
                });
            }
            let record = bench.adapter.os().stopped().unwrap();
            assert_eq!(record.code, Record::VIDEO_SCHEDULER_INTERNAL_ERROR);
            assert_eq!(record.parameters[0..2], [1, last_completed_id]);
            bench.take_records();
        });
    }
}

/// FQ-05, FQ-08, PR-03: PreemptionAware and NoDmaPatching are reported, with MultiEngineAware, and compute is
/// preempted between thread groups, graphics not at all. Cleared, the OS never asks for preemption.
///
/// Kills `preemption-is-not-advertised`, `a-cleared-cap-is-preempted`.
#[test]
fn fq_05_preemption_is_reported_and_can_be_cleared() {
    let cleared = DriverOptions {
        not_preemption_aware: true,
        ..DriverOptions::default()
    };
    for (options, is_aware) in [(DriverOptions::default(), true), (cleared, false)] {
        on_benches_with(1, NodePolicy::default(), &options, |bench| {
            let os = bench.adapter.os();
            let caps = os.vidsch_caps();
            assert!(caps.has(VidSchCaps::MULTI_ENGINE_AWARE));
            assert_eq!(caps.has(VidSchCaps::PREEMPTION_AWARE), is_aware);
            assert_eq!(caps.has(VidSchCaps::NO_DMA_PATCHING), is_aware);
            let granularity = os.preemption_caps();
            let compute = if is_aware { 300 } else { 0 };
            assert_eq!(
                (granularity.graphics.0, granularity.compute.0),
                (0, compute)
            );
            let preempted = os.preempt(0);
            if is_aware {
                preempted.unwrap();
            } else {
                assert!(matches!(preempted, Err(OsError::NotPreemptionAware)));
            }
            assert_eq!(requests(bench), usize::from(is_aware));
        });
    }
}
