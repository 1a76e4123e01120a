//! Work: chains of dependent dispatches of a small kernel, with the driver as it comes: as `nfence compare` runs it.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use native_fence::workload::Scenario;

fn work(criterion: &mut Criterion) {
    support::scenarios_on(support::bench_as_it_comes(), criterion, &[Scenario::Work]);
}

criterion_group!(benches, work);
criterion_main!(benches);
