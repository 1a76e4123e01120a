//! MonitoredValue: what it is while CPU waiters come and go, and which signals it lets interrupt.

use super::kept::Kept;
use crate::conform::bench::{complete, monitored_value};
use crate::conform::raw_fence::RawFence;
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG};
use crate::{CommandList, HwQueue, WaitError};
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "NF-04",
        "MonitoredValue is one below the least value that a CPU waiter waits for",
        least_waiter,
    ),
    Check::by(
        "NF-05",
        "a signal interrupts exactly if its value is above MonitoredValue",
        interrupts,
    ),
];

/// Waits are added, a later one for less; they end by their values, by a time-out and by the closed handle.
fn least_waiter(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let fence = bench.fence(0)?;
    let is = |what, value: u64| same(what, &monitored_value(&fence), &value);
    is("MonitoredValue while nobody waits", u64::MAX)?;
    let ten = bench.waiter(&fence, 10)?;
    is("MonitoredValue with a wait for 10", 9)?;
    let five = bench.waiter(&fence, 5)?;
    is("MonitoredValue with a later, smaller wait, for 5", 4)?;
    same("a wait for 0", &fence.wait(0, LONG), &Ok(()))?;
    is("MonitoredValue after a wait for 0, which never stands", 4)?;
    let timed_out = fence.wait(3, Duration::ZERO);
    same("a wait with no time", &timed_out, &Err(WaitError::TimedOut))?;
    is("MonitoredValue after a wait for 3 that timed out", 4)?;
    fence.signal(5)?;
    same("the wait for 5", &five.join(), &Ok(()))?;
    is("MonitoredValue after the wait for 5", 9)?;
    fence.close();
    let closed = ten.join();
    same(
        "a wait whose handle is closed",
        &closed,
        &Err(WaitError::Closed),
    )?;
    is("MonitoredValue after the handle is closed", u64::MAX)
}

/// Without a waiter any number of signals raises nothing; then the article's pictures with its own numbers; then where the
/// low half of a value begins anew, and where a signed number does.
fn interrupts(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let mut queue = bench.queue()?;
    let fence = bench.fence(0)?;
    let id = fence.object().fence().id();
    let raised = |what, values: &[u64]| same(what, &bench.spy.raised(id).as_slice(), &values);
    let values = || (fence.current_value(), monitored_value(&fence));
    for value in 1..=41 {
        complete(&mut queue, CommandList::new().signal(&fence, value))?;
    }
    bench.until_told(&mut queue)?;
    raised("interrupts of 41 signals that nobody waits for", &[])?;
    let first = bench.waiter(&fence, 42)?;
    let second = bench.waiter(&fence, 43)?;
    same("the values before the signal of 42", &values(), &(41, 41))?;
    complete(&mut queue, CommandList::new().signal(&fence, 42))?;
    same("the wait for 42", &first.join(), &Ok(()))?;
    bench.until_told(&mut queue)?;
    raised("interrupts of the signal of 42", &[42])?;
    same(
        "the values after it, with a wait for 43",
        &values(),
        &(42, 42),
    )?;
    complete(&mut queue, CommandList::new().signal(&fence, 43))?;
    same("the wait for 43", &second.join(), &Ok(()))?;
    bench.until_told(&mut queue)?;
    raised("interrupts of the signals of 42 and 43", &[42, 43])?;
    same("the values when nobody waits", &values(), &(43, u64::MAX))?;
    for edge in [1 << 32, 1 << 63] {
        at_an_edge(&bench, &mut queue, edge)?;
    }
    at_the_end(&bench, &mut queue)?;
    unanswered(&bench, &mut queue)
}

/// Signals of one below, of it, and of five above it, with waits for the last two.
fn at_an_edge(bench: &Bench, queue: &mut HwQueue, edge: u64) -> anyhow::Result<()> {
    let fence = bench.fence(edge - 2)?;
    let id = fence.object().fence().id();
    let far = bench.waiter(&fence, edge + 5)?;
    complete(queue, CommandList::new().signal(&fence, edge - 1))?;
    bench.until_told(queue)?;
    same(
        &format!("interrupts of a signal of one below {edge:#x} with a wait for more than that"),
        &bench.spy.raised(id),
        &Vec::<u64>::new(),
    )?;
    let near = bench.waiter(&fence, edge)?;
    for (value, waiter) in [(edge, near), (edge + 5, far)] {
        complete(queue, CommandList::new().signal(&fence, value))?;
        same(
            &format!("a wait for {value:#x}, signalled by the GPU"),
            &waiter.join(),
            &Ok(()),
        )?;
        bench.until_told(queue)?;
    }
    same(
        &format!("interrupts of signals of {edge:#x} and of five more"),
        &bench.spy.raised(id),
        &vec![edge, edge + 5],
    )
}

/// Nobody waits while all values but the last are signalled, which are no more than the MonitoredValue of nobody.
fn at_the_end(bench: &Bench, queue: &mut HwQueue) -> anyhow::Result<()> {
    let fence = bench.fence(u64::MAX - 3)?;
    let id = fence.object().fence().id();
    let mut list = CommandList::new();
    complete(
        queue,
        list.signal(&fence, u64::MAX - 2)
            .signal(&fence, u64::MAX - 1),
    )?;
    bench.until_told(queue)?;
    same(
        "interrupts of the last values but one, that nobody waits for",
        &bench.spy.raised(id),
        &Vec::<u64>::new(),
    )?;
    let last = bench.waiter(&fence, u64::MAX)?;
    complete(queue, CommandList::new().signal(&fence, u64::MAX))?;
    same(
        "a wait for the last value, signalled by the GPU",
        &last.join(),
        &Ok(()),
    )?;
    bench.until_told(queue)?;
    same(
        "interrupts of the signal of the last value",
        &bench.spy.raised(id),
        &vec![u64::MAX],
    )
}

/// The OS answers no raise of this fence: one alone comes, until MonitoredValue is posted again.
fn unanswered(bench: &Bench, queue: &mut HwQueue) -> anyhow::Result<()> {
    let fence = bench.fence(0)?;
    let raw = RawFence::of(&fence)?;
    let kept = Kept::of(bench, &[&raw]);
    raw.posted(&bench.spy, 4)?;
    bench.until_told(queue)?;
    for value in 1..=30 {
        complete(queue, CommandList::new().signal(&fence, value))?;
    }
    bench.until_told(queue)?;
    same("raises that nobody answers", &kept.raised(&raw), &[5])?;
    raw.posted(&bench.spy, 30)?;
    bench.until_told(queue)?;
    complete(queue, CommandList::new().signal(&fence, 30))?;
    complete(queue, CommandList::new().signal(&fence, 31))?;
    bench.until_told(queue)?;
    same(
        "raises after MonitoredValue was posted again",
        &kept.raised(&raw),
        &[5, 31],
    )
}
