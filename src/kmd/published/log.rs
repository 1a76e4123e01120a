//! Native fence logs: where they lie, and which are committed (`layouts.md` 1.3).

use super::PublishedHandle;
use super::address::address_of;
use crate::abi::wddm::{self, GpuVirtualAddress, Handle, UpdateNativeFenceLogs};
use crate::kmd::{HwQueueHandle, SetNativeFenceLogBuffer};
use bytemuck::Zeroable;

impl SetNativeFenceLogBuffer<'_> {
    /// `DXGKARG_SETNATIVEFENCELOGBUFFER`, where OS and engine have the buffer at these addresses; that of
    /// the system process is the one for the engine of the queue's node.
    #[must_use]
    pub fn published(
        &self,
        cpu_va: u64,
        gpu_va: GpuVirtualAddress,
    ) -> wddm::SetNativeFenceLogBuffer {
        let node = self.hw_queue.node_ordinal;
        wddm::SetNativeFenceLogBuffer {
            hw_queue: self.hw_queue.handle(),
            number_of_entries: self.entries as u32,
            log_buffer_cpu_va: cpu_va,
            log_buffer_gpu_va: gpu_va,
            log_buffer_system_process_gpu_va: self.system_process.map_or(0, |p| p.gpu_va(node).0),
            ..wddm::SetNativeFenceLogBuffer::zeroed()
        }
    }
}

/// Handles of the queues whose logs are committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HwQueueArray(Vec<Handle>);

impl From<&[HwQueueHandle]> for HwQueueArray {
    fn from(hw_queues: &[HwQueueHandle]) -> Self {
        Self(hw_queues.iter().map(|queue| queue.handle()).collect())
    }
}

impl HwQueueArray {
    /// `DXGKARG_UPDATENATIVEFENCELOGS`.
    #[must_use]
    pub fn update_native_fence_logs(&self) -> UpdateNativeFenceLogs {
        UpdateNativeFenceLogs {
            number_of_queues: self.0.len() as u32,
            hw_queue: address_of(&self.0),
            ..UpdateNativeFenceLogs::zeroed()
        }
    }

    /// The array.
    #[must_use]
    pub fn handles(&self) -> &[Handle] {
        &self.0
    }
}
