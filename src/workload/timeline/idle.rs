//! Idle with timeline semaphores: submissions that wait for one that nobody signals, and threads in
//! `vkWaitSemaphores`.

use super::reached;
use crate::sync::Arc;
use crate::vulkan::{Device, Queue, Timeline};
use crate::workload::idle::{QUEUES, WAITERS, second};
use crate::workload::sleeper::Sleeper;
use crate::workload::{Counts, Params, Runner, Sample};
use anyhow::{Context, ensure};

/// See the module's page.
pub struct Idle {
    gate: Timeline,
    done: Vec<Timeline>,
    queue: Queue,
    waiters: Vec<Sleeper>,
}

impl Idle {
    /// On a queue of a device.
    ///
    /// # Errors
    /// The driver gives no queue or no timeline, or there is no thread left.
    pub fn new(device: &Arc<Device>) -> anyhow::Result<Self> {
        let done = (0..QUEUES).map(|_| Timeline::new(device, 0));
        // Whole before anything is submitted: an error lets go of the queue.
        let mut idle = Self {
            gate: Timeline::new(device, 0)?,
            done: done.collect::<Result<_, _>>()?,
            queue: device.queue(0).context("the device gives out no queue")?,
            waiters: Vec::new(),
        };
        for branch in &idle.done {
            let gate = Some((&idle.gate, 1));
            idle.queue.submit_one(None, gate, (branch, 1))?;
        }
        for branch in idle.done.iter().take(WAITERS) {
            let (waiter, branch) = (Sleeper::new()?, branch.clone());
            waiter.begin(move || reached(&branch, 1))?;
            idle.waiters.push(waiter);
        }
        Ok(idle)
    }
}

impl Runner for Idle {
    fn work(&self) -> &'static str {
        "Eight submissions wait for a timeline semaphore that nobody signals, and two threads sleep \
         in vkWaitSemaphores for two of them; counted is what the process does in a second."
    }

    fn params(&self) -> Params {
        [
            ("submissions".into(), QUEUES.into()),
            ("waiters".into(), self.waiters.len().into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        1
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let sample = second();
        for done in &self.done {
            ensure!(done.value()? == 0, "a submission passed its wait");
        }
        Ok(sample)
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.queue.submits(),
            notifications: None,
        }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        // The waiters' threads and the queue's drop wait for it.
        let _passed = self.gate.signal(1);
    }
}
