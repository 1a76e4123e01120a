//! Command buffer: work that is recorded once and submitted many times.
//!
//! A recorder takes commands in order; ending it gives the command buffer, which nothing changes
//! any more. Each has a pool of its own, so recorders of different threads do not meet.
//!
//! What was recorded can be read back ([`CommandBuffer::recorded`]). The list is made from what was
//! handed to the driver, in the same functions: a test of it is a test of the barriers, which no
//! validation layer replaces.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ash::vk;

use super::refusal::OutOfMemory;
use super::timeline::Timeline;
use super::{Barrier, Buffer, ComputePipeline, Device};

/// How often a command buffer may be in flight at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reuse {
    /// It is submitted again only when the submission before is complete; else it is refused.
    OneAtATime,
    /// Any number of times (`VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT`).
    Simultaneous,
}

/// One command, as it was given to the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// `vkCmdPipelineBarrier`, of all memory.
    Barrier(Barrier),
    /// `vkCmdBindPipeline`; the pipeline by [`ComputePipeline::id`].
    Bind(u64),
    /// `vkCmdPushConstants`, from offset 0.
    Push(Vec<u8>),
    /// `vkCmdDispatch`, in workgroups.
    Dispatch([u32; 3]),
    /// `vkCmdDispatchIndirect`, whose workgroups stand in a buffer.
    DispatchIndirect {
        /// Where.
        offset: u64,
    },
    /// `vkCmdFillBuffer` of a whole buffer.
    Fill {
        /// The buffer's length.
        bytes: u64,
        /// The word that it was filled with.
        word: u32,
    },
    /// `vkCmdFillBuffer` of a range of a region.
    FillRange {
        /// Where.
        offset: u64,
        /// How much.
        bytes: u64,
        /// The word that it was filled with.
        word: u32,
    },
    /// `vkCmdCopyBuffer` between regions, or within one.
    Copy {
        /// Where from.
        from: u64,
        /// Where to.
        to: u64,
        /// How much.
        bytes: u64,
    },
    /// `vkCmdWriteTimestamp`, and `vkCmdCopyQueryPoolResults` to a region.
    Timestamp {
        /// Where.
        offset: u64,
    },
    /// `vkCmdCopyBufferToImage` of an image that is shown, from row by row at an offset of a region.
    #[cfg(feature = "window")]
    CopyToImage {
        /// Where from.
        offset: u64,
        /// Pixels across and down.
        size: (u32, u32),
    },
    /// `vkCmdUpdateBuffer` of bytes of a region.
    Update {
        /// Where.
        offset: u64,
        /// What.
        data: Vec<u8>,
    },
}

/// A command buffer that is being recorded.
pub struct CommandRecorder {
    pub(super) inner: Inner,
    pub(super) bound: Option<ComputePipeline>,
}

/// Recorded commands. A clone is the same command buffer.
#[derive(Clone)]
pub struct CommandBuffer(Arc<Inner>);

pub(super) struct Inner {
    pub(super) raw: vk::CommandBuffer,
    pool: vk::CommandPool,
    reuse: Reuse,
    recorded: Vec<Recorded>,
    pipelines: Vec<ComputePipeline>,
    kept: Vec<Arc<dyn Any + Send + Sync>>,
    /// The value that its last submission signals; for [`Reuse::OneAtATime`] only.
    last: Mutex<Option<(Timeline, u64)>>,
    pub(super) device: Arc<Device>,
}

