//! Verdict: whether an engine answers, by what it shows of itself (TD-01, PR-01).

use super::policy::TdrPolicy;
use std::time::Instant;

/// What is to be done about an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an engine that nobody asks never times out"]
pub(super) enum Verdict {
    /// Nothing.
    Well,
    /// It has shown nothing for a quantum: it is asked to come to its next boundary.
    Ask,
    /// It has not answered for half of its time.
    Suspect,
    /// It has not answered within TdrDelay.
    TimedOut,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asked {
    #[default]
    No,
    At(Instant),
    /// And it is suspected.
    Long(Instant),
}

/// What is known of one engine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Observed {
    /// What it had shown when it last showed something new, and when that was.
    last: Option<(u64, Instant)>,
    asked: Asked,
}

impl Observed {
    /// Looks at the engine at `now`: its marks, or none where it has nothing to do.
    pub(super) fn look(&mut self, marks: Option<u64>, policy: &TdrPolicy, now: Instant) -> Verdict {
        let Some(marks) = marks else {
            *self = Self::default();
            return Verdict::Well;
        };
        let since = match self.last {
            Some((last, since)) if last == marks => since,
            _ => {
                self.last = Some((marks, now));
                self.asked = Asked::No;
                return Verdict::Well;
            }
        };
        let elapsed = |from| now.saturating_duration_since(from);
        match self.asked {
            Asked::No if elapsed(since) < policy.quantum() => Verdict::Well,
            Asked::No => {
                self.asked = Asked::At(now);
                Verdict::Ask
            }
            Asked::At(at) | Asked::Long(at) if elapsed(at) >= policy.delay => {
                *self = Self::default();
                Verdict::TimedOut
            }
            Asked::At(at) if elapsed(at) >= policy.delay / 2 => {
                self.asked = Asked::Long(at);
                Verdict::Suspect
            }
            Asked::At(_) | Asked::Long(_) => Verdict::Well,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    /// What is said of an engine that shows `marks` at these times, in quarters of TdrDelay.
    fn verdicts(shown: &[(u64, Option<u64>)]) -> Vec<Verdict> {
        let (policy, begin) = (TdrPolicy::default(), Instant::now());
        let mut observed = Observed::default();
        let look = |(quarters, marks): &(u64, Option<u64>)| {
            let now = begin + policy.delay / 4 * u32::try_from(*quarters).unwrap();
            observed.look(*marks, &policy, now)
        };
        shown.iter().map(look).collect()
    }

    /// PR-01: it is asked first, and has all of TdrDelay to answer.
    #[test]
    fn pr_01_an_engine_is_asked_before_it_times_out() {
        use Verdict::{Ask, Suspect, TimedOut, Well};
        let shown: Vec<_> = (0..6).map(|quarter| (quarter, Some(7))).collect();
        assert_eq!(verdicts(&shown), [Well, Ask, Well, Suspect, Well, TimedOut]);
        let late = [(0, Some(7)), (100, Some(7)), (103, Some(7)), (104, Some(7))];
        assert_eq!(verdicts(&late), [Well, Ask, Suspect, TimedOut]);
    }

    /// TD-01: a sign of life, also after it was asked, begins anew; without work there is nothing to ask.
    #[test]
    fn td_01_an_engine_that_shows_something_is_well() {
        use Verdict::{Ask, Well};
        let shown = [
            (0, Some(1)),
            (1, Some(1)),
            (4, Some(2)),
            (5, Some(2)),
            (8, None),
            (100, None),
            (101, Some(2)),
        ];
        assert_eq!(verdicts(&shown), [Well, Ask, Well, Ask, Well, Well, Well]);
    }

    /// TD-13: however long TdrDelay is, an engine that shows nothing from some moment on has timed out less than
    /// half a second after that time, whenever it is looked at; the other half is the recovery's.
    ///
    /// Kills `a-quantum-without-bound` and `looks-without-bound`.
    #[test]
    fn td_13_a_time_out_is_found_in_time() {
        for delay in [50, 100, 2000, 10_000, 60_000].map(Duration::from_millis) {
            let policy = TdrPolicy {
                delay,
                ..TdrPolicy::default()
            };
            let (begin, mut observed) = (Instant::now(), Observed::default());
            let (mut shown, mut elapsed) = (1, Duration::ZERO);
            while observed.look(Some(shown), &policy, begin + elapsed) != Verdict::TimedOut {
                // The last that it shows comes just after a look, and is seen at the next.
                shown = 2;
                elapsed += policy.between_looks();
            }
            let beyond = elapsed.saturating_sub(delay);
            assert!(beyond < Duration::from_millis(500), "{delay:?}: {beyond:?}");
        }
    }

    /// What is to be said at the last of these looks, the first of which has shown something new.
    fn expected(times: &[Duration], policy: &TdrPolicy) -> Verdict {
        let (now, begin) = (times[times.len() - 1], times[0]);
        let mut later = times.iter().skip(1);
        let Some(asked) = later.position(|at| *at >= begin + policy.quantum()) else {
            return Verdict::Well;
        };
        let (asked_at, since) = (times[asked + 1], &times[asked + 2..]);
        let of_half = |at: &&Duration| **at >= asked_at + policy.delay / 2;
        match since {
            [] => Verdict::Ask,
            _ if now >= asked_at + policy.delay => Verdict::TimedOut,
            _ if of_half(&&now) && since.iter().filter(of_half).count() == 1 => Verdict::Suspect,
            _ => Verdict::Well,
        }
    }

    proptest! {
        /// PR-01, TD-01: whenever an engine is looked at and whatever it shows, it is asked at the first look a quantum or
        /// more after it was first seen so, suspected once, at the first look half of TdrDelay later, and times out at
        /// the first look TdrDelay after it was asked; what is new, or that it has nothing to do, begins anew.
        ///
        /// Kills `a-time-out-comes-without-a-request`, `steps-are-no-signs-of-life`, `a-time-out-comes-at-once`,
        /// `an-engine-is-suspected-at-every-look`.
        #[test]
        fn pr_01_an_engine_is_asked_suspected_and_timed_out_in_turn(
            looks in prop::collection::vec((0..900_u64, prop_oneof![30 => Just(None), 1 => any::<bool>().prop_map(Some)]), 1..120),
        ) {
            let (policy, begin) = (TdrPolicy::default(), Instant::now());
            let (mut observed, mut now, mut marks) = (Observed::default(), Duration::ZERO, 0);
            let mut same = Vec::new();
            for (pause, change) in looks {
                now += Duration::from_millis(pause);
                // Something new; or it has nothing to do.
                if let Some(has_work) = change {
                    marks += 1;
                    same.clear();
                    if !has_work {
                        prop_assert_eq!(observed.look(None, &policy, begin + now), Verdict::Well);
                        continue;
                    }
                }
                same.push(now);
                let verdict = observed.look(Some(marks), &policy, begin + now);
                prop_assert_eq!(verdict, expected(&same, &policy));
                if verdict == Verdict::TimedOut {
                    same.clear();
                }
            }
        }
    }
}
