//! Wait cell: where one CPU waiter sleeps.

use crate::kmd::QueueFault;
use crate::sync::{Condvar, Mutex, lock, sleep_until};
use std::time::Instant;

/// Why a wait ended without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The time-out came first.
    #[error("the wait timed out")]
    TimedOut,
    /// The handle was closed, before or during the wait.
    #[error("the fence's handle is closed")]
    Closed,
    /// The device that would signal the fence is lost.
    #[error("the device is lost")]
    DeviceLost,
    /// The queue whose progress fence this is was stopped.
    #[error("the queue was stopped: {0}")]
    QueueFaulted(QueueFault),
}

/// Ends once, with the value reached or an error.
#[derive(Debug, Default)]
pub(super) struct WaitCell {
    outcome: Mutex<Option<Result<(), WaitError>>>,
    ended: Condvar,
}

impl WaitCell {
    /// Ends the wait; the first end counts (NF-26: a satisfied wait stays satisfied).
    pub(super) fn end(&self, outcome: Result<(), WaitError>) {
        let mut place = lock(&self.outcome);
        if place.is_none() {
            *place = Some(outcome);
            self.ended.notify_all();
        }
    }

    /// The outcome, if there is one.
    pub(super) fn outcome(&self) -> Option<Result<(), WaitError>> {
        *lock(&self.outcome)
    }

    /// Sleeps until the wait has ended or the deadline is reached.
    pub(super) fn sleep(&self, deadline: Option<Instant>) -> Option<Result<(), WaitError>> {
        let mut place = lock(&self.outcome);
        while place.is_none() {
            place = sleep_until(&self.ended, place, deadline)?;
        }
        *place
    }
}
