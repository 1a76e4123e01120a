//! Log pools: memory that the logs of one process's queues lie in.
//!
//! A log of a page shares its region with others; one that was enlarged is alone in its own. A place
//! that was given back is cleared before another log has it: no entry of another queue is ever read.

use super::adapter::OsError;
use crate::abi::{
    LOG_BUFFER_BYTES, LOG_BUFFER_ENTRIES, LogEntry, LogHeader, LogType, MOST_LOG_ENTRIES,
    PAGE_BYTES, WordGroup,
};
use crate::kmd::Place;
use crate::shared::{Block, Pool, PoolPlace, Providers};
use crate::sync::{Arc, Mutex, lock};
use std::collections::HashMap;

/// See the file's head.
#[derive(Debug)]
pub(super) struct LogPools {
    memory: Arc<Providers>,
    pages: Pool,
    /// Of enlarged logs, by bytes.
    large: Mutex<HashMap<u64, Arc<Pool>>>,
}

/// Memory of one log with its header written, given back on drop.
#[derive(Debug)]
pub(super) struct LogMemory {
    place: PoolPlace,
    entries: u64,
}

impl LogPools {
    /// Of what an adapter's parties share.
    pub(super) fn new(memory: &Arc<Providers>) -> Self {
        Self {
            memory: Arc::clone(memory),
            pages: Pool::new(memory, WordGroup::Log, LOG_BUFFER_BYTES),
            large: Mutex::default(),
        }
    }

    /// An empty log of `entries` entries.
    ///
    /// # Errors
    /// A number that no log has; no memory.
    pub(super) fn allocate(&self, kind: LogType, entries: u64) -> Result<LogMemory, OsError> {
        if !(LOG_BUFFER_ENTRIES..=MOST_LOG_ENTRIES).contains(&entries) {
            return Err(OsError::LogEntries(entries));
        }
        let bytes = (LogHeader::BYTES + entries * LogEntry::BYTES).next_multiple_of(PAGE_BYTES);
        let place = if bytes == LOG_BUFFER_BYTES {
            self.pages.allocate()
        } else {
            self.large_of(bytes).allocate()
        }?;
        // Type and count: the low half of the type's word; indices are zero already.
        place.block().word(LogHeader::LOG_TYPE).put(kind as u64);
        place
            .block()
            .word(LogHeader::NUMBER_OF_ENTRIES)
            .put(entries);
        Ok(LogMemory { place, entries })
    }

    fn large_of(&self, bytes: u64) -> Arc<Pool> {
        let mut large = lock(&self.large);
        let pool = large.entry(bytes).or_insert_with(|| {
            Arc::new(Pool::new(&self.memory, WordGroup::LargeLog, bytes).with_places(1))
        });
        Arc::clone(pool)
    }
}

impl LogMemory {
    /// The OS's view of it.
    pub(super) fn block(&self) -> &Block {
        self.place.block()
    }

    /// `NumberOfEntries`.
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// Where the driver finds it.
    pub(super) fn place(&self) -> Place<'_> {
        (&self.place).into()
    }
}
