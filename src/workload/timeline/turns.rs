//! Turns by timeline semaphores: a chain of submissions, whose semaphores the CPU watches.

use super::{Handoff, HandoffForm, chain};
use crate::sync::Arc;
use crate::vulkan::{Device, Queue, Timeline};
use crate::workload::Runner;
use crate::workload::turns::{HANDOFFS, Take, Taker, watch};
use anyhow::ensure;

/// Batches by which it is known what a hand-off takes while nobody looks.
const BATCHES: usize = 15;

/// See the file's head.
pub struct TurnTaker {
    /// A chain over both, where the device has two.
    queues: Vec<Queue>,
    timelines: [Timeline; 2],
    value: u64,
    /// The chain of the figures, on a device of its own.
    unseen: Handoff,
}

impl TurnTaker {
    /// On the queues of a device; on those of another the chain of the figures is run.
    ///
    /// # Errors
    /// A device gives out no queue, or the driver gives no timeline.
    pub fn new([device, unseen]: [&Arc<Device>; 2]) -> anyhow::Result<Self> {
        let queues: Vec<_> = (0..2).map_while(|index| device.queue(index)).collect();
        ensure!(!queues.is_empty(), "the device gives out no queue");
        Ok(Self {
            timelines: [Timeline::new(device, 0)?, Timeline::new(device, 0)?],
            queues,
            value: 0,
            unseen: Handoff::new(unseen, HandoffForm::OneSubmit)?,
        })
    }
}

impl Taker for TurnTaker {
    fn how(&self) -> &'static str {
        "A chain of submissions without command buffers in one vkQueueSubmit (of each queue), each of which waits for a \
         timeline semaphore that the one before signals. The CPU reads both semaphores' values all the time and notes when \
         each was raised; how long a submission had the turn is not seen."
    }

    fn take(&mut self) -> anyhow::Result<Take> {
        let Self {
            queues,
            timelines,
            value: before,
            ..
        } = self;
        // What a turn raises is what its link does.
        let value = |turn: usize| chain::link(*before, turn as u64).1.1;
        let read = |party: usize| Ok(timelines[party].value()?);
        let links = HANDOFFS as u64 + 1;
        let take = chain::with_links(timelines, *before, links, queues.len(), |lists| {
            watch(|| chain::submit(queues, lists), read, value)
        })?;
        self.value += HANDOFFS as u64 / 2 + 1;
        Ok(take)
    }

    fn unseen_ns(&mut self) -> anyhow::Result<Option<u64>> {
        self.unseen.batch()?;
        let mut walls = (0..BATCHES)
            .map(|_| Ok(self.unseen.batch()?.wall))
            .collect::<anyhow::Result<Vec<_>>>()?;
        walls.sort();
        let middle = walls[walls.len() / 2].as_nanos() as u64;
        Ok(Some(middle / self.unseen.ops_per_batch()))
    }
}
