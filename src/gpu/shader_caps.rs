//! Shader caps: what an engine that is a shader has, by what its device offers.

use super::{EngineCaps, GpuVa};
use crate::vulkan::{AdapterInfo, AdapterKind, Driver};

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
