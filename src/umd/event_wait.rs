//! Event wait: a CPU wait that makes an event handle readable.

use super::Fence;
use super::wait_future::objects;
use crate::os::{self, EventHandle, WaitError, WaitManyError};

/// A wait that signals an [`EventHandle`] when it ends, made by [`Fence::wait_event`],
/// [`Fence::wait_any_event`] or [`Fence::wait_all_event`]; `T` is what the blocking wait returns.
///
/// The event says that a wait has ended, this one or another that it serves, well or with an error;
/// [`EventWait::outcome`] says how (NF-25). It keeps the fences' handles open, as a clone of each
/// would. Dropping it cancels the wait: when that has returned, MonitoredValue is that of the waits
/// that are left (NF-04). A wait that has not ended before signals nothing any more; for one that has, the event may have been
/// signalled by then, or is a moment later, by whoever ended it.
///
/// Where interrupts are polled for ([`Delivery::Polled`](crate::Delivery::Polled)) no thread watches
/// for it, as with [`WaitFuture`](crate::WaitFuture).
#[derive(Debug)]
#[must_use = "a wait that is dropped is cancelled"]
pub struct EventWait<T = Result<(), WaitError>> {
    wait: os::EventWait<T>,
}

impl<T> EventWait<T> {
    pub(super) fn of(wait: os::EventWait<T>) -> Self {
        Self { wait }
    }

    /// How the wait has ended, `None` while it lasts. Does not sleep. What was satisfied stays so,
    /// whatever is stored afterwards (NF-26).
    ///
    /// An end can be asked for as soon as its event is readable; whoever asks without that may be
    /// told of it a moment before the event is.
    #[must_use]
    pub fn outcome(&self) -> Option<T> {
        self.wait.outcome()
    }
}

impl Fence {
    /// Arms a wait until CurrentValue is at least `value`, which signals `event` when it ends, and
    /// returns at once (`D3DKMTWaitForSynchronizationObjectFromCpu` with `hAsyncEvent`). The event
    /// of a wait that is satisfied already, or has no chance, is signalled on return.
    ///
    /// ```
    /// use native_fence::{Adapter, CommandList, EventHandle};
    /// use rustix::event::{PollFd, PollFlags, Timespec, poll};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Adapter::open_best()?.create_device();
    /// let (fence, mut queue) = (device.create_fence(0)?, device.create_hw_queue()?);
    /// let event = EventHandle::new()?;
    /// let frames: Vec<_> = (1..=3).map(|frame| fence.wait_event(frame, &event)).collect();
    ///
    /// queue.submit(CommandList::new().signal(&fence, 2))?;
    /// while frames[1].outcome().is_none() {
    ///     let ten_seconds = Timespec { tv_sec: 10, tv_nsec: 0 };
    ///     poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&ten_seconds))?;
    ///     // First the event, then its waits: so none is missed.
    ///     assert_ne!(event.reset(), 0);
    /// }
    /// assert!(frames[2].outcome().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_event(&self, value: u64, event: &EventHandle) -> EventWait {
        EventWait {
            wait: os::EventWait::one(self.object(), value, event),
        }
    }

    /// Arms a wait until one of up to 32 fences has its value or a greater one, as
    /// [`Fence::wait_any`], which signals `event` once, when it ends.
    ///
    /// # Errors
    /// No fence, or more than 32; then nothing is armed or signalled.
    pub fn wait_any_event(
        waits: &[(&Self, u64)],
        event: &EventHandle,
    ) -> Result<EventWait<Result<usize, WaitManyError>>, WaitManyError> {
        let wait = os::EventWait::any(&objects(waits), event)?;
        Ok(EventWait { wait })
    }

    /// Arms a wait until each of up to 32 fences has had its value or a greater one, as
    /// [`Fence::wait_all`], which signals `event` once, when it ends.
    ///
    /// # Errors
    /// No fence, or more than 32; then nothing is armed or signalled.
    pub fn wait_all_event(
        waits: &[(&Self, u64)],
        event: &EventHandle,
    ) -> Result<EventWait<Result<(), WaitManyError>>, WaitManyError> {
        let wait = os::EventWait::all(&objects(waits), event)?;
        Ok(EventWait { wait })
    }
}
