//! Imported allocation: memory of native queues that a Vulkan device beside them reaches.
//!
//! Kernels and transfers of hardware queues store to an allocation, and the device reads what they stored, or the other way
//! round. What orders the two is a bridge; Vulkan's own words for memory that several devices have imported stop at the
//! handle.

use crate::Allocation;
use crate::sync::Arc;
use crate::vulkan::{self, ImportError, RegionImport};

/// Why a device does not reach an allocation.
#[derive(Debug, thiserror::Error)]
pub enum ImportAllocationError {
    /// Its memory cannot be mapped once more.
    #[error("the allocation's memory cannot be mapped once more: {0}")]
    Map(String),
    /// The device does not take it.
    #[error(transparent)]
    Import(#[from] ImportError),
}

/// See the file's head. It keeps the allocation.
#[derive(Clone, Debug)]
pub struct ImportedAllocation {
    import: Arc<RegionImport>,
    offset: u64,
    allocation: Allocation,
}

impl ImportedAllocation {
    /// Imports the memory that an allocation lies in.
    ///
    /// # Errors
    /// It cannot be mapped, or the driver does not take it: memory of another device that is not exported.
    pub fn new(
        allocation: &Allocation,
        device: &Arc<vulkan::Device>,
    ) -> Result<Self, ImportAllocationError> {
        let (region, offset) = allocation.os().place();
        let mapping = region
            .map()
            .map_err(|error| ImportAllocationError::Map(error.to_string()))?;
        let import = RegionImport::new(device, &mapping)?;
        Ok(Self {
            import: Arc::new(import),
            offset,
            allocation: allocation.clone(),
        })
    }

    /// What was imported, of which the allocation is a part, and the byte at which it begins there.
    #[must_use]
    pub fn region(&self) -> (&Arc<RegionImport>, u64) {
        (&self.import, self.offset)
    }

    /// Where shaders of the device find its first byte.
    #[must_use]
    pub fn gpu_va(&self) -> u64 {
        self.import.gpu_va() + self.offset
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.allocation.bytes()
    }

    /// Whether it is this allocation, by the same handle.
    #[must_use]
    pub fn is_of(&self, allocation: &Allocation) -> bool {
        Arc::ptr_eq(self.allocation.os(), allocation.os())
    }
}
