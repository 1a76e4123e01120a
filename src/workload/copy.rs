//! Copy: what the scenario's runners have in common.

use super::Params;
use anyhow::ensure;

/// Copies of a batch, each of other bytes.
pub(super) const COPIES: u64 = 16;
/// Bytes of one copy.
pub(super) const COPY_BYTES: u64 = 1 << 20;
/// Words of source or destination.
pub(super) const WORDS: usize = (COPIES * COPY_BYTES / 8) as usize;

/// What stands at place `at` of a batch's source: no two words are the same.
pub(super) fn word_of(batch: u64, at: usize) -> u64 {
    (batch << 32 | at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The source of a batch.
pub(super) fn words_of(batch: u64) -> Vec<u64> {
    (0..WORDS).map(|at| word_of(batch, at)).collect()
}

/// The destination holds what the source did.
///
/// # Errors
/// Which word does not.
pub(super) fn check(batch: u64, destination: &[u64]) -> anyhow::Result<()> {
    for (at, word) in destination.iter().enumerate() {
        ensure!(*word == word_of(batch, at), "word {at} is {word:#x}");
    }
    Ok(())
}

/// Sizes, for the report.
pub(super) fn params() -> Params {
    [("bytes".into(), COPY_BYTES.into())].into()
}
