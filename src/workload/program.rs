//! Program: what a small program has of plain Vulkan, from an instance of its own to a kernel.
//!
//! A device that is lost takes all of it along: to go on, a program makes it anew.

use super::PATIENCE;
use crate::gpu::LongKernel;
use crate::shared::{Block, Region};
use crate::sync::Arc;
use crate::vulkan::{
    AdapterInfo, CommandBuffer, CommandRecorder, ComputePipeline, Device, DeviceLoss,
    DeviceOptions, HostImport, Instance, InstanceOptions, Queue, Reuse, SLICE_BEGIN, SLICE_END,
    Timeline, WaitOutcome, shaders,
};
use anyhow::{Context, bail};
use std::time::{Duration, Instant};

/// Its usual kernel: as short as one can be.
const SHORT: LongKernel = LongKernel {
    workgroups: 1,
    passes: 1,
};

/// See the file's head.
#[derive(Debug)]
pub(super) struct Program {
    loss: Arc<DeviceLoss>,
    words: Arc<HostImport>,
    block: Block,
    pipeline: ComputePipeline,
    short: CommandBuffer,
    timeline: Timeline,
    queue: Queue,
    value: u64,
}

impl Program {
    /// Instance, device, memory, pipeline, commands and semaphore; nothing is submitted yet.
    pub(super) fn new(adapter: &AdapterInfo) -> anyhow::Result<Self> {
        let instance = Instance::new(InstanceOptions::default())?;
        let loss = DeviceLoss::new();
        let options = DeviceOptions {
            queues: 1,
            loss: Some(Arc::clone(&loss)),
        };
        let device = Device::open(&instance, adapter, options)?;
        let queue = device.queue(0).context("the device gives out no queue")?;
        let mapping = Region::new("program", 64)?.map()?;
        let block = Block::whole(&mapping);
        let words = Arc::new(HostImport::new(&device, mapping)?);
        let pipeline = ComputePipeline::new(&device, shaders::LONG_KERNEL.words, 16, &[])?;
        Ok(Self {
            loss,
            short: record(&words, &pipeline, SHORT)?,
            words,
            block,
            pipeline,
            timeline: Timeline::new(&device, 0)?,
            queue,
            value: 0,
        })
    }

    /// The device is lost.
    pub(super) fn lose(&self) {
        self.loss.lose();
    }

    /// Submits the usual kernel, and waits for it; whether it ended within this time.
    pub(super) fn run(&mut self, patience: Duration) -> anyhow::Result<bool> {
        self.value += 1;
        let signal = (&self.timeline, self.value);
        self.queue.submit_one(Some(&self.short), None, signal)?;
        self.ends_within(patience)
    }

    /// Submits a long one.
    pub(super) fn begin(&mut self, kernel: LongKernel) -> anyhow::Result<()> {
        self.value += 1;
        let commands = record(&self.words, &self.pipeline, kernel)?;
        let signal = (&self.timeline, self.value);
        self.queue.submit_one(Some(&commands), None, signal)?;
        Ok(())
    }

    /// What a kernel takes.
    pub(super) fn time_of(&mut self, kernel: LongKernel) -> anyhow::Result<Duration> {
        let begin = Instant::now();
        self.begin(kernel)?;
        if !self.ends_within(PATIENCE)? {
            bail!("a kernel that should be short did not end");
        }
        Ok(begin.elapsed())
    }

    /// Workgroups of its kernels that are done.
    pub(super) fn workgroups_done(&self) -> u64 {
        self.block.word(0).observe()
    }

    /// Calls of `vkQueueSubmit`.
    pub(super) fn submits(&self) -> u64 {
        self.queue.submits()
    }

    fn ends_within(&self, patience: Duration) -> anyhow::Result<bool> {
        match self.timeline.wait(self.value, Some(patience))? {
            WaitOutcome::Reached => Ok(true),
            WaitOutcome::TimedOut => Ok(false),
        }
    }
}

fn record(
    words: &Arc<HostImport>,
    pipeline: &ComputePipeline,
    kernel: LongKernel,
) -> anyhow::Result<CommandBuffer> {
    let push = kernel.push(words.gpu_va());
    Ok(CommandRecorder::begin(words.device(), Reuse::OneAtATime)?
        .keep(Arc::clone(words) as _)
        .barrier(SLICE_BEGIN)
        .bind(pipeline)
        .push(&push)
        .dispatch(kernel.workgroups, 1, 1)
        .barrier(SLICE_END)
        .end()?)
}
