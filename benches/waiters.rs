//! Waiters: what it costs to arm a wait, to release it and to cancel it, among so many others on one
//! fence.
//!
//! A wait is armed for a value in the midst of the others', so that the MonitoredValue stays, or for one
//! below all of them, so that it changes; the one
//! that is released is the one with the least value, by a CPU signal, whose cost by itself stands
//! beside it: with no waiter at all.

mod support;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use native_fence::{Adapter, ArmedWait, Fence};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Waiters that stand.
const STANDING: [u64; 4] = [1, 100, 10_000, 100_000];
/// Those that are armed and dropped at a time: few beside those that stand.
const FEW: u64 = 16;
/// Between the values of two that stand.
const STRIDE: u64 = 16;

/// A fence, and waiters on it for every 16th value.
struct Standing {
    fence: Fence,
    waits: VecDeque<ArmedWait>,
    /// The value of the next one behind the last.
    next: u64,
}

impl Standing {
    fn new(adapter: &Adapter, waiters: u64) -> Self {
        let fence = adapter.create_device().create_fence(0).expect("a fence");
        let mut standing = Self {
            fence,
            waits: VecDeque::new(),
            next: STRIDE,
        };
        (0..waiters).for_each(|_| standing.arm_last());
        standing
    }

    fn arm_last(&mut self) {
        self.waits.push_back(self.fence.arm(self.next));
        self.next += STRIDE;
    }

    /// A value behind that of a waiter, now here and now there.
    fn between(&self, number: u64) -> u64 {
        let first = self.waits[0].value();
        let place = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.waits.len() as u64;
        first + place * STRIDE + 1
    }

    /// The time of a signal that releases one, which is armed again behind the last.
    fn release(&mut self) -> Duration {
        let first = self.waits.pop_front().expect("one stands");
        let begun = Instant::now();
        self.fence.signal(first.value()).expect("a forward signal");
        let took = begun.elapsed();
        assert_eq!(first.outcome(), Some(Ok(())), "one signal released it");
        self.arm_last();
        took
    }
}

fn waiters(criterion: &mut Criterion) {
    let Some(adapter) = support::adapter() else {
        return;
    };
    let mut arm = criterion.benchmark_group("waiters, arm");
    for waiters in STANDING {
        arm.bench_function(BenchmarkId::from_parameter(waiters), |bencher| {
            let standing = Standing::new(&adapter, waiters);
            let mut number = 0;
            let mut value = || {
                number += 1;
                standing.between(number)
            };
            bencher.iter_batched(
                &mut value,
                |value| standing.fence.arm(value),
                BatchSize::NumIterations(FEW),
            );
        });
    }
    arm.finish();
    let mut least = criterion.benchmark_group("waiters, arm the least and cancel it");
    for waiters in STANDING {
        least.bench_function(BenchmarkId::from_parameter(waiters), |bencher| {
            let standing = Standing::new(&adapter, waiters);
            // Below all others: MonitoredValue is posted for it, and again when it goes.
            bencher.iter(|| standing.fence.arm(1));
        });
    }
    least.finish();
    let mut cancel = criterion.benchmark_group("waiters, cancel");
    for waiters in STANDING {
        cancel.bench_function(BenchmarkId::from_parameter(waiters), |bencher| {
            let standing = Standing::new(&adapter, waiters);
            let mut number = 0;
            let mut wait = || {
                number += 1;
                standing.fence.arm(standing.between(number))
            };
            bencher.iter_batched(&mut wait, drop, BatchSize::NumIterations(FEW));
        });
    }
    cancel.finish();
    let mut release = criterion.benchmark_group("waiters, release by a CPU signal");
    release.bench_function("none", |bencher| {
        let fence = Standing::new(&adapter, 0).fence;
        let mut value = 0;
        bencher.iter(|| {
            value += 1;
            fence.signal(value)
        });
    });
    for waiters in STANDING {
        release.bench_function(BenchmarkId::from_parameter(waiters), |bencher| {
            let mut standing = Standing::new(&adapter, waiters);
            bencher.iter_custom(|releases| (0..releases).map(|_| standing.release()).sum());
        });
    }
    release.finish();
}

criterion_group!(benches, waiters);
criterion_main!(benches);
