//! Log reader: the OS's side of a native fence log buffer.
//!
//! The GPU never waits for the reader. The reader knows the index up to which it has read, reads
//! the index word, has the driver commit the entries, copies them, and reads the index word once
//! more: what the engine could have overwritten meanwhile is dropped and counted as lost, never
//! taken for data (LG-06). The entry at the first free index may be half written at any time.

use crate::abi::{LogEntry, LogHeader, LogIndex, LogOperation, LogType};
use crate::shared::Block;
use crate::sync::{Ordering, fence};

/// What one look at a log gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRead {
    /// New entries, oldest first.
    pub entries: Vec<LogEntry>,
    /// Entries that were overwritten before they could be read.
    pub lost: u64,
    /// Words that no log can hold, refused: an index past the end, a foreign operation.
    pub refused: u64,
}

impl LogRead {
    /// The same, and what came after it.
    pub(super) fn append(&mut self, after: Self) {
        self.entries.extend(after.entries);
        self.lost += after.lost;
        self.refused += after.refused;
    }

    /// Whether it says anything.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.lost == 0 && self.refused == 0
    }
}

/// Reads one log.
#[derive(Debug)]
pub struct LogReader {
    log: Block,
    kind: LogType,
    entries: u32,
    read: LogIndex,
}

impl LogReader {
    /// Over a log of `entries` entries, whose header the OS has written.
    #[must_use]
    pub fn new(log: Block, kind: LogType, entries: u32) -> Self {
        let read = LogIndex {
            first_free_entry_index: 0,
            wraparound_count: 0,
        };
        Self {
            log,
            kind,
            entries,
            read,
        }
    }

    /// The same, but for what stands there already.
    pub(super) fn from_here(log: Block, kind: LogType, entries: u32) -> Self {
        let mut reader = Self::new(log, kind, entries);
        reader.read = reader.index();
        reader
    }

    /// The index word as it stands now.
    pub(super) fn index(&self) -> LogIndex {
        LogIndex::from_word(self.log.word(LogHeader::INDEX).observe())
    }

    /// Whether there are entries that were not read: the look before `UpdateNativeFenceLogs`.
    #[must_use]
    pub fn has_news(&self) -> bool {
        !self.has_read(self.index())
    }

    /// Whether it has read up to this index.
    pub(super) fn has_read(&self, index: LogIndex) -> bool {
        self.read == index
    }

    /// Entries that were not read, and will not be.
    pub(super) fn unread(&self) -> LogRead {
        match self.index().since(self.read, self.entries) {
            Some(lost) => LogRead {
                lost,
                ..LogRead::default()
            },
            None => LogRead {
                refused: 1,
                ..LogRead::default()
            },
        }
    }

    /// Copies the new entries. `commit` is the driver's `UpdateNativeFenceLogs`, called between
    /// the index and the entries (LG-05).
    ///
    /// # Errors
    /// The driver's; then nothing was read, and the next call gives the same entries.
    pub fn read<E>(&mut self, commit: impl FnOnce() -> Result<(), E>) -> Result<LogRead, E> {
        self.read_up_to(self.index(), commit)
    }

