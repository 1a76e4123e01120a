//! Log cursor: how far one reader has read a log that moves.
//!
//! It has the places in which there may be entries that were not read, oldest first, and reads on
//! from one into the next. Why no entry comes before one that was logged earlier: the engine logs
//! in a new place only when it has left the one before, so an index that shows an entry of the new
//! one was stored after all that is in the old. The indices are looked at from the newest place to
//! the oldest, and the entries copied from the oldest to the newest.

use super::log_buffer::{LogRead, LogReader};
use super::log_pools::LogMemory;
use crate::abi::LogType;
use crate::shared::Block;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock};
use std::collections::VecDeque;

/// Places that were left and not read which a cursor keeps (choice): a reader that comes seldom
/// loses the oldest entries, as in a log that does not move.
const MOST_LEFT: usize = 4;

/// A place where a log lies or lay.
#[derive(Debug)]
pub(super) struct LogPlace {
    memory: LogMemory,
    /// The driver has let go of it: nothing is logged there any more.
    is_left: AtomicBool,
}

impl LogPlace {
    pub(super) fn new(memory: LogMemory) -> Self {
        Self {
            memory,
            is_left: AtomicBool::new(false),
        }
    }

    pub(super) fn memory(&self) -> &LogMemory {
        &self.memory
    }

    /// The driver has said so.
    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Release);
    }

    fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Acquire)
    }
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct LogCursor(Mutex<Unread>);

#[derive(Debug, Default)]
struct Unread {
    /// Oldest first.
    places: VecDeque<(Arc<LogPlace>, LogReader)>,
    /// Of places that were given up; without entries.
    given_up: LogRead,
}

impl LogCursor {
    /// The log lies there as well from now on, or will when the driver has taken it.
    pub(super) fn append(&self, place: &Arc<LogPlace>, kind: LogType) {
        self.push(place, kind, LogReader::new);
    }

    /// It lies there, and what stands there is nobody's question.
    pub(super) fn append_from_here(&self, place: &Arc<LogPlace>, kind: LogType) {
        self.push(place, kind, LogReader::from_here);
    }

    fn push(
        &self,
        place: &Arc<LogPlace>,
        kind: LogType,
        reader: fn(Block, LogType, u32) -> LogReader,
    ) {
        let (block, entries) = (place.memory.block().clone(), place.memory.entries());
        let reader = reader(block, kind, entries as u32);
        lock(&self.0).places.push_back((Arc::clone(place), reader));
    }

    /// The driver has not taken the last place.
    pub(super) fn take_back(&self) {
        lock(&self.0).places.pop_back();
    }

    /// Gives up what lay too long.
    pub(super) fn trim(&self) {
        let unread = &mut *lock(&self.0);
        unread.drop_read();
        let too_many = unread.places.len().saturating_sub(MOST_LEFT + 1);
        for (_, reader) in unread.places.drain(..too_many) {
            unread.given_up.append(reader.unread());
        }
    }

    /// What was logged since the last call. `commit` is the driver's `UpdateNativeFenceLogs`, called
    /// once, after the indices were read and before any entry is; not where there is nothing new.
    ///
    /// # Errors
    /// The driver's; then nothing was read, and the next call gives the same entries.
    pub(super) fn read<E>(&self, commit: impl FnOnce() -> Result<(), E>) -> Result<LogRead, E> {
        let places = self.read_places(commit)?;
        let all = places.into_iter().reduce(|mut all, read| {
            all.append(read);
            all
        });
        Ok(all.unwrap_or_default())
    }

    /// The same, place by place: what one lost comes before its entries and after those of the one before.
    ///
    /// # Errors
    /// As [`LogCursor::read`].
    pub(super) fn read_places<E>(
        &self,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<Vec<LogRead>, E> {
        let unread = &mut *lock(&self.0);
        unread.drop_read();
        let has_news = unread.places.iter().any(|(_, reader)| reader.has_news());
        if !has_news && unread.given_up.is_empty() {
            return Ok(Vec::new());
        }
        let newest_first = unread.places.iter().rev();
        let mut seen: Vec<_> = newest_first
            .map(|(place, reader)| (place.is_left(), reader.index()))
            .collect();
        let mut commit = Some(commit);
        let mut read = Vec::new();
        let mut finished = 0;
        for (_, reader) in &mut unread.places {
            let Some((was_left, index)) = seen.pop() else {
                unreachable!("each place was looked at")
            };
            if reader.has_read(index) {
                finished += usize::from(was_left);
                continue;
            }
            let more =
                reader.read_up_to(index, || commit.take().map_or(Ok(()), |commit| commit()))?;
            read.push(more);
            // It was left before the look at its index, which is its last.
            finished += usize::from(was_left);
        }
        unread.places.drain(..finished);
        let given_up = std::mem::take(&mut unread.given_up);
        if !given_up.is_empty() {
            read.insert(0, given_up);
        }
        Ok(read)
    }
}

impl Unread {
    /// Drops places that were left and read to their end.
    fn drop_read(&mut self) {
        while let Some((place, reader)) = self.places.front()
            && place.is_left()
            && !reader.has_news()
        {
            self.places.pop_front();
        }
    }
}
