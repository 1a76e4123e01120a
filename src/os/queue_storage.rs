//! Queue storage: the memory of hardware queues of one process, by who may touch it.
//!
//! The user writes rings and doorbells, reads progress words, and has no mapping of a log: four kinds
//! of pages, each shared by the queues of the process, never by two processes. Doorbells are apart
//! from rings because engines poll rings, which may therefore lie in memory of the device.
//!
//! A ring that was given back is cleared before another queue has it, but a mapping of it that the
//! user kept is good until the process ends: what is written there is checked by the engine, as all
//! of a ring is.

use super::log_pools::LogPools;
use crate::abi::{Doorbell, PACKET_BYTES, PAGE_BYTES, QueueProgress, RingIndex, WordGroup};
use crate::shared::{Pool, PoolPlace, Providers, RegionError};
use crate::sync::{Arc, Mutex, lock};
use std::collections::HashMap;

/// The pools of a process.
#[derive(Debug)]
pub(super) struct QueuePools {
    memory: Arc<Providers>,
    /// By capacity.
    rings: Mutex<HashMap<u64, Arc<Pool>>>,
    doorbells: Pool,
    progress: Pool,
    logs: Arc<LogPools>,
}

/// Memory of one queue but its logs, given back on drop.
#[derive(Debug)]
pub(super) struct QueueStorage {
    /// Control words in the first page, packets from [`PAGE_BYTES`] on.
    pub(super) ring: PoolPlace,
    /// How many packets that has.
    pub(super) ring_index: RingIndex,
    pub(super) doorbell: PoolPlace,
    pub(super) progress: PoolPlace,
}

impl QueuePools {
    /// Of what an adapter's parties share.
    pub(super) fn new(memory: &Arc<Providers>) -> Self {
        Self {
            memory: Arc::clone(memory),
            rings: Mutex::default(),
            doorbells: Pool::new(memory, WordGroup::Doorbell, Doorbell::BYTES),
            progress: Pool::new(memory, WordGroup::Progress, QueueProgress::BYTES),
            logs: Arc::new(LogPools::new(memory)),
        }
    }

    /// Memory of logs, which move while their queue lives (`queue_log`).
    pub(super) fn logs(&self) -> &Arc<LogPools> {
        &self.logs
    }

    /// Memory for one more queue: an empty ring, and what goes with it.
    pub(super) fn allocate(&self, ring: RingIndex) -> Result<QueueStorage, RegionError> {
        Ok(QueueStorage {
            ring: self.rings_of(ring.capacity()).allocate()?,
            ring_index: ring,
            doorbell: self.doorbells.allocate()?,
            progress: self.progress.allocate()?,
        })
    }

    fn rings_of(&self, capacity: u64) -> Arc<Pool> {
        let bytes = (PAGE_BYTES + capacity * PACKET_BYTES).next_multiple_of(PAGE_BYTES);
        let mut rings = lock(&self.rings);
        let pool = rings
            .entry(capacity)
            .or_insert_with(|| Arc::new(Pool::new(&self.memory, WordGroup::Ring, bytes)));
        Arc::clone(pool)
    }
}
