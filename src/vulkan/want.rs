//! Want: a driver that is short of memory for a call that waits, and how long it is asked again.
//!
//! Most often such a want passes, and the device goes on meanwhile. So who waits asks again; but a want may stay, and then a
//! wait with a time-out of its caller's is to end with it, and one without has a bound of its own. It is an error in the end,
//! and no time-out: nobody has looked whether what is waited for has come.

use std::thread;
use std::time::{Duration, Instant};

/// How long a want may last: below the time that an engine has to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Times that a call is made however little time its caller has: a want of a moment is no error of a short wait.
const LEAST_TRIES: u32 = 10;

/// How long a want that has lasted is slept on, so that it does not burn a core.
const PAUSE: Duration = Duration::from_millis(1);

/// Of one wait. It begins with the first answer that says so, and anew with one that comes long after the last: in between the
/// driver has waited.
#[derive(Debug, Default)]
pub(super) struct Want {
    /// The first answer, and the last.
    seen: Option<(Instant, Instant)>,
    tries: u32,
}

impl Want {
    /// The driver has answered once more that it has no memory. Whether it is asked again, by a caller whose own time is
    /// over at the deadline.
    #[must_use]
    pub(super) fn is_borne(&mut self, now: Instant, deadline: Option<Instant>) -> bool {
        let lasts = |last: Instant| now.saturating_duration_since(last) < PATIENCE;
        let began = match self.seen {
            Some((began, last)) if lasts(last) => began,
            Some(_) | None => {
                self.tries = 0;
                now
            }
        };
        self.seen = Some((began, now));
        self.tries += 1;
        let is_over = deadline.is_some_and(|deadline| now >= deadline);
        let is_long = now.saturating_duration_since(began) >= PATIENCE;
        self.tries < LEAST_TRIES || !(is_over || is_long)
    }

    /// Between two calls.
    pub(super) fn pause(&self) {
        if self.tries < LEAST_TRIES {
            thread::yield_now();
        } else {
            thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A want lasts for its own time or for its caller's, whichever is over first, and a moment in any case; what comes long
    /// after it is another.
    ///
    /// Kills `a-want-is-borne-for-ever`, `a-want-of-a-moment-ends-a-wait`, `a-wait-gives-up-before-its-time`,
    /// `a-want-ignores-the-callers-time`, `a-want-of-long-ago-counts`.
    #[test]
    fn a_want_is_borne_for_its_time_or_the_callers_and_a_moment_always() {
        let now = Instant::now();
        let mut moment = Want::default();
        let borne = (1..LEAST_TRIES).all(|_| moment.is_borne(now, Some(now)));
        assert!(borne);
        assert!(!moment.is_borne(now, Some(now)));

        let mut callers = Want::default();
        let deadline = now + PATIENCE / 2;
        assert!((0..2 * LEAST_TRIES).all(|_| callers.is_borne(now, Some(deadline))));
        assert!(!callers.is_borne(deadline, Some(deadline)));

        for deadline in [None, Some(now + 2 * PATIENCE)] {
            let mut own = Want::default();
            assert!((0..2 * LEAST_TRIES).all(|_| own.is_borne(now, deadline)));
            assert!(own.is_borne(now + PATIENCE / 2, deadline));
            assert!(!own.is_borne(now + PATIENCE, deadline));
            let long_after = now + 3 * PATIENCE;
            assert!((1..LEAST_TRIES).all(|_| own.is_borne(long_after, deadline)));
        }
    }
}
