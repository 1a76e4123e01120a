//! Idle with monitored fences: lists that a wait holds back, and threads that sleep.

use super::{MonitoredFence, MonitoredQueue, MonitoredSystem};
use crate::vulkan::Queue;
use crate::workload::idle::{QUEUES, WAITERS, second};
use crate::workload::sleeper::Sleeper;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use anyhow::ensure;

/// See the module's page.
pub struct Idle {
    gate: MonitoredFence,
    branches: Vec<(MonitoredQueue, MonitoredFence)>,
    waiters: Vec<Sleeper>,
    system: MonitoredSystem,
}

impl Idle {
    /// Queues of one engine.
    ///
    /// # Errors
    /// The system or a thread could not be made.
    pub fn new(queue: Queue) -> anyhow::Result<Self> {
        let system = MonitoredSystem::new([queue])?;
        let mut idle = Self {
            gate: system.create_fence(0)?,
            branches: Vec::new(),
            waiters: Vec::new(),
            system,
        };
        for _ in 0..QUEUES {
            let (mut queue, fence) = (idle.system.create_queue(0), idle.system.create_fence(0)?);
            queue.wait(&idle.gate, 1)?;
            queue.signal(&fence, 1)?;
            queue.flush()?;
            idle.branches.push((queue, fence));
        }
        for (_, fence) in idle.branches.iter().take(WAITERS) {
            let (waiter, fence) = (Sleeper::new()?, fence.clone());
            waiter.begin(move || fence.wait(1, PATIENCE))?;
            idle.waiters.push(waiter);
        }
        Ok(idle)
    }
}

impl Runner for Idle {
    fn work(&self) -> &'static str {
        "Eight queues wait for a monitored fence that nobody signals, and two threads sleep in waits \
         for two of them; counted is what the process does in a second."
    }

    fn params(&self) -> Params {
        [
            ("queues".into(), QUEUES.into()),
            ("waiters".into(), self.waiters.len().into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        1
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let sample = second();
        for (_, fence) in &self.branches {
            ensure!(fence.value() == 0, "a queue passed its wait");
        }
        Ok(sample)
    }

    fn counts(&self) -> Counts {
        self.system.counts()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        // The waiters' threads wait for it.
        let _passed = self.gate.signal(1);
        for waiter in &self.waiters {
            let _ended = waiter.end();
        }
    }
}
