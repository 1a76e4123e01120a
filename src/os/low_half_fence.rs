//! Low half fence: a fence of 32 bits by itself, of no adapter, for what explores how its value is carried.

use super::monitored_fence::{MonitoredFence, MonitoredFenceParts, Width};
use crate::abi::{CURRENT_VALUE_STRIDE, FenceId, WordGroup};
use crate::kmd::{self, ProcessId};
use crate::shared::{Pool, Providers, RegionError};
use crate::sync::Arc;

/// One of this value.
pub(super) fn low_half_fence(initial: u64) -> Result<Arc<MonitoredFence>, RegionError> {
    let memory = Arc::new(Providers::default());
    let pool = Pool::new(&memory, WordGroup::CurrentValues, CURRENT_VALUE_STRIDE);
    let place = pool.allocate()?;
    let parts = MonitoredFenceParts {
        id: FenceId {
            slot: 0,
            generation: 0,
        },
        process: ProcessId(1),
        ends_on_tdr: true,
        width: Width::LowHalf,
        user: place.read_only()?,
        place,
        ddi: kmd::without_engines(),
        waited_for: Arc::default(),
        cross_side: None,
    };
    Ok(MonitoredFence::new(parts, Some(initial)))
}
