//! Submission: the waits and signals that a user-mode queue was given at one time (FENCE_WAIT_QUEUED, FENCE_SIGNAL_QUEUED).
//!
//! There may be one for each hundred nanoseconds, so they are told of together: their time is one, their numbers follow
//! each other, and the memory that they are written to is used again.

use super::{Operation, QueueId};

/// A wait or a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedCommand {
    /// Which.
    pub operation: Operation,
    /// Handle of the fence.
    pub handle: u32,
    /// The value.
    pub value: u64,
}

const _: () = assert!(size_of::<QueuedCommand>() == 16, "four in a cache line");

/// See the file's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    pub(crate) queue: QueueId,
    /// CLOCK_MONOTONIC before the engine could see any of them.
    pub(crate) at: u64,
    /// Running numbers of the first wait and of the first signal in their logs; the greatest there is without one.
    pub(crate) first: [u64; 2],
    pub(crate) commands: Vec<QueuedCommand>,
}

impl Submission {
    /// As many as one has; more are told of by several.
    pub(crate) const MOST: usize = 64;

    /// One that has its memory.
    pub(crate) fn with_memory() -> Self {
        Self {
            commands: Vec::with_capacity(Self::MOST),
            ..Self::default()
        }
    }

    /// An empty one, of that queue and time.
    pub(crate) fn begin(&mut self, queue: QueueId, at: u64) {
        (self.queue, self.at, self.first) = (queue, at, [u64::MAX; 2]);
        self.commands.clear();
    }

    pub(crate) fn is_full(&self) -> bool {
        self.commands.len() == Self::MOST
    }

    /// One more, with its running number.
    pub(crate) fn add(&mut self, number: u64, command: QueuedCommand) {
        let first = &mut self.first[command.operation as usize];
        *first = number.min(*first);
        self.commands.push(command);
    }

    /// Each with its running number.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u64, QueuedCommand)> {
        let mut next = self.first;
        self.commands.iter().map(move |command| {
            let next = &mut next[command.operation as usize];
            *next += 1;
            (*next - 1, *command)
        })
    }
}
