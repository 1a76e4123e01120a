//! The optimized interrupt under load: producers, waits that stand and futures at once, with logs that
//! run over. Every wait ends by its value (IN-07 to IN-09, NF-06).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod task;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::DriverOptions;
use native_fence::{CommandList, Fence, HwQueue};
use std::thread;
use std::time::Duration;
use support::bench::{LONG, fences, nobody_waits, on_benches_with};
use support::task::block_on;

const PAIRS: usize = 4;
const VALUES: u64 = 3_000;
/// More than a log holds.
const OVERRUN: usize = 200;

/// Signals every value in its turn, now and then after so many that the log runs over, and now and then
/// waits for its own.
fn produce(mut queue: HwQueue, fence: &Fence, seed: u64) {
    let mut random = seed;
    for value in 1..=VALUES {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mut list = CommandList::new();
        if random >> 60 == 0 {
            for _ in 0..OVERRUN {
                list.signal(fence, value - 1);
            }
        }
        list.signal(fence, value);
        queue.submit_blocking(&list, LONG).unwrap();
        if (random >> 50).is_multiple_of(16) {
            fence.wait(value, LONG).unwrap();
        }
    }
    fence.wait(VALUES, LONG).unwrap();
}

/// Waits for every value in its turn, by the one means or the other.
fn consume(fence: &Fence) {
    for value in 1..=VALUES {
        let waited = if value % 3 == 0 {
            fence.arm(value).wait(LONG)
        } else {
            block_on(fence.wait_async(value))
        };
        assert_eq!(waited, Ok(()), "{value} at {}", fence.current_value());
    }
}

fn run(engines: u32, policy: NodePolicy) {
    let options = DriverOptions {
        optimized_interrupt: true,
        ..DriverOptions::default()
    };
    on_benches_with(engines, policy, &options, |bench| {
        let fences = fences(bench, PAIRS);
        thread::scope(|scope| {
            for (fence, number) in fences.iter().zip(0..) {
                let queue = bench.queue_on(number % engines);
                scope.spawn(move || produce(queue, fence, u64::from(number) * 77 + 1));
                scope.spawn(move || consume(fence));
            }
        });
        assert!(nobody_waits(&fences));
    });
}

/// One engine, which stays while somebody waits.
#[test]
fn load_no_wait_is_lost_with_the_optimized_cap() {
    run(1, NodePolicy::default());
}

/// Two engines whose slices are short, and waits that sleep at once.
#[test]
fn load_no_wait_is_lost_with_short_slices_on_two_engines() {
    let policy = NodePolicy {
        wait_spin: Duration::ZERO,
        slice_time: Duration::from_micros(50),
        idle_window: Duration::from_micros(20),
        ..NodePolicy::default()
    };
    run(2, policy);
}
