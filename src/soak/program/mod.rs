//! Random programs whose outcome does not depend on the order in which their queues run.
//!
//! A program is what several queues have in their rings, and what the CPU signals meanwhile. Its
//! outcome is determined because: every fence is signalled by one party alone, with rising values;
//! so a wait that has passed once passes for ever, and whether it ever does depends on how far that
//! party comes and on nothing else. A queue takes its packets in order up to the first that is
//! malformed, or that waits for what nobody signals; how far each comes is the least fixed point of
//! that, whatever was run first, wherever slices end, and however often a packet was begun. What
//! depends on the order, times and who raised, is no part of the outcome. Handles are closed before
//! anything runs. Each queue fills, copies, times and adds to allocations of its own, which no other stores to;
//! their words are part of the outcome, but of a time only that it is there. Another queue takes words of them
//! behind a wait for a value after which their owner stores there no more (`take.rs`).
//!
//! A queue of kernel mode is a party as the others, whose waits and signals the operating system executes; it dispatches no
//! kernels, and a submission without packets has one that does nothing.
//!
//! A new opcode is a new [`Command`]: how it is drawn (`draw.rs`), what it does (`foretell.rs`), and its packet, by
//! whoever plays it: the soak by command lists, `tests/differential.rs` by packets that it writes itself, but for kernels,
//! which lists alone dispatch. It belongs here if what it does depends on no order either.

mod add;
mod draw;
mod foretell;
mod initial;
mod mode;
mod shrink;
mod take;
mod transfer;

pub use add::Adder;
pub use draw::{Kinds, draw};
pub use foretell::{Foretold, Memory, QueueEnd, foretell};
pub use initial::{initial_value, initial_values};
pub use mode::{KernelSignals, Mode};
pub(super) use shrink::try_it;
pub use shrink::{shrink, shrink_list};

use crate::abi::FaultCode;

/// Bytes of each queue's allocation of times.
pub const TIMES_BYTES: u64 = 64;
/// Of each of its two of words.
pub const WORDS_BYTES: u64 = 8 * 65;
/// Of that of several parts of a transfer (64 loop passes of 64 bytes a lane), which a program has once or not at all.
pub const PARTS_BYTES: u64 = 4096 * 8 * 3 + 8;
/// Of all that a queue has: times, words, more words, parts.
pub const MEMORY_BYTES: [u64; 4] = [TIMES_BYTES, WORDS_BYTES, WORDS_BYTES, PARTS_BYTES];

/// A fence that a packet names rightly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// One of the program's fences.
    Fence(usize),
    /// The progress fence of a queue: to other queues and to SIGNAL packets one without the right
    /// to signal.
    ProgressOf(usize),
}

/// What one packet asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Nothing.
    Nop,
    /// The queue stands until the value is there.
    Wait(Named, u64),
    /// Of a fence that is the queue's to signal; the value is above the one before.
    Signal(usize, u64),
    /// The value is above the one before.
    Progress(u64),
    /// To a word of the queue's times.
    Timestamp(u64),
    /// The value to each of the words.
    Fill(Words, u64),
    /// From the first word on to the others, which lie elsewhere.
    Copy(Held, u64, Words),
    /// From the first word of another queue's on to own ones, behind a wait for what it signals when they are there.
    Take {
        /// Whose words.
        queue: usize,
        /// Where they lie.
        from: Held,
        /// The first of them.
        first: u64,
        /// Where they go.
        to: Words,
    },
    /// The words from the first one on, with the number added to each, to the others, which lie elsewhere.
    Add {
        /// By which kernel.
        by: Adder,
        /// Where the words lie.
        from: Held,
        /// The first of them.
        first: u64,
        /// Where the sums go.
        to: Words,
        /// What is added.
        number: u64,
    },
    /// The queue is stopped there.
    Malformed(Malformed),
}

impl Command {
    /// The program's fence that it waits for or signals.
    #[must_use]
    pub fn fence(&self) -> Option<usize> {
        match self {
            Self::Wait(Named::Fence(fence), _) | Self::Signal(fence, _) => Some(*fence),
            _ => None,
        }
    }

    /// Own words that it stores.
    #[must_use]
    pub fn stores(&self) -> Option<Words> {
        match self {
            Self::Fill(to, _)
            | Self::Copy(_, _, to)
            | Self::Take { to, .. }
            | Self::Add { to, .. } => Some(*to),
            _ => None,
        }
    }
}

/// An allocation of a queue that transfers name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Some words.
    Words,
    /// As many.
    MoreWords,
    /// Of several parts.
    Parts,
}

impl Held {
    /// All.
    pub const ALL: [Self; 3] = [Self::Words, Self::MoreWords, Self::Parts];

    /// Where it stands among what a queue has, as in [`MEMORY_BYTES`]: times come first.
    #[must_use]
    pub const fn place(self) -> usize {
        1 + self as usize
    }

    /// How many words it has.
    #[must_use]
    pub const fn words(self) -> u64 {
        MEMORY_BYTES[self.place()] / 8
    }
}

