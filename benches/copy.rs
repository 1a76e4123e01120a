//! Copy: a queue copies memory, 1 MiB at a time.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use native_fence::workload::Scenario;

fn copy(criterion: &mut Criterion) {
    support::scenarios(criterion, &[Scenario::Copy]);
}

criterion_group!(benches, copy);
criterion_main!(benches);
