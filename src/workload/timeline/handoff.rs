//! Hand-off with timeline semaphores: a chain of submissions, each of which waits for the one before.

use super::{chain, reached};
use crate::sync::Arc;
use crate::vulkan::{Device, Queue, Timeline};
use crate::workload::{Counts, Params, Runner, Sample};
use anyhow::Context;
use std::time::Instant;

const LINKS: u64 = 256;

/// How the chain is handed to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandoffForm {
    /// A `vkQueueSubmit` for each link.
    SubmitPerLink,
    /// All links in one `vkQueueSubmit` (of each queue).
    OneSubmit,
}

/// See the module's page.
#[derive(Debug)]
pub struct Handoff {
    form: HandoffForm,
    timelines: [Timeline; 2],
    /// Two, so that the chain goes to and fro between them, where the device has two.
    queues: Vec<Queue>,
    value: u64,
}

impl Handoff {
    /// On the queues of a device.
    ///
    /// # Errors
    /// The driver gives no queue or no timeline.
    pub fn new(device: &Arc<Device>, form: HandoffForm) -> anyhow::Result<Self> {
        let queues = (0..2).map_while(|index| device.queue(index)).collect();
        Self::on(queues, form)
    }

    /// On these queues, of one device.
    ///
    /// # Errors
    /// There is no queue, or the driver gives no timeline.
    pub fn on(queues: Vec<Queue>, form: HandoffForm) -> anyhow::Result<Self> {
        let device = queues.first().context("the device gives out no queue")?;
        let device = Arc::clone(device.device());
        let device = &device;
        Ok(Self {
            form,
            timelines: [Timeline::new(device, 0)?, Timeline::new(device, 0)?],
            queues,
            value: 0,
        })
    }

    fn submit_each(&mut self) -> anyhow::Result<()> {
        let queues = self.queues.len();
        for number in 0..LINKS {
            let (wait, signal) = chain::link(self.value, number);
            self.queues[number as usize % queues].submit_one(
                None,
                wait.map(|(timeline, value)| (&self.timelines[timeline], value)),
                (&self.timelines[signal.0], signal.1),
            )?;
        }
        Ok(())
    }

    fn submit_all(&mut self) -> anyhow::Result<Instant> {
        let Self {
            queues,
            timelines,
            value,
            ..
        } = self;
        chain::with_links(timelines, *value, LINKS, queues.len(), |lists| {
            let start = Instant::now();
            chain::submit(queues, lists)?;
            Ok(start)
        })
    }
}

impl Runner for Handoff {
    fn work(&self) -> &'static str {
        match self.form {
            HandoffForm::SubmitPerLink => {
                "A chain of 256 submissions without command buffers, each of which waits for a \
                 timeline semaphore that the one before signals, each by a vkQueueSubmit of its own; \
                 measured is from the first call to the return of vkWaitSemaphores for the last."
            }
            HandoffForm::OneSubmit => {
                "A chain of 256 submissions without command buffers, each of which waits for a \
                 timeline semaphore that the one before signals, all in one vkQueueSubmit (of each \
                 queue); measured is from that call to the return of vkWaitSemaphores for the last."
            }
        }
    }

    fn params(&self) -> Params {
        let variant = match self.form {
            HandoffForm::SubmitPerLink => "one submission per link",
            HandoffForm::OneSubmit => "one vkQueueSubmit for all",
        };
        [
            ("variant".into(), variant.into()),
            ("links".into(), LINKS.into()),
            ("queues".into(), self.queues.len().into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        LINKS
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = match self.form {
            HandoffForm::SubmitPerLink => {
                let start = Instant::now();
                self.submit_each()?;
                start
            }
            HandoffForm::OneSubmit => self.submit_all()?,
        };
        let (_, (timeline, value)) = chain::link(self.value, LINKS - 1);
        reached(&self.timelines[timeline], value).context("the chain did not end")?;
        let wall = start.elapsed();
        self.value += LINKS / 2;
        Ok(Sample::whole(wall))
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.queues.iter().map(Queue::submits).sum(),
            notifications: None,
        }
    }
}
