//! Priorities of contexts whose queues dispatch kernels (PR-08): a kernel is longer than a packet's part, and is not
//! divided.
//!
//! Slices have no time of their own here, so each is spent by the first round of kernels that it has had: who comes with
//! a higher priority waits for as many kernels as for slices, and for the one that is under way.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod kernels;
}

use native_fence::{Allocation, CommandList, HwContext, HwQueue, Kernel, KernelCode};
use support::bench::{Bench, Closed, LONG, on_every_bench, short, until, words};
use support::kernels::{spin, spin_self_scheduling, spin_together, spins};

/// More kernels than the slices of a test have, and the passes that each of them takes.
const ENDLESS: u64 = 50;
const PASSES: u64 = 500;

/// Each kind of kernel: one that runs alone, one with the shader library, and one that schedules itself.
const KINDS: [fn() -> KernelCode; 3] = [spin, spin_together, spin_self_scheduling];

/// A queue of a context of its own, whose kernels count themselves.
struct Dispatcher {
    context: HwContext,
    queue: HwQueue,
    counted: Allocation,
}

impl Dispatcher {
    fn new(bench: &Bench, priority: i32) -> Self {
        let context = bench.device.create_context(0, 1).unwrap();
        context.set_priority(priority).unwrap();
        Self {
            queue: context.create_hw_queue(64).unwrap(),
            counted: bench.device.create_allocation(16).unwrap(),
            context,
        }
    }

    fn submit(&mut self, kernel: &Kernel, count: u64) {
        let mut list = CommandList::new();
        for _ in 0..count {
            let spins = spins(&self.counted, PASSES);
            list.dispatch(kernel, [1, 1, 1], &spins).unwrap();
        }
        self.queue.submit(&list).unwrap();
    }

    /// Kernels that have ended.
    fn ended(&self) -> u64 {
        words(&self.counted)[1]
    }

    fn until_done(&self, kernels: u64) {
        let end = self.queue.last_queued_value();
        self.queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(self.ended(), kernels);
    }
}

/// Lets so many slices pass, one at a time, each until the next one is in flight.
fn pass(bench: &Bench, gate: &Closed, slices: u64) {
    for _ in 0..slices {
        let last = bench.engine.submitted();
        gate.let_pass(1);
        until("the next slice is in flight", || {
            bench.engine.submitted() > last && bench.engine.at_gate() > 0
        });
    }
}

/// Runs a body on every bench for each kind of kernel: `low` has endless kernels, of which some have ended, and `high`
/// has none yet.
fn beside_endless_kernels(
    body: impl Fn(&Bench, &Closed, &Kernel, [&mut Dispatcher; 2]) -> [u64; 2],
) {
    for code in KINDS {
        on_every_bench(short(), |bench| {
            let (mut low, mut high) = (Dispatcher::new(bench, -1), Dispatcher::new(bench, 2));
            let kernel = bench.device.create_kernel(code()).unwrap();
            bench.until_parked();
            let gate = bench.engine.close();
            low.submit(&kernel, ENDLESS);
            until("a slice is in flight", || bench.engine.at_gate() > 0);
            while low.ended() == 0 {
                pass(bench, &gate, 1);
            }
            // Each is a kernel long, in which nobody asks for its end either.
            let ended = low.ended();
            pass(bench, &gate, 3);
            let ended = low.ended() - ended;
            assert!(ended <= 4, "{ended} in three slices");
            let [lows, highs] = body(bench, &gate, &kernel, [&mut low, &mut high]);
            drop(gate);
            low.until_done(lows);
            high.until_done(highs);
        });
    }
}

/// PR-08: while a queue of low priority has endless kernels, a kernel of high priority has run within three slices, and
/// in each of these one kernel of the low queue at most, beside the one that was under way.
///
/// Kills `model-a-spent-slice-dispatches`, `shader-a-spent-slice-dispatches`, `model-epilogues-do-not-look-for-the-end`,
/// `shader-epilogues-do-not-look-for-the-end`.
#[test]
fn pr_08_high_priority_work_waits_for_three_slices_and_a_kernel() {
    beside_endless_kernels(|bench, gate, kernel, [low, high]| {
        let before = low.ended();
        high.submit(kernel, 1);
        let mut slices = 0;
        while high.ended() == 0 {
            pass(bench, gate, 1);
            slices += 1;
        }
        let came_first = low.ended() - before;
        assert!(slices <= 3, "{slices} slices");
        assert!(came_first <= slices + 1, "{came_first} in {slices} slices");
        [ENDLESS, 1]
    });
}

/// PR-08: while both have endless kernels, the low queue's stand back, but for one slice of sixteen. A priority that is
/// changed at run time holds from the next slice that is put together: then the other one's stand back.
///
/// Kills `priorities-are-ignored`, `a-priority-stays`.
#[test]
fn pr_08_a_changed_priority_holds_for_kernels() {
    beside_endless_kernels(|bench, gate, kernel, [low, high]| {
        high.submit(kernel, ENDLESS);
        let of_both = || [low.ended(), high.ended()];
        let in_slices = |slices| {
            let before = of_both();
            pass(bench, gate, slices);
            let after = of_both();
            [after[0] - before[0], after[1] - before[1]]
        };
        pass(bench, gate, 3);
        let [lows, highs] = in_slices(8);
        assert!(lows <= 1 && highs >= 7, "{lows} low, {highs} high");
        high.context.set_priority(-2).unwrap();
        pass(bench, gate, 3);
        let [lows, highs] = in_slices(8);
        assert!(highs <= 1 && lows >= 7, "{lows} low, {highs} lower");
        [ENDLESS, ENDLESS]
    });
}
