//! Device: what an application opens on an adapter.

use super::KmtHandle;
use super::published::structure;
use bytemuck::{Pod, Zeroable};

/// `D3DKMT_CREATEDEVICE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CreateDevice {
    /// \[in\] The adapter; of the published union with a pointer, which is for the kernel's callers.
    pub adapter: KmtHandle,
    /// The other half of that union.
    pub padding: u32,
    /// \[in\] `D3DKMT_CREATEDEVICEFLAGS`; zero.
    pub flags: u32,
    /// \[out\] The device.
    pub device: KmtHandle,
    /// \[out\] For kernel-mode submission of WDDM 1.x, as all that follow: zero.
    pub command_buffer: u64,
    /// \[out\] Zero.
    pub command_buffer_size: u32,
    /// Padding of the published structure.
    pub padding1: u32,
    /// \[out\] Zero.
    pub allocation_list: u64,
    /// \[out\] Zero.
    pub allocation_list_size: u32,
    /// Padding of the published structure.
    pub padding2: u32,
    /// \[out\] Zero.
    pub patch_location_list: u64,
    /// \[out\] Zero.
    pub patch_location_list_size: u32,
    /// Padding of the published structure.
    pub padding3: u32,
}

structure!(CreateDevice is "D3DKMT_CREATEDEVICE", 64 bytes {
    adapter "hAdapter" @ 0,
    flags "Flags" @ 8,
    device "hDevice" @ 12,
    command_buffer "pCommandBuffer" as "void *" @ 16,
    command_buffer_size "CommandBufferSize" @ 24,
    allocation_list "pAllocationList" as "void *" @ 32,
    allocation_list_size "AllocationListSize" @ 40,
    patch_location_list "pPatchLocationList" as "void *" @ 48,
    patch_location_list_size "PatchLocationListSize" @ 56,
});

/// `D3DKMT_DESTROYDEVICE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DestroyDevice {
    /// \[in\] The device.
    pub device: KmtHandle,
}

structure!(DestroyDevice is "D3DKMT_DESTROYDEVICE", 4 bytes { device "hDevice" @ 0 });
