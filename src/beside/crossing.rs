//! Crossing: one value on its way over a bridge, and how that ended.

use crate::sync::{Arc, Condvar, Mutex, lock, sleep_until};
use crate::vulkan::{self, DeviceFailure};
use crate::{SignalError, Timeout, WaitError};
use std::time::{Duration, Instant};

/// Why a value did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CrossingError {
    /// The bridge was dropped first.
    #[error(
        "the bridge was dropped before the value came; whoever waits for it beyond is to be told otherwise"
    )]
    Closed,
    /// The fence does not come to its value any more.
    #[error("the fence does not come to the value: {0}")]
    Fence(#[from] WaitError),
    /// The fence did not take the value.
    #[error("the fence is not signalled: {0}")]
    Signal(#[from] SignalError),
    /// The timeline did not take the value.
    #[error("the timeline is not signalled: {0}")]
    Timeline(vulkan::SignalError),
    /// The timeline's device is lost, or its driver gives up.
    #[error(transparent)]
    Device(#[from] DeviceFailure),
}

impl From<vulkan::SignalError> for CrossingError {
    fn from(error: vulkan::SignalError) -> Self {
        match error {
            vulkan::SignalError::Device(failure) => Self::Device(failure),
            error => Self::Timeline(error),
        }
    }
}

type Outcome = Result<(), CrossingError>;

/// A value that was asked for. Clones are the same; dropping them takes nothing back, which the bridge's drop does.
#[derive(Clone, Debug, Default)]
pub struct Crossing {
    told: Arc<Told>,
}

#[derive(Debug, Default)]
struct Told {
    outcome: Mutex<Option<Outcome>>,
    changed: Condvar,
}

impl Crossing {
    /// How it has ended; `None` while the value has not come. Does not sleep.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        *lock(&self.told.outcome)
    }

    /// Waits on this thread until it has ended: `None` after a time-out.
    pub fn wait(&self, timeout: impl Into<Timeout>) -> Option<Outcome> {
        let after = |duration: Duration| Instant::now().checked_add(duration);
        let deadline = timeout.into().duration().and_then(after);
        let mut outcome = lock(&self.told.outcome);
        while outcome.is_none() {
            outcome = sleep_until(&self.told.changed, outcome, deadline)?;
        }
        *outcome
    }

    /// Ends it, once.
    pub(super) fn end(&self, outcome: Outcome) {
        lock(&self.told.outcome).get_or_insert(outcome);
        self.told.changed.notify_all();
    }
}
