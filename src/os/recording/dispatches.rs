//! Dispatches of a queue, until it is known when they ran.
//!
//! A queue executes in order. So one began after the packets before it were done, and ended before those behind it were
//! looked at: each wait and each signal that was logged tells of the dispatches beside it, which know by their numbers where
//! they stand. Where the engine logs a dispatch itself, its own times are taken.

use super::super::log_buffer::LogRead;
use crate::abi::{LogEntry, LogOperation};
use crate::trace::{Dispatch, Numbered, Operation};
use std::collections::VecDeque;

/// One that was queued, with an engine's times in its ticks.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Running index of its packet.
    packet: u64,
    kernel: u32,
    groups: Option<[u32; 3]>,
    /// CLOCK_MONOTONIC.
    queued: u64,
    /// Running numbers of the wait and of the signal that come next behind it.
    next: [u64; 2],
    /// The latest end of those before it.
    began: Option<u64>,
    /// The earliest beginning of those behind it.
    end: Option<u64>,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Dispatches {
    open: VecDeque<Open>,
    /// How many of them, from the first on, a wait or a signal behind them has shown to be done.
    passed: [usize; 2],
    /// And one that the engine has logged.
    bounded: usize,
    /// The one that was logged last: running index of its packet, and its end.
    last: Option<(u64, u64)>,
}

impl Dispatches {
    /// One was queued.
    pub(super) fn queued(&mut self, numbered: Numbered, queued: u64) {
        self.open.push_back(Open {
            packet: numbered.packet,
            kernel: numbered.command.handle,
            groups: numbered.command.groups(),
            queued,
            next: numbered.next,
            began: None,
            end: None,
        });
    }

    /// The wait or the signal of this number was logged: looked at first and done at these times.
    pub(super) fn beside(&mut self, operation: Operation, number: u64, (first, end): (u64, u64)) {
        let which = operation as usize;
        while let Some(open) = self.open.get_mut(self.passed[which])
            && open.next[which] <= number
        {
            open.ended_by(first);
            self.passed[which] += 1;
        }
        let behind = self.open.iter_mut().skip(self.passed[which]);
        for open in behind.take_while(|open| open.next[which] == number + 1) {
            open.began = open.began.max(Some(end));
        }
    }

    /// What the engine logged of them itself; one that was queued before anybody recorded has no more than that.
    pub(super) fn logged(&mut self, queue: u32, read: &LogRead) -> Vec<Dispatch> {
        let is_dispatch = |entry: &&LogEntry| entry.operation == LogOperation::DispatchDone as u32;
        let mut logged = Vec::new();
        for entry in read.entries.iter().filter(is_dispatch) {
            let packet = entry.fence_value;
            // An engine that came to another's place may have logged it again.
            if self.last.is_some_and(|(last, _)| packet <= last) {
                continue;
            }
            let at = self.open.partition_point(|open| open.packet < packet);
            // Those between the one before and this one, each of which is looked at once.
            let before = self.open.iter_mut().take(at).skip(self.bounded);
            for open in before {
                open.ended_by(entry.observed_ticks);
                open.began = open.not_before(self.last);
            }
            self.bounded = at;
            self.last = Some((packet, entry.end_ticks));
            let is_it = |open: &&Open| (open.packet, open.kernel) == (packet, entry.native_fence);
            let open = self.open.get(at).filter(is_it).copied();
            if open.is_some() {
                self.open.remove(at);
                for passed in &mut self.passed {
                    *passed -= usize::from(*passed > at);
                }
            }
            logged.push(Dispatch {
                queue,
                kernel: entry.native_fence,
                groups: open.and_then(|open| open.groups),
                queued: open.map(|open| open.queued),
                began: Some(entry.observed_ticks),
                end: Some(entry.end_ticks),
                is_logged: true,
                is_lost: false,
            });
        }
        logged
    }

    /// Those that are done by what is known of their neighbours, of which the waits and signals before these numbers are done:
    /// given once. And then those that are not, or of which nobody knows.
    pub(super) fn rest(&mut self, queue: u32, done_before: [Option<u64>; 2]) -> Vec<Dispatch> {
        let is_passed = |open: &Open| {
            let each = open.next.iter().zip(done_before);
            let mut each = each.map(|(next, done)| done.is_some_and(|done| *next < done));
            each.any(|is_passed| is_passed)
        };
        let is_done = |open: &&Open| open.end.is_some() || is_passed(open);
        let done = self.open.iter().take_while(is_done).count();
        let all = self.open.iter().enumerate();
        let all = all.map(|(place, open)| open.event(queue, self.last, place < done));
        let all = all.collect();
        self.open.drain(..done);
        let [waits, signals] = &mut self.passed;
        for before in [waits, signals, &mut self.bounded] {
            *before = before.saturating_sub(done);
        }
        all
    }
}

impl Open {
    /// Something behind it was come to.
    fn ended_by(&mut self, ticks: u64) {
        self.end = Some(self.end.map_or(ticks, |known| known.min(ticks)));
    }

    /// When it can have begun, where that one was done before it.
    fn not_before(&self, logged: Option<(u64, u64)>) -> Option<u64> {
        let before = logged.filter(|(packet, _)| *packet < self.packet);
        self.began.max(before.map(|(_, end)| end))
    }

