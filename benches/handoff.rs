//! Hand-off: two queues pass a fence to and fro, of one engine, of two, and of two adapters.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use native_fence::workload::Scenario;

fn handoff(criterion: &mut Criterion) {
    let scenarios = [
        Scenario::Handoff,
        Scenario::HandoffCross,
        Scenario::CrossAdapter,
    ];
    support::scenarios(criterion, &scenarios);
}

criterion_group!(benches, handoff);
criterion_main!(benches);
