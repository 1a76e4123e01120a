//! Hardware context: where the queues of one engine are made (HQ-11).

use super::{CreateError, Device, HwQueue, KernelQueue, Timeout};
use crate::os::{self, SuspendError};
use crate::sync::Arc;

/// A hardware context of a device: a node of the adapter, and which engine of it. The queues that are made
/// in it run there, beside those that the device makes without one, and outlive it.
///
/// ```
/// use native_fence::{Adapter, CommandList};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Adapter::open_best()?.create_device();
/// let fence = device.create_fence(0)?;
///
/// // The first node, and the one engine that each node has.
/// let context = device.create_context(0, 1)?;
/// let mut queue = context.create_hw_queue(64)?;
/// queue.submit(CommandList::new().signal(&fence, 1))?;
/// fence.wait(1, Duration::from_secs(10))?;
/// assert_eq!(queue.os().handle().node_ordinal, context.node_ordinal());
///
/// assert!(device.create_context(0, 2).is_err(), "there is no engine 1");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HwContext {
    context: Arc<os::HwContext>,
}

impl HwContext {
    /// The OS's object.
    #[must_use]
    pub fn os(&self) -> &Arc<os::HwContext> {
        &self.context
    }

    /// The node whose engine executes what its queues are given.
    #[must_use]
    pub fn node_ordinal(&self) -> u32 {
        self.context.node_ordinal()
    }

    /// Which engine of the node: exactly one bit, 1 << EngineOrdinal.
    #[must_use]
    pub fn engine_affinity(&self) -> u32 {
        self.context.engine_affinity()
    }

    /// Creates a hardware queue for user-mode submission, whose ring has so many packets, a power of two
    /// of 2 to 2^20, and connects its doorbell.
    ///
    /// # Errors
    /// No memory, or the driver's reason.
    pub fn create_hw_queue(&self, ring_capacity: u64) -> Result<HwQueue, CreateError> {
        let queue = self.create_hw_queue_without_doorbell(ring_capacity)?;
        queue.create_doorbell()?;
        queue.connect_doorbell()?;
        Ok(queue)
    }

    /// The same without a doorbell ([`HwQueue::create_doorbell`] makes it).
    ///
    /// # Errors
    /// No memory, or the driver's reason.
    pub fn create_hw_queue_without_doorbell(
        &self,
        ring_capacity: u64,
    ) -> Result<HwQueue, CreateError> {
        Ok(HwQueue::new(self.context.create_hw_queue(ring_capacity)?))
    }

    /// Suspends the context (PR-09): when this has succeeded, nothing on the GPU refers to what its queues
    /// have, wherever they stand. Doorbells stay connected, and what is queued meanwhile runs after
    /// [`HwContext::resume`].
    ///
    /// ```
    /// use native_fence::{Adapter, CommandList};
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Adapter::open_best()?.create_device();
    /// let fence = device.create_fence(0)?;
    /// let context = device.create_context(0, 1)?;
    /// let mut queue = context.create_hw_queue(64)?;
    ///
    /// context.suspend(Duration::from_secs(10))?;
    /// queue.submit(CommandList::new().signal(&fence, 1))?;
    /// assert_eq!(fence.current_value(), 0);
    ///
    /// context.resume();
    /// fence.wait(1, Duration::from_secs(10))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SuspendError`]; after a time-out the request stands.
    pub fn suspend(&self, timeout: impl Into<Timeout>) -> Result<(), SuspendError> {
        self.context.suspend(timeout.into().duration())
    }

    /// The context's queues go on from where they were taken out.
    pub fn resume(&self) {
        self.context.resume();
    }

    /// Sets the context's priority, -7 to 7, 0 at first: while a queue of a higher priority can go on, lower
    /// ones of its engine stand back, but not for ever (PR-08). It holds from the engine's next slice on.
    ///
    /// # Errors
    /// Another number, a stopped adapter.
    pub fn set_priority(&self, priority: i32) -> Result<(), CreateError> {
        Ok(self.context.set_priority(priority)?)
    }

    /// Creates a kernel-mode queue.
    ///
    /// # Errors
    /// No memory, or the driver's reason.
    pub fn create_kernel_queue(&self) -> Result<KernelQueue, CreateError> {
        Ok(KernelQueue::new(self.context.create_kernel_queue()?))
    }
}

impl Device {
    /// Creates a hardware context on a node below the number that the adapter has, for the engine whose bit
    /// `engine_affinity` is: 1, since each node has one.
    ///
    /// # Errors
    /// No such node, no such engine, or more bits than one; a stopped adapter.
    pub fn create_context(
        &self,
        node_ordinal: u32,
        engine_affinity: u32,
    ) -> Result<HwContext, CreateError> {
        let context = os::HwContext::create(self.process(), node_ordinal, engine_affinity)?;
        Ok(HwContext { context })
    }
}
