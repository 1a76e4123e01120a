//! Doorbell: engines of two adapters that wake each other.

use super::scene::{cross_adapter, crossing};
use super::seen::{Seen, seen};
use crate::abi::NO_CPU_WAITER;
use crate::conform::bench::{complete, monitored_value, until_completed};
use crate::conform::seen::same;
use crate::conform::until::until_tried;
use crate::conform::{Bench, Check, Ground, Unfit, Wanted, until};
use crate::gpu::NodePolicy;
use crate::os::OsError;
use crate::{CommandList, CreateError, CrossAdapter, Fence};
use anyhow::ensure;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "XA-10",
    "a doorbell lets a signal on one adapter wake a wait on the other without the CPU",
    doorbell,
)];

fn with_doorbell([one, other]: &[Bench; 2]) -> anyhow::Result<(Fence, Fence)> {
    let made = cross_adapter(one, other, crossing(CrossAdapter::Doorbell));
    made.map_err(|error| match error.downcast_ref::<CreateError>() {
        // Engines that do not ring, or do not hear.
        Some(CreateError::Os(why @ (OsError::Driver(_) | OsError::DoorbellSeenLate))) => {
            Unfit(format!("no fence with a doorbell can be made: {why}")).into()
        }
        _ => error,
    })
}

/// On engines that stay for a while at waits which are rung for. That only queues are looked at which wait for the fence that was
/// rung for needs a count of what an engine reads (`tests/cross_doorbell.rs`).
fn doorbell(ground: &Ground) -> anyhow::Result<()> {
    let stays = Wanted {
        policy: NodePolicy {
            slice_time: Duration::from_secs(1),
            doorbell_window: Duration::from_millis(200),
            ..NodePolicy::default()
        },
        ..Wanted::default()
    };
    // Engines that ring may be made for it, which takes its time: one pair is enough.
    let benches = [ground.bench_with(&stays)?, ground.bench_with(&stays)?];
    without_the_cpu(&benches)?;
    unwatched(&benches)?;
    watched(&benches)?;
    by_cpu(&benches)?;
    match ground.if_fit(ground.bench_without_native_fences(&Wanted::default()))? {
        Some(without) => refused([&without, &benches[0]]),
        None => Ok(()),
    }
}

/// Two queues hand two fences to and fro: there is a time at which neither driver hears anything of it, by no interrupt and
/// no call. A machine without two cores to spare makes for others, after which it is tried again.
fn without_the_cpu(benches: &[Bench; 2]) -> anyhow::Result<()> {
    const ROUNDS: u64 = 4;
    let [one, other] = benches;
    let fences = [with_doorbell(benches)?, with_doorbell(benches)?];
    let [(there, there_too), (back, back_too)] = &fences;
    let (mut first, mut second) = (one.queue()?, other.queue()?);
    let mut value = 0;
    let hand_over = || -> anyhow::Result<bool> {
        // Both run, and stand at nothing.
        value += 1;
        let awake = second.submit(CommandList::new().wait(there_too, value))?;
        complete(&mut first, CommandList::new().signal(there, value))?;
        until_completed(&second, awake)?;
        one.spy.take();
        other.spy.take();
        let (mut list, mut answers) = (CommandList::new(), CommandList::new());
        for _ in 0..ROUNDS {
            value += 1;
            list.signal(there, value).wait(back, value);
            answers.wait(there_too, value).signal(back_too, value);
        }
        let answered = second.submit(&answers)?;
        let ended = first.submit(&list)?;
        until_completed(&first, ended)?;
        until_completed(&second, answered)?;
        Ok(fences
            .iter()
            .all(|(here, there)| seen(one, here).is_empty() && seen(other, there).is_empty()))
    };
    let what = "four hand-overs to and fro between two adapters of which no driver hears anything";
    until_tried(what, hand_over)
}

