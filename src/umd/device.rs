//! Device: what an application opens on an adapter.

use super::{Fence, HwQueue};
use crate::os;
use crate::sync::Arc;

/// Why something could not be created.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct CreateError(#[from] os::OsError);

/// How a hardware queue is made.
#[derive(Clone, Copy, Debug)]
pub struct HwQueueOptions {
    /// Node to make it on.
    pub node_ordinal: u32,
    /// Exactly one bit, 1 << EngineOrdinal.
    pub engine_affinity: u32,
    /// Packets of the ring, a power of two of 2 to 2^20.
    pub ring_capacity: u64,
}

impl Default for HwQueueOptions {
    fn default() -> Self {
        Self {
            node_ordinal: 0,
            engine_affinity: 1,
            ring_capacity: 1024,
        }
    }
}

/// A device.
#[derive(Clone, Debug)]
pub struct Device {
    process: Arc<os::Process>,
}

impl Device {
    /// Opens an adapter for a process of its own.
    #[must_use]
    pub fn open(adapter: &Arc<os::Adapter>) -> Self {
        Self {
            process: adapter.open_process(),
        }
    }

    /// The OS's process object.
    #[must_use]
    pub fn process(&self) -> &Arc<os::Process> {
        &self.process
    }

    /// Creates a native fence of type DEFAULT that starts at `initial`, in system memory.
    ///
    /// # Errors
    /// No memory or no handle left.
    pub fn create_fence(&self, initial: u64) -> Result<Fence, CreateError> {
        Ok(Fence::new(Arc::new(
            self.process.create_native_fence(initial)?,
        )))
    }

    /// Creates a hardware queue for user-mode submission with the default options, and connects
    /// its doorbell.
    ///
    /// # Errors
    /// No memory, or the driver's reason.
    pub fn create_hw_queue(&self) -> Result<HwQueue, CreateError> {
        let queue = self.create_hw_queue_disconnected(HwQueueOptions::default())?;
        queue.connect_doorbell()?;
        Ok(queue)
    }

    /// Creates a hardware queue and connects its doorbell.
    ///
    /// # Errors
    /// No memory, or the driver's reason.
    pub fn create_hw_queue_with(&self, options: HwQueueOptions) -> Result<HwQueue, CreateError> {
        let queue = self.create_hw_queue_disconnected(options)?;
        queue.connect_doorbell()?;
        Ok(queue)
    }

    /// Creates a hardware queue whose doorbell is disconnected, as doorbells start (HQ-02).
    ///
    /// # Errors
    /// No memory, or the driver's reason.
    pub fn create_hw_queue_disconnected(
        &self,
        options: HwQueueOptions,
    ) -> Result<HwQueue, CreateError> {
        let queue = os::HwQueue::create(
            &self.process,
            options.node_ordinal,
            options.engine_affinity,
            options.ring_capacity,
        )?;
        Ok(HwQueue::new(queue))
    }
}
