//! Kinds: what a cross-adapter fence is on each adapter.

use super::scene::{of_two_kinds, pass_kept, two_kinds};
use crate::conform::bench::complete;
use crate::conform::checks::sleeper::{ended, sleeper};
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, Wanted, until};
use crate::kmd::DriverOptions;
use crate::os::OsError;
use crate::{CommandList, CreateError, FenceOptions, MonitoredFenceOptions, ShareError};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "XA-08",
    "it is monitored on an adapter without native fences, whatever it was made as, and native on one with",
    kinds,
)];

fn kinds(ground: &Ground) -> anyhow::Result<()> {
    let [without, with] = &two_kinds(ground)?;
    both_ways([without, with])?;
    rewind([without, with])?;
    refused([without, with])?;
    // With stores of 32 bits.
    let narrow = Wanted::with(DriverOptions {
        no_64_bit_atomics: true,
        ..DriverOptions::default()
    });
    both_ways([&ground.bench_without_native_fences(&narrow)?, with])
}

/// One value on both, all of its 64 bits: each adapter waits for the other's and answers with the next.
fn both_ways(benches: [&Bench; 2]) -> anyhow::Result<()> {
    let [without, with] = benches;
    for made_native in [true, false] {
        let (monitored, fence) = of_two_kinds(benches, made_native)?;
        same(
            "whether the monitored side has 64 bits",
            &monitored.is_64_bit(),
            &true,
        )?;
        let mut queue = without.device.create_kernel_queue()?;
        let mut user = with.queue()?;
        let mut list = CommandList::new();
        for turn in 0..4_u64 {
            let at = |part: u64| (1 << 33) * turn + part;
            queue.signal(&monitored, at(1))?.wait(&monitored, at(2))?;
            list.wait(&fence, at(1)).signal(&fence, at(2));
        }
        let end = user.submit(&list)?;
        let done = queue.submit(CommandList::new().nop())?;
        until("both adapters have answered each other four times", || {
            user.progress_fence().current_value() >= end
                && queue.progress_fence().current_value() >= done
        })?;
        let values = (monitored.current_value(), fence.current_value());
        same(
            "the value on both then",
            &values,
            &((3 << 33) + 2, (3 << 33) + 2),
        )?;
    }
    Ok(())
}

/// What was raised before the value was taken back releases nobody who waits after that; who waited before goes on.
fn rewind(benches: [&Bench; 2]) -> anyhow::Result<()> {
    let [_, with] = benches;
    let (monitored, fence) = of_two_kinds(benches, true)?;
    let mut queue = with.queue()?;
    with.until_told(&mut queue)?;
    with.spy.take();
    with.spy.keep_interrupts();
    let before = sleeper(&monitored, 9)?;
    complete(&mut queue, CommandList::new().signal(&fence, 10))?;
    fence.rewind(5)?;
    same(
        "a wait that was satisfied before the rewind",
        &ended(before),
        &Ok(()),
    )?;
    let after = sleeper(&monitored, 6)?;
    pass_kept(with);
    let standing = (
        after.is_finished(),
        monitored.object().fence().standing().len(),
    );
    same(
        "whether a wait since the rewind is over by an older interrupt, and waits that stand",
        &standing,
        &(false, 1),
    )?;
    monitored.signal(6)?;
    same("that wait, signalled", &ended(after), &Ok(()))?;
    same("the value", &fence.current_value(), &6)
}

/// What it is on an adapter is not the user's choice.
fn refused([without, with]: [&Bench; 2]) -> anyhow::Result<()> {
    let fence = with
        .device
        .create_fence_with(super::scene::crossing(crate::CrossAdapter::Propagated))?;
    let shared = fence.share()?;
    let crossing = MonitoredFenceOptions {
        cross_adapter: true,
        ..MonitoredFenceOptions::default()
    };
    let opened = with.device.open_monitored_fence(&shared);
    ensure!(
        matches!(opened, Err(CreateError::Os(OsError::NativeHere))),
        "opened as monitored beside native ones: {opened:?}"
    );
    let made = with.device.create_monitored_fence_with(crossing);
    ensure!(
        matches!(made, Err(CreateError::Os(OsError::NativeHere))),
        "made as monitored beside native ones: {made:?}"
    );
    let opened = without.device.open_fence(&shared);
    let is_refused = matches!(opened, Err(CreateError::Os(OsError::NoNativeFences(_))));
    ensure!(
        is_refused,
        "opened as native where there are none: {opened:?}"
    );
    let plain = without.device.create_monitored_fence(0)?.share().err();
    same(
        "the shared handle of one that is of one adapter",
        &plain,
        &Some(ShareError::Monitored),
    )?;
    let shared = with.device.create_fence_with(FenceOptions {
        shared: true,
        ..FenceOptions::default()
    })?;
    let opened = without.device.open_monitored_fence(&shared.share()?);
    let is_refused = matches!(opened, Err(CreateError::Os(OsError::NotCrossAdapter)));
    ensure!(
        is_refused,
        "one that was not made cross-adapter, opened elsewhere: {opened:?}"
    );
    let made = without.device.create_monitored_fence_with(crossing)?;
    made.close();
    same(
        "the shared handle of a closed one",
        &made.share().err(),
        &Some(ShareError::Closed),
    )
}