/// Signals of both adapters that nobody waits for interrupt nobody, and MonitoredValue says that nobody waits.
fn unwatched(benches: &[Bench; 2]) -> anyhow::Result<()> {
    let [one, other] = benches;
    let (here, there) = with_doorbell(benches)?;
    let (mut first, mut second) = (one.queue()?, other.queue()?);
    one.spy.take();
    other.spy.take();
    for value in 1..=20 {
        complete(&mut first, CommandList::new().signal(&here, 2 * value))?;
        complete(
            &mut second,
            CommandList::new().signal(&there, 2 * value + 1),
        )?;
    }
    one.until_told(&mut first)?;
    other.until_told(&mut second)?;
    same(
        "the value on both",
        &(here.current_value(), there.current_value()),
        &(41, 41),
    )?;
    let monitored = (monitored_value(&here), monitored_value(&there));
    same(
        "MonitoredValues while nobody waits",
        &monitored,
        &(NO_CPU_WAITER, NO_CPU_WAITER),
    )?;
    // That nobody waits may be said again.
    let told = [(one, &here), (other, &there)].map(|(bench, fence)| {
        let mut told = seen(bench, fence);
        told.retain(|seen| *seen != Seen::Posted(NO_CPU_WAITER));
        told
    });
    same(
        "what drivers have seen of signals that nobody waits for",
        &told,
        &[Vec::new(), Vec::new()],
    )
}

/// MonitoredValue on each adapter is what waits on either ask for: a signal on the one interrupts for who waits on a CPU of
/// the other, and not before.
fn watched(benches: &[Bench; 2]) -> anyhow::Result<()> {
    let [one, other] = benches;
    let (here, there) = with_doorbell(benches)?;
    let mut queue = one.queue()?;
    let waiter = other.waiter(&there, 5)?;
    until("MonitoredValue on the other adapter is 4", || {
        monitored_value(&here) == 4
    })?;
    same(
        "MonitoredValue on the waiter's",
        &monitored_value(&there),
        &4,
    )?;
    complete(&mut queue, CommandList::new().signal(&here, 4))?;
    one.until_told(&mut queue)?;
    ensure!(
        !seen(one, &here).contains(&Seen::Raised(4)),
        "a signal of 4 interrupts for a wait for 5"
    );
    complete(&mut queue, CommandList::new().signal(&here, 5))?;
    same("a wait of the other adapter's CPU", &waiter.join(), &Ok(()))?;
    until("MonitoredValues say that nobody waits", || {
        [&here, &there]
            .iter()
            .all(|fence| monitored_value(fence) == NO_CPU_WAITER)
    })?;
    until("the signal of 5 is raised", || {
        seen(one, &here).contains(&Seen::Raised(5))
    })?;
    not_called(other, &there)
}

/// What the CPU stores rings as well.
fn by_cpu(benches: &[Bench; 2]) -> anyhow::Result<()> {
    let [_, other] = benches;
    let (here, there) = with_doorbell(benches)?;
    let mut queue = other.queue()?;
    for value in 1..=10 {
        let end = queue.submit(CommandList::new().wait(&there, value))?;
        here.signal(value)?;
        until_completed(&queue, end)?;
    }
    not_called(other, &there)
}

/// Nobody has the waiting driver look, or store.
fn not_called(bench: &Bench, fence: &Fence) -> anyhow::Result<()> {
    let called = seen(bench, fence)
        .into_iter()
        .find(|seen| matches!(seen, Seen::Notified(_) | Seen::Stored(_)));
    same(
        "a call of UpdateCurrentValuesFromCpu on the waiting adapter",
        &called,
        &None,
    )
}

/// Both must have native fences.
fn refused([without, with]: [&Bench; 2]) -> anyhow::Result<()> {
    let options = crossing(CrossAdapter::Doorbell);
    let fence = with.device.create_fence_with(options)?;
    let shared = fence.share()?;
    let refused = [
        without.device.create_fence_with(options).err(),
        without.device.open_fence(&shared).err(),
        without.device.open_monitored_fence(&shared).err(),
    ];
    for refused in refused {
        let is_refused = matches!(
            refused,
            Some(CreateError::Os(OsError::DoorbellNeedsNativeFences))
        );
        ensure!(
            is_refused,
            "a fence with a doorbell on an adapter without native fences: {refused:?}"
        );
    }
    Ok(())
}
