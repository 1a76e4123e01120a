//! Loss: an adapter that is lost, removed or stopped, and the fences that it shares with another one.

use super::scene::{cross_adapter, crossing, of_two_kinds};
use super::seen::{Seen, seen};
use crate::abi::FenceId;
use crate::conform::bench::{complete, until_completed, until_stands};
use crate::conform::checks::sleeper::{ended, sleeper};
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG, Waiter, Wanted, until};
use crate::kmd::{Interrupt, NativeFenceSignaled, SignaledFence};
use crate::{
    CommandList, CrossAdapter, DeviceExecutionState, Fence, FenceOptions, HwQueue, WaitError,
};
use anyhow::{Context, ensure};
use std::time::Instant;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "XA-11",
    "the loss of an adapter is that of its devices: what they could signal is lost on the other too",
    losses,
)];

/// How an adapter goes.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Its device is lost, as a recovery has it.
    Lost,
    Removed,
    /// By a bug check: an interrupt named a fence that never was (IN-05).
    Stopped,
}

const ENDS: [End; 3] = [End::Lost, End::Removed, End::Stopped];

impl End {
    fn meets(self, bench: &Bench) {
        match self {
            Self::Lost => {
                let lost = [bench.device.process().id()].into();
                bench
                    .adapter
                    .os()
                    .fail_devices(&lost, DeviceExecutionState::HUNG);
            }
            Self::Removed => bench.adapter.remove(),
            Self::Stopped => {
                let fence = FenceId {
                    slot: 0xFFFF,
                    generation: 1,
                };
                bench
                    .spy
                    .interrupt(Interrupt::NativeFenceSignaled(NativeFenceSignaled {
                        node_ordinal: 0,
                        engine_ordinal: 0,
                        hw_queue: None,
                        fences: Some(vec![SignaledFence {
                            fence,
                            value: 1,
                            hw_queue: None,
                        }]),
                        evaluate_legacy_monitored_fences: false,
                        taken: Instant::now(),
                    }));
            }
        }
        // It is what the story is about.
        let _ = bench.take_records();
    }
}

fn losses(ground: &Ground) -> anyhow::Result<()> {
    let stays = ground.bench()?;
    for end in ENDS {
        let goes = ground.bench()?;
        of_native([&stays, &goes], end).with_context(|| format!("an adapter that is {end:?}"))?;
    }
    let without = || ground.bench_without_native_fences(&Wanted::default());
    let Some(waits) = ground.if_fit(without())? else {
        return Ok(());
    };
    for end in ENDS {
        let goes = without()?;
        signaller_without([&goes, &stays], end)
            .with_context(|| format!("an adapter without native fences that is {end:?}"))?;
        let goes = ground.bench()?;
        waiter_without([&waits, &goes], end)
            .with_context(|| format!("an adapter that is {end:?}, of another without"))?;
    }
    Ok(())
}

/// What it could signal is always signaled on the other: queues pass, CPU waits end with the error, the value stays, and
/// who opens it later learns of it. What it could not, and what was made to go on, goes on.
fn of_native([stays, goes]: [&Bench; 2], end: End) -> anyhow::Result<()> {
    let three = FenceOptions {
        initial: 3,
        ..crossing(CrossAdapter::Propagated)
    };
    let (here, there) = cross_adapter(stays, goes, three)?;
    let keeps = FenceOptions {
        no_signal_max_value_on_tdr: true,
        ..three
    };
    let (kept, _kept_there) = cross_adapter(stays, goes, keeps)?;
    // Of the gone adapter's nobody has these open.
    let (own, alone) = (stays.fence(0)?, stays.device.create_fence_with(three)?);
    let mut busy = goes.queue()?;
    goes.until_told(&mut busy)?;
    let mut waits = waits_for(stays, [&here, &kept, &own, &alone])?.into_iter();
    end.meets(goes);
    let (queue, value, waiter) = waits.next().context("there are four")?;
    until_completed(&queue, value)?;
    same(
        "a CPU wait for what was lost",
        &waiter.join(),
        &Err(WaitError::DeviceLost),
    )?;
    same("its value, the last good one", &here.current_value(), &3)?;
    let always = Seen::AlwaysSignaled(0xFFFF_FFFF);
    ensure!(
        seen(stays, &here).contains(&always),
        "the driver was not told AlwaysSignaled: {:?}",
        seen(stays, &here)
    );
    ensure!(there.signal(11).is_err(), "the lost adapter still signals");
    let shared = here.share();
    drop(here);
    if let Ok(shared) = shared {
        let late = stays.device.open_fence(&shared)?;
        same(
            "a wait of who opens it later",
            &late.wait(10, LONG),
            &Err(WaitError::DeviceLost),
        )?;
    }
    for ((queue, end, waiter), fence) in waits.zip([&kept, &own, &alone]) {
        let stands = queue.progress_fence().current_value() < end && !waiter.is_finished();
        ensure!(
            stands,
            "waits are over that need nothing of the lost adapter"
        );
        fence.signal(10)?;
        until_completed(&queue, end)?;
        same(
            "a CPU wait that needs nothing of it",
            &waiter.join(),
            &Ok(()),
        )?;
        ensure!(
            !seen(stays, fence).contains(&always),
            "a fence is AlwaysSignaled that it could not signal, or that goes on"
        );
    }
    let state = stays.device.execution_state();
    same(
        "the state of the other adapter's device",
        &state,
        &DeviceExecutionState::ACTIVE,
    )?;
    complete(&mut stays.queue()?, CommandList::new().signal(&own, 11)).map(drop)
}

