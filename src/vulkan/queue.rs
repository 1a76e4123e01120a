//! Queue: where a device takes its work from.
//!
//! Vulkan lets one thread at a time use a queue; here that is `&mut self`. Submissions start in
//! order, and nothing more: without a barrier two of them overlap.
//!
//! A queue remembers what it was given until that work is complete, so that a command buffer or a
//! timeline can be dropped at any time. What completed is noticed when more is submitted.

use std::fmt;
use std::sync::Arc;

use ash::vk;

use super::Device;
use super::in_flight::InFlight;
use super::refusal::DeviceLost;

/// One queue of a device. There is only one of each, see [`Device::queue`].
///
/// Dropping it waits until all that was submitted to it is complete. A submission that waits for a
/// value nobody will signal, or a shader that never ends, therefore holds up the drop: abandon
/// such a queue to a thread of its own.
pub struct Queue {
    pub(super) raw: vk::Queue,
    pub(super) in_flight: InFlight,
    pub(super) submits: u64,
    pub(super) device: Arc<Device>,
    index: u32,
}

impl Queue {
    pub(super) fn new(device: Arc<Device>, raw: vk::Queue, index: u32) -> Self {
        Self {
            raw,
            in_flight: InFlight::new(),
            submits: 0,
            device,
            index,
        }
    }

    /// The device that it is of.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Its number.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// How many times `vkQueueSubmit` was called on it.
    #[must_use]
    pub fn submits(&self) -> u64 {
        self.submits
    }

    /// Waits until all that was submitted is complete.
    ///
    /// # Errors
    /// The device is lost.
    pub fn wait_idle(&mut self) -> Result<(), DeviceLost> {
        // SAFETY: `&mut self`: no other thread uses the queue.
        unsafe { self.device.raw().queue_wait_idle(self.raw) }.map_err(|_| DeviceLost)?;
        self.in_flight.forget_all();
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // On a lost device nothing runs any more, so what is in flight may go as well.
        let _lost = self.wait_idle();
        self.in_flight.forget_all();
        self.device.give_back(self.index);
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, submits, .. } = self;
        f.debug_struct("Queue")
            .field("index", index)
            .field("submits", submits)
            .finish_non_exhaustive()
    }
}
