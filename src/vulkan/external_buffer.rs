//! External buffer: a buffer over memory that comes from outside of its device, or goes there.
//!
//! What is imported and what is exported has the same three steps: a buffer that knows of it, memory
//! that fits the buffer, an address. Where the memory comes from stands in the chain of its
//! allocation, which is the caller's.

use super::Device;
use super::buffer::USAGE;
use ash::vk;
use std::any::Any;
use std::sync::Arc;

/// A call that the driver refused.
pub(super) type Refused = (&'static str, vk::Result);

/// What the memory of a buffer has to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    pub(super) bytes: u64,
    /// Bit by memory type.
    pub(super) types: u32,
    /// The driver wants the memory to be this buffer's alone.
    pub(super) dedicated: bool,
}

/// See the module's page. Drop it after the work that uses its address.
pub(super) struct ExternalBuffer {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    gpu_va: u64,
    /// What its memory lies in, where that is the host's: there for as long as the buffer is.
    pages: Option<Arc<dyn Any + Send + Sync>>,
    device: Arc<Device>,
}

impl ExternalBuffer {
    /// A buffer without memory.
    pub(super) fn new(
        device: &Arc<Device>,
        bytes: u64,
        handle: vk::ExternalMemoryHandleTypeFlags,
    ) -> Result<Self, Refused> {
        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(handle);
        let info = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(USAGE)
            .push_next(&mut external);
        // SAFETY: the device is alive, and so is all that `info` points to.
        let buffer = unsafe { device.raw().create_buffer(&info, None) }
            .map_err(|code| ("vkCreateBuffer", code))?;
        Ok(Self {
            buffer,
            memory: vk::DeviceMemory::null(),
            gpu_va: 0,
            pages: None,
            device: Arc::clone(device),
        })
    }

    /// Keeps the pages that it is given its memory from.
    pub(super) fn keep(&mut self, pages: Arc<dyn Any + Send + Sync>) {
        self.pages = Some(pages);
    }

    pub(super) fn needs(&self) -> Needs {
        let info = vk::BufferMemoryRequirementsInfo2::default().buffer(self.buffer);
        let mut dedicated = vk::MemoryDedicatedRequirements::default();
        let mut needs = vk::MemoryRequirements2::default().push_next(&mut dedicated);
        // SAFETY: the buffer is of this device; both structures are of Vulkan 1.1.
        unsafe {
            self.device
                .raw()
                .get_buffer_memory_requirements2(&info, &mut needs);
        };
        let needs = needs.memory_requirements;
        Needs {
            bytes: needs.size,
            types: needs.memory_type_bits,
            dedicated: dedicated.requires_dedicated_allocation != vk::FALSE,
        }
    }

    /// Gives it memory from where `origin` says.
    ///
    /// # Safety
    /// What `origin` names is what the standard asks of it; `bytes` and `memory_type` are those of
    /// the memory behind it, and what the buffer needs.
    pub(super) unsafe fn allocate<T: vk::ExtendsMemoryAllocateInfo>(
        &mut self,
        bytes: u64,
        memory_type: u32,
        dedicated: bool,
        origin: &mut T,
    ) -> Result<(), Refused> {
        let raw = self.device.raw();
        let mut flags =
            vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let mut alone = vk::MemoryDedicatedAllocateInfo::default().buffer(self.buffer);
        let mut info = vk::MemoryAllocateInfo::default()
            .allocation_size(bytes)
            .memory_type_index(memory_type)
            .push_next(origin)
            .push_next(&mut flags);
        if dedicated {
            info = info.push_next(&mut alone);
        }
        // SAFETY: the caller's promise; all that `info` points to lives until after the call.
        self.memory = unsafe { raw.allocate_memory(&info, None) }
            .map_err(|code| ("vkAllocateMemory", code))?;
        // SAFETY: neither is bound yet; size and type are what the buffer needs.
        unsafe { raw.bind_buffer_memory(self.buffer, self.memory, 0) }
            .map_err(|code| ("vkBindBufferMemory", code))?;
        let info = vk::BufferDeviceAddressInfo::default().buffer(self.buffer);
        // SAFETY: the buffer is bound and was made for this; the feature is on.
        self.gpu_va = unsafe { raw.get_buffer_device_address(&info) };
        Ok(())
    }

    pub(super) fn gpu_va(&self) -> u64 {
        self.gpu_va
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(super) fn raw(&self) -> vk::Buffer {
        self.buffer
    }

    pub(super) fn has_memory(&self) -> bool {
        self.memory != vk::DeviceMemory::null()
    }

    pub(super) fn memory(&self) -> vk::DeviceMemory {
        self.memory
    }
}

impl Drop for ExternalBuffer {
    fn drop(&mut self) {
        // Decided once, for the buffer and for its pages: the device may come to be kept while this runs, by who ends one of
        // its queues, and an import that stays has its pages with it.
        if self.device.is_kept() {
            std::mem::forget(self.pages.take());
            return;
        }
        // SAFETY: whoever submits work that uses the address keeps the buffer with it.
        unsafe { self.device.raw().destroy_buffer(self.buffer, None) };
        // SAFETY: its only buffer is gone; null is allowed. A mapping of it ends with it, and pages that it lies in go
        // after this.
        unsafe { self.device.raw().free_memory(self.memory, None) };
    }
}
