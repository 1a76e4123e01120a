//! Copy with native fences: COPY packets of a hardware queue, and a signal behind them.

use super::counts;
use crate::workload::copy::{self, COPIES, COPY_BYTES, WORDS};
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use crate::{Adapter, Allocation, CommandList, Fence, HwQueue};
use anyhow::Context;
use std::time::Instant;

/// See the module's page.
pub struct Copy {
    source: Allocation,
    destination: Allocation,
    fence: Fence,
    queue: HwQueue,
    list: CommandList,
    batch: u64,
    adapter: Adapter,
}

impl Copy {
    /// On the adapter's one engine.
    ///
    /// # Errors
    /// Memory, fence or queue could not be made.
    pub fn new(adapter: Adapter) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        Ok(Self {
            source: device.create_allocation(COPIES * COPY_BYTES)?,
            destination: device.create_allocation(COPIES * COPY_BYTES)?,
            fence: device.create_fence(0)?,
            queue: device.create_hw_queue()?,
            list: CommandList::new(),
            batch: 0,
            adapter,
        })
    }
}

impl Runner for Copy {
    fn work(&self) -> &'static str {
        "One hardware queue executes 16 COPY packets of 1 MiB each and a signal, which the CPU waits \
         for; measured is from before the packets are written to the waiter's return. All lanes of \
         the engine, one subgroup, copy together."
    }

    fn params(&self) -> Params {
        copy::params()
    }

    fn ops_per_batch(&self) -> u64 {
        COPIES
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.batch += 1;
        self.source.write(0, &copy::words_of(self.batch));
        Ok(())
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        self.list.clear();
        for copy in 0..COPIES {
            let bytes = copy * COPY_BYTES..(copy + 1) * COPY_BYTES;
            let offset = bytes.start;
            self.list
                .copy(&self.source, bytes, &self.destination, offset);
        }
        self.list.signal(&self.fence, self.batch);
        self.queue.submit(&self.list)?;
        self.fence
            .wait(self.batch, PATIENCE)
            .context("the copies did not end")?;
        let wall = start.elapsed();
        let mut words = vec![0; WORDS];
        self.destination.read(0, &mut words);
        copy::check(self.batch, &words)?;
        Ok(Sample::whole(wall))
    }

    fn counts(&self) -> Counts {
        counts(&self.adapter)
    }
}
