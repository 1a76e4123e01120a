//! Transfers: fills of many parts, the short slices that end between two of them, and what is in memory.

use super::{Bench, LONG};
use native_fence::gpu::NodePolicy;
use native_fence::{Allocation, CommandList, KernelQueue};
use std::time::Duration;

/// Slices that end as soon as they have looked at every queue: a few parts each.
pub(crate) fn short() -> NodePolicy {
    NodePolicy {
        slice_time: Duration::ZERO,
        ..NodePolicy::default()
    }
}

/// Many parts, on any device.
pub(crate) fn large(bench: &Bench) -> Allocation {
    bench.device.create_allocation(2 << 20).unwrap()
}

/// A fill of all of an allocation.
pub(crate) fn fill(target: &Allocation, value: u64) -> CommandList {
    let mut list = CommandList::new();
    list.fill(target, 0..target.bytes(), value);
    list
}

/// All words of an allocation.
pub(crate) fn words(of: &Allocation) -> Vec<u64> {
    let mut words = vec![0; of.bytes() as usize / 8];
    of.read(0, &mut words);
    words
}

/// Flushes a queue, and waits until it has executed all that was recorded.
pub(crate) fn finish(queue: &mut KernelQueue) {
    let value = queue.flush().unwrap();
    queue.progress_fence().wait(value, LONG).unwrap();
}
