//! Limit: how long a run may take before it has failed.
//!
//! What is usual depends on the machine and on what else it has to do, so the run without a fault says it.

use std::time::Duration;

/// The least, many times what a run takes on a machine that has nothing else to do.
const LEAST: Duration = Duration::from_secs(45);

/// Runs go beside each other, and one with a fault waits where others do not.
const TIMES: u32 = 5;

/// Of the run without a fault, of which nothing is known before.
pub(super) fn of_counting(said: Option<Duration>) -> Duration {
    said.unwrap_or(TIMES * LEAST)
}

/// Of the others, since that one took so long.
pub(super) fn of_run(said: Option<Duration>, counting: Duration) -> Duration {
    said.unwrap_or_else(|| LEAST.max(TIMES * counting))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where nobody says how long a run may take, it has more time on a slow machine, and never less than the least.
    ///
    /// Kills `a-slow-machine-has-no-more-time`.
    #[test]
    fn a_run_has_the_time_that_was_said_or_several_times_the_usual() {
        let seconds = Duration::from_secs;
        for (counting, limit) in [(2, 45), (9, 45), (20, 100)] {
            assert_eq!(of_run(None, seconds(counting)), seconds(limit));
            assert_eq!(of_run(Some(seconds(7)), seconds(counting)), seconds(7));
        }
        assert_eq!(of_counting(Some(seconds(7))), seconds(7));
        assert!(of_counting(None) > LEAST);
    }
}
