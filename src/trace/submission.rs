//! Submission: what a user-mode queue was given at one time (FENCE_WAIT_QUEUED, FENCE_SIGNAL_QUEUED, and dispatches).
//!
//! There may be one for each hundred nanoseconds, so they are told of together: their time is one, their numbers follow
//! each other, and the memory that they are written to is used again.

use super::{Operation, QueueId};

/// What was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedKind {
    /// A wait or a signal.
    Fence(Operation),
    /// A dispatch.
    Dispatch,
}

/// A wait, a signal or a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedCommand {
    /// Which.
    pub kind: QueuedKind,
    /// Its packet, counted from the submission's first.
    pub place: u16,
    /// Handle of the fence, or of the kernel.
    pub handle: u32,
    /// The value; of a dispatch its workgroups, as [`QueuedCommand::of_groups`] packs them.
    pub value: u64,
}

const _: () = assert!(size_of::<QueuedCommand>() == 16, "four in a cache line");

/// No packet of so many workgroups is executed.
const NO_GROUPS: u64 = u64::MAX;

impl QueuedCommand {
    /// Workgroups as a value; none where the packet does not say them, or says some that cannot be.
    #[must_use]
    pub fn of_groups(groups: Option<[u32; 3]>) -> u64 {
        let narrow = groups.and_then(|groups| {
            let [x, y, z] = groups.map(u16::try_from);
            Some([x.ok()?, y.ok()?, z.ok()?].map(u64::from))
        });
        narrow.map_or(NO_GROUPS, |[x, y, z]| x | y << 16 | z << 32)
    }

    /// The workgroups of a dispatch.
    pub(crate) fn groups(&self) -> Option<[u32; 3]> {
        let group = |shift| u32::from((self.value >> shift) as u16);
        (self.value != NO_GROUPS).then(|| [group(0), group(16), group(32)])
    }
}

/// See the file's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    pub(crate) queue: QueueId,
    /// CLOCK_MONOTONIC before the engine could see any of them.
    pub(crate) at: u64,
    /// Running index of the first packet.
    pub(crate) packet: u64,
    /// Running numbers of the next wait and of the next signal in their logs.
    pub(crate) first: [u64; 2],
    pub(crate) commands: Vec<QueuedCommand>,
}

/// A command of a submission, and where it stands in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) command: QueuedCommand,
    /// Running index of its packet.
    pub(crate) packet: u64,
    /// Running numbers that the next wait and the next signal have, from this one on.
    pub(crate) next: [u64; 2],
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

    /// An empty one, of that queue and time; what is next there is the packet of this index and the wait and the signal of
    /// these numbers.
    pub(crate) fn begin(&mut self, queue: QueueId, at: u64, packet: u64, first: [u64; 2]) {
        (self.queue, self.at, self.packet, self.first) = (queue, at, packet, first);
        self.commands.clear();
    }

    pub(crate) fn is_full(&self) -> bool {
        self.commands.len() == Self::MOST
    }

    /// One more.
    pub(crate) fn add(&mut self, command: QueuedCommand) {
        self.commands.push(command);
    }

    /// Each with its numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = Numbered> {
        let mut following = self.first;
        self.commands.iter().map(move |command| {
            let next = following;
            if let QueuedKind::Fence(operation) = command.kind {
                following[operation as usize] += 1;
            }
            Numbered {
                command: *command,
                packet: self.packet + u64::from(command.place),
                next,
            }
        })
    }
}
