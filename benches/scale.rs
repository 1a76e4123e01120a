//! Scale: many fences stand, or many waiters, and one after another is signalled.
//!
//! Beside the scenario, which times a signal with the wait that it ends, each of the two by itself:
//! a GPU signal from before its packet is written until the CPU reads its value, and a wait from then
//! on until it is released and armed again.

mod support;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use native_fence::workload::Scenario;
use native_fence::{Adapter, ArmedWait, CommandList, Fence, HwQueue};
use std::time::{Duration, Instant};

const FENCES: [u64; 4] = [1, 16, 256, 4096];
/// A signal or a wait that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is timed of a signal and its wait.
#[derive(Clone, Copy)]
enum Part {
    Signal,
    Wait,
}

/// Fences with a waiter each, signalled by turns.
struct Standing {
    fences: Vec<(Fence, ArmedWait)>,
    queue: HwQueue,
    list: CommandList,
    signals: u64,
}

impl Standing {
    fn new(adapter: &Adapter, fences: u64) -> Self {
        let device = adapter.create_device();
        let fence = |_| {
            let fence = device.create_fence(0).expect("a fence");
            let wait = fence.arm(1);
            (fence, wait)
        };
        Self {
            fences: (0..fences).map(fence).collect(),
            queue: device.create_hw_queue().expect("a queue"),
            list: CommandList::new(),
            signals: 0,
        }
    }

    fn time(&mut self, part: Part) -> Duration {
        let turn = self.signals % self.fences.len() as u64;
        let (fence, wait) = &mut self.fences[turn as usize];
        let value = wait.value();
        self.signals += 1;
        self.list.clear();
        self.list.signal(fence, value);
        let begun = Instant::now();
        self.queue.submit(&self.list).expect("there is room");
        while fence.current_value() < value {
            assert!(begun.elapsed() < PATIENCE, "a signal did not come");
            std::hint::spin_loop();
        }
        let signalled = begun.elapsed();
        wait.wait(PATIENCE).expect("a wait ends");
        *wait = fence.arm(value + 1);
        let all = begun.elapsed();
        match part {
            Part::Signal => signalled,
            Part::Wait => all.saturating_sub(signalled),
        }
    }
}

fn scale(criterion: &mut Criterion) {
    support::scenarios(criterion, &[Scenario::Scale]);
}

fn parts(criterion: &mut Criterion) {
    let Some(adapter) = support::adapter() else {
        return;
    };
    for (name, part) in [
        ("scale, the signal", Part::Signal),
        ("scale, the wait", Part::Wait),
    ] {
        let mut group = criterion.benchmark_group(name);
        for fences in FENCES {
            group.bench_function(BenchmarkId::from_parameter(fences), |bencher| {
                let mut standing = Standing::new(&adapter, fences);
                bencher.iter_custom(|rounds| (0..rounds).map(|_| standing.time(part)).sum());
            });
        }
        group.finish();
    }
}

criterion_group!(benches, scale, parts);
criterion_main!(benches);
