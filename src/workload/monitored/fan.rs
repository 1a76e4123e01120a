//! Fan-out and fan-in with monitored fences: queues that wait for one, and a queue that waits for all
//! of theirs.

use super::{MonitoredFence, MonitoredQueue, MonitoredSystem};
use crate::vulkan::Queue;
use crate::workload::fan::{FANS, FanForm, QUEUES};
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};

/// See the module's page.
pub struct Fan {
    form: FanForm,
    gate: MonitoredFence,
    branches: Vec<(MonitoredQueue, MonitoredFence)>,
    join: MonitoredQueue,
    joined: MonitoredFence,
    value: u64,
    system: MonitoredSystem,
}

impl Fan {
    /// Queues of one engine.
    ///
    /// # Errors
    /// The system could not be made.
    pub fn new(queue: Queue, form: FanForm) -> anyhow::Result<Self> {
        let system = MonitoredSystem::new([queue])?;
        let branches = (0..QUEUES).map(|_| Ok((system.create_queue(0), system.create_fence(0)?)));
        Ok(Self {
            form,
            gate: system.create_fence(0)?,
            branches: branches.collect::<anyhow::Result<_>>()?,
            join: system.create_queue(0),
            joined: system.create_fence(0)?,
            value: 0,
            system,
        })
    }
}

impl Runner for Fan {
    fn work(&self) -> &'static str {
        match self.form {
            FanForm::Out => {
                "The CPU signals a monitored fence, for which 32 queues wait whose lists were written \
                 before; the same thread hands over their command buffers, each of which stores to \
                 a fence of its own, and waits for all; measured is each fan from the signal to the \
                 return of the last wait."
            }
            FanForm::In => {
                "The CPU signals a monitored fence, for which 32 queues wait whose lists were written \
                 before; the same thread hands over their command buffers, each of which stores to \
                 a fence of its own, one more queue waits for all of these, and the CPU for that \
                 one; measured is each fan from the signal to the return of the wait."
            }
        }
    }

    fn params(&self) -> Params {
        [
            ("queues".into(), QUEUES.into()),
            ("fans".into(), FANS.into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        FANS
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        for value in self.value + 1..=self.value + FANS {
            for (queue, fence) in &mut self.branches {
                queue.wait(&self.gate, value)?;
                queue.signal(fence, value)?;
            }
            if self.form == FanForm::In {
                for (_, fence) in &self.branches {
                    self.join.wait(fence, value)?;
                }
                self.join.signal(&self.joined, value)?;
            }
        }
        let mut queues = self.branches.iter_mut().map(|(queue, _)| queue);
        queues.try_for_each(MonitoredQueue::flush)?;
        self.join.flush()
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        Sample::of_each(FANS, |_| {
            self.value += 1;
            self.gate.signal(self.value)?;
            match self.form {
                // The last one first: the engine runs them in this order.
                FanForm::Out => {
                    let mut branches = self.branches.iter().rev();
                    branches.try_for_each(|(_, fence)| fence.wait(self.value, PATIENCE))
                }
                FanForm::In => self.joined.wait(self.value, PATIENCE),
            }
        })
    }

    fn counts(&self) -> Counts {
        self.system.counts()
    }
}
