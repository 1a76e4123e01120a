//! Transfers of a model whose lanes are threads, which run in any order between two meetings.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/until.rs"]
mod until;

use native_fence::abi::EngineReport;
use native_fence::gpu::{
    MemoryAccess, MemoryObserver, ModelEngine, ModelOptions, ModelThreads, NodePolicy,
};
use native_fence::{Adapter, CommandList};
use std::sync::Arc;
use std::time::Duration;

const BYTES: u64 = 1 << 17;

/// Keeps lane 0 back before it begins a slice, when the other lanes have begun.
#[derive(Debug)]
struct LateLeader;

impl MemoryObserver for LateLeader {
    fn touched(&self, access: MemoryAccess, region: &'static str, offset: u64) {
        let begins = access == MemoryAccess::Load
            && region == "engine-report"
            && offset == EngineReport::LAST_REASON;
        if begins {
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

/// What lanes share holds anything when a slice begins: no lane takes a claim that is left of the slice
/// before for its own. The leader is late; what is asserted does not depend on how late.
///
/// Kills `model-looks-at-a-claim-of-the-slice-before`.
#[test]
fn hq_08_a_slice_begins_without_the_claims_of_the_one_before() {
    for _ in 0..5 {
        let engine = ModelEngine::new(ModelOptions {
            threads: ModelThreads::OneALane,
            lanes: 2,
            observer: Some(Arc::new(LateLeader)),
            ..ModelOptions::default()
        });
        let memory = Arc::clone(engine.memory());
        let policy = NodePolicy {
            slice_time: Duration::ZERO,
            ..NodePolicy::default()
        };
        let adapter = Adapter::with_engines(vec![Box::new(engine)], policy).unwrap();
        let device = adapter.create_device();
        let [from, one, other] = [0, 1, 2].map(|_| device.create_allocation(BYTES).unwrap());
        from.write(0, &vec![7; (BYTES / 8) as usize]);
        // More queues than lanes: one lane stands at nothing while its neighbour copies.
        let _idle = device.create_hw_queue().unwrap();
        let mut queues = [0, 1].map(|_| device.create_hw_queue().unwrap());
        let mut ends = [0; 2];
        for ((queue, to), end) in queues.iter_mut().zip([&one, &other]).zip(&mut ends) {
            let mut list = CommandList::new();
            *end = queue.submit(list.copy(&from, 0..BYTES, to, 0)).unwrap();
        }
        for (queue, end) in queues.iter().zip(ends) {
            queue.progress_fence().wait(end, until::LONG).unwrap();
        }
        for to in [one, other] {
            let mut words = vec![0; (BYTES / 8) as usize];
            to.read(0, &mut words);
            assert!(words.iter().all(|word| *word == 7));
        }
        assert_eq!(memory.violations(), []);
    }
}
