//! Import error: why memory could not be made a buffer of a device.

use super::{OutOfMemory, Refusal};
use ash::vk;
use thiserror::Error;

/// Why memory could not be imported.
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
    /// The driver imports no descriptors.
    #[error("this driver imports no buffer memory as opaque file descriptors")]
    NoDescriptors,
    /// The memory has no descriptor.
    #[error("this memory was not exported by a device")]
    NotExported,
    /// Opaque descriptors are good for the device and the driver alone that made them.
    #[error("this memory was exported by another device or driver")]
    OtherDevice,
    /// Memory that was not exported goes nowhere.
    #[error(
        "this memory is of one device alone, which is another: take system memory (FenceMemory::System), or open the \
         adapter on this device"
    )]
    OneDevice,
    /// The driver has the extension, and does not take this memory.
    #[error("the driver refuses to import this memory ({0}); allocate it through Vulkan instead")]
    ImportRefused(Refusal),
    /// An import takes a descriptor of its own.
    #[error("the program has no file descriptor left for an import: raise its limit (ulimit -n)")]
    NoDescriptorLeft,
    /// Memory ran out.
    #[error("the Vulkan driver has no memory left to import a region ({})", .0.call)]
    OutOfMemory(OutOfMemory),
}

impl ImportError {
    pub(super) fn of(call: &'static str, code: vk::Result) -> Self {
        match code {
            vk::Result::ERROR_OUT_OF_HOST_MEMORY => Self::OutOfMemory(OutOfMemory::in_call(call)),
            code => Self::ImportRefused(Refusal::of(call, code)),
        }
    }
}
