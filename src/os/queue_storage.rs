//! Queue storage: the memory of hardware queues of one process, by who may touch it.
//!
//! The user writes rings, reads progress words, and has no mapping of a log: three kinds of pages,
//! each shared by the queues of the process, never by two processes. A ring that was given back is
//! cleared before another queue has it, but a mapping of it that the user kept is good until the
//! process ends: what is written there is checked by the engine, as all of a ring is.

use crate::abi::{
    LOG_BUFFER_BYTES, LOG_BUFFER_ENTRIES, LogHeader, LogType, PACKET_BYTES, PAGE_BYTES,
    QueueProgress, RingIndex, WordGroup,
};
use crate::shared::{Pool, PoolPlace, RegionError};
use crate::sync::{Arc, Mutex, lock};
use std::collections::HashMap;

/// The pools of a process.
#[derive(Debug)]
pub(super) struct QueuePools {
    /// By capacity.
    rings: Mutex<HashMap<u64, Arc<Pool>>>,
    progress: Pool,
    logs: Pool,
}

/// Memory of one queue, given back on drop.
#[derive(Debug)]
pub(super) struct QueueStorage {
    /// Control words in the first page, packets from [`PAGE_BYTES`] on.
    pub(super) ring: PoolPlace,
    pub(super) progress: PoolPlace,
    pub(super) wait_log: PoolPlace,
    pub(super) signal_log: PoolPlace,
}

impl Default for QueuePools {
    fn default() -> Self {
        Self {
            rings: Mutex::default(),
            progress: Pool::new(WordGroup::Progress, QueueProgress::BYTES),
            logs: Pool::new(WordGroup::Log, LOG_BUFFER_BYTES),
        }
    }
}

impl QueuePools {
    /// Memory for one more queue: an empty ring, two logs with their headers.
    pub(super) fn allocate(&self, ring: RingIndex) -> Result<QueueStorage, RegionError> {
        Ok(QueueStorage {
            ring: self.rings_of(ring.capacity()).allocate()?,
            progress: self.progress.allocate()?,
            wait_log: self.log(LogType::Waits)?,
            signal_log: self.log(LogType::Signals)?,
        })
    }

    fn rings_of(&self, capacity: u64) -> Arc<Pool> {
        let bytes = (PAGE_BYTES + capacity * PACKET_BYTES).next_multiple_of(PAGE_BYTES);
        let mut rings = lock(&self.rings);
        let pool = rings
            .entry(capacity)
            .or_insert_with(|| Arc::new(Pool::new(WordGroup::Ring, bytes)));
        Arc::clone(pool)
    }

    fn log(&self, kind: LogType) -> Result<PoolPlace, RegionError> {
        let log = self.logs.allocate()?;
        // Type and count: the low half of the type's word; indices are zero already.
        log.block().word(LogHeader::LOG_TYPE).put(kind as u64);
        log.block()
            .word(LogHeader::NUMBER_OF_ENTRIES)
            .put(LOG_BUFFER_ENTRIES);
        Ok(log)
    }
}
