//! Buffer: memory of the device, by address.
//!
//! Words live where their reader is near: what the GPU polls in its own memory, what the CPU polls
//! in cached system memory. A buffer is asked for one of those homes and tells which it got; on a
//! device with one kind of memory all homes are one. Memory comes from gpu-allocator, one allocator
//! a device.
//!
//! A mapped buffer is handed out as a pointer, never as a slice: a GPU writes there at any time.

use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

use ash::vk;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme};
use gpu_allocator::{AllocationError, MemoryLocation};
use thiserror::Error;

use crate::sync::{AtomicU64, Ordering};

use super::{
    Barrier, CommandRecorder, Device, DeviceFailure, LocalMemory, OutOfMemory, Queue, Refusal,
    Reuse, SubmitError, Timeline, barrier,
};

/// What every buffer of this program may be used for.
pub(super) const USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw()
        | vk::BufferUsageFlags::INDIRECT_BUFFER.as_raw()
        | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS.as_raw(),
);

/// Where a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Home {
    /// Near the device; the CPU need not reach it.
    DeviceLocal,
    /// Near the device, and the CPU reaches it: for what the CPU writes and the GPU polls.
    DeviceLocalHostVisible,
    /// System memory that the CPU caches: for what the GPU writes and the CPU polls.
    CachedSystem,
}

