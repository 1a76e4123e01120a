//! Shader caps: what an engine that is a shader has, and what its kernels may have, by what its device offers.

use super::{EngineCaps, GpuVa, KernelCapability};
use crate::vulkan::{AdapterInfo, AdapterKind, Driver, Features};

/// Addresses of a process on the host: the first page is never mapped, and the kernel gives out
/// none above this unless asked.
const HOST_ADDRESSES: (GpuVa, GpuVa) = {
    let bits = if cfg!(target_arch = "x86_64") { 47 } else { 48 };
    (GpuVa(4096), GpuVa((1 << bits) - 1))
};

impl EngineCaps {
    /// Of an engine that is a shader on this adapter, with what it has of its features turned on.
    #[must_use]
    pub fn of(adapter: &AdapterInfo) -> Self {
        let features = &adapter.features;
        Self {
            addresses: match adapter.driver {
                // A buffer's address is that of its memory in this process.
                Driver::Lavapipe | Driver::SwiftShader => HOST_ADDRESSES,
                // Vulkan names no limits but that 0 is no address.
                Driver::Other => (GpuVa(1), GpuVa(u64::MAX)),
            },
            has_64_bit_atomics: features.shader_int64 && features.buffer_int64_atomics,
            local_storage: features.local_memory,
            // Others of its subgroups end before, at which a barrier of the epilogue would stand for ever.
            scheduling_lanes: if adapter.ends_loops()
                || adapter.kind == AdapterKind::Cpu && !cfg!(target_arch = "x86_64")
            {
                features.subgroup_size.max(1)
            } else {
                u32::MAX
            },
        }
    }
}

impl KernelCapability {
    /// Those that kernels may have on this adapter, with what it has of its features turned on.
    #[must_use]
    pub fn all_of(adapter: &AdapterInfo) -> Vec<Self> {
        let all = Self::ALL.into_iter();
        all.filter(|one| one.is_of(&adapter.features)).collect()
    }

    fn is_of(self, has: &Features) -> bool {
        match self {
            Self::Matrix | Self::Shader => true,
            Self::Float16 => has.shader_float16,
            Self::Float64 => has.shader_float64,
            Self::Int64 => has.shader_int64,
            Self::Int64Atomics => has.buffer_int64_atomics,
            Self::Int16 => has.shader_int16,
            Self::Int8 => has.shader_int8,
            Self::GroupNonUniform
            | Self::GroupNonUniformVote
            | Self::GroupNonUniformArithmetic
            | Self::GroupNonUniformBallot
            | Self::GroupNonUniformShuffle
            | Self::GroupNonUniformShuffleRelative
            | Self::GroupNonUniformClustered
            | Self::GroupNonUniformQuad => {
                // Vulkan has its bits in SPIR-V's order.
                let bit = self.number() - Self::GroupNonUniform.number();
                has.subgroup_operations >> bit & 1 == 1
            }
            Self::StorageBuffer16BitAccess => has.storage_16_bit,
            Self::StorageBuffer8BitAccess => has.storage_8_bit,
            Self::ShaderClockKHR => has.shader_device_clock,
            Self::VulkanMemoryModel => has.vulkan_memory_model,
            Self::VulkanMemoryModelDeviceScope => has.memory_model_device_scope,
            Self::PhysicalStorageBufferAddresses => has.buffer_device_address,
        }
    }
}
