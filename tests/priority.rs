//! Priorities of contexts (PR-08), and engines that are not preempted (PR-11): which queues a slice has.
//!
//! User kernels, which are longer than a packet's part, are in `priority_dispatch.rs`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::{DriverOptions, HwQueueHandle};
use native_fence::os::OsError;
use native_fence::{Allocation, CommandList, CreateError, HwContext};
use support::bench::{
    Bench, Call, Closed, LONG, fill, large, on_benches_with, on_every_bench, short, until,
};

fn context(bench: &Bench, priority: i32) -> HwContext {
    let context = bench.device.create_context(0, 1).unwrap();
    context.set_priority(priority).unwrap();
    context
}

fn word(of: &Allocation, at: u64) -> u64 {
    let mut word = [0];
    of.read(at, &mut word);
    word[0]
}

/// Lets one slice pass, and waits until the next one is in flight.
fn pass_one(bench: &Bench, gate: &Closed) {
    let last = bench.engine.submitted();
    gate.let_pass(1);
    until("the next slice is in flight", || {
        bench.engine.submitted() > last && bench.engine.at_gate() > 0
    });
}

/// PR-08: while a queue of low priority has endless work, a signal of high priority is made within three
/// slices. While high work goes on, slices leave the low queue out, but one of sixteen has it too. A
/// priority that is changed holds from the next slice on: then the other one is left out.
///
/// Kills `priorities-are-ignored`, `a-priority-stays`.
#[test]
fn pr_08_high_priority_work_goes_first_and_low_does_not_starve() {
    on_every_bench(short(), |bench| {
        let (low, high) = (context(bench, -1), context(bench, 2));
        let mut behind = low.create_hw_queue(64).unwrap();
        let mut ahead = high.create_hw_queue(64).unwrap();
        let endless = [0, 1].map(|_| bench.device.create_allocation(16 << 20).unwrap());
        let fence = bench.fence(0);
        bench.until_parked();
        let gate = bench.engine.close();
        behind.submit(&fill(&endless[0], 1)).unwrap();
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        for _ in 0..4 {
            pass_one(bench, &gate);
        }
        ahead.submit(CommandList::new().signal(&fence, 1)).unwrap();
        let mut slices = 0;
        while fence.current_value() == 0 {
            pass_one(bench, &gate);
            slices += 1;
        }
        assert!(slices <= 3, "{slices} slices");

        ahead.submit(&fill(&endless[1], 1)).unwrap();
        for _ in 0..4 {
            pass_one(bench, &gate);
        }
        let begun = |target: &Allocation| {
            let mut words = vec![0; target.bytes() as usize / 8];
            target.read(0, &mut words);
            words.iter().filter(|word| **word == 1).count()
        };
        bench.engine.take_works();
        let before = begun(&endless[0]);
        for _ in 0..32 {
            pass_one(bench, &gate);
        }
        assert!(begun(&endless[0]) > before, "the low work starves");
        let last = endless[1].bytes() - 8;
        assert_eq!(word(&endless[1], last), 0, "the high work goes on");
        let works = bench.engine.take_works();
        // And the OS's own, of priority 0.
        let both = works.iter().filter(|work| work.queues == 3).count();
        assert!((1..=3).contains(&both), "{both} of {}", works.len());

        // Now the other one stands back: it makes no step where it is left out.
        high.set_priority(-2).unwrap();
        for _ in 0..2 {
            pass_one(bench, &gate);
        }
        let before = endless.each_ref().map(begun);
        for _ in 0..4 {
            pass_one(bench, &gate);
        }
        let after = endless.each_ref().map(begun);
        assert!(after[0] > before[0]);
        assert!(after[1] - before[1] < after[0] - before[0]);
        drop(gate);
        for queue in [&behind, &ahead] {
            let end = queue.last_queued_value();
            queue.progress_fence().wait(end, LONG).unwrap();
        }
    });
}

/// PR-08: a priority is -7 to 7, 0 at first.
///
/// Kills `any-priority-will-do`.
#[test]
fn pr_08_there_are_fifteen_priorities() {
    on_every_bench(NodePolicy::default(), |bench| {
        let context = bench.device.create_context(0, 1).unwrap();
        assert_eq!(context.os().priority(), 0);
        for priority in [-8, 8] {
            let refused = context.set_priority(priority);
            assert!(matches!(
                refused,
                Err(CreateError::Os(OsError::Priority(found))) if found == priority
            ));
        }
        for priority in [-7, 7] {
            context.set_priority(priority).unwrap();
            assert_eq!(context.os().priority(), priority);
        }
    });
}

