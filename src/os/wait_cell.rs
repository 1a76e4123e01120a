//! Wait cell: where one CPU waiter sleeps, for one fence or for several.
//!
//! What stands in the list of a fence is a [`WaitPart`]: the cell, and which of its parts the fence
//! is. Who takes a part out of a list ends it, with that fence's lock held, but for its own thread,
//! which gives it up. A cell takes no other lock.

use super::wait_tally::WaitTally;
use crate::kmd::QueueFault;
use crate::sync::{Arc, Condvar, Mutex, lock, sleep_until};
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

/// Wakes its thread once: when the parts that have ended decide the wait.
#[derive(Debug)]
pub(super) struct WaitCell {
    tally: Mutex<WaitTally>,
    ended: Condvar,
}

impl WaitCell {
    /// A cell for what is still open of a wait.
    pub(super) fn new(tally: WaitTally) -> Self {
        Self {
            tally: Mutex::new(tally),
            ended: Condvar::new(),
        }
    }

    /// Which parts have ended by now.
    pub(super) fn tally(&self) -> WaitTally {
        *lock(&self.tally)
    }

    /// Sleeps until the wait has ended or the deadline is reached; which parts have ended by then.
    pub(super) fn sleep(&self, deadline: Option<Instant>) -> WaitTally {
        let mut tally = lock(&self.tally);
        while tally.ended().is_none() {
            match sleep_until(&self.ended, tally, deadline) {
                Some(woken) => tally = woken,
                None => return self.tally(),
            }
        }
        *tally
    }
}

/// A waiter in the list of a fence.
#[derive(Debug)]
pub(super) struct WaitPart {
    /// Where its thread sleeps.
    pub(super) cell: Arc<WaitCell>,
    /// Which part of the wait the fence is.
    pub(super) part: usize,
}

impl WaitPart {
    /// Ends the part, with its value reached or an error; wakes the thread if that ends the wait.
    pub(super) fn end(&self, result: Result<(), WaitError>) {
        let mut tally = lock(&self.cell.tally);
        let before = tally.ended();
        tally.end(self.part, result);
        if before != tally.ended() {
            self.cell.ended.notify_all();
        }
    }
}
