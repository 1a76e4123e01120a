//! Own memory: memory that the device itself allocated and no other can use.
//!
//! Nothing is imported: the region is a buffer of the device already, with an address there. Another device, also one
//! that takes its place when it is lost, is refused.

use super::external_buffer::ExternalBuffer;
use super::mapped_memory::MappedMemory;
use super::{Device, ImportError};
use crate::shared::Region;
use ash::vk;
use std::fmt;
use std::sync::Arc;

/// A region as the buffer that it is.
#[derive(Clone)]
pub struct OwnMemory {
    memory: Arc<Region>,
    device: Arc<Device>,
    raw: vk::Buffer,
    gpu_va: u64,
    bytes: u64,
}

impl OwnMemory {
    /// Of a region of memory of this device.
    ///
    /// # Errors
    /// It is another's, or no device's.
    pub fn new(device: &Arc<Device>, region: &Arc<Region>) -> Result<Self, ImportError> {
        let memory = region.device_memory().ok_or(ImportError::NotExported)?;
        let memory: Option<&MappedMemory> = memory.as_any().downcast_ref();
        let memory = memory.ok_or(ImportError::NotExported)?;
        let buffer: &ExternalBuffer = memory.buffer();
        if !Arc::ptr_eq(buffer.device(), device) {
            return Err(ImportError::OneDevice);
        }
        Ok(Self {
            memory: Arc::clone(region),
            device: Arc::clone(device),
            raw: buffer.raw(),
            gpu_va: buffer.gpu_va(),
            bytes: memory.bytes(),
        })
    }

    /// The device that it is of.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// How many bytes there are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn raw(&self) -> vk::Buffer {
        self.raw
    }

    /// Where shaders of the device find the first byte.
    #[must_use]
    pub fn gpu_va(&self) -> u64 {
        self.gpu_va
    }
}

impl fmt::Debug for OwnMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.memory.name();
        write!(
            f,
            "OwnMemory({} bytes of {name} at {:#x})",
            self.bytes, self.gpu_va
        )
    }
}
