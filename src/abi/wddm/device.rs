//! Device: what an application opens on an adapter, and the error state that a reset leaves it in.

use super::KmtHandle;
use super::published::{enumeration, structure};
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

enumeration! {
    /// `D3DKMT_DEVICEEXECUTION_STATE`: whether a device runs, or what became of it.
    DeviceExecutionState is "D3DKMT_DEVICEEXECUTION_STATE" {
        /// It runs.
        ACTIVE "D3DKMT_DEVICEEXECUTION_ACTIVE" = 1,
        /// A reset that others caused took its work.
        RESET "D3DKMT_DEVICEEXECUTION_RESET" = 2,
        /// Its own work hung an engine.
        HUNG "D3DKMT_DEVICEEXECUTION_HUNG" = 3,
        /// What it ran on executes nothing any more.
        STOPPED "D3DKMT_DEVICEEXECUTION_STOPPED" = 4,
        /// No memory for its work.
        ERROR_OUTOFMEMORY "D3DKMT_DEVICEEXECUTION_ERROR_OUTOFMEMORY" = 5,
        /// A packet of it faulted.
        ERROR_DMAFAULT "D3DKMT_DEVICEEXECUTION_ERROR_DMAFAULT" = 6,
        /// A packet of it touched what it may not.
        ERROR_DMAPAGEFAULT "D3DKMT_DEVICEEXECUTION_ERROR_DMAPAGEFAULT" = 7,
    }
}

enumeration! {
    /// `D3DKMT_DEVICESTATE_TYPE`: which state of a device is asked for.
    DeviceStateType is "D3DKMT_DEVICESTATE_TYPE" {
        /// Its execution state.
        EXECUTION "D3DKMT_DEVICESTATE_EXECUTION" = 1,
        /// What it presents.
        PRESENT "D3DKMT_DEVICESTATE_PRESENT" = 2,
        /// Whether the desktop was switched.
        RESET "D3DKMT_DEVICESTATE_RESET" = 3,
        /// What the desktop's window manager presents for it.
        PRESENT_DWM "D3DKMT_DEVICESTATE_PRESENT_DWM" = 4,
        /// Its page fault.
        PAGE_FAULT "D3DKMT_DEVICESTATE_PAGE_FAULT" = 5,
        /// Its queue of frames.
        PRESENT_QUEUE "D3DKMT_DEVICESTATE_PRESENT_QUEUE" = 6,
    }
}

/// `D3DKMT_GETDEVICESTATE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct GetDeviceState {
    /// \[in\] The device.
    pub device: KmtHandle,
    /// \[in\] Which state.
    pub state_type: DeviceStateType,
    /// \[out\] The first member of a union of 48 bytes.
    pub execution_state: DeviceExecutionState,
    /// The rest of that union: the other types' states.
    pub other_states: [u32; 11],
}

structure!(GetDeviceState is "D3DKMT_GETDEVICESTATE", 56 bytes {
    device "hDevice" @ 0,
    state_type "StateType" @ 4,
    execution_state "ExecutionState" @ 8,
});
