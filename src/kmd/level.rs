//! Level: at which interrupt level a thread is, and at which each DDI is documented.
//!
//! There is no kernel here and a thread cannot be raised; a level is the role that it plays. A call
//! of a DDI plays at the DDI's documented level, an interrupt with its deferred call at
//! DISPATCH_LEVEL, everything else at PASSIVE_LEVEL. As in the documents, a thread may go up to call
//! and never down: who is at DISPATCH_LEVEL may not call what is documented at PASSIVE_LEVEL.

use crate::sync::thread_local;
use std::cell::Cell;
use std::fmt;

/// Interrupt request levels, with their numbers on x64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `PASSIVE_LEVEL`.
    Passive = 0,
    /// `DISPATCH_LEVEL`.
    Dispatch = 2,
    /// `PROFILE_LEVEL - 1`, which stands for the device interrupt level.
    DeviceInterrupt = 14,
}

/// A call at a level above the one that its DDI is documented at (FQ-09).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongLevel {
    /// Which call.
    pub ddi: &'static str,
    /// The caller's level.
    pub thread: Level,
    /// The documented one.
    pub documented: Level,
}

thread_local! {
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's takes no const")]
    static LEVEL: Cell<Level> = Cell::new(Level::Passive);
}

/// Puts the thread's level back, after a panic too.
struct Restores(Level);

impl Drop for Restores {
    fn drop(&mut self) {
        LEVEL.with(|level| level.set(self.0));
    }
}

impl Level {
    /// Of this thread.
    #[must_use]
    pub fn of_thread() -> Self {
        LEVEL.with(Cell::get)
    }

    /// Does something at this level, whatever the thread's is: a test that acts for another thread
    /// does it at PASSIVE_LEVEL.
    pub fn during<T>(self, act: impl FnOnce() -> T) -> T {
        let _restores = Restores(LEVEL.with(|level| level.replace(self)));
        act()
    }

    /// Does something at this level or above, where the thread is above.
    pub(crate) fn raised<T>(self, act: impl FnOnce() -> T) -> T {
        self.max(Self::of_thread()).during(act)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passive => "PASSIVE_LEVEL",
            Self::Dispatch => "DISPATCH_LEVEL",
            Self::DeviceInterrupt => "the device interrupt level",
        })
    }
}

impl fmt::Display for WrongLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ddi,
            thread,
            documented,
        } = self;
        write!(f, "{ddi} is called at {thread}; it belongs at {documented}")
    }
}
