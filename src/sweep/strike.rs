//! Strike: where the fault of this process has struck.

use crate::supply::{MAPPINGS, THREADS};
use crate::vulkan::faults::faults;
use std::thread;

/// The thread that it struck on, and after a slash for what, where that was a mapping or a thread; `None` where it has not.
pub(super) fn struck_on() -> Option<&'static str> {
    let refused_to = || MAPPINGS.refused_to().or(THREADS.refused_to());
    faults().struck_on().or_else(refused_to)
}

/// Whether it struck on this thread.
pub(super) fn has_struck_here() -> bool {
    let current = thread::current();
    let by = struck_on().and_then(|on| on.split('/').next());
    by.is_some() && by == current.name()
}
