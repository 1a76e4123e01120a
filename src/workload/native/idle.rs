//! Idle with native fences: queues that stand at a wait, on parked engines, and threads that sleep.

use super::counts;
use crate::workload::idle::{QUEUES, WAITERS, second};
use crate::workload::sleeper::Sleeper;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use crate::{Adapter, CommandList, Fence, HwQueue, HwQueueOptions};
use anyhow::{Context, ensure};

/// See the module's page.
pub struct Idle {
    gate: Fence,
    branches: Vec<(HwQueue, Fence)>,
    waiters: Vec<Sleeper>,
    adapter: Adapter,
}

impl Idle {
    /// Engines that the adapter needs; the queues stand on all of them.
    pub const ENGINES: u32 = 2;

    /// Queues of an adapter that has two engines.
    ///
    /// # Errors
    /// Fences, queues or threads could not be made.
    pub fn new(adapter: Adapter) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        let mut idle = Self {
            gate: device.create_fence(0)?,
            branches: Vec::new(),
            waiters: Vec::new(),
            adapter,
        };
        for number in 0..QUEUES {
            let options = HwQueueOptions {
                node_ordinal: number as u32 % Self::ENGINES,
                ..HwQueueOptions::default()
            };
            let mut queue = device.create_hw_queue_with(options)?;
            let fence = device.create_fence(0)?;
            queue.submit(CommandList::new().wait(&idle.gate, 1).signal(&fence, 1))?;
            idle.branches.push((queue, fence));
        }
        for (_, fence) in idle.branches.iter().take(WAITERS) {
            let (waiter, fence) = (Sleeper::new()?, fence.clone());
            waiter.begin(move || fence.wait(1, PATIENCE).context("the wait did not end"))?;
            idle.waiters.push(waiter);
        }
        Ok(idle)
    }
}

impl Runner for Idle {
    fn work(&self) -> &'static str {
        "Eight hardware queues of two engines wait for a native fence that nobody signals, and two \
         threads sleep in waits for two of them; counted is what the process does in a second."
    }

    fn params(&self) -> Params {
        [
            ("queues".into(), QUEUES.into()),
            ("engines".into(), Self::ENGINES.into()),
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
            ensure!(fence.current_value() == 0, "a queue passed its wait");
        }
        Ok(sample)
    }

    fn counts(&self) -> Counts {
        counts(&self.adapter)
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
