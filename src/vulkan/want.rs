//! Want: a driver that is short of memory for a call that waits, and how long it is asked again.
//!
//! Most often such a want passes, and the device goes on meanwhile. So who waits asks again; but a want may stay, and then a
//! wait with a time-out of its caller's is to end with it, and one without has a bound of its own. It is an error in the end,
//! and no time-out: nobody has looked whether what is waited for has come.
//!
//! A call that does not wait may be made under a lock that others need to tell whether an engine answers (NF-08, TD-13): it is
//! asked for again for a moment only, by one function for all of them ([`while_wanting`]).

use std::thread;
use std::time::{Duration, Instant};

/// How long a want may last: below the time that an engine has to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Times that a call is made however little time its caller has: a want of a moment is no error of a short wait.
const LEAST_TRIES: u32 = 10;

/// How long a call that does not wait is made again: a long time for a driver, and a short one for who waits for the caller's
/// lock.
const MOMENT: Duration = Duration::from_millis(100);

/// A driver that answers so long after its last answer has waited in between. Sooner, it may have taken the time to refuse.
const LONG_AFTER: Duration = Duration::from_secs(10);

/// How long a want that has lasted is slept on, so that it does not burn a core.
const PAUSE: Duration = Duration::from_millis(1);

/// Of one wait. It begins with the first answer that says so, and anew with one that comes long after the last: in between the
/// driver has waited.
#[derive(Debug, Default)]
pub(super) struct Want {
    /// The first answer, and the last.
    seen: Option<(Instant, Instant)>,
    tries: u32,
    /// The same, though a want was followed by another.
    all: u32,
    /// Answers in a row of which each came so late that it began another want, and not as late as after a wait.
    slow: u32,
}

impl Want {
    /// The driver has answered once more that it has no memory. Whether it is asked again, by a caller whose own time is
    /// over at the deadline.
    #[must_use]
    pub(super) fn is_borne(&mut self, now: Instant, deadline: Option<Instant>) -> bool {
        let lasts = |last: Instant| now.saturating_duration_since(last) < PATIENCE;
        let began = match self.seen {
            Some((began, last)) if lasts(last) => began,
            Some((_, last)) => {
                let may_be_slow = now.saturating_duration_since(last) < LONG_AFTER;
                self.slow = if may_be_slow { self.slow + 1 } else { 0 };
                self.tries = 0;
                now
            }
            None => now,
        };
        self.seen = Some((began, now));
        self.tries += 1;
        self.all = self.all.saturating_add(1);
        if self.tries > 1 {
            self.slow = 0;
        }
        let is_over = deadline.is_some_and(|deadline| now >= deadline);
        // One who takes a second for each refusal would begin anew each time, and be asked for ever.
        if self.slow >= LEAST_TRIES || is_over && self.all >= LEAST_TRIES {
            return false;
        }
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

/// Makes a call that does not wait again where the driver is short of memory for the call itself: the device goes on, and what
/// it was given is not over. For a moment, which is longer than the time that a busy driver needs to have memory again, and
/// shorter than that which an engine has to answer.
pub(super) fn while_wanting<T, E>(
    is_want: impl Fn(&E) -> bool,
    mut call: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut want = Want::default();
    // A call that is not refused, as nearly all are, does not ask for the time.
    let mut end = None;
    loop {
        let error = match call() {
            Err(error) if is_want(&error) => error,
            ended => return ended,
        };
        let now = Instant::now();
        let end = *end.get_or_insert(now + MOMENT);
        if !want.is_borne(now, Some(end)) {
            return Err(error);
        }
        want.pause();
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

        for deadline in [None, Some(now + 4 * PATIENCE)] {
            let mut own = Want::default();
            assert!((0..2 * LEAST_TRIES).all(|_| own.is_borne(now, deadline)));
            assert!(own.is_borne(now + PATIENCE / 2, deadline));
            assert!(!own.is_borne(now + PATIENCE, deadline));
            let long_after = now + 3 * PATIENCE;
            assert!((1..LEAST_TRIES).all(|_| own.is_borne(long_after, deadline)));
        }
    }

    /// A driver that takes as long for each refusal as a want may last is not asked for ever, nor beyond its caller's time;
    /// one that has waited for long between two wants is.
    ///
    /// Kills `a-slow-refusal-begins-anew-for-ever`, `a-slow-refusal-ignores-the-callers-time`, `waits-in-between-are-refusals`.
    #[test]
    fn a_driver_that_refuses_slowly_is_not_asked_for_ever() {
        let now = Instant::now();
        let borne = |between: Duration, deadline| {
            let mut want = Want::default();
            let mut answers = (0..3 * LEAST_TRIES).map(|count| now + between * count);
            let end = answers.position(|answer| !want.is_borne(answer, deadline));
            end.map(|end| end as u32)
        };
        assert_eq!(borne(PATIENCE, None), Some(LEAST_TRIES));
        assert_eq!(borne(PATIENCE, Some(now)), Some(LEAST_TRIES - 1));
        assert_eq!(borne(LONG_AFTER, None), None);
    }

    /// A call that does not wait is made again for as long as a busy driver may need, and no longer: others wait for the lock
    /// of who makes it. Another error is no want.
    ///
    /// Kills `a-call-is-not-made-again-for-a-moment`, `a-call-is-made-again-for-as-long-as-a-wait`.
    #[test]
    fn a_call_that_does_not_wait_is_made_again_for_a_moment() {
        let began = Instant::now();
        // For longer than it takes to yield, a few times, a core that nobody else wants.
        let lasts = || began.elapsed() < MOMENT / 10;
        let passes = || if lasts() { Err(()) } else { Ok(()) };
        assert_eq!(while_wanting(|()| true, passes), Ok(()));

        let began = Instant::now();
        let stays = while_wanting(|()| true, || Err::<(), ()>(()));
        let lasted = began.elapsed();
        assert_eq!(stays, Err(()));
        assert!((MOMENT..PATIENCE).contains(&lasted), "{lasted:?}");

        let mut calls = 0;
        let other = while_wanting(
            |()| false,
            || {
                calls += 1;
                Err::<(), ()>(())
            },
        );
        assert_eq!((other, calls), (Err(()), 1));
    }
}
