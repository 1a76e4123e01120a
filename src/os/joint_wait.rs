//! Joint wait: for all of more fences than one wait takes.
//!
//! A wait has at most 32 parts, and a process has as many queues as it likes. The fences stand in waits
//! of that many, all of them at a time, and one thread sleeps for the first that fails or the last
//! that is satisfied. Waits one after the other would not do: a fence of the second that can reach its
//! value no more is not seen while the first lasts, perhaps for that very fence.
//!
//! Why no end is missed: the thread reads how often it was rung for, then looks at all waits, then sleeps
//! unless it was rung for since. A wait has ended before it rings.

use super::cpu_wait::{self, CpuWait, WaitManyError};
use super::listener::Listener;
use super::standing_wait::{FenceValue, Fences, StandingWait};
use super::wait_tally::Needs;
use crate::sync::{Arc, Condvar, Mutex, lock, sleep_until};
use std::task::{Wake, Waker};
use std::time::Instant;

/// Rung by each wait that ends.
#[derive(Default)]
struct Bell {
    rings: Mutex<u64>,
    rung: Condvar,
}

impl Bell {
    fn rings(&self) -> u64 {
        *lock(&self.rings)
    }

    /// Sleeps until it has rung more often than that; `false` where the deadline was reached before.
    fn sleep(&self, heard: u64, deadline: Option<Instant>) -> bool {
        let mut rings = lock(&self.rings);
        while *rings == heard {
            let Some(woken) = sleep_until(&self.rung, rings, deadline) else {
                return false;
            };
            rings = woken;
        }
        true
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *lock(&self.rings) += 1;
        self.rung.notify_all();
    }
}

/// Waits until each fence, all of one adapter, has had its value, as [`CpuWait::all`] does.
///
/// # Errors
/// The time-out; the first fence that fails, by its place among all of them.
pub(super) fn all(fences: &[FenceValue], deadline: Option<Instant>) -> Result<(), WaitManyError> {
    let Some((first, _)) = fences.first() else {
        return Ok(());
    };
    let bell = Arc::new(Bell::default());
    let waits: Vec<_> = fences
        .chunks(CpuWait::MOST_OBJECTS)
        .map(|some| stand(some, &bell))
        .collect();
    let ended = || outcome(&waits).is_some();
    if !ended() && !first.ddi().look_for_interrupts(&ended, deadline) {
        // Where interrupts are polled for, this thread does it.
        first.ddi().watch_interrupts(&ended, deadline);
    }
    loop {
        let heard = bell.rings();
        if let Some(outcome) = outcome(&waits) {
            return outcome;
        }
        if !bell.sleep(heard, deadline) {
            return outcome(&waits).unwrap_or(Err(WaitManyError::TimedOut));
        }
    }
}

/// As many as a wait takes.
fn stand(some: &[FenceValue], bell: &Arc<Bell>) -> StandingWait {
    let fences = Fences::these(some);
    let tally = fences.with_waits(|waits| cpu_wait::begin(waits, Needs::All));
    // Not told of: it is a part of the wait of the operating system's own thread.
    let wait = StandingWait::untold(fences, tally);
    // One that has ended already is looked at before anybody sleeps.
    let _ended = wait.listen(Listener::Waker(Waker::from(Arc::clone(bell))));
    wait
}

/// How all of them ended; `None` while one lasts and none has failed.
fn outcome(waits: &[StandingWait]) -> Option<Result<(), WaitManyError>> {
    let mut all = Some(Ok(()));
    for (place, wait) in waits.iter().enumerate() {
        let first = place * CpuWait::MOST_OBJECTS;
        match wait.outcome() {
            Some(ended) => {
                if let Err(error) = ended.result {
                    let index = first + ended.part;
                    return Some(Err(WaitManyError::Failed { index, error }));
                }
            }
            None => all = None,
        }
    }
    all
}
