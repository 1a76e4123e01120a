//! Scene: fences that several devices have open, and queues that are stopped at what they may not do.

use crate::abi::FaultCode;
use crate::conform::{Bench, LONG};
use crate::{CommandList, Device, Fence, FenceOptions, HwQueue, WaitError};
use anyhow::bail;

pub(super) const SHARED: FenceOptions = FenceOptions {
    initial: 0,
    memory: crate::FenceMemory::System,
    no_signal: false,
    no_wait: false,
    shared: true,
    intra_gpu: false,
    cross_adapter: None,
    no_signal_max_value_on_tdr: false,
};

/// A fence of the bench's device, and the same opened by another one.
pub(super) fn opened(
    bench: &Bench,
    options: FenceOptions,
) -> anyhow::Result<(Fence, Device, Fence)> {
    let fence = bench.device.create_fence_with(options)?;
    let other = bench.adapter.create_device();
    let opened = other.open_fence(&fence.share()?)?;
    Ok((fence, other, opened))
}

/// Why a queue is stopped at a list, and at which packet.
pub(super) fn fault_of(
    queue: &mut HwQueue,
    list: &CommandList,
) -> anyhow::Result<(FaultCode, u64)> {
    let value = queue.submit(list)?;
    match queue.progress_fence().wait(value, LONG) {
        Err(WaitError::QueueFaulted(fault)) => Ok((fault.code, fault.packet)),
        other => bail!("the queue ends with {other:?}, and should be stopped at a packet"),
    }
}