impl CommandRecorder {
    /// Begins a command buffer for the queues of `device`.
    ///
    /// # Errors
    /// The driver is out of memory.
    pub fn begin(device: &Arc<Device>, reuse: Reuse) -> Result<Self, OutOfMemory> {
        let pool_info = vk::CommandPoolCreateInfo::default().queue_family_index(device.family());
        // SAFETY: the device is alive and has queues of this family.
        let pool = unsafe { device.raw().create_command_pool(&pool_info, None) }
            .map_err(OutOfMemory::of("vkCreateCommandPool"))?;
        // Owned at once, so that every early return destroys the pool, and all that is in it.
        let mut inner = Inner {
            raw: vk::CommandBuffer::null(),
            pool,
            reuse,
            recorded: Vec::new(),
            pipelines: Vec::new(),
            kept: Vec::new(),
            last: Mutex::new(None),
            device: Arc::clone(device),
        };
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .command_buffer_count(1);
        // SAFETY: nobody else knows the pool.
        let made = unsafe { device.raw().allocate_command_buffers(&info) };
        let call = "vkAllocateCommandBuffers";
        inner.raw = made
            .map_err(OutOfMemory::of(call))?
            .first()
            .copied()
            .ok_or(OutOfMemory::in_call(call))?;
        let begin = vk::CommandBufferBeginInfo::default().flags(match reuse {
            Reuse::OneAtATime => vk::CommandBufferUsageFlags::empty(),
            Reuse::Simultaneous => vk::CommandBufferUsageFlags::SIMULTANEOUS_USE,
        });
        // SAFETY: the command buffer is new.
        unsafe { device.raw().begin_command_buffer(inner.raw, &begin) }
            .map_err(OutOfMemory::of("vkBeginCommandBuffer"))?;
        Ok(Self { inner, bound: None })
    }

    /// Keeps `what` alive until the command buffer is dropped and no submission of it is in flight:
    /// the memory behind the addresses that it pushes.
    #[must_use]
    pub fn keep(mut self, what: Arc<dyn Any + Send + Sync>) -> Self {
        self.inner.kept.push(what);
        self
    }

    /// Orders what comes before against what comes after.
    #[must_use]
    pub fn barrier(self, barrier: Barrier) -> Self {
        let raw = barrier.to_vk();
        // SAFETY: the command buffer is being recorded, and `self` is its only handle.
        unsafe {
            self.inner.device.raw().cmd_pipeline_barrier(
                self.inner.raw,
                raw.src_stage,
                raw.dst_stage,
                vk::DependencyFlags::empty(),
                &[raw.memory],
                &[],
                &[],
            );
        };
        self.recorded(Recorded::Barrier(Barrier::from_vk(&raw)))
    }

    /// Makes `pipeline` the one that the next dispatches run.
    ///
    /// # Panics
    /// The pipeline is of another device.
    #[must_use]
    pub fn bind(mut self, pipeline: &ComputePipeline) -> Self {
        self.inner
            .must_share_device(pipeline.device(), "a pipeline");
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: as above; the pipeline is of this device, and is kept below.
        unsafe {
            self.inner
                .device
                .raw()
                .cmd_bind_pipeline(self.inner.raw, point, pipeline.raw());
        };
        self.inner.pipelines.push(pipeline.clone());
        self.bound = Some(pipeline.clone());
        self.recorded(Recorded::Bind(pipeline.id()))
    }

    /// Gives the bound pipeline its push constants, all of them.
    ///
    /// # Panics
    /// No pipeline is bound, or it takes another number of bytes.
    #[must_use]
    pub fn push(self, bytes: &[u8]) -> Self {
        let pipeline = self
            .bound
            .as_ref()
            .expect("push constants need a bound pipeline");
        assert!(
            bytes.len() == pipeline.push_constant_bytes() as usize,
            "the bound pipeline takes {} bytes of push constants, not {}",
            pipeline.push_constant_bytes(),
            bytes.len()
        );
        let (layout, stage) = (pipeline.layout(), vk::ShaderStageFlags::COMPUTE);
        // SAFETY: as above; the bytes are the whole range of the layout.
        unsafe {
            self.inner
                .device
                .raw()
                .cmd_push_constants(self.inner.raw, layout, stage, 0, bytes);
        };
        self.recorded(Recorded::Push(bytes.to_vec()))
    }

