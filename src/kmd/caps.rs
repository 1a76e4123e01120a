//! Caps: what the driver reports of its native fences (`DXGK_NATIVE_FENCE_CAPS`; `layouts.md` 1.5).

use crate::gpu::LocalMemory;

/// Members that are true of a Vulkan device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFenceCaps {
    /// Distance in bytes of MonitoredValues that share a page.
    pub monitored_value_stride: u32,
    /// Distance in bytes of CurrentValues that share a page (choice: not in the published caps).
    pub current_value_stride: u32,
    /// Values are mapped a second time for the CMP.
    pub map_to_gpu_system_process: bool,
    /// Least GPU address of a fence mapping.
    pub minimum_address: u64,
    /// Greatest GPU address of a fence mapping.
    pub maximum_address: u64,
    /// 64-bit values: the engine has 64-bit atomics.
    pub has_64_bit_atomics: bool,
    /// Device-local memory that the CPU reaches (choice: not in the published caps).
    pub local_storage: LocalMemory,
}
