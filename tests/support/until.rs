//! Waiting for what has no event: a word that another thread or an engine stores.
#![allow(dead_code, reason = "each test file uses a part")]

use std::time::{Duration, Instant};

/// Longer than any machine needs; a test that reaches it has failed.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Looks until `condition` holds, giving the processor away between looks.
///
/// # Panics
/// When it does not hold for [`LONG`].
pub(crate) fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        std::thread::yield_now();
    }
}