/// PR-08, of kernel-mode queues: of commands that come while an engine is being preempted the OS hands over
/// what was preempted first, then those of higher priority.
///
/// Kills `the-os-hands-over-in-any-order`.
#[test]
fn pr_08_the_os_hands_over_by_priority() {
    on_every_bench(short(), |bench| {
        let contexts = [context(bench, 0), context(bench, -3), context(bench, 3)];
        let mut queues = contexts
            .each_ref()
            .map(|context| context.create_kernel_queue().unwrap());
        let target = large(bench);
        bench.initialised(0);
        bench.until_parked();
        bench.spy.take();
        let gate = bench.engine.close();
        queues[0].submit(&fill(&target, 7)).unwrap();
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        bench.adapter.os().preempt(0).unwrap();
        let ends = queues
            .each_mut()
            .map(|queue| queue.submit(CommandList::new().nop()).unwrap());
        drop(gate);
        for (queue, end) in queues.iter().zip(ends) {
            queue.progress_fence().wait(end, LONG).unwrap();
        }
        let handed = |call| match call {
            Call::SubmitCommand { hw_queue, .. } => Some(hw_queue),
            _ => None,
        };
        let calls = bench.spy.calls().into_iter();
        let handed: Vec<HwQueueHandle> = calls.filter_map(handed).collect();
        let [normal, low, high] = queues.each_ref().map(|queue| queue.os().handle());
        assert_eq!(handed, [normal, normal, high, normal, low]);
    });
}

/// PR-11, PR-06: on an adapter that is not PreemptionAware the parts of a fill run back to back: what another
/// context has queued behind its first part is made after its last. With PreemptionAware the other context
/// runs between two parts, and the first one goes on from its state.
///
/// Kills `contexts-share-slices-without-preemption`.
#[test]
fn pr_11_without_preemption_a_packets_parts_run_back_to_back() {
    for is_aware in [true, false] {
        let options = DriverOptions {
            not_preemption_aware: !is_aware,
            ..DriverOptions::default()
        };
        on_benches_with(1, short(), &options, |bench| {
            let contexts = [context(bench, 0), context(bench, 0)];
            let mut fills = contexts[0].create_hw_queue(64).unwrap();
            let mut other = contexts[1].create_hw_queue(64).unwrap();
            let target = bench.device.create_allocation(4 << 20).unwrap();
            let fence = bench.fence(0);
            bench.until_parked();
            let gate = bench.engine.close();
            let end = fills.submit(&fill(&target, 7)).unwrap();
            until("a slice is in flight", || bench.engine.at_gate() > 0);
            while word(&target, 0) == 0 {
                pass_one(bench, &gate);
            }
            other.submit(CommandList::new().signal(&fence, 1)).unwrap();
            let last = target.bytes() - 8;
            while fence.current_value() == 0 && word(&target, last) == 0 {
                pass_one(bench, &gate);
            }
            let came_between = fence.current_value() == 1 && word(&target, last) == 0;
            assert_eq!(came_between, is_aware);
            drop(gate);
            fills.progress_fence().wait(end, LONG).unwrap();
            fence.wait(1, LONG).unwrap();
            let mut words = vec![0; target.bytes() as usize / 8];
            target.read(0, &mut words);
            assert!(words.iter().all(|word| *word == 7));
        });
    }
}

/// PR-11: nor does another context come between where both have packets of many parts, and a slice ends in the midst of
/// one that was not begun when it was submitted.
///
/// Kills `a-slice-ahead-divides-a-packet`.
#[test]
fn pr_11_without_preemption_one_packet_is_under_way_at_a_time() {
    let options = DriverOptions {
        not_preemption_aware: true,
        ..DriverOptions::default()
    };
    on_benches_with(1, short(), &options, |bench| {
        let contexts = [context(bench, 0), context(bench, 0)];
        let mut queues = contexts
            .each_ref()
            .map(|context| context.create_hw_queue(64).unwrap());
        let targets = [(); 4].map(|()| bench.device.create_allocation(4 << 20).unwrap());
        let is_done = |target: &Allocation| word(target, target.bytes() - 8) == 7;
        let is_begun = |target: &Allocation| word(target, 0) == 7 && !is_done(target);
        bench.until_parked();
        let gate = bench.engine.close();
        let mut submit =
            |queue: usize, target: usize| queues[queue].submit(&fill(&targets[target], 7)).unwrap();
        let ends = [submit(0, 0), submit(0, 1), submit(1, 2), submit(1, 3)];
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        while targets.iter().filter(|target| is_done(target)).count() < 3 {
            assert!(targets.iter().filter(|target| is_begun(target)).count() <= 1);
            pass_one(bench, &gate);
        }
        drop(gate);
        for (queue, end) in queues.iter().zip([ends[1], ends[3]]) {
            queue.progress_fence().wait(end, LONG).unwrap();
        }
        assert!(targets.iter().all(is_done));
    });
}
