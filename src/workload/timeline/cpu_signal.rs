//! CPU signal with timeline semaphores: `vkSignalSemaphore`, a submission that waits for it and
//! signals another, `vkWaitSemaphores`.

use super::{reached, submit_links};
use crate::sync::Arc;
use crate::vulkan::{Device, Queue, Timeline};
use crate::workload::{Counts, Params, Runner, Sample};
use anyhow::Context;

const ROUND_TRIPS: u64 = 128;

/// See the module's page.
#[derive(Debug)]
pub struct CpuSignal {
    question: Timeline,
    answer: Timeline,
    queue: Queue,
    value: u64,
}

impl CpuSignal {
    /// On a queue of a device.
    ///
    /// # Errors
    /// The driver gives no queue or no timeline.
    pub fn new(device: &Arc<Device>) -> anyhow::Result<Self> {
        Ok(Self {
            question: Timeline::new(device, 0)?,
            answer: Timeline::new(device, 0)?,
            queue: device.queue(0).context("the device gives out no queue")?,
            value: 0,
        })
    }
}

impl Runner for CpuSignal {
    fn work(&self) -> &'static str {
        "The CPU calls vkSignalSemaphore, for which a submission without command buffers waits that \
         was made before and signals another timeline semaphore, and sleeps in vkWaitSemaphores for \
         that; measured is each from one call to the return of the other."
    }

    fn params(&self) -> Params {
        [("round_trips".into(), ROUND_TRIPS.into())].into()
    }

    fn ops_per_batch(&self) -> u64 {
        ROUND_TRIPS
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        let values = self.value + 1..=self.value + ROUND_TRIPS;
        submit_links(&mut self.queue, &self.question, &self.answer, values)
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        Sample::of_each(ROUND_TRIPS, |_| {
            self.value += 1;
            self.question.signal(self.value)?;
            reached(&self.answer, self.value)
        })
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.queue.submits(),
            notifications: None,
        }
    }
}

impl Drop for CpuSignal {
    fn drop(&mut self) {
        // A batch that was prepared and not run would hold up the queue's drop for ever.
        let _passed = self.question.signal(self.value + ROUND_TRIPS);
    }
}
