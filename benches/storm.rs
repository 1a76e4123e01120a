//! Storm: signals that hardly anybody waits for.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use native_fence::workload::Scenario;

fn storm(criterion: &mut Criterion) {
    support::scenarios(criterion, &[Scenario::Storm]);
}

criterion_group!(benches, storm);
criterion_main!(benches);
