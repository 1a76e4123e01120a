//! CPU wait with a timeline semaphore: `vkQueueSubmit` that signals it, then `vkWaitSemaphores`.

use super::reached;
use crate::sync::Arc;
use crate::vulkan::{Device, Queue, Timeline};
use crate::workload::{Counts, Params, Runner, Sample};
use anyhow::Context;

const WAITS: u64 = 256;

/// See the module's page.
#[derive(Debug)]
pub struct CpuWait {
    timeline: Timeline,
    queue: Queue,
    value: u64,
}

impl CpuWait {
    /// On a queue of a device.
    ///
    /// # Errors
    /// The driver gives no queue or no timeline.
    pub fn new(device: &Arc<Device>) -> anyhow::Result<Self> {
        Ok(Self {
            timeline: Timeline::new(device, 0)?,
            queue: device.queue(0).context("the device gives out no queue")?,
            value: 0,
        })
    }
}

impl Runner for CpuWait {
    fn work(&self) -> &'static str {
        "The CPU calls vkQueueSubmit without a command buffer, which signals a timeline semaphore, \
         and sleeps in vkWaitSemaphores; measured is each from one call to the return of the other."
    }

    fn params(&self) -> Params {
        [("waits".into(), WAITS.into())].into()
    }

    fn ops_per_batch(&self) -> u64 {
        WAITS
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        Sample::of_each(WAITS, |_| {
            self.value += 1;
            self.queue
                .submit_one(None, None, (&self.timeline, self.value))?;
            reached(&self.timeline, self.value)
        })
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.queue.submits(),
            notifications: None,
        }
    }
}