/// A range of an allocation, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// Where they lie.
    pub of: Held,
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl Words {
    /// Whether a word is in both.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.of == other.of
            && self.first < other.first + other.count
            && other.first < self.first + self.count
    }
}

/// Packets that stop their queue, each for one reason alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A number that is no opcode.
    Opcode(u8),
    /// Length and reserved bits, 24 of them, not 1.
    Length(u32),
    /// Next to the number that is due.
    LogNumber {
        /// Of a wait; else of a signal.
        waits: bool,
        /// How far off.
        by: i64,
    },
    /// A handle that was never opened in the process.
    NeverOpened {
        /// Of a wait; else of a signal.
        waits: bool,
    },
    /// One of generation 0.
    NoGeneration {
        /// Of a wait; else of a signal.
        waits: bool,
    },
    /// One that another process has opened.
    OfAnother {
        /// Of a wait; else of a signal.
        waits: bool,
    },
    /// One that was closed.
    Closed {
        /// Of a wait; else of a signal.
        waits: bool,
    },
    /// A SIGNAL packet to the progress fence of a queue, which its user may not signal.
    SignalsProgress(usize),
    /// A PROGRESS packet for another fence than its queue's.
    ProgressOfAnother(usize),
    /// A PROGRESS packet whose value is not above the last.
    ProgressStandsStill,
    /// A wait or signal that names an allocation.
    WaitsForMemory {
        /// Of a wait; else of a signal.
        waits: bool,
    },
    /// A transfer.
    Transfer(MalformedTransfer),
}

/// Transfers that are refused. Each names [`Held::Words`], but for what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedTransfer {
    /// As [`Malformed::Length`].
    Length(u32),
    /// The destination's handle, or the source's, is no open one of an allocation.
    Handle {
        /// The source's.
        of_source: bool,
        /// What it is.
        wrong: WrongHandle,
    },
    /// The high half of the word that holds the source's handle.
    HighHalf(u32),
    /// A fill from byte `first` on of so many bytes, which do not all lie in it or are no words.
    Fill {
        /// The first byte.
        first: u64,
        /// How many.
        bytes: u64,
    },
    /// A copy of so many bytes whose source is not in it, or no words.
    Source {
        /// The first byte.
        first: u64,
        /// How many.
        bytes: u64,
    },
    /// A TIMESTAMP to a byte at which no word of it begins.
    Timestamp(u64),
    /// A copy of words of one allocation, by less words than there are.
    Overlap {
        /// The first word that is copied.
        from: u64,
        /// Where it goes.
        to: u64,
        /// How many.
        count: u64,
    },
}

/// Handles by which no transfer names an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongHandle {
    /// One that was never opened.
    NeverOpened,
    /// One of generation 0.
    NoGeneration,
    /// One of another process.
    OfAnother,
    /// One of a fence.
    Fence,
    /// One that was closed.
    Closed,
}

impl MalformedTransfer {
    fn code(self) -> FaultCode {
        match self {
            Self::Length(_) => FaultCode::Length,
            Self::Handle {
                wrong: WrongHandle::Closed,
                ..
            } => FaultCode::StaleHandle,
            Self::Handle { .. } | Self::HighHalf(_) => FaultCode::Handle,
            Self::Fill { .. } | Self::Source { .. } | Self::Timestamp(_) => FaultCode::Range,
            Self::Overlap { .. } => FaultCode::Overlap,
        }
    }
}

impl Malformed {
    /// Why the queue is stopped.
    #[must_use]
    pub fn code(self) -> FaultCode {
        match self {
            Self::Opcode(_) => FaultCode::Opcode,
            Self::Length(_) => FaultCode::Length,
            Self::LogNumber { .. } => FaultCode::LogNumber,
            Self::NeverOpened { .. }
            | Self::NoGeneration { .. }
            | Self::OfAnother { .. }
            | Self::WaitsForMemory { .. } => FaultCode::Handle,
            Self::Transfer(transfer) => transfer.code(),
            Self::Closed { .. } => FaultCode::StaleHandle,
            Self::SignalsProgress(_) => FaultCode::AccessDenied,
            Self::ProgressOfAnother(_) | Self::ProgressStandsStill => FaultCode::Progress,
        }
    }
}

/// What one queue has in its ring, or gives the operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueProgram {
    /// Of which mode it is.
    pub mode: Mode,
    /// Packets of the ring; a longer program wraps it. No submission has more.
    pub capacity: u64,
    /// In their order.
    pub commands: Vec<Command>,
    /// After the last packet the write index is set off by so much, to one that cannot be.
    pub bad_index: Option<u64>,
}

/// See the module's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What each fence starts at; each is of one party.
    pub initial: Vec<u64>,
    /// What each queue does.
    pub queues: Vec<QueueProgram>,
    /// What the CPU signals, in its order.
    pub cpu: Vec<(usize, u64)>,
}

impl Program {
    /// Packets of all queues.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.queues.iter().map(|q| q.commands.len() as u64).sum()
    }
}
