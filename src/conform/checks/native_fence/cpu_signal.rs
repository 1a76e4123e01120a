//! CPU signal: what has happened when it returns, what a notification alone does, and which values may be stored.

use crate::conform::bench::{complete, monitored_value, until_completed};
use crate::conform::listener::Listener;
use crate::conform::raw_fence::RawFence;
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::{Bench, Check, Ground};
use crate::kmd::UpdateCurrentValuesFlags;
use crate::{CommandList, Fence, HwQueue, SignalError};
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "NF-18",
        "NotificationOnly writes nothing, and makes the GPU look again at who waits on the fence",
        notification,
    ),
    Check::by(
        "NF-20",
        "when a CPU signal returns it is stored, has released its waiters and has told the GPU",
        returns,
    ),
    Check::by(
        "NF-21",
        "a lower value is refused from the CPU without AllowFenceRewind, and stored from the GPU",
        backward,
    ),
];

/// Gives an engine that leaves a queue at a wait the time to do so, which MonitoredValue tells: it counts as a waiter.
/// One that never leaves has nothing to be brought back from.
fn let_it_leave(fence: &Fence, value: u64) {
    let deadline = Instant::now() + Duration::from_millis(300);
    while monitored_value(fence) != value - 1 && Instant::now() < deadline {
        std::thread::yield_now();
    }
}

/// Has a queue stand at a wait.
fn stands_at(bench: &Bench, fence: &Fence, value: u64) -> anyhow::Result<(HwQueue, u64)> {
    let mut queue = bench.queue()?;
    let end = queue.submit(CommandList::new().wait(fence, value))?;
    let_it_leave(fence, value);
    Ok((queue, end))
}

/// CurrentValue is stored to memory with no call, then the driver is notified with another value: a queue that waits for
/// what stands there goes on, one that waits for what the call says does not, and memory is as it was.
fn notification(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let fence = bench.fence(0)?;
    let raw = RawFence::of(&fence)?;
    let (reached, end) = stands_at(&bench, &fence, 5)?;
    let (not, last) = stands_at(&bench, &fence, 9)?;
    for (stored, said) in [(6, 5), (7, 9), (8, 0)] {
        raw.store(stored);
        let flags = UpdateCurrentValuesFlags::NOTIFICATION_ONLY;
        raw.signalled(&bench.spy, said, flags)?;
        same(
            "CurrentValue after a notification with another value",
            &raw.current(),
            &stored,
        )?;
        until_completed(&reached, end)?;
    }
    let mut other = bench.queue()?;
    complete(&mut other, CommandList::new().nop())?;
    bench.until_told(&mut other)?;
    same(
        "the progress of a queue whose value was only notified",
        &not.progress_fence().current_value(),
        &(last - 1),
    )?;
    same("CurrentValue afterwards", &raw.current(), &8)?;
    fence.signal(9)?;
    until_completed(&not, last)
}

/// Waiters for 3, 5 and 9 and a queue, when 5 is signalled: what is there on return, and which call the driver had.
fn returns(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let fence = bench.fence(0)?;
    let raw = RawFence::of(&fence)?;
    let waits = [
        Listener::of(&fence, 3)?,
        Listener::of(&fence, 5)?,
        Listener::of(&fence, 9)?,
    ];
    bench.spy.take();
    fence.signal(5)?;
    let values = (raw.current(), fence.current_value());
    same(
        "CurrentValue in memory and for who polls, when the signal of 5 returns",
        &values,
        &(5, 5),
    )?;
    let heard = waits.each_ref().map(Listener::heard);
    same(
        "waits for 3, 5 and 9 that it has released",
        &heard,
        &[1, 1, 0],
    )?;
    same("MonitoredValue of the wait for 9", &raw.monitored(), &8)?;
    let told =
        Call::UpdateCurrentValuesFromCpu(vec![(raw.id, 5)], UpdateCurrentValuesFlags::default());
    same(
        "calls that tell the driver",
        &bench.spy.count(|call| *call == told),
        &1,
    )?;
    for value in 6..=9 {
        let (queue, end) = stands_at(&bench, &fence, value)?;
        same(
            "the progress of a queue at a wait",
            &queue.progress_fence().current_value(),
            &(end - 1),
        )?;
        fence.signal(value)?;
        until_completed(&queue, end)?;
    }
    same("a wait for 9", &waits[2].ended()?, &Ok(()))?;
    same(
        "MonitoredValue when nobody waits",
        &raw.monitored(),
        &u64::MAX,
    )
}

/// A lower value from the CPU, refused and with leave; after each rewind the same GPU signal wakes a waiter again. Then a
/// lower one from the GPU. That the trace tells of it is `tests/recorder.rs`, and that it is counted
/// `tests/backward_value.rs`.
fn backward(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (fence, mut queue) = (bench.fence(7)?, bench.queue()?);
    let wait = Listener::of(&fence, 9)?;
    for value in [6, 0] {
        let refused = Err(SignalError::Backward { current: 7 });
        same(
            "a CPU signal below CurrentValue",
            &fence.signal(value),
            &refused,
        )?;
        let values = (fence.current_value(), monitored_value(&fence));
        same("the values after it", &values, &(7, 8))?;
    }
    same(
        "a signal of the value that stands",
        &fence.signal(7),
        &Ok(()),
    )?;
    same("waits that it released", &wait.heard(), &0)?;
    fence.signal(9)?;
    same("a wait for 9", &wait.ended()?, &Ok(()))?;
    for _ in 0..5 {
        fence.rewind(2)?;
        same("CurrentValue after a rewind", &fence.current_value(), &2)?;
        let wait = Listener::of(&fence, 5)?;
        same(
            "waits for 5 that a rewind to 2 left satisfied",
            &wait.heard(),
            &0,
        )?;
        same(
            "MonitoredValue after a rewind",
            &monitored_value(&fence),
            &4,
        )?;
        complete(&mut queue, CommandList::new().signal(&fence, 5))?;
        same(
            "a wait for a signal that came before a rewind, and after it",
            &wait.ended()?,
            &Ok(()),
        )?;
    }
    complete(
        &mut queue,
        CommandList::new().signal(&fence, 8).signal(&fence, 3),
    )?;
    same(
        "CurrentValue after the GPU has signalled 8 and 3",
        &fence.current_value(),
        &3,
    )
}
