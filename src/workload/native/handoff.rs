//! Hand-off with native fences: queue A signals f1 and waits for f2, queue B the other way round, on
//! one engine or on two.

use super::counts;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use crate::{Adapter, CommandList, Fence, HwQueue, HwQueueOptions};
use anyhow::Context;
use std::time::{Duration, Instant};

/// Rounds of a batch; each is a hand-off there and one back.
const ROUNDS: u64 = 128;

/// Where the two queues are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandoffEngines {
    /// On one engine.
    One,
    /// On an engine each.
    Two,
}

impl HandoffEngines {
    /// Engines that the adapter needs.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// See the module's page.
#[derive(Debug)]
pub struct Handoff {
    engines: HandoffEngines,
    rounds: u64,
    patience: Duration,
    there: Fence,
    back: Fence,
    first: HwQueue,
    second: HwQueue,
    first_list: CommandList,
    second_list: CommandList,
    value: u64,
    end: u64,
    adapter: Adapter,
}

impl Handoff {
    /// Two queues of an adapter that has so many engines.
    ///
    /// # Errors
    /// Fences or queues could not be made.
    pub fn new(adapter: Adapter, engines: HandoffEngines) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        let options = HwQueueOptions {
            node_ordinal: engines.count() - 1,
            ..HwQueueOptions::default()
        };
        Ok(Self {
            engines,
            rounds: ROUNDS,
            patience: PATIENCE,
            there: device.create_fence(0)?,
            back: device.create_fence(0)?,
            first: device.create_hw_queue()?,
            second: device.create_hw_queue_with(options)?,
            first_list: CommandList::new(),
            second_list: CommandList::new(),
            value: 0,
            end: 0,
            adapter,
        })
    }
}

impl Handoff {
    /// With so many rounds a batch, each batch given up after so long: for who wants to know how it
    /// is about, soon. The sentence that says what a batch is is then not true.
    #[must_use]
    pub fn in_short(self, rounds: u64, patience: Duration) -> Self {
        Self {
            rounds,
            patience,
            ..self
        }
    }
}

impl Runner for Handoff {
    fn work(&self) -> &'static str {
        match self.engines {
            HandoffEngines::One => {
                "Two hardware queues of one engine pass native fences to and fro, 128 times there \
                 and back; the packets are written before, measured is from the doorbells to the \
                 return of the CPU's wait for the end; every wait and signal is logged."
            }
            HandoffEngines::Two => {
                "Two hardware queues of two engines pass native fences to and fro, 128 times there \
                 and back; the packets are written before, measured is from the doorbells to the \
                 return of the CPU's wait for the end; every wait and signal is logged."
            }
        }
    }

    fn params(&self) -> Params {
        [
            ("queues".into(), 2.into()),
            ("engines".into(), self.engines.count().into()),
            ("rounds".into(), self.rounds.into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        2 * self.rounds
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.first_list.clear();
        self.second_list.clear();
        for _ in 0..self.rounds {
            self.value += 1;
            self.first_list
                .signal(&self.there, self.value)
                .wait(&self.back, self.value);
            self.second_list
                .wait(&self.there, self.value)
                .signal(&self.back, self.value);
        }
        self.second.queue_commands(&self.second_list)?;
        self.end = self.first.queue_commands(&self.first_list)?;
        Ok(())
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        self.second.ring_doorbell()?;
        self.first.ring_doorbell()?;
        self.first
            .progress_fence()
            .wait(self.end, self.patience)
            .context("the hand-offs did not end")?;
        Ok(Sample::whole(start.elapsed()))
    }

    fn counts(&self) -> Counts {
        counts(&self.adapter)
    }
}
