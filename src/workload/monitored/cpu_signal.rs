//! CPU signal with monitored fences: the CPU signals one, the operating system hands over what waited
//! for it, which signals another, for which the CPU waits.

use super::{MonitoredFence, MonitoredQueue, MonitoredSystem};
use crate::vulkan::Queue;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};

const ROUND_TRIPS: u64 = 64;

/// See the module's page.
pub struct CpuSignal {
    question: MonitoredFence,
    answer: MonitoredFence,
    queue: MonitoredQueue,
    value: u64,
    system: MonitoredSystem,
}

impl CpuSignal {
    /// One queue and two fences.
    ///
    /// # Errors
    /// The system could not be made.
    pub fn new(queue: Queue) -> anyhow::Result<Self> {
        let system = MonitoredSystem::new([queue])?;
        Ok(Self {
            question: system.create_fence(0)?,
            answer: system.create_fence(0)?,
            queue: system.create_queue(0),
            value: 0,
            system,
        })
    }
}

impl Runner for CpuSignal {
    fn work(&self) -> &'static str {
        "The CPU signals a monitored fence, for which a queue waits whose list was written before; \
         the same thread hands over the command buffer that stores to another, and waits: it looks \
         at the value for up to 0.1 ms, then sleeps until it is interrupted; measured is each from \
         the signal to the waiter's return."
    }

    fn params(&self) -> Params {
        [("round_trips".into(), ROUND_TRIPS.into())].into()
    }

    fn ops_per_batch(&self) -> u64 {
        ROUND_TRIPS
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        for value in self.value + 1..=self.value + ROUND_TRIPS {
            self.queue.wait(&self.question, value)?;
            self.queue.signal(&self.answer, value)?;
        }
        self.queue.flush()
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        Sample::of_each(ROUND_TRIPS, |_| {
            self.value += 1;
            self.question.signal(self.value)?;
            self.answer.wait(self.value, PATIENCE)
        })
    }

    fn counts(&self) -> Counts {
        self.system.counts()
    }
}