    /// The same for an index that was seen before.
    pub(super) fn read_up_to<E>(
        &mut self,
        seen: LogIndex,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<LogRead, E> {
        let mut read = LogRead::default();
        let Some(new) = seen.since(self.read, self.entries) else {
            read.refused += 1;
            return Ok(read);
        };
        commit()?;
        let capacity = u64::from(self.entries);
        // The newest ones: at most one log full, and not the place that is written next.
        let kept = new.min(capacity - 1);
        let mut copied: Vec<LogEntry> = (1..=kept)
            .rev()
            .map(|back| self.entry(seen.first_free_entry_index, back))
            .collect();
        // The loads of the entries come before the second look at the index: without this a weakly
        // ordered CPU may copy an entry after it.
        fence(Ordering::Acquire);
        // The engine may have gone on meanwhile: `ahead` more entries, and one half written.
        let ahead = self.index().since(seen, self.entries).unwrap_or(capacity);
        let safe = capacity.saturating_sub(ahead + 1).min(kept);
        let overtaken = (kept - safe) as usize;
        copied.drain(..overtaken);
        read.lost = new - copied.len() as u64;
        let before = copied.len();
        copied.retain(|entry| self.is_ours(entry));
        read.refused += (before - copied.len()) as u64;
        read.entries = copied;
        self.read = seen;
        Ok(read)
    }

    fn is_ours(&self, entry: &LogEntry) -> bool {
        matches!(
            (LogOperation::from_bits(entry.operation), self.kind),
            (Some(LogOperation::WaitUnblocked), LogType::Waits)
                | (Some(LogOperation::SignalExecuted), LogType::Signals)
                | (
                    Some(LogOperation::WaitQueued | LogOperation::DispatchDone),
                    LogType::Verbose
                )
        )
    }

    fn entry(&self, first_free: u32, back: u64) -> LogEntry {
        let capacity = u64::from(self.entries);
        let slot = (u64::from(first_free) + capacity - back) % capacity;
        let offset = LogIndex::entry_offset(slot as u32);
        bytemuck::cast(
            self.log
                .peek_words::<{ LogEntry::BYTES as usize / 8 }>(offset),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{LOG_BUFFER_BYTES, LOG_BUFFER_ENTRIES};
    use crate::shared::Region;
    use std::convert::Infallible;

    const ENTRIES: u32 = LOG_BUFFER_ENTRIES as u32;

    struct Engine {
        log: Block,
        index: LogIndex,
        written: u64,
    }

    impl Engine {
        fn log(&mut self) {
            let entry = LogEntry {
                fence_value: self.written,
                native_fence: 1,
                operation: LogOperation::SignalExecuted as u32,
                reserved0: 0,
                observed_ticks: 0,
                reserved1: 0,
                end_ticks: self.written,
            };
            let words: [u64; 6] = bytemuck::cast(entry);
            self.log.put_words(
                LogIndex::entry_offset(self.index.first_free_entry_index),
                &words,
            );
            self.index = self.index.next(ENTRIES);
            self.log.word(LogHeader::INDEX).publish(self.index.word());
            self.written += 1;
        }
    }

    fn log() -> (Engine, LogReader) {
        let region = Region::new("log", LOG_BUFFER_BYTES).unwrap();
        let log = Block::whole(&region.map().unwrap());
        let reader = LogReader::new(log.clone(), LogType::Signals, ENTRIES);
        (
            Engine {
                log,
                index: LogIndex::from_word(0),
                written: 0,
            },
            reader,
        )
    }

    fn read_of(reader: &mut LogReader) -> LogRead {
        reader.read(|| Ok::<_, Infallible>(())).unwrap()
    }

    fn values(read: &LogRead) -> Vec<u64> {
        read.entries.iter().map(|entry| entry.fence_value).collect()
    }

    #[test]
    fn entries_are_read_once_and_in_order() {
        let (mut engine, mut reader) = log();
        for start in [0, 50, 100, 150] {
            (0..50).for_each(|_| engine.log());
            assert!(reader.has_news());
            let read = read_of(&mut reader);
            assert_eq!(
                (values(&read), read.lost),
                ((start..start + 50).collect(), 0)
            );
        }
        assert!(!reader.has_news());
    }

    #[test]
    fn what_was_overwritten_is_lost_and_counted() {
        let (mut engine, mut reader) = log();
        (0..200).for_each(|_| engine.log());
        let read = read_of(&mut reader);
        assert_eq!((values(&read), read.lost), ((117..200).collect(), 117));
    }

    #[test]
    fn entries_that_the_driver_could_not_commit_are_read_the_next_time() {
        let (mut engine, mut reader) = log();
        (0..3).for_each(|_| engine.log());
        assert_eq!(reader.read(|| Err("not now")), Err("not now"));
        assert!(reader.has_news());
        assert_eq!(values(&read_of(&mut reader)), [0, 1, 2]);
    }

    #[test]
    fn an_overrun_while_the_reader_copies_is_found() {
        let (mut engine, mut reader) = log();
        (0..83).for_each(|_| engine.log());
        // The engine goes on between the index and the end of the copy.
        let read = reader
            .read(|| {
                (0..10).for_each(|_| engine.log());
                Ok::<_, Infallible>(())
            })
            .unwrap();
        assert_eq!(
            read.lost, 10,
            "9 entries were overwritten and one may be half written"
        );
        assert_eq!(values(&read), (10..83).collect::<Vec<_>>());
        assert_eq!(values(&read_of(&mut reader)), (83..93).collect::<Vec<_>>());
    }

    #[test]
    fn an_index_that_cannot_be_is_refused() {
        let (engine, mut reader) = log();
        engine
            .log
            .word(LogHeader::INDEX)
            .publish(u64::from(ENTRIES));
        assert_eq!(
            read_of(&mut reader),
            LogRead {
                refused: 1,
                ..LogRead::default()
            }
        );
    }
}
