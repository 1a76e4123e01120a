//! Armed wait: a wait on a fence that needs no thread while it lasts.

use super::{Fence, Timeout};
use crate::os::{self, WaitError};

/// A wait that stands in its fence's list, made by [`Fence::arm`].
///
/// It keeps the fence's handle open, as a clone of the fence does. Dropping it cancels it: when that
/// has returned, the MonitoredValue is that of the waits that are left (NF-04).
#[derive(Debug)]
pub struct ArmedWait {
    wait: os::ArmedWait,
}

impl ArmedWait {
    pub(super) fn of(wait: os::ArmedWait) -> Self {
        Self { wait }
    }

    /// The value that is waited for.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.wait.value()
    }

    /// Whether it has ended, well or with an error.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.outcome().is_some()
    }

    /// How it has ended, `None` while it lasts. Does not sleep. What was satisfied stays so,
    /// whatever is stored afterwards (NF-26).
    #[must_use]
    pub fn outcome(&self) -> Option<Result<(), WaitError>> {
        self.wait.outcome()
    }

    /// Waits on this thread until it has ended; several threads may.
    ///
    /// # Errors
    /// As [`Fence::wait`]. After a time-out it stands as before, and may be waited for again.
    pub fn wait(&self, timeout: impl Into<Timeout>) -> Result<(), WaitError> {
        self.wait.wait(timeout.into().duration())
    }
}

impl Fence {
    /// Arms a wait until CurrentValue is at least `value`, and returns at once (NF-22).
    ///
    /// One thread may have any number of them outstanding, on one fence or many. A wait that is
    /// satisfied already, or has no chance, has ended on return.
    ///
    /// ```
    /// use native_fence::{Adapter, CommandList};
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Adapter::open_best()?.create_device();
    /// let (fence, mut queue) = (device.create_fence(0)?, device.create_hw_queue()?);
    /// let frames: Vec<_> = (1..=3).map(|frame| fence.arm(frame)).collect();
    ///
    /// queue.submit(CommandList::new().signal(&fence, 2))?;
    /// frames[1].wait(Duration::from_secs(10))?;
    /// assert!(frames[0].is_ended() && !frames[2].is_ended());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "an armed wait that is dropped is cancelled"]
    pub fn arm(&self, value: u64) -> ArmedWait {
        ArmedWait {
            wait: os::ArmedWait::new(self.object(), value),
        }
    }
}
