//! Queue: where a device takes its work from.
//!
//! Vulkan lets one thread at a time use a queue; here that is `&mut self`. Submissions start in
//! order, and nothing more: without a barrier two of them overlap.
//!
//! A queue that is the program's is used in turns with it ([`QueueLock`]); it is never waited for as a
//! whole, which is the program's work too.
//!
//! A queue remembers what it was given until that work is complete, so that a command buffer or a
//! timeline can be dropped at any time. What completed is noticed when more is submitted.

use std::fmt;
use std::sync::Arc;

use ash::vk;

use super::in_flight::InFlight;
use super::refusal::DeviceLost;
use super::{Device, QueueLock, SubmitError, Timeline};

/// One queue of a device. There is only one of each, see [`Device::queue`].
///
/// Dropping it waits until all that was submitted to it is complete. A submission that waits for a
/// value nobody will signal, or a shader that never ends, therefore holds up the drop: abandon
/// such a queue to a thread of its own.
pub struct Queue {
    raw: vk::Queue,
    /// Of the program's.
    lock: Option<Arc<dyn QueueLock>>,
    pub(super) in_flight: InFlight,
    pub(super) submits: u64,
    pub(super) device: Arc<Device>,
    index: u32,
}

impl Queue {
    pub(super) fn new(
        device: Arc<Device>,
        raw: vk::Queue,
        lock: Option<Arc<dyn QueueLock>>,
        index: u32,
    ) -> Self {
        Self {
            raw,
            lock,
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

    /// `vkQueueSubmit`, with all that it asks to be synchronised.
    ///
    /// # Safety
    /// All that `infos` name is of this device, valid, and kept until the submissions are complete.
    pub(super) unsafe fn submit_raw(
        &mut self,
        infos: &[vk::SubmitInfo<'_>],
    ) -> Result<(), vk::Result> {
        let submit = || {
            let device = self.device.raw();
            // SAFETY: the caller's promise; no other thread uses the queue, by `&mut self`, or by the
            // program's lock.
            unsafe { device.queue_submit(self.raw, infos, vk::Fence::null()) }
        };
        let Some(lock) = &self.lock else {
            return submit();
        };
        let mut answer = None;
        lock.during(&mut || answer = Some(submit()));
        answer.expect("a program's lock runs what it is given before it returns")
    }

    /// `vkQueuePresentKHR`, and whether the window would rather have other images.
    ///
    /// # Safety
    /// As for [`Queue::submit_raw`]; the images were got, and something raises the semaphores.
    #[cfg(feature = "window")]
    pub(super) unsafe fn present_raw(
        &mut self,
        functions: &ash::khr::swapchain::Device,
        info: &vk::PresentInfoKHR<'_>,
    ) -> Result<bool, vk::Result> {
        // SAFETY: the caller's promise; no other thread uses the queue, by `&mut self`: it is none of a program's.
        unsafe { functions.queue_present(self.raw, info) }
    }

    /// Waits until all that was submitted is complete; of a program's queue, what was submitted here.
    ///
    /// # Errors
    /// The device is lost.
    pub fn wait_idle(&mut self) -> Result<(), DeviceLost> {
        if self.lock.is_some() {
            self.wait_for_own()?;
        } else {
            // SAFETY: `&mut self`: no other thread uses the queue.
            while let Err(error) = unsafe { self.device.raw().queue_wait_idle(self.raw) } {
                match error {
                    // Short of memory for the wait itself: what is in flight cannot go before it is complete.
                    vk::Result::ERROR_OUT_OF_HOST_MEMORY
                    | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => std::thread::yield_now(),
                    _ => return Err(DeviceLost),
                }
            }
        }
        self.in_flight.forget_all();
        Ok(())
    }

    /// By the newest signal: the program's lock is not held meanwhile, and of the program's work only that
    /// is waited for which was submitted before it.
    fn wait_for_own(&mut self) -> Result<(), DeviceLost> {
        if self.in_flight.is_empty() {
            return Ok(());
        }
        if let Some((timeline, value)) = self.in_flight.last_signal() {
            return timeline.wait(value, None).map(|_reached| ());
        }
        loop {
            let end = Timeline::new(&self.device, 0);
            let end = end.map_err(|_| SubmitError::OutOfMemory);
            match end.and_then(|end| self.submit_one(None, None, (&end, 1)).map(|()| end)) {
                Ok(end) => return end.wait(1, None).map(|_reached| ()),
                // What is in flight cannot go before it is complete.
                Err(SubmitError::OutOfMemory) => std::thread::yield_now(),
                Err(_) => return Err(DeviceLost),
            }
        }
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
