//! Pairing: which entry of a log is of which command that was queued (LG-10).
//!
//! A queue's log has its commands in the order in which they were queued, and a note of a command has its running number
//! in that log. An entry has none; but from one entry whose command is known, those that follow are counted, and those
//! that were lost as well. The first is found by what it says: the oldest command with that fence and that value that was
//! not queued after it ended. So it is again where an entry is not what was counted to, which no sound log shows.
//!
//! What a kernel-mode queue was asked for is executed by the OS, and a signal at submission before what was queued
//! earlier. There each entry is of the oldest command that it fits.

use std::collections::VecDeque;

/// A command that was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    /// Running number in its log, if it has one.
    pub(super) number: Option<u64>,
    pub(super) handle: u32,
    pub(super) value: u64,
    /// CLOCK_MONOTONIC.
    pub(super) at: u64,
    /// When an engine found that it had to wait, in its ticks: before its entry is there.
    pub(super) observed_ticks: Option<u64>,
}

/// Of one log of one queue.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    queued: VecDeque<Queued>,
    /// Number of the entry that comes next, once it is known.
    next: Option<u64>,
    /// Entries that no note stands for, or that contradict the notes.
    pub(super) unpaired: u64,
}

impl Pairing {
    /// A command was queued.
    pub(super) fn queued(&mut self, queued: Queued) {
        self.queued.push_back(queued);
    }

    /// An engine has found the wait unsatisfied at which the queue stands: the oldest that is not done.
    pub(super) fn observed(&mut self, handle: u32, value: u64, ticks: u64) {
        let waiting = self.queued.iter_mut();
        let mut waiting = waiting.filter(|q| q.observed_ticks.is_none());
        if let Some(queued) = waiting.find(|q| (q.handle, q.value) == (handle, value)) {
            queued.observed_ticks = Some(ticks);
        }
    }

    /// An entry: its running number and its command, as far as they are known, and into `passed` those before it whose entries
    /// were lost. `seen_ns` is the latest that an engine can have come to it.
    pub(super) fn executed(
        &mut self,
        (handle, value): (u32, u64),
        seen_ns: u64,
        passed: &mut Vec<Queued>,
    ) -> (Option<u64>, Option<Queued>) {
        let fits = |q: &Queued| (q.handle, q.value) == (handle, value);
        if let Some(next) = self.next {
            passed.extend(self.passed());
            self.next = Some(next + 1);
            match self.queued.front() {
                Some(front) if front.number == Some(next) && fits(front) && front.at <= seen_ns => {
                    return (Some(next), self.queued.pop_front());
                }
                // Its note was dropped, or is of before the recording.
                Some(front) if front.number != Some(next) => {
                    self.unpaired += 1;
                    return (Some(next), None);
                }
                None => {
                    self.unpaired += 1;
                    return (Some(next), None);
                }
                Some(_) => self.next = None,
            }
        }
        let found = self.queued.iter().position(|q| fits(q) && q.at <= seen_ns);
        let Some(found) = found else {
            self.unpaired += 1;
            return (None, None);
        };
        let number = self.queued[found].number;
        let queued = match number {
            Some(number) => {
                self.next = Some(number + 1);
                passed.extend(self.queued.drain(..found));
                self.queued.pop_front()
            }
            None => self.queued.remove(found),
        };
        (number, queued)
    }

    /// Running number of the entry that comes next, where it is known: all before it are done.
    pub(super) fn next(&self) -> Option<u64> {
        self.next
    }

    /// So many entries were overwritten before they were read.
    pub(super) fn lost(&mut self, entries: u64) {
        if let Some(next) = &mut self.next {
            *next += entries;
        }
    }

    /// Commands whose entries were lost: they stand before the one that comes next. They are given once.
    pub(super) fn passed(&mut self) -> Vec<Queued> {
        let Some(next) = self.next else {
            return Vec::new();
        };
        let is_passed = |queued: &Queued| queued.number.is_some_and(|number| number < next);
        let passed = self.queued.iter().take_while(|queued| is_passed(queued));
        let passed = passed.count();
        self.queued.drain(..passed).collect()
    }

