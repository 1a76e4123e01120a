//! Where igt's timelines differ: DRM's are chains of points, and what is read is the last of which all before are done;
//! a fence here is a word in memory, and what is read is what was stored last (NF-06, NF-20, as D3D12's). These tests
//! show what holds in place of the peers' cases that `tests/ports/README.md` names with them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::{ArmedWait, CommandList, Fence, HwQueue};
use std::time::Duration;
use support::bench::{Bench, LONG, on_every_bench, until_completed};

/// Jobs of a queue each that signal points of one fence when the test lets them.
struct Jobs<'a> {
    fence: &'a Fence,
    jobs: Vec<(HwQueue, Fence)>,
}

impl<'a> Jobs<'a> {
    fn submit(bench: &Bench, fence: &'a Fence, points: &[u64]) -> Self {
        let jobs = points.iter().map(|point| {
            let (mut queue, gate) = (bench.queue(), bench.fence(0));
            let mut list = CommandList::new();
            list.wait(&gate, 1).signal(fence, *point);
            queue.submit(&list).unwrap();
            (queue, gate)
        });
        let jobs = jobs.collect();
        Self { fence, jobs }
    }

    /// Lets the job at a place end; gives what is read then.
    fn end(&self, at: usize) -> u64 {
        let (queue, gate) = &self.jobs[at];
        gate.signal(1).unwrap();
        until_completed(queue, 1);
        self.fence.current_value()
    }
}

fn armed(fence: &Fence, points: &[u64]) -> Vec<ArmedWait> {
    points.iter().map(|point| fence.arm(*point)).collect()
}

fn are_over(waits: &[ArmedWait]) -> Vec<bool> {
    waits.iter().map(ArmedWait::is_ended).collect()
}

/// Jobs that end out of order: what is read is the point of the last one that has ended, each that goes back is
/// counted, and waits that were satisfied stay so.
#[test]
fn syncobj_by_memory_device_signal_unordered() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let jobs = Jobs::submit(bench, &fence, &[1, 2, 3, 4, 5]);
        let waits = armed(&fence, &[1, 2, 3, 4, 5]);
        for (point, reached) in [(1, 1), (3, 3), (2, 3), (5, 5), (4, 5)] {
            assert_eq!(jobs.end(point as usize - 1), point);
            // What is read can be waited for, and what was reached was.
            assert_eq!(fence.wait(point, Duration::ZERO), Ok(()));
            bench.until_told();
            let over: Vec<_> = (1..=5).map(|point| point <= reached).collect();
            assert_eq!(are_over(&waits), over, "{point}");
        }
        assert_eq!(bench.counters().backward_signals, 2);
    });
}

/// Points that are submitted out of order to one queue: each is stored in its turn, and a wait for the greatest that
/// was passed is over.
#[test]
fn syncobj_by_memory_device_submit_unordered() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, gate, mut queue) = (bench.fence(0), bench.fence(0), bench.queue());
        let waits = armed(&fence, &[5, 6, 7]);
        for (point, step) in [1, 5, 3, 6, 7].into_iter().zip(1..) {
            let mut list = CommandList::new();
            list.wait(&gate, step).signal(&fence, point);
            queue.submit(&list).unwrap();
        }
        gate.signal(3).unwrap();
        until_completed(&queue, 3);
        bench.until_told();
        assert_eq!(fence.current_value(), 3);
        assert_eq!(are_over(&waits), [true, false, false]);
        gate.signal(5).unwrap();
        assert_eq!(fence.wait(7, LONG), Ok(()));
        assert_eq!(bench.counters().backward_signals, 1);
    });
}

/// The host signals ahead of jobs that are pending: what it stored is read at once, and waits for it and for what they
/// would signal are over; then they store their own.
#[test]
fn syncobj_by_memory_host_signal_ordered() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let jobs = Jobs::submit(bench, &fence, &[1, 2, 3, 4, 5]);
        let waits = armed(&fence, &[4, 5, 8]);
        for point in 1..=3 {
            assert_eq!(jobs.end(point - 1), point as u64);
        }
        fence.signal(8).unwrap();
        assert_eq!(fence.current_value(), 8);
        assert_eq!(are_over(&waits), [true; 3]);
        for point in 4..=5 {
            assert_eq!(jobs.end(point - 1), point as u64);
        }
        assert_eq!(are_over(&waits), [true; 3]);
        bench.until_parked();
        assert_eq!(bench.counters().backward_signals, 1);
    });
}
