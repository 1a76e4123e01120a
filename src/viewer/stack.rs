//! Stack: the commands of a queue, one over the other as they stand in it.
//!
//! A queue executes in order. At each time the command whose turn it is stands at the bottom, in row 0, those behind it
//! above; when it is done, all move down by a row. So a command is a box from queued to done that goes down by steps, and
//! row 0 shows what the engine was at.

use super::extremes::Extremes;
use super::rows::{Piece, Row, Share};
use crate::trace::{Command, Dispatch, Operation};
use std::ops::Range;

/// A command, where it stands in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// Its place among the events.
    pub(super) event: usize,
    /// When it was queued; where no one knows, when it was observed, when it was done, or when the one behind it was queued,
    /// whatever is earliest.
    pub(super) begin: u64,
    /// When it was done; [`u64::MAX`] when it was not. Of one whose entry was lost, when the next was done that is known of.
    pub(super) end: u64,
}

/// What a queue was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    event: usize,
    begin: u64,
    end: Option<u64>,
    is_lost: bool,
    is_signal: bool,
    is_dispatch: bool,
}

impl Given {
    /// A wait or a signal, by its place among the events.
    pub(super) fn command(event: usize, command: &Command) -> Self {
        Self {
            event,
            begin: command.span().0,
            end: command.end,
            is_lost: command.is_lost,
            is_signal: command.operation == Operation::Signal,
            is_dispatch: false,
        }
    }

    /// A dispatch.
    pub(super) fn dispatch(event: usize, dispatch: &Dispatch) -> Self {
        Self {
            event,
            begin: dispatch.span().0,
            end: dispatch.end,
            is_lost: dispatch.is_lost,
            is_signal: false,
            is_dispatch: true,
        }
    }
}

/// See the file's head.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    pub(super) items: Vec<Item>,
    /// How many of the items before each are signals, and of all.
    signals: Vec<u32>,
    /// How many there are in the queue when each is about to be done, with it.
    depth: Extremes,
}

impl Stack {
    /// Of what a queue was given, in the order in which it was recorded.
    pub(super) fn new(given: impl Iterator<Item = Given>) -> Self {
        let mut keyed = Vec::new();
        let mut known = 0;
        for given in given {
            let end = given.end;
            // Done ones in the order in which they were; a lost one behind those that were recorded before it.
            known = end.map_or(known, |end| known.max(end));
            let done = match (end, given.is_lost) {
                (Some(end), _) => end,
                (None, true) => known,
                (None, false) => u64::MAX,
            };
            keyed.push((
                // The end of a dispatch may be known by the signal behind it.
                (done, !given.is_dispatch),
                Item {
                    event: given.event,
                    begin: given.begin,
                    end: end.unwrap_or(u64::MAX),
                },
                given.is_lost,
                given.is_signal,
            ));
        }
        keyed.sort_by_key(|(key, ..)| *key);
        let mut behind = Item {
            event: 0,
            begin: u64::MAX,
            end: u64::MAX,
        };
        for (_, item, is_lost, _) in keyed.iter_mut().rev() {
            if *is_lost {
                item.end = behind.end;
            }
            item.begin = item.begin.min(behind.begin).min(item.end);
            behind = *item;
        }
        let items: Vec<Item> = keyed.iter().map(|(_, item, ..)| *item).collect();
        let mut signals = vec![0];
        for (.., is_signal) in &keyed {
            signals.push(signals.last().copied().unwrap_or(0) + u32::from(*is_signal));
        }
        let depth = Extremes::new(items.iter().enumerate().map(|(at, item)| {
            let begun = items.partition_point(|other| other.begin < item.end);
            Some(begun.saturating_sub(at).max(1) as u64)
        }));
        Self {
            items,
            signals,
            depth,
        }
    }

    /// How many there are in the queue at most, while items of a range are done.
    pub(super) fn deepest(&self, range: Range<usize>) -> usize {
        self.depth.of(range).map_or(0, |(_, most)| most as usize)
    }

    /// Items that are in the queue at some moment of a range of time, and are at the bottom then.
    pub(super) fn between(&self, (from, to): (u64, u64)) -> Range<usize> {
        let first = self.items.partition_point(|item| item.end <= from);
        let last = self.items.partition_point(|item| item.begin <= to);
        let done = self.items.partition_point(|item| item.end <= to);
        first..last.min(done + 1).max(first)
    }
}

