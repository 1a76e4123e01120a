//! Loss: monitored fences of a device that is lost.

use super::scene::starts_at;
use crate::conform::checks::sleeper::{ended, sleeper};
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, Wanted, until};
use crate::{CommandList, DeviceExecutionState, MonitoredFenceOptions, StallKind, WaitError};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "MF-08",
    "a TDR sets the monitored fences that its device could signal to their maximum",
    maximum,
)];

/// A queue of the device hangs and is recovered from; where nothing hangs, its devices are failed as a recovery does.
fn maximum(ground: &Ground) -> anyhow::Result<()> {
    let hangs = Wanted {
        hangs: true,
        ..Wanted::default()
    };
    if let Some(bench) = ground.bench_if(&hangs)? {
        of_a_loss(&bench, true, |bench| {
            let mut queue = bench.device.create_hw_queue()?;
            queue.submit(CommandList::new().stall(StallKind::HeedsAbort, u64::MAX))?;
            until("the device is in error", || {
                bench.device.execution_state() != DeviceExecutionState::ACTIVE
            })
        })?;
    }
    of_a_loss(&ground.bench()?, false, |bench| {
        let lost = [bench.device.process().id()].into();
        bench
            .adapter
            .os()
            .fail_devices(&lost, DeviceExecutionState::HUNG);
        Ok(())
    })
}

/// Fences that the device could signal, could not, and of which it was not asked; and one of another device.
fn of_a_loss(
    bench: &Bench,
    is_noted: bool,
    lose: impl FnOnce(&Bench) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let fence = starts_at(bench, 3)?;
    let create = |no_signal_max_value_on_tdr, no_signal| {
        bench
            .device
            .create_monitored_fence_with(MonitoredFenceOptions {
                initial: 3,
                no_signal_max_value_on_tdr,
                no_signal,
                ..MonitoredFenceOptions::default()
            })
    };
    let kept = [create(true, false)?, create(false, true)?];
    let well = bench.adapter.create_device();
    let theirs = well.create_monitored_fence(3)?;
    let waiter = sleeper(&fence, u64::MAX)?;
    let kept_waiters = [sleeper(&kept[0], 7)?, sleeper(&kept[1], 7)?];
    let their_waiter = sleeper(&theirs, 7)?;
    lose(bench)?;
    same(
        "a wait for the maximum of a fence of the lost device",
        &ended(waiter),
        &Ok(()),
    )?;
    same("its value", &fence.current_value(), &u64::MAX)?;
    for (waiter, (fence, what)) in kept_waiters
        .into_iter()
        .zip(kept.iter().zip(["NoSignalMaxValueOnTdr", "NoSignal"]))
    {
        let seen = (ended(waiter), fence.current_value());
        let expected = (Err(WaitError::DeviceLost), 3);
        same(
            &format!("a wait for a fence with {what}, and its value"),
            &seen,
            &expected,
        )?;
    }
    ensure!(
        !their_waiter.is_finished(),
        "the wait of another device is over"
    );
    theirs.signal(7)?;
    same("the wait of another device", &ended(their_waiter), &Ok(()))?;
    // Whoever waited is told before the record is noted.
    if is_noted {
        until("the recovery is noted", || {
            !bench.adapter.os().records().is_empty()
        })?;
    }
    let _ = bench.take_records();
    Ok(())
}
