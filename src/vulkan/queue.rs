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
use std::time::Instant;

use ash::vk;

use super::in_flight::InFlight;
use super::refusal::{DeviceFailure, OutOfMemory, is_want};
use super::want::Want;
use super::{Device, QueueLock, SubmitError, Timeline};

/// One queue of a device. There is only one of each, see [`Device::queue`].
///
/// Dropping it waits until all that was submitted to it is complete. A submission that waits for a
/// value nobody will signal, or a shader that never ends, therefore holds up the drop: abandon
/// such a queue to a thread of its own. Where the driver answers none of the calls that tell whether it
/// is, the device and all that was made on it is kept until the process ends.
pub struct Queue {
    raw: vk::Queue,
    /// Of the program's.
    lock: Option<Arc<dyn QueueLock>>,
    pub(super) in_flight: InFlight,
    pub(super) submits: u64,
    /// What its driver answered that leaves open what it has done: from then on it is given no more work.
    pub(super) failed: Option<SubmitError>,
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
            failed: None,
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
    /// The device is lost; or its driver gives up, and it is not known whether it is.
    pub fn wait_idle(&mut self) -> Result<(), DeviceFailure> {
        if self.lock.is_some() {
            self.wait_for_own()?;
        } else if let Err(failure) = self.wait_for_all() {
            if failure.is_loss() {
                return Err(failure);
            }
            // The driver cannot wait for the queue. What was submitted here tells its end in another way.
            let told = self.wait_for_own();
            told.map_err(|other| if other.is_loss() { other } else { failure })?;
        }
        self.in_flight.forget_all();
        Ok(())
    }

    /// Waits until all is complete, pictures that are shown among it: of those no signal here tells, so nothing stands in for
    /// the driver's own answer.
    ///
    /// # Errors
    /// The device is lost; or its driver gives up, and it is not known whether it is.
    #[cfg(feature = "window")]
    pub(super) fn wait_for_shown(&mut self) -> Result<(), DeviceFailure> {
        self.wait_for_all()?;
        self.in_flight.forget_all();
        Ok(())
    }

    /// `vkQueueWaitIdle`.
    fn wait_for_all(&mut self) -> Result<(), DeviceFailure> {
        let mut want = Want::default();
        loop {
            // SAFETY: `&mut self`: no other thread uses the queue.
            let Err(code) = (unsafe { self.device.raw().queue_wait_idle(self.raw) }) else {
                return Ok(());
            };
            // Short of memory for the wait itself: what is in flight cannot go before it is complete.
            if !is_want(code) || !want.is_borne(Instant::now(), None) {
                return Err(self.device.failed("vkQueueWaitIdle", code));
            }
            want.pause();
        }
    }

    /// By the newest signal: the program's lock is not held meanwhile, and of the program's work only that
    /// is waited for which was submitted before it.
    fn wait_for_own(&mut self) -> Result<(), DeviceFailure> {
        if self.in_flight.is_empty() {
            return Ok(());
        }
        if let Some((timeline, value)) = self.in_flight.last_signal() {
            return timeline.wait_or_look(value);
        }
        let end = Timeline::new(&self.device, 0).map_err(OutOfMemory::of_device)?;
        let mut want = Want::default();
        loop {
            match self.submit_end(&end) {
                Ok(()) => return end.wait_or_look(1),
                // That there is no end says nothing of what it was to come after.
                Err(failure) if failure.is_loss() => return end.end_of_lost(1, failure),
                // What is in flight cannot go before it is complete.
                Err(failure) if failure.is_want() && want.is_borne(Instant::now(), None) => {
                    want.pause();
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Has it come to 1 when all is complete that was submitted before.
    fn submit_end(&mut self, end: &Timeline) -> Result<(), DeviceFailure> {
        // An end runs nothing, so a queue that is given no more work may have it: it is how to learn what became of the last.
        let failed = self.failed.take();
        let submitted = self.submit_one(None, None, (end, 1));
        self.failed = failed.or(self.failed);
        submitted.map_err(SubmitError::of_device)
    }
}

/// What a queue was given goes when it is not in use any more. Three answers tell of that:
/// - It is idle: nothing is in use.
/// - A call that waits says that the device is lost. For what is in use that is the same, by the standard, and what is in
///   flight may go as well. Another call that says so, a submission first of all, leaves it in flight, and a wait is made
///   (`DeviceFailure::ends_work`).
/// - The driver answers neither the call that waits for the queue, nor that which waits for its last signal, nor that which
///   reads it. Nobody knows then. To free what is in flight is unsound: a shader that still runs would store into memory that
///   others have by then, pages of the host among it. To ask again for ever is to hang whoever closes an adapter. So the
///   device is kept, and with it all that was made on it (`Device::keep_for_good`), and the queue is not given out again.
impl Drop for Queue {
    fn drop(&mut self) {
        match self.wait_idle() {
            Err(failure) if !failure.ends_work() => {
                self.device.keep_for_good(failure);
                std::mem::forget(std::mem::replace(&mut self.in_flight, InFlight::new()));
            }
            Ok(()) | Err(_) => {
                self.in_flight.forget_all();
                self.device.give_back(self.index);
            }
        }
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
