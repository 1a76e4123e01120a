//! Kernel capabilities: what a kernel's SPIR-V may declare that it needs of its device.
//!
//! A module declares by `OpCapability` what it is made of that not every device has, and Vulkan takes it on a device alone
//! that was made with the features which this stands for (*Vulkan Environment for SPIR-V*, "Capabilities"). Without them
//! it is undefined what the module does, and drivers take it without a word.
//!
//! So an engine takes a kernel whose capabilities its device has all. Those that are not in this list no kernel has:
//! nothing is turned on for them, or they are of what kernels have not, as images.

use std::fmt;

/// A capability that kernels may have, by its name in SPIR-V and its number there.
///
/// Two of them are more in SPIR-V than what is looked for: `ShaderClockKHR` is here the device's clock and not a
/// subgroup's, and `Int64Atomics` are those of buffers and not of a workgroup's memory, which nothing is turned on for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of the SPIR-V specification")]
pub enum KernelCapability {
    Matrix = 0,
    Shader = 1,
    Float16 = 9,
    Float64 = 10,
    Int64 = 11,
    Int64Atomics = 12,
    Int16 = 22,
    Int8 = 39,
    GroupNonUniform = 61,
    GroupNonUniformVote = 62,
    GroupNonUniformArithmetic = 63,
    GroupNonUniformBallot = 64,
    GroupNonUniformShuffle = 65,
    GroupNonUniformShuffleRelative = 66,
    GroupNonUniformClustered = 67,
    GroupNonUniformQuad = 68,
    StorageBuffer16BitAccess = 4433,
    StorageBuffer8BitAccess = 4448,
    ShaderClockKHR = 5055,
    VulkanMemoryModel = 5345,
    VulkanMemoryModelDeviceScope = 5346,
    PhysicalStorageBufferAddresses = 5347,
}

impl KernelCapability {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Matrix,
        Self::Shader,
        Self::Float16,
        Self::Float64,
        Self::Int64,
        Self::Int64Atomics,
        Self::Int16,
        Self::Int8,
        Self::GroupNonUniform,
        Self::GroupNonUniformVote,
        Self::GroupNonUniformArithmetic,
        Self::GroupNonUniformBallot,
        Self::GroupNonUniformShuffle,
        Self::GroupNonUniformShuffleRelative,
        Self::GroupNonUniformClustered,
        Self::GroupNonUniformQuad,
        Self::StorageBuffer16BitAccess,
        Self::StorageBuffer8BitAccess,
        Self::ShaderClockKHR,
        Self::VulkanMemoryModel,
        Self::VulkanMemoryModelDeviceScope,
        Self::PhysicalStorageBufferAddresses,
    ];

    /// What `OpCapability` has for it.
    #[must_use]
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The one of a number, if kernels may have it.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.number() == number)
    }

    /// What a Vulkan device has that has it.
    #[must_use]
    pub fn needs(self) -> &'static str {
        match self {
            Self::Matrix | Self::Shader => "Vulkan 1.2",
            Self::Float16 => "shaderFloat16",
            Self::Float64 => "shaderFloat64",
            Self::Int64 => "shaderInt64",
            Self::Int64Atomics => "shaderBufferInt64Atomics",
            Self::Int16 => "shaderInt16",
            Self::Int8 => "shaderInt8",
            Self::GroupNonUniform => "VK_SUBGROUP_FEATURE_BASIC_BIT",
            Self::GroupNonUniformVote => "VK_SUBGROUP_FEATURE_VOTE_BIT",
            Self::GroupNonUniformArithmetic => "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT",
            Self::GroupNonUniformBallot => "VK_SUBGROUP_FEATURE_BALLOT_BIT",
            Self::GroupNonUniformShuffle => "VK_SUBGROUP_FEATURE_SHUFFLE_BIT",
            Self::GroupNonUniformShuffleRelative => "VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT",
            Self::GroupNonUniformClustered => "VK_SUBGROUP_FEATURE_CLUSTERED_BIT",
            Self::GroupNonUniformQuad => "VK_SUBGROUP_FEATURE_QUAD_BIT",
            Self::StorageBuffer16BitAccess => "storageBuffer16BitAccess",
            Self::StorageBuffer8BitAccess => "storageBuffer8BitAccess",
            Self::ShaderClockKHR => "shaderDeviceClock",
            Self::VulkanMemoryModel => "vulkanMemoryModel",
            Self::VulkanMemoryModelDeviceScope => "vulkanMemoryModelDeviceScope",
            Self::PhysicalStorageBufferAddresses => "bufferDeviceAddress",
        }
    }
}

impl fmt::Display for KernelCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_one_capability_or_none() {
        for capability in KernelCapability::ALL {
            assert_eq!(KernelCapability::of(capability.number()), Some(capability));
        }
        assert!(KernelCapability::ALL.is_sorted());
        // Geometry, UniformAndStorageBuffer16BitAccess.
        for number in [2, 4434, u32::MAX] {
            assert_eq!(KernelCapability::of(number), None);
        }
    }
}
