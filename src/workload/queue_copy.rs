//! Queue copy: copies by a command buffer of a Vulkan queue, between source and destination in system
//! memory, as allocations are. What the command buffer does is the comparators' matter.

use super::copy::{self, COPIES, COPY_BYTES, WORDS};
use super::{Counts, PATIENCE, Params, Runner, Sample};
use crate::shared::{Block, Region};
use crate::sync::Arc;
use crate::vulkan::{
    CommandBuffer, CommandRecorder, Device, Queue, RegionImport, Reuse, Timeline, WaitOutcome,
};
use anyhow::ensure;
use std::time::Instant;

/// Memory that is copied, as the device has it and as the CPU has it.
#[derive(Debug)]
struct Side {
    import: Arc<RegionImport>,
    block: Block,
}

impl Side {
    fn new(device: &Arc<Device>) -> anyhow::Result<Self> {
        let mapping = Region::new("copied", COPIES * COPY_BYTES)?.map()?;
        let block = Block::whole(&mapping);
        let import = Arc::new(RegionImport::new(device, &mapping)?);
        Ok(Self { import, block })
    }
}

/// See the file's head.
#[derive(Debug)]
pub struct QueueCopy {
    work: &'static str,
    source: Side,
    destination: Side,
    commands: CommandBuffer,
    timeline: Timeline,
    queue: Queue,
    batch: u64,
}

impl QueueCopy {
    /// On a queue; `record` records the copies from the first memory to the second, and the barriers
    /// around them.
    ///
    /// # Errors
    /// No memory, the driver imports none or gives no timeline; or those of `record`.
    pub(super) fn new(
        queue: Queue,
        work: &'static str,
        record: impl FnOnce(
            CommandRecorder,
            &Arc<RegionImport>,
            &Arc<RegionImport>,
        ) -> anyhow::Result<CommandRecorder>,
    ) -> anyhow::Result<Self> {
        let device = Arc::clone(queue.device());
        let (source, destination) = (Side::new(&device)?, Side::new(&device)?);
        let recorder = CommandRecorder::begin(&device, Reuse::OneAtATime)?;
        Ok(Self {
            work,
            commands: record(recorder, &source.import, &destination.import)?.end()?,
            source,
            destination,
            timeline: Timeline::new(&device, 0)?,
            queue,
            batch: 0,
        })
    }
}

impl Runner for QueueCopy {
    fn work(&self) -> &'static str {
        self.work
    }

    fn params(&self) -> Params {
        copy::params()
    }

    fn ops_per_batch(&self) -> u64 {
        COPIES
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.batch += 1;
        self.source.block.put_words(0, &copy::words_of(self.batch));
        Ok(())
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        let signal = (&self.timeline, self.batch);
        self.queue.submit_one(Some(&self.commands), None, signal)?;
        let outcome = self.timeline.wait(self.batch, Some(PATIENCE))?;
        let wall = start.elapsed();
        ensure!(outcome == WaitOutcome::Reached, "the copies did not end");
        let copied = &self.destination.block;
        let words = (0..WORDS as u64).map(|at| copied.word(at * 8).peek());
        copy::check(self.batch, &words.collect::<Vec<_>>())?;
        Ok(Sample::whole(wall))
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.queue.submits(),
            notifications: None,
        }
    }
}
