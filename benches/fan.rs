//! Fan: one signal lets go 32 queues; and one queue waits for 32.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use native_fence::workload::Scenario;

fn fan(criterion: &mut Criterion) {
    support::scenarios(criterion, &[Scenario::FanOut, Scenario::FanIn]);
}

criterion_group!(benches, fan);
criterion_main!(benches);
