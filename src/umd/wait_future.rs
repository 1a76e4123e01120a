//! Wait future: a CPU wait to be awaited.

use super::Fence;
use crate::os::{self, FenceObject, WaitError, WaitManyError};
use crate::sync::Arc;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A wait on fences as a future, made by [`Fence::wait_async`], [`Fence::wait_any_async`] or
/// [`Fence::wait_all_async`]; `T` is what the blocking wait returns.
///
/// It works with any executor and needs no runtime: the task is woken by whoever releases the wait,
/// which is the thread that signals from the CPU, the adapter's interrupt thread, or a thread that
/// waits itself. No lock of this crate is held then, so a waker may poll at once, arm other waits,
/// signal, submit and drop fences; like every waker it should not block, and one that panics keeps
/// nobody else from being woken.
///
/// It begins with its first poll: what is there by then makes it ready without a call. It keeps the
/// fences' handles open, as a clone of each would. Dropping it cancels the wait: when that has
/// returned, MonitoredValue is that of the waits that are left (NF-04). The waker of a wait that had ended before may be woken
/// a moment later; that of another never is.
///
/// Where interrupts are polled for ([`Delivery::Polled`](crate::Delivery::Polled)) no thread watches
/// for it: it is woken when the slice that signalled ends (4 ms at most where nothing else is asked
/// for), or by a thread that watches for a wait of its own.
#[derive(Debug)]
#[must_use = "a future does nothing until it is polled"]
pub struct WaitFuture<T = Result<(), WaitError>> {
    wait: os::AsyncWait<T>,
}

impl<T> WaitFuture<T> {
    pub(super) fn of(wait: os::AsyncWait<T>) -> Self {
        Self { wait }
    }
}

impl<T> Future for WaitFuture<T> {
    type Output = T;

    /// # Panics
    /// If it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.wait.poll_end(context)
    }
}

/// Fences of a wait, as the OS has them.
pub(super) fn objects<'a>(waits: &[(&'a Fence, u64)]) -> Vec<(&'a Arc<FenceObject>, u64)> {
    let object = |(fence, value): &(&'a Fence, u64)| (fence.object(), *value);
    waits.iter().map(object).collect()
}

impl Fence {
    /// Waits until CurrentValue is at least `value` (NF-22); ends as [`Fence::wait`] with
    /// [`Timeout::Never`](crate::Timeout::Never). A time-out is the executor's.
    ///
    /// ```
    /// use native_fence::{Adapter, CommandList};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # pollster::block_on(async {
    /// let device = Adapter::open_best()?.create_device();
    /// let (fence, mut queue) = (device.create_fence(0)?, device.create_hw_queue()?);
    /// queue.submit(CommandList::new().signal(&fence, 1))?;
    /// fence.wait_async(1).await?;
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub fn wait_async(&self, value: u64) -> WaitFuture {
        WaitFuture {
            wait: os::AsyncWait::one(self.object(), value),
        }
    }

    /// Waits until one of up to 32 fences has its value or a greater one, as [`Fence::wait_any`].
    ///
    /// # Errors
    /// No fence, or more than 32; what else may come is the future's.
    pub fn wait_any_async(
        waits: &[(&Self, u64)],
    ) -> Result<WaitFuture<Result<usize, WaitManyError>>, WaitManyError> {
        let wait = os::AsyncWait::any(&objects(waits))?;
        Ok(WaitFuture { wait })
    }

    /// Waits until each of up to 32 fences has had its value or a greater one, as
    /// [`Fence::wait_all`].
    ///
    /// # Errors
    /// No fence, or more than 32; what else may come is the future's.
    pub fn wait_all_async(
        waits: &[(&Self, u64)],
    ) -> Result<WaitFuture<Result<(), WaitManyError>>, WaitManyError> {
        let wait = os::AsyncWait::all(&objects(waits))?;
        Ok(WaitFuture { wait })
    }
}
