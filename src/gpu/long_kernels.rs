//! Long kernels on an engine's queue: what an injection asks for, before a slice.

use super::{Injection, LongKernel};
use crate::shared::Mapping;
use crate::sync::{Arc, Mutex, lock};
use crate::vulkan::{
    CommandBuffer, CommandRecorder, ComputePipeline, Device, DeviceLoss, OutOfMemory, Queue,
    RegionImport, Reuse, SLICE_BEGIN, SLICE_END, Timeline, shaders,
};
use anyhow::Context;

/// The kernels of one engine.
#[derive(Debug)]
pub(super) struct LongKernels {
    injection: Arc<Injection>,
    /// None yet of an engine that is kept warm.
    node_ordinal: Option<u32>,
    pipeline: ComputePipeline,
    words: Arc<RegionImport>,
    /// Counts the kernels that ended.
    timeline: Timeline,
    started: Mutex<u64>,
    _mapping: Arc<Mapping>,
}

impl LongKernels {
    const PUSH_BYTES: u32 = 16;

    pub(super) fn new(
        device: &Arc<Device>,
        injection: &Arc<Injection>,
        node_ordinal: Option<u32>,
    ) -> anyhow::Result<Self> {
        let code = shaders::LONG_KERNEL.words;
        let pipeline = ComputePipeline::new(device, code, Self::PUSH_BYTES, &[])?;
        let mapping = injection.words().map()?;
        let words = RegionImport::new(device, &mapping).context("no word for long kernels")?;
        Ok(Self {
            injection: Arc::clone(injection),
            node_ordinal,
            pipeline,
            words: Arc::new(words),
            timeline: Timeline::new(device, 0)?,
            started: Mutex::new(0),
            _mapping: mapping,
        })
    }

    /// The engine takes the place of a node's, and its device is lost by this.
    pub(super) fn serve(&mut self, node_ordinal: u32, loss: &Arc<DeviceLoss>) {
        self.node_ordinal = Some(node_ordinal);
        self.injection.has_another(node_ordinal, loss);
    }

    /// Submits the kernel that was asked for, if one was. What the queue refuses, the slice behind it
    /// finds out.
    pub(super) fn submit(&self, queue: &mut Queue) {
        let Some(node_ordinal) = self.node_ordinal else {
            return;
        };
        let Some(kernel) = self.injection.take(node_ordinal) else {
            return;
        };
        let mut started = lock(&self.started);
        *started += 1;
        let submitted = self
            .record(queue.device(), node_ordinal, kernel)
            .map(|commands| queue.submit_one(Some(&commands), None, (&self.timeline, *started)));
        if !matches!(submitted, Ok(Ok(()))) {
            eprintln!("native-fence: a long kernel was not submitted: {submitted:?}");
        }
    }

    fn record(
        &self,
        device: &Arc<Device>,
        node_ordinal: u32,
        kernel: LongKernel,
    ) -> Result<CommandBuffer, OutOfMemory> {
        let word = self.words.gpu_va() + Injection::offset(node_ordinal);
        CommandRecorder::begin(device, Reuse::OneAtATime)?
            .keep(Arc::clone(&self.words) as _)
            .barrier(SLICE_BEGIN)
            .bind(&self.pipeline)
            .push(&kernel.push(word))
            .dispatch(kernel.workgroups, 1, 1)
            .barrier(SLICE_END)
            .end()
    }
}
