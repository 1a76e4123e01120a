//! Hand-off with monitored fences: two queues signal and wait in turns, and each turn goes through
//! the operating system.

use super::{MonitoredFence, MonitoredQueue, MonitoredSystem};
use crate::vulkan::Queue;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use anyhow::Context;
use std::time::Instant;

/// Rounds of a batch; each is a hand-off there and one back.
const ROUNDS: u64 = 32;

/// See the module's page.
pub struct Handoff {
    /// Holds the first turn back until it is measured.
    gate: MonitoredFence,
    there: MonitoredFence,
    back: MonitoredFence,
    first: MonitoredQueue,
    second: MonitoredQueue,
    engines: usize,
    batches: u64,
    value: u64,
    system: MonitoredSystem,
}

impl Handoff {
    /// Two queues of an engine, or of one each where there are two Vulkan queues.
    ///
    /// # Errors
    /// The system could not be made.
    pub fn new(queues: impl IntoIterator<Item = Queue>) -> anyhow::Result<Self> {
        let system = MonitoredSystem::new(queues)?;
        let engines = system.engine_count();
        Ok(Self {
            gate: system.create_fence(0)?,
            there: system.create_fence(0)?,
            back: system.create_fence(0)?,
            first: system.create_queue(0),
            second: system.create_queue(engines - 1),
            engines,
            batches: 0,
            value: 0,
            system,
        })
    }
}

impl Runner for Handoff {
    fn work(&self) -> &'static str {
        if self.engines == 1 {
            "Two queues of one engine pass monitored fences to and fro, 32 times there and back; the \
             lists are written before and held back by another fence, measured is from the CPU's \
             signal of that to the return of its wait for the end; each hand-off is a command \
             buffer that stores, an interrupt, and a vkQueueSubmit."
        } else {
            "Two queues of two engines pass monitored fences to and fro, 32 times there and back; \
             the lists are written before and held back by another fence, measured is from the \
             CPU's signal of that to the return of its wait for the end; each hand-off is a command \
             buffer that stores, an interrupt, and a vkQueueSubmit."
        }
    }

    fn params(&self) -> Params {
        [
            ("queues".into(), 2.into()),
            ("engines".into(), self.engines.into()),
            ("rounds".into(), ROUNDS.into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        2 * ROUNDS
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.first.wait(&self.gate, self.batches + 1)?;
        for value in self.value + 1..=self.value + ROUNDS {
            self.first.signal(&self.there, value)?;
            self.first.wait(&self.back, value)?;
            self.second.wait(&self.there, value)?;
            self.second.signal(&self.back, value)?;
        }
        self.second.flush()
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        self.batches += 1;
        self.value += ROUNDS;
        self.gate.signal(self.batches)?;
        self.back
            .wait(self.value, PATIENCE)
            .context("the hand-offs did not end")?;
        Ok(Sample::whole(start.elapsed()))
    }

    fn counts(&self) -> Counts {
        self.system.counts()
    }
}
