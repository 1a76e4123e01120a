//! Bounds: how long fences of innocent programs may be held up (TD-13).
//!
//! Those of the engine that does not answer wait until it has timed out and is recovered, and those of the
//! others for next to nothing. The limits are the contract's own, a second each, where a recovery takes
//! milliseconds: they are judged on every machine, however busy.

use super::expectation::Expectation;
use super::findings::{Outcome, microseconds};
use super::hang::Hang;
use super::scene::{GUILTY_NODE, OTHER_NODE};
use serde::Serialize;
use std::time::Duration;

/// What a recovery may add.
const MOST: Duration = Duration::from_secs(1);

/// What an innocent program's fences may be held up by on an engine, and what they were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Bound {
    pub(super) engine: u32,
    pub(super) limit_us: u64,
    /// The longest time from a submission to its signal.
    pub(super) measured_us: u64,
    /// Less than the limit.
    pub(super) held: bool,
}

impl Bound {
    fn new(engine: u32, limit: Duration, measured: Duration) -> Self {
        Self {
            engine,
            limit_us: microseconds(limit),
            measured_us: microseconds(measured),
            held: measured < limit,
        }
    }
}

/// Whether the engine answers no more, so that it times out. A lost device is told of when its job is over, and
/// a reset that is held up on purpose comes when it comes.
fn times_out(hang: Hang) -> bool {
    match hang {
        Hang::KilledProcess
        | Hang::StoppedProcess
        | Hang::Endless
        | Hang::Abort
        | Hang::Dispatch
        | Hang::ComesBack
        | Hang::Stall => true,
        Hang::Lost
        | Hang::WrongAbortedId
        | Hang::Dependent
        | Hang::Late
        | Hang::LateWithOthers
        | Hang::FailedReset
        | Hang::DependentStalled
        | Hang::Paging => false,
    }
}

/// What is demanded of a hang, with TdrDelay, and how long a submission took at most: on the engine that was
/// hung, and on the other one. Of an engine whose work is lost, or which hangs by itself, nothing is.
pub(super) fn bounds(
    hang: Hang,
    expected: &Expectation,
    delay: Duration,
    [same, other]: [Duration; 2],
) -> Vec<Bound> {
    if expected.outcome != Outcome::Recovered {
        return Vec::new();
    }
    let same = times_out(hang).then(|| Bound::new(GUILTY_NODE, delay + MOST, same));
    let goes_on = expected.resets[1] == 0;
    let other = goes_on.then(|| Bound::new(OTHER_NODE, MOST, other));
    same.into_iter().chain(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(100);

    fn of(hang: Hang, longest: [u64; 2]) -> Vec<(u32, u64, bool)> {
        let longest = longest.map(Duration::from_millis);
        let bounds = bounds(hang, &Expectation::of(hang, 3), DELAY, longest);
        let bounds = bounds.iter();
        bounds
            .map(|bound| (bound.engine, bound.limit_us, bound.held))
            .collect()
    }

    /// TD-13: less than a second beyond TdrDelay on the engine, less than a second on the other.
    ///
    /// Kills `a-limit-is-twice-as-long`.
    #[test]
    fn td_13_each_engine_has_its_limit() {
        let (same, other) = ((0, 1_100_000), (1, 1_000_000));
        for (longest, held) in [
            ([0, 0], [true, true]),
            ([1099, 999], [true, true]),
            ([1100, 999], [false, true]),
            ([1099, 1000], [true, false]),
        ] {
            let expected = [(same.0, same.1, held[0]), (other.0, other.1, held[1])];
            assert_eq!(of(Hang::Endless, longest), expected, "{longest:?}");
        }
    }

    /// TD-13 is about what hangs, and about who is not lost with it.
    #[test]
    fn td_13_what_ends_by_itself_or_is_lost_has_no_limit() {
        assert_eq!(of(Hang::Lost, [5000, 5]), [(1, 1_000_000, true)]);
        assert_eq!(of(Hang::DependentStalled, [5000, 5000]), []);
        assert_eq!(of(Hang::FailedReset, [5000, 5000]), []);
        let never = Expectation::never_hung();
        assert_eq!(bounds(Hang::Stall, &never, DELAY, [DELAY; 2]), []);
    }
}
