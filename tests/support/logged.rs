//! Logged: what a queue's log of signals has of one fence.

use native_fence::{Fence, HwQueue};

/// Values of a fence that were logged since the last look, oldest first; the log has lost none.
pub(crate) fn logged(queue: &HwQueue, fence: &Fence) -> Vec<u64> {
    let log = queue.read_signal_log().unwrap();
    assert_eq!(log.lost, 0);
    let handle = fence.handle().raw();
    let of_fence = log
        .entries
        .iter()
        .filter(|entry| entry.native_fence == handle);
    of_fence.map(|entry| entry.fence_value).collect()
}
