//! Fences: several of them at a time.

use super::{Bench, complete, monitored_value};
use native_fence::{CommandList, Fence, HwQueue};

/// Fences that start at 0.
pub(crate) fn fences(bench: &Bench, count: usize) -> Vec<Fence> {
    (0..count).map(|_| bench.fence(0)).collect()
}

/// Each fence with its value.
pub(crate) fn each<'a>(fences: &'a [Fence], values: &[u64]) -> Vec<(&'a Fence, u64)> {
    fences.iter().zip(values.iter().copied()).collect()
}

/// MonitoredValue of each, as it stands in memory.
pub(crate) fn monitored_values(fences: &[Fence]) -> Vec<u64> {
    fences.iter().map(monitored_value).collect()
}

/// Whether no wait stands in any list.
pub(crate) fn nobody_waits(fences: &[Fence]) -> bool {
    fences
        .iter()
        .all(|fence| monitored_value(fence) == u64::MAX)
}

/// A signal by the GPU; on return the OS has been told all of it.
pub(crate) fn signal(bench: &Bench, queue: &mut HwQueue, fence: &Fence, value: u64) {
    complete(queue, CommandList::new().signal(fence, value));
    bench.until_told();
}
