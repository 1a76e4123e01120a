//! Fan-out and fan-in with timeline semaphores: submissions that wait for one, and one that waits for
//! all of theirs.

use super::reached;
use crate::sync::Arc;
use crate::vulkan::{Device, Queue, Submission, Timeline};
use crate::workload::fan::{FANS, FanForm, QUEUES};
use crate::workload::{Counts, Params, Runner, Sample};
use anyhow::Context;

/// See the module's page.
#[derive(Debug)]
pub struct Fan {
    form: FanForm,
    gate: Timeline,
    branches: Vec<Timeline>,
    joined: Timeline,
    queue: Queue,
    value: u64,
}

impl Fan {
    /// On a queue of a device.
    ///
    /// # Errors
    /// The driver gives no queue or no timeline.
    pub fn new(device: &Arc<Device>, form: FanForm) -> anyhow::Result<Self> {
        let branches = (0..QUEUES).map(|_| Timeline::new(device, 0));
        Ok(Self {
            form,
            gate: Timeline::new(device, 0)?,
            branches: branches.collect::<Result<_, _>>()?,
            joined: Timeline::new(device, 0)?,
            queue: device.queue(0).context("the device gives out no queue")?,
            value: 0,
        })
    }

    fn submit(&mut self, value: u64) -> anyhow::Result<()> {
        let gate = [(&self.gate, value)];
        let branches: Vec<_> = self.branches.iter().map(|branch| (branch, value)).collect();
        let joined = [(&self.joined, value)];
        let mut list: Vec<_> = branches
            .iter()
            .map(|branch| Submission {
                commands: &[],
                waits: &gate,
                signals: std::slice::from_ref(branch),
            })
            .collect();
        if self.form == FanForm::In {
            list.push(Submission {
                commands: &[],
                waits: &branches,
                signals: &joined,
            });
        }
        Ok(self.queue.submit(&list)?)
    }
}

impl Runner for Fan {
    fn work(&self) -> &'static str {
        match self.form {
            FanForm::Out => {
                "The CPU calls vkSignalSemaphore, for which 32 submissions without command buffers \
                 wait that were made before; each signals a timeline semaphore of its own, and the \
                 CPU waits for all; measured is each fan from the signal to the return of the last \
                 wait."
            }
            FanForm::In => {
                "The CPU calls vkSignalSemaphore, for which 32 submissions without command buffers \
                 wait that were made before; each signals a timeline semaphore of its own, one more \
                 submission waits for all of these, and the CPU for that one; measured is each fan \
                 from the signal to the return of the wait."
            }
        }
    }

    fn params(&self) -> Params {
        [
            ("submissions".into(), QUEUES.into()),
            ("fans".into(), FANS.into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        FANS
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        (1..=FANS).try_for_each(|fan| self.submit(self.value + fan))
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        Sample::of_each(FANS, |_| {
            self.value += 1;
            self.gate.signal(self.value)?;
            match self.form {
                // The last one first: when it is reached the others nearly always are.
                FanForm::Out => {
                    let mut branches = self.branches.iter().rev();
                    branches.try_for_each(|branch| reached(branch, self.value))
                }
                FanForm::In => reached(&self.joined, self.value),
            }
        })
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.queue.submits(),
            notifications: None,
        }
    }
}

impl Drop for Fan {
    fn drop(&mut self) {
        // A batch that was prepared and not run would hold up the queue's drop for ever.
        let _passed = self.gate.signal(self.value + FANS);
    }
}
