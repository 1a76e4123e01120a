//! Work: chains of dependent dispatches of a small kernel.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use native_fence::workload::Scenario;

fn work(criterion: &mut Criterion) {
    support::scenarios(criterion, &[Scenario::Work]);
}

criterion_group!(benches, work);
criterion_main!(benches);
