//! Waiting for what has no event: a word that another thread or an engine stores.
#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub(crate) use native_fence::conform::{LONG, is_sleeping};

/// Looks until `condition` holds, giving the processor away between looks.
///
/// # Panics
/// When it does not hold for [`LONG`].
pub(crate) fn until(what: &str, condition: impl FnMut() -> bool) {
    if let Err(late) = native_fence::conform::until(what, condition) {
        panic!("{late}");
    }
}

/// Tries what needs a meeting of threads that nobody can arrange, for a minute; says which attempt it is,
/// from 1.
///
/// # Panics
/// When none succeeds.
pub(crate) fn try_until(what: &str, mut attempt: impl FnMut(u64) -> bool) {
    let deadline = Instant::now() + 3 * LONG;
    let mut attempts = 1;
    while !attempt(attempts) {
        let is_late = Instant::now() > deadline;
        assert!(
            !is_late,
            "in {attempts} attempts it never came to this: {what}"
        );
        attempts += 1;
    }
}

/// Waits until a thread of this process, of which `gettid` gave the number, sleeps.
pub(crate) fn until_sleeping(thread: rustix::thread::Pid) {
    until("a thread sleeps", || is_sleeping(thread));
}

/// Set when dropped, so that a thread that goes on until then ends with a test that fails as well.
pub(crate) struct Ended<'a>(pub(crate) &'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
