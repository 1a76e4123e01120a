//! Host import: memory of the CPU, made a buffer of the device (`VK_EXT_external_memory_host`).
//!
//! Fences that are shared lie in pages that the program allocated itself, outside every device. A
//! device imports its own mapping of them and reaches them by address; losing the device leaves the
//! pages. The mapping must stay until the device has let go of it, so an import's buffer owns a part in it.
//!
//! Not every driver takes every page: AMD's kernel driver refuses pages that a file backs.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;

use super::external_buffer::ExternalBuffer;
use super::{Device, ImportError, Refusal, validation};

const HOST: vk::ExternalMemoryHandleTypeFlags =
    vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;

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
    buffer: ExternalBuffer,
    bytes: u64,
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
        let mut buffer = create_buffer(device, size)?;
        buffer.keep(keep_alive);
        // SAFETY: the caller's promise; aligned as above.
        unsafe { import(&mut buffer, start, size) }?;
        Ok(Self {
            buffer,
            bytes: size,
        })
    }

    /// Where shaders of this device find the first byte.
    #[must_use]
    pub fn gpu_va(&self) -> u64 {
        self.buffer.gpu_va()
    }

    /// How many bytes there are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The device that it is imported into.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        self.buffer.device()
    }

    pub(super) fn raw(&self) -> vk::Buffer {
        self.buffer.raw()
    }
}

/// Gives the buffer `bytes` bytes from `start`.
///
/// # Safety
/// The range is mapped and aligned as the driver asks, for as long as the buffer lives.
unsafe fn import(
    buffer: &mut ExternalBuffer,
    start: NonNull<u8>,
    bytes: u64,
) -> Result<(), ImportError> {
    let device = Arc::clone(buffer.device());
    let needs = buffer.needs();
    if needs.bytes > bytes {
        let code = format!("the buffer needs {} bytes, not {bytes}", needs.bytes);
        let call = "vkGetBufferMemoryRequirements2";
        return Err(ImportError::ImportRefused(Refusal { call, code }));
    }
    let types = importable_types(&device, start)? & needs.types;
    let memory_type = best_type(&device, types).ok_or_else(|| {
        let call = "vkGetMemoryHostPointerPropertiesEXT";
        ImportError::ImportRefused(Refusal {
            call,
            code: String::from("no memory type"),
        })
    })?;
    let mut host = vk::ImportMemoryHostPointerInfoEXT::default().handle_type(HOST);
    host.p_host_pointer = start.as_ptr().cast();
    // SAFETY: the range is mapped and aligned (the caller's promise) and the memory type is one that
    // the driver named for it.
    unsafe { buffer.allocate(bytes, memory_type, false, &mut host) }
        .map_err(|(call, code)| ImportError::of(call, code))
}

impl fmt::Debug for HostImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "HostImport({} bytes at {:#x})",
            self.bytes,
            self.gpu_va()
        )
    }
}

fn create_buffer(device: &Arc<Device>, size: u64) -> Result<ExternalBuffer, ImportError> {
    let create = || ExternalBuffer::new(device, size, HOST);
    let made = if device.adapter().features.host_import_admitted {
        create()
    } else {
        // SwiftShader imports host memory though its query denies it, and the layer believes the
        // query.
        validation::expecting(c"VUID-VkBufferCreateInfo-pNext-00920", create)
    };
    made.map_err(|(call, code)| ImportError::of(call, code))
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
        .map_err(|e| ImportError::of("vkGetMemoryHostPointerPropertiesEXT", e))?;
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
