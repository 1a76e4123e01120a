//! Host import: memory of the CPU, made a buffer of the device (`VK_EXT_external_memory_host`).
//!
//! Fences that are shared lie in pages that the program allocated itself, outside every device. A
//! device imports its own mapping of them and reaches them by address; losing the device leaves the
//! pages. The mapping must stay until the device has let go of it, so an import owns a part in it.
//!
//! Not every driver takes every page: AMD's kernel driver refuses pages that a file backs.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;
use thiserror::Error;

use super::buffer::USAGE;
use super::{Device, Refusal, validation};

const HOST: vk::ExternalMemoryHandleTypeFlags =
    vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;

/// Why host memory could not be imported.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImportError {
    /// The driver has no such thing.
    #[error("this driver imports no host memory (VK_EXT_external_memory_host is missing)")]
    Unsupported,
    /// Address or length do not fit.
    #[error("imported memory must begin and end at multiples of {alignment} bytes")]
    Misaligned {
        /// What both must be multiples of.
        alignment: u64,
    },
    /// The driver has the extension, and does not take this memory.
    #[error("the driver refuses to import this memory ({0}); allocate it through Vulkan instead")]
    ImportRefused(Refusal),
    /// Memory ran out.
    #[error("the Vulkan driver has no memory left to import a region")]
    OutOfMemory,
}

/// Pages of the CPU that a device may import.
///
/// # Safety
/// The range that [`HostPages::pages`] names is mapped readable and writable for as long as the
/// value lives, is always the same, and holds nothing that Rust thinks it knows: all access to it
/// is through raw pointers or atomics, since a device writes there at any time. (What lies behind
/// the range may be replaced, as long as something is mapped there.)
pub unsafe trait HostPages: Send + Sync + 'static {
    /// First byte and length.
    fn pages(&self) -> (NonNull<u8>, usize);
}

// SAFETY: a mapping of shared memory is readable and writable until it is dropped, never moves, and
// all access to it is through `shared::Word`, which is atomic.
unsafe impl HostPages for crate::shared::Mapping {
    fn pages(&self) -> (NonNull<u8>, usize) {
        (self.start(), self.len())
    }
}

/// Host memory as a buffer of one device.
///
/// Drop it after the work that uses its address: [`super::CommandRecorder::keep`] does that.
pub struct HostImport {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    gpu_va: u64,
    bytes: u64,
    device: Arc<Device>,
    // Last, so that the pages outlive the import.
    _pages: Arc<dyn Any + Send + Sync>,
}

impl HostImport {
    /// Imports all of `pages`, and keeps them mapped until the import is dropped.
    ///
    /// # Errors
    /// The driver cannot import, does not take these pages, or is out of memory.
    pub fn new<P: HostPages>(device: &Arc<Device>, pages: Arc<P>) -> Result<Self, ImportError> {
        let (start, bytes) = pages.pages();
        // SAFETY: the promise of the trait.
        unsafe { Self::from_raw(device, start, bytes, pages) }
    }

    /// Imports `bytes` from `start`.
    ///
    /// # Errors
    /// As for [`HostImport::new`].
    ///
    /// # Safety
    /// As for [`HostPages`], for as long as `keep_alive` lives.
    pub unsafe fn from_raw(
        device: &Arc<Device>,
        start: NonNull<u8>,
        bytes: usize,
        keep_alive: Arc<dyn Any + Send + Sync>,
    ) -> Result<Self, ImportError> {
        let features = &device.adapter().features;
        if !features.host_import || !features.buffer_device_address {
            return Err(ImportError::Unsupported);
        }
        let alignment = features.host_import_alignment.max(1);
        let size = bytes as u64;
        if size == 0
            || !size.is_multiple_of(alignment)
            || !(start.as_ptr() as u64).is_multiple_of(alignment)
        {
            return Err(ImportError::Misaligned { alignment });
        }
        let mut import = Self {
            buffer: create_buffer(device, size)?,
            memory: vk::DeviceMemory::null(),
            gpu_va: 0,
            bytes: size,
            device: Arc::clone(device),
            _pages: keep_alive,
        };
        import.import(start)?;
        Ok(import)
    }

    /// Where shaders of this device find the first byte.
    #[must_use]
    pub fn gpu_va(&self) -> u64 {
        self.gpu_va
    }

