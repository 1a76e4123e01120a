//! Waits and signals, from the CPU and by packets of the OS's.

use super::published::{bit_field, structure};
use super::{Handle, KmtHandle};
use bytemuck::{Pod, Zeroable};

bit_field! {
    /// `D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS`.
    WaitFromCpuFlags is "D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS" {
        /// One fence that has its value is enough; else all must have theirs.
        WAIT_ANY "WaitAny" @ 0,
    }
}

/// `D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct WaitForSynchronizationObjectFromCpu {
    /// \[in\] The device.
    pub device: KmtHandle,
    /// \[in\] Fences, 1 to 32.
    pub object_count: u32,
    /// \[in\] Address of their handles.
    pub object_handle_array: u64,
    /// \[in\] Address of the values that they are to reach, or greater ones.
    pub fence_value_array: u64,
    /// \[in\] What is told when it ends; 0: the call blocks.
    pub async_event: Handle,
    /// \[in\] How.
    pub flags: WaitFromCpuFlags,
    /// Padding of the published structure.
    pub padding: u32,
}

structure!(WaitForSynchronizationObjectFromCpu is "D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU", 40 bytes {
    device "hDevice" @ 0,
    object_count "ObjectCount" @ 4,
    object_handle_array "ObjectHandleArray" as "const D3DKMT_HANDLE *" @ 8,
    fence_value_array "FenceValueArray" as "const uint64_t *" @ 16,
    async_event "hAsyncEvent" @ 24,
    flags "Flags" @ 32,
});

bit_field! {
    /// `D3DDDICB_SIGNALFLAGS`.
    SignalFlags is "D3DDDICB_SIGNALFLAGS" {
        /// A packet's signal is made when it is submitted.
        SIGNAL_AT_SUBMISSION "SignalAtSubmission" @ 0,
        /// A packet sets an event.
        ENQUEUE_CPU_EVENT "EnqueueCpuEvent" @ 1,
        /// A lower value than the current one is stored (NF-21).
        ALLOW_FENCE_REWIND "AllowFenceRewind" @ 2,
        /// For the system's use.
        INTERNAL0 "DXGK_SIGNAL_FLAG_INTERNAL0" @ 31,
    }
}

/// `D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SignalSynchronizationObjectFromCpu {
    /// \[in\] The device.
    pub device: KmtHandle,
    /// \[in\] Fences, 1 to 32.
    pub object_count: u32,
    /// \[in\] Address of their handles.
    pub object_handle_array: u64,
    /// \[in\] Address of the values to store.
    pub fence_value_array: u64,
    /// \[in\] How.
    pub flags: SignalFlags,
    /// Padding of the published structure.
    pub padding: u32,
}

structure!(SignalSynchronizationObjectFromCpu is "D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU", 32 bytes {
    device "hDevice" @ 0,
    object_count "ObjectCount" @ 4,
    object_handle_array "ObjectHandleArray" as "const D3DKMT_HANDLE *" @ 8,
    fence_value_array "FenceValueArray" as "const uint64_t *" @ 16,
    flags "Flags" @ 24,
});

/// `D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct WaitForSynchronizationObjectFromGpu {
    /// \[in\] The context that waits.
    pub context: KmtHandle,
    /// \[in\] Fences.
    pub object_count: u32,
    /// \[in\] Address of their handles.
    pub object_handle_array: u64,
    /// \[in\] The union's first word: address of the values of monitored fences, or one value.
    pub monitored_fence_value_array: u64,
    /// The rest of the union.
    pub union_rest: [u64; 7],
}

structure!(WaitForSynchronizationObjectFromGpu is "D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU", 80 bytes {
    context "hContext" @ 0,
    object_count "ObjectCount" @ 4,
    object_handle_array "ObjectHandleArray" as "const D3DKMT_HANDLE *" @ 8,
    monitored_fence_value_array "MonitoredFenceValueArray" as "const uint64_t *" @ 16,
});

/// `D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SignalSynchronizationObjectFromGpu {
    /// \[in\] The context that signals.
    pub context: KmtHandle,
    /// \[in\] Fences, 1 to 32.
    pub object_count: u32,
    /// \[in\] Address of their handles.
    pub object_handle_array: u64,
    /// \[in\] The union's first word: address of the values of monitored fences.
    pub monitored_fence_value_array: u64,
    /// The rest of the union.
    pub union_rest: [u64; 7],
}

structure!(SignalSynchronizationObjectFromGpu is "D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU", 80 bytes {
    context "hContext" @ 0,
    object_count "ObjectCount" @ 4,
    object_handle_array "ObjectHandleArray" as "const D3DKMT_HANDLE *" @ 8,
    monitored_fence_value_array "MonitoredFenceValueArray" as "const uint64_t *" @ 16,
});

/// `D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SignalSynchronizationObjectFromGpu2 {
    /// \[in\] Fences.
    pub object_count: u32,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[in\] Address of their handles.
    pub object_handle_array: u64,
    /// \[in\] How.
    pub flags: SignalFlags,
    /// \[in\] Contexts that signal.
    pub broadcast_context_count: u32,
    /// \[in\] Address of their handles.
    pub broadcast_context_array: u64,
    /// \[in\] The union's first word: address of the values of monitored fences, or one value.
    pub monitored_fence_value_array: u64,
    /// The rest of the union.
    pub union_rest: [u64; 7],
}

structure!(SignalSynchronizationObjectFromGpu2 is "D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2", 96 bytes {
    object_count "ObjectCount" @ 0,
    object_handle_array "ObjectHandleArray" as "const D3DKMT_HANDLE *" @ 8,
    flags "Flags" @ 16,
    broadcast_context_count "BroadcastContextCount" @ 20,
    broadcast_context_array "BroadcastContextArray" as "const D3DKMT_HANDLE *" @ 24,
    monitored_fence_value_array "MonitoredFenceValueArray" as "const uint64_t *" @ 32,
});