/// For each of these a queue that stands at a wait for 10, with what its progress fence comes to, and a thread that waits
/// for the same.
fn waits_for<const N: usize>(
    bench: &Bench,
    fences: [&Fence; N],
) -> anyhow::Result<Vec<(HwQueue, u64, Waiter)>> {
    let stands_at = |fence| {
        let mut queue = bench.queue()?;
        let end = queue.submit(CommandList::new().wait(fence, 10))?;
        until_stands(bench, &queue, 10)?;
        Ok((queue, end, bench.waiter(fence, 10)?))
    };
    fences.into_iter().map(stands_at).collect()
}

/// The adapter without native fences goes. What it could not signal goes on.
fn signaller_without(benches: [&Bench; 2], end: End) -> anyhow::Result<()> {
    let [without, with] = benches;
    let (monitored, fence) = of_two_kinds(benches, false)?;
    let own = with.fence(0)?;
    let mut waits = waits_for(with, [&fence, &own])?.into_iter();
    end.meets(without);
    let (queue, value, waiter) = waits.next().context("there are two")?;
    same(
        "a CPU wait for what it could signal",
        &waiter.join(),
        &Err(WaitError::DeviceLost),
    )?;
    until_completed(&queue, value)?;
    same(
        "the values",
        &(fence.current_value(), monitored.current_value()),
        &(0, 0),
    )?;
    let (queue, value, waiter) = waits.next().context("there are two")?;
    own.signal(10)?;
    until_completed(&queue, value)?;
    same(
        "a CPU wait that needs nothing of it",
        &waiter.join(),
        &Ok(()),
    )?;
    same(
        "the state of the other's device",
        &with.device.execution_state(),
        &DeviceExecutionState::ACTIVE,
    )
}

/// The adapter with native fences goes. What it could not signal goes on.
fn waiter_without(benches: [&Bench; 2], end: End) -> anyhow::Result<()> {
    let [without, with] = benches;
    let (waited, fence) = of_two_kinds(benches, true)?;
    let own = without.device.create_monitored_fence(0)?;
    let mut queues = Vec::new();
    for fence in [&waited, &own] {
        let passed = without.device.create_monitored_fence(0)?;
        let mut queue = without.device.create_kernel_queue()?;
        queue.wait(fence, 10)?.signal(&passed, 1)?.flush()?;
        queues.push((queue, passed));
    }
    let (thread, others) = (sleeper(&waited, 10)?, sleeper(&own, 10)?);
    end.meets(with);
    same(
        "a CPU wait of the adapter without native fences",
        &ended(thread),
        &Err(WaitError::DeviceLost),
    )?;
    until("its queue passes", || queues[0].1.current_value() == 1)?;
    same("the value", &fence.current_value(), &0)?;
    same(
        "the value that a queue signals which waits for another fence",
        &queues[1].1.current_value(),
        &0,
    )?;
    own.signal(10)?;
    same(
        "a CPU wait that needs nothing of it",
        &ended(others),
        &Ok(()),
    )?;
    until("a queue goes on that needs nothing of it", || {
        queues[1].1.current_value() == 1
    })?;
    same(
        "the state of the other's device",
        &without.device.execution_state(),
        &DeviceExecutionState::ACTIVE,
    )
}
