//! Turns by monitored fences: each goes through the operating system, and the CPU watches the values.

use super::{MonitoredFence, MonitoredQueue, MonitoredSystem};
use crate::vulkan::Queue;
use crate::workload::turns::{HANDOFFS, Take, Taker, watch};

/// See the file's head.
pub struct TurnTaker {
    /// Holds the first turn back until the CPU begins.
    gate: MonitoredFence,
    /// What the parties signal, each its own.
    fences: [MonitoredFence; 2],
    queues: [MonitoredQueue; 2],
    takes: u64,
    value: u64,
    // Last: its engines wait for what runs.
    _system: MonitoredSystem,
}

impl TurnTaker {
    /// Two queues of an engine.
    ///
    /// # Errors
    /// The system could not be made.
    pub fn new(queue: Queue) -> anyhow::Result<Self> {
        let system = MonitoredSystem::new([queue])?;
        Ok(Self {
            gate: system.create_fence(0)?,
            fences: [system.create_fence(0)?, system.create_fence(0)?],
            queues: [system.create_queue(0), system.create_queue(0)],
            takes: 0,
            value: 0,
            _system: system,
        })
    }
}

impl Taker for TurnTaker {
    fn how(&self) -> &'static str {
        "Two queues of one engine, whose lists were written before: the operating system hands over each command buffer when \
         it was interrupted for the one before, an interrupt and a vkQueueSubmit a hand-off. The CPU reads both fences' values \
         all the time and notes when each was raised; how long a command buffer had the turn is not seen."
    }

    fn take(&mut self) -> anyhow::Result<Take> {
        self.takes += 1;
        let before = self.value;
        let value = |turn: usize| before + turn as u64 / 2 + 1;
        self.queues[0].wait(&self.gate, self.takes)?;
        for turn in 0..=HANDOFFS {
            let queue = &mut self.queues[turn % 2];
            if let Some(before) = turn.checked_sub(1) {
                queue.wait(&self.fences[before % 2], value(before))?;
            }
            queue.signal(&self.fences[turn % 2], value(turn))?;
        }
        for queue in &mut self.queues {
            queue.flush()?;
        }
        let start = || self.gate.signal(self.takes);
        let take = watch(start, |party| Ok(self.fences[party].value()), value)?;
        self.value = value(HANDOFFS);
        Ok(take)
    }
}
