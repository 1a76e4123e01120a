//! CPU signal: the CPU signals, the GPU answers, the CPU sees it.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use native_fence::workload::Scenario;

fn cpu_signal(criterion: &mut Criterion) {
    support::scenarios(criterion, &[Scenario::CpuSignal]);
}

criterion_group!(benches, cpu_signal);
criterion_main!(benches);
