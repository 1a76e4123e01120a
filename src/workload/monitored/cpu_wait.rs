//! CPU wait with monitored fences: a thread records a signal, flushes it, and waits for the
//! interrupt.

use super::{MonitoredFence, MonitoredQueue, MonitoredSystem};
use crate::vulkan::Queue;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};

const WAITS: u64 = 128;

/// See the module's page.
pub struct CpuWait {
    fence: MonitoredFence,
    queue: MonitoredQueue,
    value: u64,
    system: MonitoredSystem,
}

impl CpuWait {
    /// One queue and one fence.
    ///
    /// # Errors
    /// The system could not be made.
    pub fn new(queue: Queue) -> anyhow::Result<Self> {
        let system = MonitoredSystem::new([queue])?;
        Ok(Self {
            fence: system.create_fence(0)?,
            queue: system.create_queue(0),
            value: 0,
            system,
        })
    }
}

impl Runner for CpuWait {
    fn work(&self) -> &'static str {
        "The CPU records one signal of a monitored fence, a command buffer that stores, flushes it \
         and waits: it looks at the value for up to 0.1 ms, then sleeps until it is interrupted; \
         measured is each from before the recording to the waiter's return."
    }

    fn params(&self) -> Params {
        [("waits".into(), WAITS.into())].into()
    }

    fn ops_per_batch(&self) -> u64 {
        WAITS
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        Sample::of_each(WAITS, |_| {
            self.value += 1;
            self.queue.signal(&self.fence, self.value)?;
            self.queue.flush()?;
            self.fence.wait(self.value, PATIENCE)
        })
    }

    fn counts(&self) -> Counts {
        self.system.counts()
    }
}
