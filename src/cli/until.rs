//! Until: waits for what no event tells of outside of the library, as that an engine has parked.

use anyhow::ensure;
use std::time::{Duration, Instant};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(1);

/// Looks until it is so.
///
/// # Errors
/// It was not within `patience`.
pub(super) fn until(
    what: &'static str,
    patience: Duration,
    condition: impl Fn() -> bool,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    while !condition() {
        ensure!(begin.elapsed() < patience, "it never came to this: {what}");
        std::thread::sleep(LOOK);
    }
    Ok(())
}
