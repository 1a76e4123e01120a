//! Descriptor import: memory that another device exported, made a buffer of this one.
//!
//! An opaque descriptor carries nothing that could be checked: device and driver have to be the same,
//! size and memory type those of the allocation. So they travel with the region, and are compared.

use super::external_buffer::ExternalBuffer;
use super::mapped_memory::{OPAQUE, identity};
use super::{Device, ImportError, Refusal};
use crate::shared::{Exported, Region};
use ash::vk;
use rustix::fd::{AsRawFd, IntoRawFd};
use std::fmt;
use std::sync::Arc;

/// What a device exported, as a buffer of another device.
///
/// Drop it after the work that uses its address.
pub struct FdImport {
    buffer: ExternalBuffer,
    bytes: u64,
    // What is imported lives on without it; whoever looks the region up shall find it.
    _region: Arc<Region>,
}

impl FdImport {
    /// Imports a region that a device exported.
    ///
    /// # Errors
    /// The driver cannot import descriptors, the region is another device's or none that was
    /// exported, or memory ran out.
    pub fn new(device: &Arc<Device>, region: &Arc<Region>) -> Result<Self, ImportError> {
        let adapter = device.adapter();
        let exported = region.exported().ok_or(ImportError::NotExported)?;
        if !adapter.features.opaque_fd.import || !adapter.features.buffer_device_address {
            return Err(ImportError::NoDescriptors);
        }
        if exported.identity != identity(adapter) {
            return Err(ImportError::OtherDevice);
        }
        let buffer = import(device, region.len() as u64, &exported)?;
        Ok(Self {
            buffer,
            bytes: exported.bytes,
            _region: Arc::clone(region),
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

fn import(
    device: &Arc<Device>,
    bytes: u64,
    exported: &Exported<'_>,
) -> Result<ExternalBuffer, ImportError> {
    let refused = |(call, code)| ImportError::of(call, code);
    let mut buffer = ExternalBuffer::new(device, bytes, OPAQUE).map_err(refused)?;
    let needs = buffer.needs();
    if needs.bytes > exported.bytes || needs.types & (1 << exported.memory_type) == 0 {
        return Err(ImportError::ImportRefused(Refusal {
            call: "vkGetBufferMemoryRequirements2",
            code: format!("{needs:?}, which is not what was exported"),
        }));
    }
    let descriptor = exported
        .descriptor
        .try_clone_to_owned()
        .map_err(|_| ImportError::NoDescriptorLeft)?;
    let mut origin = vk::ImportMemoryFdInfoKHR::default()
        .handle_type(OPAQUE)
        .fd(descriptor.as_raw_fd());
    let dedicated = exported.dedicated;
    // SAFETY: the descriptor was exported by a device of the same identity, with this size and type,
    // and is good until after the call.
    let result =
        unsafe { buffer.allocate(exported.bytes, exported.memory_type, dedicated, &mut origin) };
    if buffer.has_memory() {
        // Vulkan took it: it is not ours to close.
        let _taken = descriptor.into_raw_fd();
    }
    result.map_err(refused)?;
    Ok(buffer)
}

impl fmt::Debug for FdImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FdImport({} bytes at {:#x})", self.bytes, self.gpu_va())
    }
}
