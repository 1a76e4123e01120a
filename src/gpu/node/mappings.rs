//! Mappings of a node: which regions have an address in the engine's space.
//!
//! Fences and queues that use a region share its mapping, and they alone keep it: when the last of
//! them lets go, the region is unmapped. What is mapped a second time, for the system process, is a
//! table of its own of the same kind. They let go when no slice refers to them any more
//! ([`Node::remove_fence`](super::Node::remove_fence), [`Node::disconnect`](super::Node::disconnect)).

use crate::gpu::EngineMapping;
use crate::shared::Region;
use crate::sync::Arc;
use std::collections::HashMap;
use std::sync::Weak;

/// By the region's place in the host's memory: a mapping keeps its region, so while there is a
/// mapping no other region stands there.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    live: HashMap<usize, Weak<EngineMapping>>,
    kept: Vec<Arc<EngineMapping>>,
}

fn key(region: &Arc<Region>) -> usize {
    Arc::as_ptr(region) as usize
}

impl Mappings {
    /// The region's mapping, if it has one.
    pub(super) fn of(&self, region: &Arc<Region>) -> Option<Arc<EngineMapping>> {
        self.live.get(&key(region))?.upgrade()
    }

    /// Remembers a new mapping, and forgets those that are gone.
    pub(super) fn remember(&mut self, region: &Arc<Region>, mapping: &Arc<EngineMapping>) {
        self.live.retain(|_, mapping| mapping.strong_count() > 0);
        self.live.insert(key(region), Arc::downgrade(mapping));
    }

    /// Mappings that there are now.
    pub(super) fn count(&self) -> u64 {
        let live = |mapping: &&Weak<EngineMapping>| mapping.strong_count() > 0;
        self.live.values().filter(live).count() as u64
    }

    /// Those that there are now.
    pub(super) fn live(&self) -> impl Iterator<Item = Arc<EngineMapping>> {
        self.live.values().filter_map(Weak::upgrade)
    }

    /// The engine that they were kept for has none of them any more.
    pub(super) fn let_go(&mut self) {
        self.kept.clear();
    }

    /// Keeps all that there are for as long as the engine: it is lost, and nobody knows what still
    /// runs on it.
    pub(super) fn keep(&mut self) {
        self.kept = self.live().collect();
    }
}
