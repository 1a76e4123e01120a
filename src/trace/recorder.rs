//! Recorder: where notes wait for the collector.
//!
//! Those who tell something are on the way of a command, so a note takes no lock, allocates nothing and makes no system
//! call: it takes a place of a ring that was made when the recording began. If there is none, the note is dropped and
//! counted, and the trace has a mark (as of a log, LG-12). While nobody records, it costs one load.

use super::{Note, QueueId, Submission};
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;
use crossbeam_queue::ArrayQueue;
use std::sync::OnceLock;

/// Notes that can wait.
const NOTES: usize = 1 << 14;
/// Submissions that can wait, each of [`Submission::MOST`] commands at most: some ten milliseconds of the densest that was
/// measured, 10 million commands a second.
const SUBMISSIONS: usize = 1 << 12;

/// See the file's head.
#[derive(Debug, Default)]
pub struct Recorder {
    /// 1 while somebody records. It orders nothing: a note that comes a moment early or late is in the trace or is not.
    is_on: AtomicU64,
    /// Made by the first recording, and kept.
    rings: OnceLock<Rings>,
    lost: AtomicU64,
}

#[derive(Debug)]
struct Rings {
    notes: ArrayQueue<Note>,
    told: ArrayQueue<Submission>,
    /// Submissions whose memory can be written.
    free: ArrayQueue<Submission>,
}

impl Rings {
    fn new() -> Self {
        let free = ArrayQueue::new(SUBMISSIONS);
        for _ in 0..SUBMISSIONS {
            let _ = free.push(Submission::with_memory());
        }
        Self {
            notes: ArrayQueue::new(NOTES),
            told: ArrayQueue::new(SUBMISSIONS),
            free,
        }
    }
}

impl Recorder {
    /// Whether notes are wanted: who has to do something for one asks.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed) == 1
    }

    /// The time for a note that is made later, if notes are wanted.
    #[must_use]
    pub fn now(&self) -> Option<u64> {
        self.is_on().then(crate::sync::monotonic_ns)
    }

    /// Takes a note, which is made if it is wanted.
    pub fn note(&self, note: impl FnOnce() -> Note) {
        if self.is_on() {
            let rings = self.rings.get();
            let is_taken = rings.is_some_and(|rings| rings.notes.push(note()).is_ok());
            if !is_taken {
                self.lose(1);
            }
        }
    }

    /// So many are dropped.
    pub(crate) fn lose(&self, notes: u64) {
        self.lost.fetch_add(notes, Ordering::Relaxed);
    }

    /// An empty submission, to be written and given to [`Recorder::submit`]; none where all wait for the collector.
    pub(crate) fn submission(
        &self,
        queue: QueueId,
        at: u64,
        packet: u64,
        next: [u64; 2],
    ) -> Option<Submission> {
        let mut submission = self.rings.get()?.free.pop()?;
        submission.begin(queue, at, packet, next);
        Some(submission)
    }

    /// Takes a submission.
    pub(crate) fn submit(&self, submission: Submission) {
        // There are no more of them than places.
        let rings = self.rings.get();
        let refused = rings.and_then(|rings| rings.told.push(submission).err());
        debug_assert!(refused.is_none(), "submissions come from the ring");
    }

    /// Begins to take notes: there are none from before.
    pub(crate) fn start(&self) {
        self.rings.get_or_init(Rings::new);
        while self.next().is_some() {}
        while let Some(submission) = self.next_submission() {
            self.give_back(submission);
        }
        self.lost.store(0, Ordering::Relaxed);
        self.is_on.store(1, Ordering::Release);
    }

    /// Takes no more. Those that were taken can be had.
    pub(crate) fn stop(&self) {
        self.is_on.store(0, Ordering::Relaxed);
    }

    /// The oldest note.
    pub(crate) fn next(&self) -> Option<Note> {
        self.rings.get()?.notes.pop()
    }

    /// How many notes there are.
    pub(crate) fn notes(&self) -> usize {
        self.rings.get().map_or(0, |rings| rings.notes.len())
    }

    /// The oldest submission, to be given back.
    pub(crate) fn next_submission(&self) -> Option<Submission> {
        self.rings.get()?.told.pop()
    }

    /// How many submissions there are.
    pub(crate) fn submissions(&self) -> usize {
        self.rings.get().map_or(0, |rings| rings.told.len())
    }

    /// Its memory can be written again.
    pub(crate) fn give_back(&self, submission: Submission) {
        if let Some(rings) = self.rings.get() {
            let _ = rings.free.push(submission);
        }
    }

    /// How many were dropped since the last call.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::trace::{Operation, QueuedCommand, QueuedKind};

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
        assert_eq!(recorder.now(), None);
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
        for at in 0..NOTES as u64 + 3 {
            recorder.note(|| note(at));
        }
        assert_eq!((recorder.notes(), recorder.take_lost()), (NOTES, 3));
        assert_eq!(recorder.next(), Some(note(0)));
        recorder.start();
        assert_eq!((recorder.notes(), recorder.take_lost()), (0, 0));
    }

    #[test]
    fn submissions_come_back_and_are_written_again() {
        let recorder = Recorder::default();
        recorder.start();
        let queue = QueueId::default();
        for turn in 0..2 {
            let mut held = Vec::new();
            while let Some(mut submission) = recorder.submission(queue, turn, 0, [0, 7 + turn]) {
                submission.add(QueuedCommand {
                    kind: QueuedKind::Fence(Operation::Signal),
                    place: 0,
                    handle: 1,
                    value: 2,
                });
                held.push(submission);
            }
            assert_eq!(held.len(), SUBMISSIONS);
            for submission in held {
                recorder.submit(submission);
            }
            for _ in 0..recorder.submissions() {
                let told = recorder.next_submission().unwrap();
                let numbers = told.numbered().map(|numbered| numbered.next[1]);
                let numbers: Vec<_> = numbers.collect();
                assert_eq!((told.at, numbers), (turn, vec![7 + turn]));
                recorder.give_back(told);
            }
        }
    }
}
