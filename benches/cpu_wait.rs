//! CPU wait: the CPU submits a signal and waits for it.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use native_fence::workload::Scenario;

fn cpu_wait(criterion: &mut Criterion) {
    support::scenarios(criterion, &[Scenario::CpuWait]);
}

criterion_group!(benches, cpu_wait);
criterion_main!(benches);
