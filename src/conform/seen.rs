//! Seen: what was seen against what should be.

use anyhow::ensure;
use std::fmt::Debug;

/// Nothing, if both are the same.
///
/// # Errors
/// What it is about, what was seen, and what should be.
pub(super) fn same<S: PartialEq<T> + Debug, T: Debug>(
    what: &str,
    seen: &S,
    should: &T,
) -> anyhow::Result<()> {
    ensure!(seen == should, "{what}: {seen:?}, and should be {should:?}");
    Ok(())
}
