//! Turns: two parties do the same work batch by batch, and what counts is the ratio of each pair of batches.

use native_fence::workload::Runner;
use std::time::Duration;

/// One turn: a batch of the one and a batch of the other, and how long each took. Who goes first, which changes from turn to
/// turn, has the caches of neither.
pub(crate) fn take(
    turn: u64,
    mut one: impl FnMut() -> Duration,
    mut other: impl FnMut() -> Duration,
) -> (Duration, Duration) {
    if turn.is_multiple_of(2) {
        let first = one();
        (first, other())
    } else {
        let first = other();
        (one(), first)
    }
}

/// A whole batch, of which the measured part.
pub(crate) fn batch(runner: &mut dyn Runner) -> Duration {
    let sample = runner.prepare().and_then(|()| runner.batch());
    sample.expect("a batch").wall
}

/// Of at least one.
pub(crate) fn median(ratios: &[f64]) -> f64 {
    let mut ratios = ratios.to_vec();
    ratios.sort_unstable_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}
