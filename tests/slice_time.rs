//! Slice time: whatever it is, queues go on, none is forgotten, and a blocked engine is let go.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::{CutPlan, ModelEngine, ModelOptions, NodePolicy};
use native_fence::{Adapter, CommandList, Fence, HwQueue, HwQueueOptions};
use std::time::Duration;
use support::bench::{LONG, on_every_bench};

/// More than the lanes of any device in CI, so that a lane has several.
const QUEUES: usize = 20;

fn policy(slice_time: Duration) -> NodePolicy {
    NodePolicy {
        slice_time,
        ..NodePolicy::default()
    }
}

/// Blocks every queue at a fence of its own, in a chain that the last fence sets off: each waits
/// for one fence and signals the next, in the order of `order`.
fn submit_chain(queues: &mut [HwQueue], fences: &[Fence], order: &[usize], round: u64) {
    for (at, queue) in order.iter().zip(queues) {
        let mut list = CommandList::new();
        list.wait(&fences[at + 1], round)
            .signal(&fences[*at], round);
        queue.submit(&list).unwrap();
    }
}

/// Slices that end by their time after every few looks, long before the idle window: chains of
/// queues complete in any order, which an engine parked too early would stop for ever; and with
/// every queue blocked the engine is let go, submits nothing more, and comes back.
///
/// Kills `a-short-slice-is-never-idle` and `a-short-slice-looks-at-one-queue`.
#[test]
fn hq_06_short_slices_forget_no_queue_and_let_the_engine_go() {
    for slice_time in [Duration::ZERO, Duration::from_micros(20)] {
        on_every_bench(policy(slice_time), |bench| {
            let device = &bench.device;
            let fences: Vec<_> = (0..=QUEUES)
                .map(|_| device.create_fence(0).unwrap())
                .collect();
            let mut queues: Vec<_> = (0..QUEUES)
                .map(|_| device.create_hw_queue().unwrap())
                .collect();
            for round in 1..=12 {
                let mut order: Vec<usize> = (0..QUEUES).collect();
                if round % 2 == 0 {
                    order.reverse();
                }
                order.rotate_left(round as usize);
                submit_chain(&mut queues, &fences, &order, round);
                if round % 3 == 0 {
                    // With every queue blocked.
                    bench.until_parked();
                }
                fences[QUEUES].signal(round).unwrap();
                fences[0].wait(round, LONG).unwrap();
            }
        });
    }
}

/// A slice as long as the work lasts is ended by the engine's own vote on every driver, also on one
/// that cuts loops: the budget is what the driver was found to let a slice take.
///
/// Kills `no-budget-under-the-cut`.
#[test]
fn a_long_slice_ends_before_the_driver_cuts_it() {
    let long = policy(Duration::from_secs(1000));
    let body = |adapter: &Adapter| {
        let device = adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let options = HwQueueOptions {
            ring_capacity: 1 << 19,
            ..HwQueueOptions::default()
        };
        let mut queue = device.create_hw_queue_with(options).unwrap();
        // Rounds enough for several times what lavapipe 22 lets a slice take.
        let (mut value, mut submitted) = (0, 0);
        for _ in 0..100 {
            let mut list = CommandList::new();
            for _ in 0..1000 {
                value += 1;
                list.nop().nop().signal(&fence, value);
            }
            submitted = queue.submit(&list).unwrap();
        }
        queue.progress_fence().wait(submitted, LONG).unwrap();
        assert_eq!(fence.current_value(), value);
        assert_eq!(adapter.node_counters().cut, 0);
    };
    on_every_bench(long, |bench| body(&bench.adapter));
    // A model that is cut where lavapipe 22 is.
    let engine = ModelEngine::new(ModelOptions {
        cut: CutPlan::After(65_535),
        ..ModelOptions::default()
    });
    body(&Adapter::with_engines(vec![Box::new(engine)], long).unwrap());
}
