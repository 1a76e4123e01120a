//! Timestamp query: where a queue notes the device's time, in ticks of
//! [`Features::timestamp_period`](super::Features::timestamp_period) nanoseconds.

use super::Device;
use super::refusal::OutOfMemory;
use ash::vk;
use std::sync::Arc;

/// Room for one time. Drop it after the work that notes it.
pub(super) struct TimestampQuery {
    raw: vk::QueryPool,
    device: Arc<Device>,
}

impl TimestampQuery {
    /// # Errors
    /// The driver is out of memory.
    pub(super) fn new(device: &Arc<Device>) -> Result<Self, OutOfMemory> {
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(1);
        // SAFETY: the device is alive.
        let raw = unsafe { device.raw().create_query_pool(&info, None) };
        Ok(Self {
            raw: raw.map_err(OutOfMemory::of("vkCreateQueryPool"))?,
            device: Arc::clone(device),
        })
    }

    pub(super) fn raw(&self) -> vk::QueryPool {
        self.raw
    }
}

impl Drop for TimestampQuery {
    fn drop(&mut self) {
        if self.device.is_kept() {
            return;
        }
        // SAFETY: whoever keeps it has let go, and so no work uses it.
        unsafe { self.device.raw().destroy_query_pool(self.raw, None) };
    }
}