    fn event(&self, queue: u32, logged: Option<(u64, u64)>, is_done: bool) -> Dispatch {
        Dispatch {
            queue,
            kernel: self.kernel,
            groups: self.groups,
            queued: Some(self.queued),
            began: self.not_before(logged),
            end: self.end,
            is_logged: false,
            is_lost: is_done && self.end.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{QueuedCommand, QueuedKind};

    /// One at a packet, before the wait and the signal of these numbers.
    fn queued(packet: u64, next: [u64; 2]) -> Numbered {
        Numbered {
            command: QueuedCommand {
                kind: QueuedKind::Dispatch,
                place: 0,
                handle: 7,
                value: QueuedCommand::of_groups(Some([packet as u32, 2, 1])),
            },
            packet,
            next,
        }
    }

    fn entry(packet: u64, observed_ticks: u64, end_ticks: u64) -> LogEntry {
        LogEntry {
            fence_value: packet,
            native_fence: 7,
            operation: LogOperation::DispatchDone as u32,
            reserved0: 0,
            observed_ticks,
            reserved1: 0,
            end_ticks,
        }
    }

    fn read(entries: &[LogEntry]) -> LogRead {
        LogRead {
            entries: entries.to_vec(),
            ..LogRead::default()
        }
    }

    fn times(dispatches: &[Dispatch]) -> Vec<(Option<u64>, Option<u64>)> {
        dispatches.iter().map(|one| (one.began, one.end)).collect()
    }

    #[test]
    fn each_lies_between_its_nearest_neighbours() {
        let mut dispatches = Dispatches::default();
        // wait 0, signal 0, [1], signal 1, [3], [4], wait 1, [6]
        for (packet, next) in [(1, [1, 1]), (3, [1, 2]), (4, [1, 2]), (6, [2, 2])] {
            dispatches.queued(queued(packet, next), 0);
        }
        dispatches.beside(Operation::Wait, 0, (5, 10));
        dispatches.beside(Operation::Signal, 0, (11, 11));
        dispatches.beside(Operation::Signal, 1, (20, 20));
        assert_eq!(
            times(&dispatches.rest(0, [None; 2])),
            [
                (Some(11), Some(20)),
                (Some(20), None),
                (Some(20), None),
                (Some(20), None)
            ]
        );
        // The first is done, and is not told of again. A wait tells by when it was looked at, and from when it was done.
        dispatches.beside(Operation::Wait, 1, (30, 45));
        let last = dispatches.rest(0, [None; 2]);
        let expected = [(20, Some(30)), (20, Some(30)), (45, None)];
        assert_eq!(
            times(&last),
            expected.map(|(began, end)| (Some(began), end))
        );
        assert_eq!(last[0].groups, Some([3, 2, 1]));
        assert_eq!(dispatches.rest(0, [None; 2]).len(), 1);
    }

    #[test]
    fn those_whose_neighbours_were_lost_lie_between_the_next_ones() {
        let mut dispatches = Dispatches::default();
        for packet in 0..4 {
            dispatches.queued(queued(2 * packet, [0, packet]), 0);
        }
        dispatches.beside(Operation::Signal, 2, (90, 90));
        let all = times(&dispatches.rest(0, [None; 2]));
        assert_eq!(all[..3], [(None, Some(90)); 3]);
        assert_eq!(all[3], (Some(90), None));
    }

    #[test]
    fn those_that_are_done_nobody_knows_when_are_given_once() {
        let mut dispatches = Dispatches::default();
        for packet in 0..3 {
            dispatches.queued(queued(2 * packet, [0, packet]), 0);
        }
        // The entries of two signals were lost.
        let all = dispatches.rest(0, [None, Some(2)]);
        let lost = all.iter().map(|one| (one.is_lost, one.end));
        assert!(lost.eq([(true, None), (true, None), (false, None)]));
        assert_eq!(dispatches.rest(0, [None, Some(2)]).len(), 1);
    }

    #[test]
    fn what_the_engine_logged_is_taken_and_tells_of_those_beside_it() {
        let mut dispatches = Dispatches::default();
        for packet in 1..4 {
            dispatches.queued(queued(packet, [0, 0]), 0);
        }
        let of_before = entry(0, 1, 2);
        let logged = dispatches.logged(0, &read(&[of_before, entry(2, 30, 40), entry(2, 50, 60)]));
        assert_eq!(logged.len(), 2, "once each: {logged:?}");
        assert_eq!((logged[0].queued, logged[0].groups), (None, None));
        assert_eq!((logged[1].queued, logged[1].began), (Some(0), Some(30)));
        dispatches.beside(Operation::Signal, 0, (70, 70));
        let rest = dispatches.rest(0, [None; 2]);
        assert_eq!(times(&rest), [(Some(2), Some(30)), (Some(40), Some(70))]);
        assert!(dispatches.rest(0, [None; 2]).is_empty());
    }

    #[test]
    fn an_entry_of_another_kernel_is_not_it() {
        let mut dispatches = Dispatches::default();
        dispatches.queued(queued(1, [0, 0]), 0);
        let other = LogEntry {
            native_fence: 8,
            ..entry(1, 1, 2)
        };
        assert_eq!(dispatches.logged(0, &read(&[other]))[0].queued, None);
        assert_eq!(dispatches.rest(0, [None; 2]).len(), 1);
    }
}
