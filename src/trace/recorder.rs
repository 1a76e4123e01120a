//! Recorder: where notes wait for the collector.
//!
//! Those who tell something are on the way of a command, so a note takes no lock, allocates nothing and makes no system
//! call: it takes a place of a ring that was made when the recording began. If there is none, the note is dropped and
//! counted, and the trace has a mark (as of a log, LG-12). While nobody records, it costs one load.

use super::Note;
use crate::sync::plain::AtomicU64;
use crossbeam_queue::ArrayQueue;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// Places: of some milliseconds of the densest that was measured, 10 million notes a second.
const PLACES: usize = 1 << 18;

/// See the file's head.
#[derive(Debug, Default)]
pub struct Recorder {
    /// 1 while somebody records. It orders nothing: a note that comes a moment early or late is in the trace or is not.
    is_on: AtomicU64,
    /// Made by the first recording, and kept.
    notes: OnceLock<ArrayQueue<Note>>,
    lost: AtomicU64,
}

impl Recorder {
    /// Whether notes are wanted: who has to do something for one asks.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed) == 1
    }

    /// Takes a note, which is made if it is wanted.
    pub fn note(&self, note: impl FnOnce() -> Note) {
        if self.is_on() {
            self.take(note());
        }
    }

    /// The time for a note that is made later, if notes are wanted.
    #[must_use]
    pub fn now(&self) -> Option<u64> {
        self.is_on().then(crate::sync::monotonic_ns)
    }

    fn take(&self, note: Note) {
        let is_taken = self
            .notes
            .get()
            .is_some_and(|notes| notes.push(note).is_ok());
        if !is_taken {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins to take notes: there are none from before.
    pub(crate) fn start(&self) {
        let notes = self.notes.get_or_init(|| ArrayQueue::new(PLACES));
        while notes.pop().is_some() {}
        self.lost.store(0, Ordering::Relaxed);
        self.is_on.store(1, Ordering::Release);
    }

    /// Takes no more. Those that were taken can be had.
    pub(crate) fn stop(&self) {
        self.is_on.store(0, Ordering::Relaxed);
    }

    /// The oldest note.
    pub(crate) fn next(&self) -> Option<Note> {
        self.notes.get()?.pop()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.notes.get().map_or(0, ArrayQueue::len)
    }

    /// How many were dropped since the last call.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn note(at: u64) -> Note {
        Note::Preemption {
            node_ordinal: 0,
            at,
        }
    }

    #[test]
    fn nothing_is_taken_while_nobody_records() {
        let recorder = Recorder::default();
        recorder.note(|| unreachable!("it is not asked for"));
        recorder.start();
        recorder.note(|| note(1));
        recorder.stop();
        recorder.note(|| unreachable!("it is not asked for any more"));
        assert_eq!((recorder.next(), recorder.next()), (Some(note(1)), None));
    }

    #[test]
    fn what_finds_no_place_is_counted() {
        let recorder = Recorder::default();
        recorder.start();
        for at in 0..PLACES as u64 + 3 {
            recorder.note(|| note(at));
        }
        assert_eq!((recorder.len(), recorder.take_lost()), (PLACES, 3));
        assert_eq!(recorder.next(), Some(note(0)));
        recorder.start();
        assert_eq!((recorder.len(), recorder.take_lost()), (0, 0));
    }
}
