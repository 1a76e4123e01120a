//! Hand-off with native fences: queue A signals f1 and waits for f2, queue B the other way round.

use super::counts;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use crate::{Adapter, CommandList, Fence, HwQueue};
use anyhow::Context;
use std::time::Instant;

/// Rounds of a batch; each is a hand-off there and one back.
const ROUNDS: u64 = 128;

/// See the module's page.
#[derive(Debug)]
pub struct Handoff {
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
    /// Two queues of the adapter's one engine.
    ///
    /// # Errors
    /// Fences or queues could not be made.
    pub fn new(adapter: Adapter) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        Ok(Self {
            there: device.create_fence(0)?,
            back: device.create_fence(0)?,
            first: device.create_hw_queue()?,
            second: device.create_hw_queue()?,
            first_list: CommandList::new(),
            second_list: CommandList::new(),
            value: 0,
            end: 0,
            adapter,
        })
    }
}

impl Runner for Handoff {
    fn work(&self) -> &'static str {
        "Two hardware queues of one engine pass native fences to and fro, 128 times there and back; \
         the packets are written before, measured is from the doorbells to the return of the CPU's \
         wait for the end; every wait and signal is logged."
    }

    fn params(&self) -> Params {
        [
            ("queues".into(), 2.into()),
            ("rounds".into(), ROUNDS.into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        2 * ROUNDS
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.first_list.clear();
        self.second_list.clear();
        for _ in 0..ROUNDS {
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
            .wait(self.end, PATIENCE)
            .context("the hand-offs did not end")?;
        Ok(Sample {
            wall: start.elapsed(),
            latencies: Vec::new(),
        })
    }

    fn counts(&self) -> Counts {
        counts(&self.adapter)
    }
}