    /// How many bytes there are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The device that it is imported into.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(super) fn raw(&self) -> vk::Buffer {
        self.buffer
    }

    fn import(&mut self, start: NonNull<u8>) -> Result<(), ImportError> {
        let raw = self.device.raw();
        // SAFETY: the buffer is of this device.
        let needs = unsafe { raw.get_buffer_memory_requirements(self.buffer) };
        if needs.size > self.bytes {
            let code = format!("the buffer needs {} bytes, not {}", needs.size, self.bytes);
            let call = "vkGetBufferMemoryRequirements";
            return Err(ImportError::ImportRefused(Refusal { call, code }));
        }
        let types = importable_types(&self.device, start)? & needs.memory_type_bits;
        let memory_type = best_type(&self.device, types).ok_or_else(|| {
            let call = "vkGetMemoryHostPointerPropertiesEXT";
            ImportError::ImportRefused(Refusal {
                call,
                code: String::from("no memory type"),
            })
        })?;
        let mut host = vk::ImportMemoryHostPointerInfoEXT::default().handle_type(HOST);
        host.p_host_pointer = start.as_ptr().cast();
        let mut flags =
            vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(self.bytes)
            .memory_type_index(memory_type)
            .push_next(&mut host)
            .push_next(&mut flags);
        // SAFETY: the range is mapped and aligned (promised to and checked by the constructor) and
        // the memory type is one that the driver named for it.
        self.memory = unsafe { raw.allocate_memory(&info, None) }
            .map_err(|e| refused("vkAllocateMemory", e))?;
        // SAFETY: neither is bound yet; size and type were compared with what the buffer needs.
        unsafe { raw.bind_buffer_memory(self.buffer, self.memory, 0) }
            .map_err(|e| refused("vkBindBufferMemory", e))?;
        let info = vk::BufferDeviceAddressInfo::default().buffer(self.buffer);
        // SAFETY: the buffer is bound and was made for this; the feature is on.
        self.gpu_va = unsafe { raw.get_buffer_device_address(&info) };
        Ok(())
    }
}

impl Drop for HostImport {
    fn drop(&mut self) {
        // SAFETY: whoever submits work that uses the address keeps the import with it; see `keep`.
        unsafe { self.device.raw().destroy_buffer(self.buffer, None) };
        // SAFETY: its only buffer is gone; null is allowed.
        unsafe { self.device.raw().free_memory(self.memory, None) };
    }
}

impl fmt::Debug for HostImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostImport({} bytes at {:#x})", self.bytes, self.gpu_va)
    }
}

fn create_buffer(device: &Device, size: u64) -> Result<vk::Buffer, ImportError> {
    let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(HOST);
    let info = vk::BufferCreateInfo::default()
        .size(size)
        .usage(USAGE)
        .push_next(&mut external);
    // SAFETY: the device is alive, and so is all that `info` points to.
    let create = || unsafe { device.raw().create_buffer(&info, None) };
    let made = if device.adapter().features.host_import_admitted {
        create()
    } else {
        // SwiftShader imports host memory though its query denies it, and the layer believes the
        // query.
        validation::expecting(c"VUID-VkBufferCreateInfo-pNext-00920", create)
    };
    made.map_err(|e| refused("vkCreateBuffer", e))
}

fn importable_types(device: &Device, start: NonNull<u8>) -> Result<u32, ImportError> {
    let functions = device.host_memory().ok_or(ImportError::Unsupported)?;
    let mut properties = vk::MemoryHostPointerPropertiesEXT::default();
    let get = functions.fp().get_memory_host_pointer_properties_ext;
    // SAFETY: the extension is on; the pointer is to mapped memory, aligned as the driver asks.
    let result = unsafe {
        get(
            device.raw().handle(),
            HOST,
            start.as_ptr().cast(),
            &raw mut properties,
        )
    };
    result
        .result()
        .map_err(|e| refused("vkGetMemoryHostPointerPropertiesEXT", e))?;
    Ok(properties.memory_type_bits)
}

/// Coherent types only, since nobody flushes; cached ones first, since the CPU polls these pages.
fn best_type(device: &Device, types: u32) -> Option<u32> {
    let worth = |flags: vk::MemoryPropertyFlags| {
        flags
            .contains(vk::MemoryPropertyFlags::HOST_COHERENT)
            .then_some(flags.contains(vk::MemoryPropertyFlags::HOST_CACHED))
    };
    (0_u32..)
        .zip(device.memory_types())
        .filter(|(index, _)| types & (1 << index) != 0)
        .filter_map(|(index, kind)| Some((worth(kind.property_flags)?, index)))
        .max_by_key(|(cached, index)| (*cached, std::cmp::Reverse(*index)))
        .map(|(_, index)| index)
}

fn refused(call: &'static str, code: vk::Result) -> ImportError {
    match code {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => ImportError::OutOfMemory,
        code => ImportError::ImportRefused(Refusal::of(call, code)),
    }
}
