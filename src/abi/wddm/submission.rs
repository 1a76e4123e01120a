//! Submission through the OS, of queues of the other kind than user-mode ones.

use super::published::structure;
use super::{GpuVirtualAddress, Handle};
use bytemuck::{Pod, Zeroable};

/// `DXGKARG_SUBMITCOMMANDTOHWQUEUE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DriverSubmitCommandToHwQueue {
    /// \[in\] The driver's handle of the queue.
    pub hw_queue: Handle,
    /// \[in\] The value that the progress fence gets.
    pub progress_fence_id: u64,
    /// \[in\] Where the GPU finds the packet.
    pub dma_buffer_virtual_address: GpuVirtualAddress,
    /// \[in\] Its size in bytes.
    pub dma_buffer_size: u32,
    /// \[in\] Bytes of private data.
    pub dma_buffer_private_data_size: u32,
    /// \[in\] Address of the private data.
    pub dma_buffer_private_data: u64,
    /// \[in\] `DXGK_SUBMITCOMMANDFLAGS`.
    pub flags: u32,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[in\] Where the GPU writes the progress fence.
    pub progress_fence_gpu_va: GpuVirtualAddress,
    /// \[in\] Where the CPU reads it.
    pub progress_fence_cpu_va: u64,
}

structure!(DriverSubmitCommandToHwQueue is "DXGKARG_SUBMITCOMMANDTOHWQUEUE", 64 bytes {
    hw_queue "hHwQueue" @ 0,
    progress_fence_id "HwQueueProgressFenceId" @ 8,
    dma_buffer_virtual_address "DmaBufferVirtualAddress" @ 16,
    dma_buffer_size "DmaBufferSize" @ 24,
    dma_buffer_private_data_size "DmaBufferPrivateDataSize" @ 28,
    dma_buffer_private_data "pDmaBufferPrivateData" @ 32,
    flags "Flags" @ 40,
    progress_fence_gpu_va "HwQueueProgressFenceGpuVa" @ 48,
    progress_fence_cpu_va "HwQueueProgressFenceCpuVa" @ 56,
});