/// One row of a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackRow<'a> {
    pub(super) stack: &'a Stack,
    pub(super) row: usize,
}

/// Pieces by the item that is at the bottom meanwhile.
impl Row for StackRow<'_> {
    fn first_after(&self, time: u64) -> usize {
        self.stack.items.partition_point(|item| item.end <= time)
    }

    fn piece(&self, number: usize) -> Option<Piece> {
        let items = &self.stack.items;
        let item = number.checked_add(self.row)?;
        let begin = items.get(item)?.begin;
        let end = items[number].end;
        // From when the one before the bottom one was done.
        let before = number.checked_sub(1).map_or(0, |before| items[before].end);
        Some(Piece {
            begin: begin.max(before).min(end),
            end,
            item,
        })
    }

    fn is_there(&self, piece: &Piece) -> bool {
        // At the bottom everything is, if for a moment.
        self.row == 0 || piece.begin < piece.end
    }

    fn share(&self, range: Range<usize>) -> Option<Share> {
        if self.row > 0 && self.stack.deepest(range.clone()) <= self.row {
            return None;
        }
        let of = |number: usize| number.saturating_add(self.row).min(self.stack.items.len());
        let (begin, end) = (of(range.start), of(range.end));
        let signals = self.stack.signals[end] - self.stack.signals[begin];
        (begin < end).then_some(Share {
            dark: signals as usize,
            all: end - begin,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(operation: Operation, queued: u64, end: Option<u64>) -> Command {
        Command {
            queue: 0,
            operation,
            fence: 0,
            value: 1,
            queued: Some(queued),
            observed: None,
            end,
            is_lost: false,
        }
    }

    fn stack(commands: &[Command]) -> Stack {
        let commands = commands.iter().enumerate();
        Stack::new(commands.map(|(event, command)| Given::command(event, command)))
    }

    /// What is in the queue at a time, from the bottom up.
    fn events(stack: &Stack, time: u64) -> Vec<usize> {
        let at = |row| {
            let row = StackRow { stack, row };
            let piece = row.piece(row.first_after(time))?;
            let is_there = piece.begin <= time && row.is_there(&piece);
            is_there.then(|| stack.items[piece.item].event)
        };
        (0..9).map_while(at).collect()
    }

    #[test]
    fn what_is_done_first_stands_at_the_bottom_and_the_others_move_down() {
        let stack = stack(&[
            command(Operation::Wait, 10, Some(100)),
            command(Operation::Signal, 20, Some(110)),
            command(Operation::Signal, 105, None),
            command(Operation::Wait, 106, None),
        ]);
        assert_eq!(events(&stack, 9), [0; 0]);
        assert_eq!(events(&stack, 15), [0]);
        assert_eq!(events(&stack, 50), [0, 1]);
        assert_eq!(events(&stack, 100), [1]);
        assert_eq!(events(&stack, 107), [1, 2, 3]);
        assert_eq!(events(&stack, 110), [2, 3]);
        assert_eq!(events(&stack, 1 << 60), [2, 3]);
        assert_eq!(stack.deepest(0..4), 3);
        assert_eq!(stack.deepest(0..1), 2);
        let row = StackRow {
            stack: &stack,
            row: 0,
        };
        assert_eq!(row.share(0..4), Some(Share { dark: 2, all: 4 }));
        let row = StackRow {
            stack: &stack,
            row: 2,
        };
        assert_eq!(row.share(0..1), None);
    }

    #[test]
    fn a_command_that_was_queued_before_the_recording_stands_before_those_behind_it() {
        let before = Command {
            queued: None,
            observed: Some(60),
            ..command(Operation::Wait, 0, Some(100))
        };
        let stack = stack(&[command(Operation::Signal, 20, Some(110)), before]);
        assert_eq!(events(&stack, 30), [1, 0]);
    }

    #[test]
    fn a_lost_one_lasts_until_the_next_that_is_known() {
        let lost = Command {
            is_lost: true,
            ..command(Operation::Wait, 20, None)
        };
        let stack = stack(&[
            command(Operation::Signal, 10, Some(100)),
            lost,
            command(Operation::Signal, 30, Some(130)),
        ]);
        assert_eq!(events(&stack, 50), [0, 1, 2]);
        assert_eq!(events(&stack, 120), [1, 2]);
        assert_eq!(events(&stack, 130), [0; 0]);
    }
}
