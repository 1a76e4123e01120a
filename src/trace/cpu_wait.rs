//! CPU wait: who waited on the CPU, for what, and how it ended.

use serde::{Deserialize, Serialize};

/// Who waits on the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WaiterKind {
    /// A thread, which sleeps.
    Thread,
    /// A future, whose task is woken.
    Future,
    /// An event handle, which becomes readable.
    Event,
    /// Nobody who is told: whoever armed the wait looks how it has ended.
    Armed,
}

impl WaiterKind {
    /// For people, and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Future => "future",
            Self::Event => "event handle",
            Self::Armed => "armed wait",
        }
    }
}

/// How a wait of the CPU ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WaitEnd {
    /// The value was there at the first look: it waited for nobody.
    AtOnce,
    /// The value came while a thread looked, before it came to stand in the fence's list.
    Seen,
    /// It stood in the fence's list, and was released.
    Released,
    /// It ended without the value.
    GivenUp,
}

impl WaitEnd {
    /// For people, and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtOnce => "at once",
            Self::Seen => "seen while it looked",
            Self::Released => "released",
            Self::GivenUp => "given up",
        }
    }
}

/// A wait of the CPU, from its call until whoever waited was told; of a wait for several fences there is one for each. One
/// that began before the recording is not in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuWait {
    /// Index into [`Trace::fences`](super::Trace::fences).
    pub fence: u32,
    /// The value.
    pub value: u64,
    /// When it began; of one that was satisfied at once, when that was seen.
    pub began: u64,
    /// When the thread ran again; of another waiter, when the wait was ended, of which it is told then.
    pub woke: u64,
    /// Who waited.
    pub waiter: WaiterKind,
    /// How it ended.
    pub end: WaitEnd,
}

impl CpuWait {
    /// Whether the value was reached.
    #[must_use]
    pub fn is_satisfied(&self) -> bool {
        match self.end {
            WaitEnd::AtOnce | WaitEnd::Seen | WaitEnd::Released => true,
            WaitEnd::GivenUp => false,
        }
    }
}
