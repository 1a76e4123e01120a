//! Idle: a second in which everything waits for the CPU. What it costs is told by `nfence compare`; here it
//! is seen to run.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use native_fence::workload::Scenario;

fn idle(criterion: &mut Criterion) {
    support::scenarios(criterion, &[Scenario::Idle]);
}

criterion_group!(benches, idle);
criterion_main!(benches);
