//! Until: waiting for what has no event, a word that another thread or an engine stores.

use anyhow::ensure;
use std::time::{Duration, Instant};

/// Longer than any machine needs: what takes as long has failed.
pub const LONG: Duration = Duration::from_secs(20);

/// Looks until `condition` holds, giving the processor away between looks.
///
/// # Errors
/// It does not hold for [`LONG`].
pub fn until(what: &str, condition: impl FnMut() -> bool) -> anyhow::Result<()> {
    until_within(LONG, what, condition)
}

/// The same within another time.
///
/// # Errors
/// It does not hold for so long.
pub(super) fn until_within(
    limit: Duration,
    what: &str,
    mut condition: impl FnMut() -> bool,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + limit;
    while !condition() {
        ensure!(
            Instant::now() < deadline,
            "it never came to this: {what} (waited {} s)",
            limit.as_secs()
        );
        std::thread::yield_now();
    }
    Ok(())
}

/// Tries again and again, until an attempt says that it came to it, or fails.
///
/// # Errors
/// As the attempt, or as [`until`].
pub(super) fn until_tried(
    what: &str,
    mut attempt: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let mut failed = None;
    until(what, || {
        attempt().unwrap_or_else(|error| {
            failed = Some(error);
            true
        })
    })?;
    failed.map_or(Ok(()), Err)
}

/// Waits until a thread of this process, of which `gettid` gave the number, sleeps.
///
/// # Errors
/// It does not for [`LONG`].
pub fn until_sleeping(thread: rustix::thread::Pid) -> anyhow::Result<()> {
    until("a thread sleeps", || is_sleeping(thread))
}

/// Whether a thread of this process sleeps; one that has ended does not.
#[must_use]
pub fn is_sleeping(thread: rustix::thread::Pid) -> bool {
    let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    // The state follows the name, which stands in parentheses.
    stat.rsplit(") ")
        .next()
        .is_some_and(|state| state.starts_with('S'))
}
