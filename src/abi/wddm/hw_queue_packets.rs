//! What a program gives the OS for a kernel-mode queue: commands, waits, signals.

use super::published::structure;
use super::{GpuVirtualAddress, KmtHandle, SignalFlags};
use bytemuck::{Pod, Zeroable};

/// `D3DKMT_SUBMITCOMMANDTOHWQUEUE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SubmitCommandToHwQueue {
    /// \[in\] The queue.
    pub hw_queue: KmtHandle,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[in\] The value of the queue's progress fence when the command is finished.
    pub progress_fence_id: u64,
    /// \[in\] Where the GPU finds the command buffer.
    pub command_buffer: GpuVirtualAddress,
    /// \[in\] Its length in bytes.
    pub command_length: u32,
    /// \[in\] Bytes of private data.
    pub private_driver_data_size: u32,
    /// \[in\] Address of the private data.
    pub private_driver_data: u64,
    /// \[in\] Surfaces that the command writes.
    pub num_primaries: u32,
    /// Padding of the published structure.
    pub padding1: u32,
    /// \[in\] Address of their handles.
    pub written_primaries: u64,
}

structure!(SubmitCommandToHwQueue is "D3DKMT_SUBMITCOMMANDTOHWQUEUE", 56 bytes {
    hw_queue "hHwQueue" @ 0,
    progress_fence_id "HwQueueProgressFenceId" @ 8,
    command_buffer "CommandBuffer" @ 16,
    command_length "CommandLength" @ 24,
    private_driver_data_size "PrivateDriverDataSize" @ 28,
    private_driver_data "pPrivateDriverData" as "const void *" @ 32,
    num_primaries "NumPrimaries" @ 40,
    written_primaries "WrittenPrimaries" as "const D3DKMT_HANDLE *" @ 48,
});

/// `D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SubmitWaitForSyncObjectsToHwQueue {
    /// \[in\] The queue.
    pub hw_queue: KmtHandle,
    /// \[in\] Fences, 1 to 32.
    pub object_count: u32,
    /// \[in\] Address of their handles.
    pub object_handle_array: u64,
    /// \[in\] Address of the values that they are to reach, or greater ones.
    pub fence_value_array: u64,
}

structure!(SubmitWaitForSyncObjectsToHwQueue is "D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE", 24 bytes {
    hw_queue "hHwQueue" @ 0,
    object_count "ObjectCount" @ 4,
    object_handle_array "ObjectHandleArray" as "const D3DKMT_HANDLE *" @ 8,
    fence_value_array "FenceValueArray" as "const uint64_t *" @ 16,
});

/// `D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SubmitSignalSyncObjectsToHwQueue {
    /// \[in\] How.
    pub flags: SignalFlags,
    /// \[in\] Queues that signal.
    pub broadcast_hw_queue_count: u32,
    /// \[in\] Address of their handles.
    pub broadcast_hw_queue_array: u64,
    /// \[in\] Fences, 1 to 32.
    pub object_count: u32,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[in\] Address of their handles.
    pub object_handle_array: u64,
    /// \[in\] Address of the values to store.
    pub fence_value_array: u64,
}

structure!(SubmitSignalSyncObjectsToHwQueue is "D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE", 40 bytes {
    flags "Flags" @ 0,
    broadcast_hw_queue_count "BroadcastHwQueueCount" @ 4,
    broadcast_hw_queue_array "BroadcastHwQueueArray" as "const D3DKMT_HANDLE *" @ 8,
    object_count "ObjectCount" @ 16,
    object_handle_array "ObjectHandleArray" as "const D3DKMT_HANDLE *" @ 24,
    fence_value_array "FenceValueArray" as "const uint64_t *" @ 32,
});
