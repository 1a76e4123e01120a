//! Hardware queues of both kinds, and what is submitted through the OS (`layouts.md` 1.12 and part 3).

use super::PublishedHandle;
use super::address::address_of;
use crate::abi::PACKET_BYTES;
use crate::abi::wddm::{DriverCreateHwQueue, DriverSubmitCommandToHwQueue, GpuVirtualAddress};
use crate::kmd::{CreateHwQueue, CreateKernelQueue, HwQueueHandle, SubmitCommand};
use bytemuck::Zeroable;

/// `hHwQueue`, which the driver answers: 0 before it has, since the OS has no handle of its own.
fn answered(hw_queue: Option<HwQueueHandle>) -> u64 {
    hw_queue.map_or(0, PublishedHandle::handle)
}

impl CreateHwQueue<'_> {
    /// `DXGKARG_CREATEHWQUEUE`, before the call or with the driver's answer. The progress fence is a native
    /// one, whose values have no addresses here.
    #[must_use]
    pub fn published(&self, hw_queue: Option<HwQueueHandle>) -> DriverCreateHwQueue {
        DriverCreateHwQueue {
            hw_queue: answered(hw_queue),
            flags: self.flags,
            progress_fence: self.progress_fence.handle(),
            ..DriverCreateHwQueue::zeroed()
        }
    }
}

impl CreateKernelQueue<'_> {
    /// `DXGKARG_CREATEHWQUEUE`, before the call or with the driver's answer; the progress fence, which is no
    /// native one, by the addresses that CPU and GPU have it at.
    #[must_use]
    pub fn published(
        &self,
        hw_queue: Option<HwQueueHandle>,
        cpu_va: u64,
        gpu_va: GpuVirtualAddress,
    ) -> DriverCreateHwQueue {
        DriverCreateHwQueue {
            hw_queue: answered(hw_queue),
            flags: self.flags,
            progress_fence: self.progress_fence.handle(),
            progress_fence_cpu_va: cpu_va,
            progress_fence_gpu_va: gpu_va,
            ..DriverCreateHwQueue::zeroed()
        }
    }
}

impl SubmitCommand<'_> {
    /// `DXGKARG_SUBMITCOMMANDTOHWQUEUE`, with the addresses of the progress fence. The packets stand for the
    /// DMA buffer and lie in the OS's memory (choice): their address is that of the private data, and the
    /// buffer has none.
    #[must_use]
    pub fn published(
        &self,
        cpu_va: u64,
        gpu_va: GpuVirtualAddress,
    ) -> DriverSubmitCommandToHwQueue {
        let bytes = (self.packets.len() as u64 * PACKET_BYTES) as u32;
        DriverSubmitCommandToHwQueue {
            hw_queue: self.hw_queue.handle(),
            progress_fence_id: self.progress_value,
            dma_buffer_size: bytes,
            dma_buffer_private_data_size: bytes,
            dma_buffer_private_data: address_of(self.packets),
            flags: self.flags,
            progress_fence_gpu_va: gpu_va,
            progress_fence_cpu_va: cpu_va,
            ..DriverSubmitCommandToHwQueue::zeroed()
        }
    }
}
