//! Hand-off: two queues pass a fence to and fro, of one engine and of two.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use native_fence::workload::Scenario;

fn handoff(criterion: &mut Criterion) {
    support::scenarios(criterion, &[Scenario::Handoff, Scenario::HandoffCross]);
}

criterion_group!(benches, handoff);
criterion_main!(benches);
