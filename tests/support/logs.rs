//! Logs: filling them, and finding them.
#![allow(dead_code, reason = "each test file uses a part")]

use super::bench::{Bench, LONG, RawLog};
use native_fence::abi::LogType;
use native_fence::{CommandList, Fence, HwQueue};

/// One submission, completed on return.
pub(crate) fn run(queue: &mut HwQueue, list: &CommandList) {
    let value = queue.submit(list).unwrap();
    queue.progress_fence().wait(value, LONG).unwrap();
}

/// Signals `values` of `fence`, in one submission that is completed on return.
pub(crate) fn signal_all(
    queue: &mut HwQueue,
    fence: &Fence,
    values: impl IntoIterator<Item = u64>,
) {
    let mut list = CommandList::new();
    for value in values {
        list.signal(fence, value);
    }
    run(queue, &list);
}

/// The log of waits and the log of signals.
pub(crate) fn logs(bench: &Bench, queue: &HwQueue) -> (RawLog, RawLog) {
    let handle = queue.os().handle();
    (
        bench.spy.log(handle, LogType::Waits),
        bench.spy.log(handle, LogType::Signals),
    )
}

/// The monotonic clock in nanoseconds, which is lavapipe's shader clock.
pub(crate) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
