//! Scene: queues that log, and what stands in their logs.

use crate::abi::{LogEntry, LogType};
use crate::conform::bench::{Bench, complete};
use crate::conform::spy::RawLog;
use crate::conform::until;
use crate::{CommandList, Fence, HwQueue};
use anyhow::Context;

/// The log of waits and the log of signals, of which neither was moved.
pub(super) fn logs(bench: &Bench, queue: &HwQueue) -> [RawLog; 2] {
    let handle = queue.os().handle();
    [LogType::Waits, LogType::Signals].map(|kind| bench.spy.log(handle, kind))
}

/// A list that signals values of a fence.
pub(super) fn signals(fence: &Fence, values: impl IntoIterator<Item = u64>) -> CommandList {
    let mut list = CommandList::new();
    for value in values {
        list.signal(fence, value);
    }
    list
}

/// Has a queue signal values of a fence, in one submission that is completed on return; the entry of its progress may
/// come later.
pub(super) fn signal_all(
    queue: &mut HwQueue,
    fence: &Fence,
    values: impl IntoIterator<Item = u64>,
) -> anyhow::Result<()> {
    complete(queue, &signals(fence, values))?;
    Ok(())
}

/// Waits until a log of the usual size has had so many entries.
pub(super) fn until_logged(log: &RawLog, entries: u64) -> anyhow::Result<()> {
    let logged = until("the entries are logged", || log.total() >= entries);
    logged.with_context(|| {
        format!(
            "the index word says {:?}, of {entries} entries",
            log.index()
        )
    })
}

/// What entries say beside their times: value, handle, operation.
pub(super) fn said(entries: &[LogEntry]) -> Vec<(u64, u32, u32)> {
    let said = |entry: &LogEntry| (entry.fence_value, entry.native_fence, entry.operation);
    entries.iter().map(said).collect()
}

/// Their values.
pub(super) fn values(entries: &[LogEntry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.fence_value).collect()
}
