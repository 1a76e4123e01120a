//! Storm with monitored fences: many queues signal one each, and each signal interrupts, whether
//! anybody waits or not.

use super::{MonitoredFence, MonitoredQueue, MonitoredSystem};
use crate::vulkan::Queue;
use crate::workload::native::StormForm;
use crate::workload::sleeper::Sleeper;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use anyhow::Context;
use std::time::Instant;

/// Queues, each with a fence.
const QUEUES: u64 = 64;
/// Signals of each queue in a batch: fewer than those of the native storm, since each costs much
/// more; the figures are of one signal.
const SIGNALS: u64 = 16;

/// See the module's page.
pub struct Storm {
    form: StormForm,
    gate: MonitoredFence,
    branches: Vec<(MonitoredQueue, MonitoredFence)>,
    batches: u64,
    value: u64,
    sleeper: Sleeper,
    system: MonitoredSystem,
}

impl Storm {
    /// 64 queues of one engine.
    ///
    /// # Errors
    /// The system or a thread could not be made.
    pub fn new(queue: Queue, form: StormForm) -> anyhow::Result<Self> {
        let system = MonitoredSystem::new([queue])?;
        let branches = (0..QUEUES).map(|_| Ok((system.create_queue(0), system.create_fence(0)?)));
        Ok(Self {
            form,
            gate: system.create_fence(0)?,
            branches: branches.collect::<anyhow::Result<_>>()?,
            batches: 0,
            value: 0,
            sleeper: Sleeper::new()?,
            system,
        })
    }

    fn fill(&mut self) -> anyhow::Result<()> {
        for (queue, fence) in &mut self.branches {
            for signal in 1..=SIGNALS {
                queue.signal(fence, self.value + signal)?;
            }
            queue.flush()?;
        }
        Ok(())
    }
}

impl Runner for Storm {
    fn work(&self) -> &'static str {
        match self.form {
            StormForm::Filled => {
                "64 queues signal a monitored fence each 16 times, each signal a command buffer that \
                 stores, and an interrupt; one fence has a CPU waiter; the lists are written before \
                 and held back by another fence, measured is from the CPU's signal of that until \
                 all 64 are reached and the waiter has returned (a 64th of the native storm's \
                 signals)."
            }
            StormForm::Live => {
                "64 queues signal a monitored fence each 16 times, each signal a command buffer that \
                 stores, and an interrupt; one fence has a CPU waiter; measured is from the first \
                 signal that the CPU records, 16 a vkQueueSubmit, until all 64 are reached and the \
                 waiter has returned (a 64th of the native storm's signals)."
            }
        }
    }

    fn params(&self) -> Params {
        [
            ("form".into(), self.form.name().into()),
            ("queues".into(), QUEUES.into()),
            ("signals_per_queue".into(), SIGNALS.into()),
            ("watched_fences".into(), 1.into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        QUEUES * SIGNALS
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        if self.form == StormForm::Filled {
            for (queue, _) in &mut self.branches {
                queue.wait(&self.gate, self.batches + 1)?;
            }
            self.fill()?;
        }
        let (watched, last) = (self.branches[0].1.clone(), self.value + SIGNALS);
        self.sleeper.begin(move || watched.wait(last, PATIENCE))
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        match self.form {
            StormForm::Filled => self.gate.signal(self.batches + 1)?,
            StormForm::Live => self.fill()?,
        }
        self.batches += 1;
        self.value += SIGNALS;
        // The last one first: the engine runs them in this order.
        for (_, fence) in self.branches.iter().rev() {
            fence
                .wait(self.value, PATIENCE)
                .context("a queue of the storm did not end")?;
        }
        self.sleeper.end()?;
        Ok(Sample::whole(start.elapsed()))
    }

    fn counts(&self) -> Counts {
        self.system.counts()
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        // A batch that was prepared and not run would hold up the waiter's thread.
        let _passed = self.gate.signal(self.batches + 1);
    }
}