/// Why there is no buffer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BufferError {
    /// Memory ran out.
    #[error("the Vulkan device has no memory left for a buffer ({})", .0.call)]
    OutOfMemory(#[from] OutOfMemory),
    /// The device is lost, or its driver gives up.
    #[error(transparent)]
    Device(#[from] DeviceFailure),
    /// The driver refuses.
    #[error("the driver gives no buffer: {0}")]
    Refused(Refusal),
}

/// A buffer with memory of its own.
///
/// Drop it after the work that uses its address: [`super::CommandRecorder::keep`] does that.
pub struct Buffer {
    raw: vk::Buffer,
    allocation: Option<Allocation>,
    gpu_va: u64,
    bytes: u64,
    home: Home,
    device: Arc<Device>,
}

impl Buffer {
    /// Makes a buffer of `bytes`, in the home asked for or the next best one. What the CPU reaches
    /// is zero; for the rest there is [`Buffer::zero`].
    ///
    /// # Errors
    /// Memory ran out, or the driver refuses.
    pub fn new(
        device: &Arc<Device>,
        bytes: u64,
        home: Home,
        name: &str,
    ) -> Result<Self, BufferError> {
        let mut usage = USAGE;
        if !device.adapter().features.buffer_device_address {
            usage &= !vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        }
        let info = vk::BufferCreateInfo::default().size(bytes).usage(usage);
        // SAFETY: the device is alive.
        let raw = unsafe { device.raw().create_buffer(&info, None) }
            .map_err(|e| refused("vkCreateBuffer", e))?;
        let device = Arc::clone(device);
        let mut buffer = Self {
            raw,
            allocation: None,
            gpu_va: 0,
            bytes,
            home,
            device,
        };
        buffer.allocate(name)?;
        buffer.zero_if_mapped();
        Ok(buffer)
    }

    /// Where shaders find the first byte; 0 on a device without buffer addresses.
    #[must_use]
    pub fn gpu_va(&self) -> u64 {
        self.gpu_va
    }

    /// How many bytes there are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the CPU finds the first byte, if it reaches the buffer. Valid while `self` is. The
    /// memory is coherent; the GPU writes there too, so it is to be read with atomics.
    #[must_use]
    pub fn mapped(&self) -> Option<NonNull<u8>> {
        self.allocation.as_ref()?.mapped_ptr().map(NonNull::cast)
    }

    /// The word of 64 bits at byte `offset`, a multiple of 8, and all that the GPU published before it; none where the
    /// CPU does not reach the buffer.
    ///
    /// # Panics
    /// It does not lie in the buffer.
    #[must_use]
    pub fn observe(&self, offset: u64) -> Option<u64> {
        let end = offset.checked_add(8);
        assert!(
            offset.is_multiple_of(8) && end.is_some_and(|end| end <= self.bytes),
            "it is no word of the buffer"
        );
        let first = self.mapped()?;
        // SAFETY: the word lies in the mapping, by the check above, which is aligned to more than a word.
        let word = unsafe { first.byte_add(offset as usize) }.cast::<AtomicU64>();
        // SAFETY: as above; the mapping lives as long as `self`, and everybody touches the word by atomics.
        let word = unsafe { word.as_ref() };
        Some(word.load(Ordering::Acquire))
    }

    /// The home that it has, which may be another than the one asked for.
    #[must_use]
    pub fn home(&self) -> Home {
        self.home
    }

    /// Fills it with zeroes through `queue`, and waits. For buffers that the CPU does not reach, and
    /// that no other work uses meanwhile.
    ///
    /// # Errors
    /// Memory ran out, the device is lost, or its driver gives up.
    pub fn zero(&self, queue: &mut Queue) -> Result<(), BufferError> {
        // A queue that takes no work fills nothing, and nothing is in doubt.
        let takes_work = queue.must_take_work();
        takes_work.map_err(SubmitError::of_device)?;
        let done = Timeline::new(&self.device, 0)?;
        let commands = CommandRecorder::begin(&self.device, Reuse::OneAtATime)?
            .fill(self, 0)
            .barrier(AFTER_FILL)
            .end()?;
        // No list keeps the buffer, so the fill must be over before the caller may drop it.
        let ended = match queue.submit_one(Some(&commands), None, (&done, 1)) {
            Ok(()) => done.wait_or_look(1),
            Err(SubmitError::OutOfMemory) => return Err(out_of_memory("vkQueueSubmit")),
            // It may have been submitted, and be pending: a wait tells.
            Err(SubmitError::DeviceLost) => {
                let lost = SubmitError::DeviceLost.of_device();
                if let Err(failure) = done.end_of_lost(1, lost) {
                    let _kept = self.doubt(failure);
                }
                return Err(lost.into());
            }
            Err(error) => Err(error.of_device()),
        };
        ended.map_err(|failure| self.doubt(failure))
    }

    /// It may still be filled, but where a wait has said that the device is lost.
    fn doubt(&self, failure: DeviceFailure) -> BufferError {
        if !failure.ends_work() {
            self.device.keep_for_good(failure);
        }
        failure.into()
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(super) fn raw(&self) -> vk::Buffer {
        self.raw
    }

    fn allocate(&mut self, name: &str) -> Result<(), BufferError> {
        let raw = self.device.raw();
        // SAFETY: the buffer is of this device.
        let requirements = unsafe { raw.get_buffer_memory_requirements(self.raw) };
        let description = AllocationCreateDesc {
            name,
            requirements,
            location: match self.home {
                Home::DeviceLocal => MemoryLocation::GpuOnly,
                Home::DeviceLocalHostVisible => MemoryLocation::CpuToGpu,
                Home::CachedSystem => MemoryLocation::GpuToCpu,
            },
            linear: true,
            allocation_scheme: AllocationScheme::GpuAllocatorManaged,
        };
        let allocation = {
            let mut allocator = self
                .device
                .allocator()
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            allocator
                .allocate(&description)
                .map_err(|e| not_allocated(&e))?
        };
        self.home = home_of(&self.device, self.home, allocation.memory_properties());
        let allocation = self.allocation.insert(allocation);
        // SAFETY: the memory is not freed before the buffer is destroyed: `drop` does both.
        let memory = unsafe { allocation.memory() };
        // SAFETY: the buffer is not bound yet, and the allocator was given what it needs.
        unsafe { raw.bind_buffer_memory(self.raw, memory, allocation.offset()) }
            .map_err(|e| refused("vkBindBufferMemory", e))?;
        if self.device.adapter().features.buffer_device_address {
            let info = vk::BufferDeviceAddressInfo::default().buffer(self.raw);
            // SAFETY: the buffer is bound and was made for this; the feature is on.
            self.gpu_va = unsafe { raw.get_buffer_device_address(&info) };
        }
        Ok(())
    }

    fn zero_if_mapped(&mut self) {
        if let (Some(start), Ok(bytes)) = (self.mapped(), usize::try_from(self.bytes)) {
            // SAFETY: the mapping is at least as long as the buffer, and nobody else knows of the
            // buffer yet.
            unsafe { start.as_ptr().write_bytes(0, bytes) };
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.device.is_kept() {
            // Its allocation has no drop of its own, and stays the allocator's.
            return;
        }
        // SAFETY: whoever submits work that uses the address keeps the buffer with it; see `keep`.
        unsafe { self.device.raw().destroy_buffer(self.raw, None) };
        if let Some(allocation) = self.allocation.take() {
            let mut allocator = self
                .device
                .allocator()
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let freed = allocator.free(allocation);
            debug_assert!(freed.is_ok(), "a buffer's memory was not its allocator's");
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Buffer({} bytes at {:#x}, {:?})",
            self.bytes, self.gpu_va, self.home
        )
    }
}

/// What was filled is seen by shaders and copies of later submissions.
const AFTER_FILL: Barrier = Barrier {
    src_stage: barrier::Stages::TRANSFER,
    src_access: barrier::Accesses::TRANSFER_WRITE,
    dst_stage: barrier::Stages::COMPUTE.and(barrier::Stages::TRANSFER),
    dst_access: barrier::Accesses::SHADER_READ
        .and(barrier::Accesses::SHADER_WRITE)
        .and(barrier::Accesses::TRANSFER_WRITE),
};

/// The home that memory of these properties is. Where local and system memory are one, it is
/// whichever was asked for.
fn home_of(device: &Device, asked: Home, flags: vk::MemoryPropertyFlags) -> Home {
    let local = flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL);
    let visible = flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE);
    if local && visible && device.adapter().features.local_memory == LocalMemory::SameAsSystem {
        return asked;
    }
    match (local, visible, asked) {
        (true, true, Home::DeviceLocal) | (true, false, _) => Home::DeviceLocal,
        (true, true, _) => Home::DeviceLocalHostVisible,
        (false, _, _) => Home::CachedSystem,
    }
}

fn not_allocated(error: &AllocationError) -> BufferError {
    match error {
        AllocationError::OutOfMemory => out_of_memory("vkAllocateMemory"),
        AllocationError::FailedToMap(why) => BufferError::Refused(Refusal {
            call: "vkMapMemory",
            code: why.clone(),
        }),
        error => BufferError::Refused(Refusal {
            call: "the memory allocator",
            code: error.to_string(),
        }),
    }
}

fn out_of_memory(call: &'static str) -> BufferError {
    BufferError::OutOfMemory(OutOfMemory::in_call(call))
}

fn refused(call: &'static str, code: vk::Result) -> BufferError {
    match code {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => {
            out_of_memory(call)
        }
        vk::Result::ERROR_DEVICE_LOST => DeviceFailure::of(call, code).into(),
        code => BufferError::Refused(Refusal::of(call, code)),
    }
}
