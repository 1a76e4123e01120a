//! Submission through the OS, of queues of the other kind than user-mode ones.

use super::published::{bit_field, structure};
use super::{GpuVirtualAddress, Handle};
use bytemuck::{Pod, Zeroable};

bit_field! {
    /// `DXGK_SUBMITCOMMANDFLAGS`.
    SubmitCommandFlags is "DXGK_SUBMITCOMMANDFLAGS" {
        /// It fills, copies, moves or initialises memory for the OS.
        PAGING "Paging" @ 0,
        /// A present.
        PRESENT "Present" @ 1,
        /// A redirected present.
        REDIRECTED_PRESENT "RedirectedPresent" @ 2,
        /// Nothing is rendered.
        NULL_RENDERING "NullRendering" @ 3,
        /// A flip.
        FLIP "Flip" @ 4,
        /// A flip that is not waited for.
        FLIP_WITH_NO_WAIT "FlipWithNoWait" @ 5,
        /// The engine lets go of the running context.
        CONTEXT_SWITCH "ContextSwitch" @ 6,
        /// It was preempted before.
        RESUBMISSION "Resubmission" @ 7,
    }
}

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
    /// \[in\] What it is.
    pub flags: SubmitCommandFlags,
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
