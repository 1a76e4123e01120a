//! CPU wait with native fences: a thread queues a signal, rings, and sleeps until it is executed.

use super::counts;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use crate::{Adapter, CommandList, Fence, HwQueue};
use anyhow::Context;
use std::time::Instant;

const WAITS: u64 = 256;

/// See the module's page.
#[derive(Debug)]
pub struct CpuWait {
    fence: Fence,
    queue: HwQueue,
    list: CommandList,
    value: u64,
    adapter: Adapter,
}

impl CpuWait {
    /// One queue and one fence.
    ///
    /// # Errors
    /// They could not be made.
    pub fn new(adapter: Adapter) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        Ok(Self {
            fence: device.create_fence(0)?,
            queue: device.create_hw_queue()?,
            list: CommandList::new(),
            value: 0,
            adapter,
        })
    }
}

impl Runner for CpuWait {
    fn work(&self) -> &'static str {
        "The CPU queues one signal of a native fence, rings the doorbell and sleeps until it is \
         interrupted; measured is each from before its packets are written to the waiter's return."
    }

    fn params(&self) -> Params {
        [("waits".into(), WAITS.into())].into()
    }

    fn ops_per_batch(&self) -> u64 {
        WAITS
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let mut latencies = Vec::with_capacity(WAITS as usize);
        let start = Instant::now();
        let mut before = start;
        for _ in 0..WAITS {
            self.value += 1;
            self.list.clear();
            self.list.signal(&self.fence, self.value);
            self.queue.submit(&self.list)?;
            self.fence
                .wait(self.value, PATIENCE)
                .context("the signal did not come")?;
            let now = Instant::now();
            latencies.push(now - before);
            before = now;
        }
        Ok(Sample {
            wall: before - start,
            latencies,
        })
    }

    fn counts(&self) -> Counts {
        counts(&self.adapter)
    }
}