    /// Commands that have no number. They are given once.
    pub(super) fn without_number(&mut self) -> Vec<Queued> {
        let (with, without) = self
            .queued
            .drain(..)
            .partition(|queued| queued.number.is_some());
        self.queued = with;
        without.into()
    }

    /// Commands that are not done, or of which nobody knows.
    pub(super) fn rest(&self) -> impl Iterator<Item = &Queued> {
        self.queued.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(number: u64, value: u64, at: u64) -> Queued {
        Queued {
            number: Some(number),
            handle: 7,
            value,
            at,
            observed_ticks: None,
        }
    }

    fn executed(pairing: &mut Pairing, value: u64, ended: u64) -> (Option<u64>, Vec<u64>) {
        let mut passed = Vec::new();
        let (_, paired) = pairing.executed((7, value), ended, &mut passed);
        let numbers = passed.iter().filter_map(|q| q.number).collect();
        (paired.and_then(|q| q.number), numbers)
    }

    #[test]
    fn entries_are_counted_from_the_first_that_is_known() {
        let mut pairing = Pairing::default();
        // Two were queued before anybody recorded.
        assert_eq!(executed(&mut pairing, 5, 10), (None, vec![]));
        for number in 2..6 {
            pairing.queued(queued(number, 5, 20 + number));
        }
        assert_eq!(
            executed(&mut pairing, 5, 21),
            (None, vec![]),
            "it had ended before"
        );
        for number in 2..6 {
            assert_eq!(executed(&mut pairing, 5, 100), (Some(number), vec![]));
        }
        assert_eq!(pairing.unpaired, 2);
    }

    /// Mutant: `entries-that-were-lost-are-not-counted-over`.
    #[test]
    fn entries_that_were_lost_are_counted_over() {
        let mut pairing = Pairing::default();
        for number in 0..6 {
            pairing.queued(queued(number, 5, 0));
        }
        assert_eq!(executed(&mut pairing, 5, 100), (Some(0), vec![]));
        pairing.lost(3);
        assert_eq!(executed(&mut pairing, 5, 100), (Some(4), vec![1, 2, 3]));
        assert!(pairing.passed().is_empty());
        assert_eq!(
            pairing.rest().filter_map(|q| q.number).collect::<Vec<_>>(),
            [5]
        );
    }

    #[test]
    fn an_entry_whose_note_was_dropped_takes_no_other() {
        let mut pairing = Pairing::default();
        pairing.queued(queued(0, 5, 0));
        pairing.queued(queued(2, 5, 0));
        assert_eq!(executed(&mut pairing, 5, 100), (Some(0), vec![]));
        assert_eq!(executed(&mut pairing, 5, 100), (None, vec![]));
        assert_eq!(executed(&mut pairing, 5, 100), (Some(2), vec![]));
    }

    #[test]
    fn an_entry_that_is_not_what_was_counted_to_is_looked_for() {
        let mut pairing = Pairing::default();
        for number in 0..4 {
            pairing.queued(queued(number, number, 0));
        }
        assert_eq!(executed(&mut pairing, 0, 100), (Some(0), vec![]));
        assert_eq!(executed(&mut pairing, 3, 100), (Some(3), vec![1, 2]));
    }

    #[test]
    fn without_numbers_each_takes_the_oldest_that_it_fits() {
        let mut pairing = Pairing::default();
        for (value, at) in [(1, 10), (2, 11), (1, 12)] {
            pairing.queued(Queued {
                number: None,
                ..queued(0, value, at)
            });
        }
        let at = |pairing: &mut Pairing, value| {
            let mut passed = Vec::new();
            let (_, paired) = pairing.executed((7, value), 100, &mut passed);
            assert!(passed.is_empty());
            paired.map(|q| q.at)
        };
        assert_eq!(at(&mut pairing, 2), Some(11));
        assert_eq!(at(&mut pairing, 1), Some(10));
        assert_eq!(at(&mut pairing, 1), Some(12));
    }
}
