//! Program commands: a command buffer of the program's, into which this library records.
//!
//! What is recorded can be read back, as that of this room's own command buffers: no validation layer replaces a test of
//! the barriers.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use ash::vk;

use super::{Barrier, CommandRecorder, ComputePipeline, Device, Recorded};

/// A command buffer is not of the device of what is to be recorded into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the command buffer is of another device than what is recorded into it")]
pub struct OtherDevice;

/// A command buffer that the program is recording.
pub struct ProgramCommands {
    raw: vk::CommandBuffer,
    device: Arc<Device>,
    recorded: Vec<Recorded>,
}

impl ProgramCommands {
    /// Takes a command buffer that is being recorded.
    ///
    /// Where something was recorded, the compute pipeline and the push constants that the program had set are
    /// others: it sets them anew for its own dispatches.
    ///
    /// # Safety
    /// It is of the device that `device` is, of a pool whose family runs compute shaders, in the recording state
    /// outside of a render pass, and nobody else uses it or its pool while this is. What is recorded here names memory and
    /// pipelines of those who record it: they live until the command buffer is not executed any more, and
    /// addresses that they are given are of memory that lives as long.
    #[must_use]
    pub unsafe fn new(device: &Arc<Device>, raw: vk::CommandBuffer) -> Self {
        Self {
            raw,
            device: Arc::clone(device),
            recorded: Vec::new(),
        }
    }

    /// The device that it is of.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// What this library recorded into it, in order.
    #[must_use]
    pub fn recorded(&self) -> &[Recorded] {
        &self.recorded
    }

    /// One dispatch of one workgroup between two barriers.
    ///
    /// # Errors
    /// The pipeline is of another device; then nothing was recorded.
    ///
    /// # Panics
    /// It takes another number of push constants: a bug of ours.
    pub(crate) fn dispatch_between(
        &mut self,
        before: Barrier,
        pipeline: &ComputePipeline,
        push: &[u8],
        after: Barrier,
    ) -> Result<(), OtherDevice> {
        if !Arc::ptr_eq(&self.device, pipeline.device()) {
            return Err(OtherDevice);
        }
        assert_eq!(
            push.len(),
            pipeline.push_constant_bytes() as usize,
            "a pipeline takes other push constants"
        );
        self.barrier(before);
        let device = self.device.raw();
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: the command buffer is being recorded by nobody else, and the pipeline, of its device, lives
        // long enough, by the promise of `new`.
        unsafe { device.cmd_bind_pipeline(self.raw, point, pipeline.raw()) };
        self.recorded.push(Recorded::Bind(pipeline.id()));
        let (layout, stage) = (pipeline.layout(), vk::ShaderStageFlags::COMPUTE);
        // SAFETY: as above; the bytes are the whole range of the layout.
        unsafe { device.cmd_push_constants(self.raw, layout, stage, 0, push) };
        self.recorded.push(Recorded::Push(push.to_vec()));
        // SAFETY: as above; the addresses are of memory that lives long enough, by the promise of `new`.
        unsafe { device.cmd_dispatch(self.raw, 1, 1, 1) };
        self.recorded.push(Recorded::Dispatch([1, 1, 1]));
        self.barrier(after);
        Ok(())
    }

    fn barrier(&mut self, barrier: Barrier) {
        let raw = barrier.to_vk();
        // SAFETY: the command buffer is being recorded by nobody else, by the promise of `new`.
        unsafe {
            self.device.raw().cmd_pipeline_barrier(
                self.raw,
                raw.src_stage,
                raw.dst_stage,
                vk::DependencyFlags::empty(),
                &[raw.memory],
                &[],
                &[],
            );
        };
        self.recorded
            .push(Recorded::Barrier(Barrier::from_vk(&raw)));
    }
}

impl CommandRecorder {
    /// Has recorded here what goes into a program's command buffer, and keeps what it is of, which is all that `record` knows.
    ///
    /// # Errors
    /// What `record` answers.
    pub(crate) fn record_as_program<T: Any + Send + Sync, E>(
        mut self,
        of: &Arc<T>,
        record: fn(&T, &mut ProgramCommands) -> Result<(), E>,
    ) -> Result<Self, E> {
        // SAFETY: the command buffer is being recorded, of a pool of this device's for a family that runs compute shaders, and
        // `self` is its only handle; what is named in it is of `of`, which is kept below.
        let mut commands = unsafe { ProgramCommands::new(&self.inner.device, self.inner.raw) };
        record(of, &mut commands)?;
        // Another pipeline is bound now.
        self.bound = None;
        let recorded = commands.recorded.into_iter();
        Ok(recorded.fold(self.keep(Arc::clone(of) as _), Self::recorded))
    }
}

impl fmt::Debug for ProgramCommands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgramCommands")
            .field(&self.recorded)
            .finish()
    }
}
