//! AlwaysSignaled: what becomes of a fence when a device is lost that could signal it.

use crate::abi::wddm::DeviceExecutionState;
use crate::conform::bench::{complete, until_completed};
use crate::conform::raw_fence::RawFence;
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::{Bench, Check, Ground, LONG};
use crate::kmd::UpdateCurrentValuesFlags;
use crate::{CommandList, Fence, FenceOptions, HwQueue, WaitError};
use anyhow::ensure;
use std::collections::BTreeSet;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "NF-19",
    "AlwaysSignaled: GPU waits pass, GPU signals store nothing, CurrentValue and its memory stay",
    always_signaled,
)];

const ALWAYS: UpdateCurrentValuesFlags = UpdateCurrentValuesFlags::ALWAYS_SIGNALED;

/// By the call alone; then by the loss of a device that had the fence open beside another one.
fn always_signaled(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let fence = bench.fence(5)?;
    let mut queue = bench.queue()?;
    let end = queue.submit(CommandList::new().wait(&fence, 9))?;
    bench.until_told(&mut bench.queue()?)?;
    RawFence::of(&fence)?.signalled(&bench.spy, 0xFFFF_FFFF, ALWAYS)?;
    until_completed(&queue, end)?;
    same("CurrentValue after the call", &fence.current_value(), &5)?;
    passes(&mut queue, &fence)?;
    by_loss(&bench)
}

/// A wait for more passes, at once; a signal is a no-op.
fn passes(queue: &mut HwQueue, fence: &Fence) -> anyhow::Result<()> {
    drop(queue.read_wait_log()?);
    complete(
        queue,
        CommandList::new()
            .wait(fence, 70)
            .signal(fence, 80)
            .wait(fence, 90),
    )?;
    same(
        "CurrentValue after a GPU signal that is none",
        &fence.current_value(),
        &5,
    )?;
    for entry in queue.read_wait_log()?.entries {
        let what = "the observed time of a wait that passes without queuing, against its end";
        same(what, &entry.observed_ticks, &entry.end_ticks)?;
    }
    Ok(())
}

fn by_loss(bench: &Bench) -> anyhow::Result<()> {
    let (lost, well) = (bench.adapter.create_device(), bench.adapter.create_device());
    let made = lost.create_fence_with(FenceOptions {
        shared: true,
        ..FenceOptions::default()
    })?;
    let opened = well.open_fence(&made.share()?)?;
    let mut queue = well.create_hw_queue()?;
    made.signal(5)?;
    let end = queue.submit(CommandList::new().wait(&opened, 9))?;
    let waiter = bench.waiter(&opened, 9)?;
    bench.until_told(&mut bench.queue()?)?;
    bench.spy.take();
    let devices = BTreeSet::from([lost.process().id()]);
    bench
        .adapter
        .os()
        .fail_devices(&devices, DeviceExecutionState::HUNG);
    let updates = bench.spy.calls().into_iter();
    let updates: Vec<_> = updates
        .filter(|call| matches!(call, Call::UpdateCurrentValuesFromCpu(..)))
        .collect();
    let id = made.object().fence().id();
    let should = Call::UpdateCurrentValuesFromCpu(vec![(id, 0xFFFF_FFFF)], ALWAYS);
    same("calls when a device is lost", &updates, &[should])?;
    same(
        "a CPU wait of another device",
        &waiter.join(),
        &Err(WaitError::DeviceLost),
    )?;
    same(
        "a later one for what is reached",
        &opened.wait(5, LONG),
        &Ok(()),
    )?;
    ensure!(
        opened.wait(6, LONG).is_err(),
        "a wait for more than what is reached is satisfied"
    );
    until_completed(&queue, end)?;
    passes(&mut queue, &opened)?;
    let third = bench.adapter.create_device();
    let late = third.open_fence(&opened.share()?)?;
    passes(&mut third.create_hw_queue()?, &late)
}