    /// Runs the bound pipeline in `x` by `y` by `z` workgroups.
    ///
    /// # Panics
    /// No pipeline is bound.
    #[must_use]
    pub fn dispatch(self, x: u32, y: u32, z: u32) -> Self {
        assert!(self.bound.is_some(), "a dispatch needs a bound pipeline");
        // SAFETY: as above; a pipeline is bound. What the shader reaches by address is the
        // promise of whoever pushed the addresses.
        unsafe {
            self.inner
                .device
                .raw()
                .cmd_dispatch(self.inner.raw, x, y, z);
        };
        self.recorded(Recorded::Dispatch([x, y, z]))
    }

    /// Runs the bound pipeline in as many workgroups as the three words of 32 bits at byte `offset` of `counts`
    /// say when it comes to it, and keeps the buffer.
    ///
    /// # Panics
    /// No pipeline is bound, the buffer is of another device, or the words do not lie in it at a multiple of 4.
    #[must_use]
    pub fn dispatch_indirect(mut self, counts: &Arc<Buffer>, offset: u64) -> Self {
        assert!(self.bound.is_some(), "a dispatch needs a bound pipeline");
        self.inner.must_share_device(counts.device(), "a buffer");
        let end = offset.checked_add(12);
        assert!(
            offset.is_multiple_of(4) && end.is_some_and(|end| end <= counts.bytes()),
            "the counts of a dispatch are no words of the buffer"
        );
        // SAFETY: as above; the words lie in the buffer, which was made for this and is kept below.
        unsafe {
            self.inner
                .device
                .raw()
                .cmd_dispatch_indirect(self.inner.raw, counts.raw(), offset);
        };
        self.inner.kept.push(Arc::clone(counts) as _);
        self.recorded(Recorded::DispatchIndirect { offset })
    }

    /// Fills all of `buffer` with `word`. The caller keeps the buffer until that is done.
    #[must_use]
    pub(super) fn fill(self, buffer: &Buffer, word: u32) -> Self {
        // SAFETY: as above; the buffer is of this device, was made for transfers, and its caller
        // keeps it.
        unsafe {
            self.inner.device.raw().cmd_fill_buffer(
                self.inner.raw,
                buffer.raw(),
                0,
                vk::WHOLE_SIZE,
                word,
            );
        };
        self.recorded(Recorded::Fill {
            bytes: buffer.bytes(),
            word,
        })
    }

    /// Ends it.
    ///
    /// # Errors
    /// The driver is out of memory.
    pub fn end(self) -> Result<CommandBuffer, OutOfMemory> {
        // SAFETY: it is being recorded, and `self` is its only handle.
        unsafe { self.inner.device.raw().end_command_buffer(self.inner.raw) }
            .map_err(OutOfMemory::of("vkEndCommandBuffer"))?;
        Ok(CommandBuffer(Arc::new(self.inner)))
    }

    pub(super) fn recorded(mut self, command: Recorded) -> Self {
        self.inner.recorded.push(command);
        self
    }
}

impl CommandBuffer {
    /// What was recorded, in order.
    #[must_use]
    pub fn recorded(&self) -> &[Recorded] {
        &self.0.recorded
    }

    pub(super) fn raw(&self) -> vk::CommandBuffer {
        self.0.raw
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.0.device
    }

    pub(super) fn reuse(&self) -> Reuse {
        self.0.reuse
    }

    /// The value that its last submission signals.
    pub(super) fn last(&self) -> std::sync::MutexGuard<'_, Option<(Timeline, u64)>> {
        self.0.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It was submitted with this signal, or may have been.
    pub(super) fn note_last(&self, timeline: &Timeline, value: u64) {
        if self.reuse() == Reuse::OneAtATime {
            *self.last() = Some((timeline.clone(), value));
        }
    }
}

impl Inner {
    pub(super) fn must_share_device(&self, device: &Arc<Device>, what: &str) {
        assert!(
            Arc::ptr_eq(&self.device, device),
            "{what} is of another device"
        );
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.device.is_kept() {
            return;
        }
        // SAFETY: a queue keeps a clone of the command buffer until its submissions are complete.
        unsafe { self.device.raw().destroy_command_pool(self.pool, None) };
    }
}

impl fmt::Debug for CommandBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CommandBuffer")
            .field(&self.0.recorded)
            .finish()
    }
}
