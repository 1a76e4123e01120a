//! Region import: shared memory, made a buffer of one device by whichever way it is.

use super::{Device, FdImport, HostImport, ImportError, OwnMemory};
use crate::shared::Mapping;
use ash::vk;
use std::sync::Arc;

/// A region in a device's address space.
#[derive(Debug)]
pub enum RegionImport {
    /// Pages of the host, through a mapping that is the device's.
    Host(HostImport),
    /// Memory that another device exported.
    Descriptor(FdImport),
    /// Memory of this device, which no other can use.
    Own(OwnMemory),
}

impl RegionImport {
    /// Imports the region behind a mapping; of pages of the host it is this mapping of them.
    ///
    /// # Errors
    /// The driver cannot import it, does not take it, or is out of memory.
    pub fn new(device: &Arc<Device>, mapping: &Arc<Mapping>) -> Result<Self, ImportError> {
        let region = mapping.region();
        Ok(match region.device_memory() {
            None => Self::Host(HostImport::new(device, Arc::clone(mapping))?),
            Some(memory) if memory.exported().is_some() => {
                Self::Descriptor(FdImport::new(device, region)?)
            }
            Some(_) => Self::Own(OwnMemory::new(device, region)?),
        })
    }

    /// The device that it is imported into.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        match self {
            Self::Host(import) => import.device(),
            Self::Descriptor(import) => import.device(),
            Self::Own(own) => own.device(),
        }
    }

    /// How many bytes there are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Host(import) => import.bytes(),
            Self::Descriptor(import) => import.bytes(),
            Self::Own(own) => own.bytes(),
        }
    }

    pub(super) fn raw(&self) -> vk::Buffer {
        match self {
            Self::Host(import) => import.raw(),
            Self::Descriptor(import) => import.raw(),
            Self::Own(own) => own.raw(),
        }
    }

    /// Where shaders of the device find the first byte.
    #[must_use]
    pub fn gpu_va(&self) -> u64 {
        match self {
            Self::Host(import) => import.gpu_va(),
            Self::Descriptor(import) => import.gpu_va(),
            Self::Own(own) => own.gpu_va(),
        }
    }
}
