//! Watched: turns as the CPU sees them, which looks at both parties' fences all the time.
//!
//! For mechanisms whose parties have no clock of their own, or one that costs more than a hand-off: when a turn was got
//! is not seen, when it was passed on is.

use super::{HANDOFFS, Take};
use crate::sync::{AtomicBool, Ordering, monotonic_ns};
use crate::workload::PATIENCE;
use anyhow::{anyhow, ensure};
use std::thread;
use std::time::Instant;

/// Starts, and looks until each turn's value is there: turn n has passed when `read(n % 2)` is at least `value(n)`. A
/// thread looks from before the start, so that nothing passes unseen while the work is handed over.
pub(in crate::workload) fn watch(
    start: impl FnOnce() -> anyhow::Result<()>,
    read: impl Fn(usize) -> anyhow::Result<u64> + Sync,
    value: impl Fn(usize) -> u64 + Sync,
) -> anyhow::Result<Take> {
    let is_looking = AtomicBool::new(false);
    let has_failed = AtomicBool::new(false);
    let look = || -> anyhow::Result<Seen> {
        let mut seen = Seen::default();
        let looks_end = Instant::now() + PATIENCE;
        // When a turn was last seen not to have passed, and how long before it was seen to have.
        let mut before_ns = monotonic_ns();
        for turn in 0..=HANDOFFS {
            let now_ns = loop {
                let has_passed = read(turn % 2)? >= value(turn);
                let now_ns = monotonic_ns();
                if has_passed {
                    break now_ns;
                }
                before_ns = now_ns;
                is_looking.store(true, Ordering::Relaxed);
                ensure!(
                    Instant::now() < looks_end && !has_failed.load(Ordering::Relaxed),
                    "the hand-offs did not end"
                );
            };
            seen.longest_gap_ns = seen.longest_gap_ns.max(now_ns.saturating_sub(before_ns));
            seen.passed_ns.push(now_ns);
        }
        Ok(seen)
    };
    thread::scope(|scope| {
        let looker = scope.spawn(look);
        while !is_looking.load(Ordering::Relaxed) && !looker.is_finished() {
            thread::yield_now();
        }
        let began_ns = monotonic_ns();
        let started = start();
        has_failed.store(started.is_err(), Ordering::Relaxed);
        let seen = looker
            .join()
            .map_err(|_| anyhow!("the thread that looks panicked"))?;
        started?;
        let seen = seen?;
        Ok(Take {
            began_ns,
            moments: seen
                .passed_ns
                .iter()
                .map(|passed| (*passed, *passed))
                .collect(),
            seen_ns: seen.passed_ns.last().copied().unwrap_or(began_ns),
            max_error_ns: seen.longest_gap_ns,
        })
    })
}

/// What the thread has seen.
#[derive(Default)]
struct Seen {
    passed_ns: Vec<u64>,
    /// The longest between two looks of which the second saw a turn first.
    longest_gap_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    #[test]
    fn each_turn_is_seen_once_and_the_looks_say_how_exactly() {
        let looks = AtomicU64::new(0);
        let started = AtomicBool::new(false);
        let read = |party: usize| {
            if !started.load(Ordering::Relaxed) {
                return Ok(0);
            }
            // Every third look a turn more: those of party 0 are 0, 2, ...
            let passed = looks.fetch_add(1, Ordering::Relaxed) / 3;
            Ok((passed + 1 - party as u64) / 2)
        };
        let start = || {
            started.store(true, Ordering::Relaxed);
            Ok(())
        };
        let take = watch(start, read, |turn| turn as u64 / 2 + 1).unwrap();
        assert_eq!(take.moments.len(), HANDOFFS + 1);
        let looks = looks.load(Ordering::Relaxed);
        assert!(looks >= 3 * HANDOFFS as u64, "{looks}");
        assert!(take.moments.is_sorted());
        assert!(take.began_ns <= take.moments[0].0);
        assert!(take.max_error_ns > 0);
    }

    #[test]
    fn what_cannot_be_started_is_not_looked_for() {
        let start = || Err(anyhow!("no device"));
        let failed = watch(start, |_| Ok(0), |_| 1).map(drop);
        assert_eq!(failed.unwrap_err().to_string(), "no device");
    }
}
