//! Raw log: the bytes of a log, through a mapping of its own.

use crate::abi::{LOG_BUFFER_BYTES, LOG_BUFFER_ENTRIES, LogEntry, LogHeader, LogIndex};
use crate::shared::{Block, Region};
use std::sync::Arc;

/// The bytes of a log, through a mapping of its own.
#[derive(Clone, Debug)]
pub struct RawLog {
    /// Its words.
    pub block: Block,
}

impl RawLog {
    pub(super) fn of((region, offset): &(Arc<Region>, u64)) -> Self {
        let whole = Block::whole(&region.map().expect("it is mapped once more"));
        Self {
            block: whole.part(*offset, LOG_BUFFER_BYTES),
        }
    }

    /// The word of index and wrap count.
    #[must_use]
    pub fn word(&self) -> u64 {
        self.block.word(LogHeader::INDEX).observe()
    }

    /// The same, in its parts.
    #[must_use]
    pub fn index(&self) -> LogIndex {
        LogIndex::from_word(self.word())
    }

    /// Entries written since the log was made.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.index().total(LOG_BUFFER_ENTRIES as u32)
    }

    /// What stands in a slot.
    #[must_use]
    pub fn entry(&self, slot: u32) -> LogEntry {
        bytemuck::cast(self.block.peek_words::<6>(LogIndex::entry_offset(slot)))
    }

    /// The last `count` entries, oldest first; at most [`LOG_BUFFER_ENTRIES`].
    #[must_use]
    pub fn last(&self, count: u64) -> Vec<LogEntry> {
        let total = self.total();
        (total - count..total)
            .map(|number| self.entry((number % LOG_BUFFER_ENTRIES) as u32))
            .collect()
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let words = (0..self.block.bytes() as u64 / 8).map(|i| self.block.word(8 * i).peek());
        words.flat_map(u64::to_le_bytes).collect()
    }
}
