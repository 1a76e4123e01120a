//! Adoption: how engines come to compare with the MonitoredValue that is posted, while they run.
//!
//! The checks post in the OS's stead and keep the raises from it: nothing but the engine makes one.

use super::kept::Kept;
use crate::conform::bench::{complete, until_completed};
use crate::conform::listener::Listener;
use crate::conform::raw_fence::RawFence;
use crate::conform::seen::same;
use crate::conform::spy::{Moment, TdrCall};
use crate::conform::until::until;
use crate::conform::{Bench, Check, Ground, LONG, Wanted};
use crate::kmd::Ddi;
use crate::{CommandList, Fence, StallKind};
use anyhow::{bail, ensure};
use std::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "NF-07",
        "an engine takes over a changed MonitoredValue, and raises iff CurrentValue is above it",
        takes_over,
    ),
    Check::by(
        "NF-08",
        "UpdateMonitoredValues stores, posts, waits for no engine; the OS looks again after it",
        posts,
    ),
];

/// What fences are signalled to before they are monitored: 50, and the last values before the low half begins anew and
/// before a signed number is negative.
const FIFTIES: [u64; 3] = [50, (1 << 32) - 1, (1 << 63) - 1];

/// An engine stands at a wait, having signalled three fences to 50, when their MonitoredValues are posted: 50, 51 and 50.
/// It then signals the first two to 51: that of the first alone is above. Then one is posted below what has been signalled.
/// All of it again where these numbers have 0 in their low halves, or the sign of a number, between them.
/// Not seen here, since it has no moment from outside: the barrier between shadow and CurrentValue, which
/// `tests/engine_shader.rs` reads in the shipped shader.
fn takes_over(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let mut queue = bench.queue()?;
    for fifty in FIFTIES.into_iter().cycle().take(8) {
        let gate = bench.fence(0)?;
        let starts = || bench.fence(fifty - 50);
        let fences = [starts()?, starts()?, starts()?];
        let [above, equal, rests] = &fences;
        let [raw_above, raw_equal, raw_rests] = [
            RawFence::of(above)?,
            RawFence::of(equal)?,
            RawFence::of(rests)?,
        ];
        let kept = Kept::of(&bench, &[&raw_above, &raw_equal, &raw_rests]);
        let mut list = CommandList::new();
        for fence in &fences {
            list.signal(fence, fifty);
        }
        list.wait(&gate, 1);
        list.signal(above, fifty + 1).signal(equal, fifty + 1);
        let value = queue.submit(&list)?;
        until("the engine stands at a wait", || {
            raw_rests.current() == fifty
        })?;
        bench.spy.update_monitored_values(&[
            raw_above.post(fifty),
            raw_equal.post(fifty + 1),
            raw_rests.post(fifty),
        ])?;
        let told = kept.told(&raw_above);
        gate.signal(1)?;
        until_completed(&queue, value)?;
        kept.until_told(
            "a signal of 51 raises, whose MonitoredValue of 50 was posted while the engine stood at a wait before it",
            &raw_above,
            told,
        )?;
        bench.until_told(&mut queue)?;
        let none = Vec::<u64>::new();
        same(
            "raises of a signal of 51 with a MonitoredValue of 51",
            &kept.raised(&raw_equal),
            &none,
        )?;
        same(
            "raises of a MonitoredValue that is posted at CurrentValue",
            &kept.raised(&raw_rests),
            &none,
        )?;
    }
    let [first, others @ ..] = FIFTIES;
    raises_what_is_above(&bench, first)?;
    others
        .into_iter()
        .try_for_each(|fifty| raises_what_is_above(&bench, fifty + 1))
}

/// What an engine that stands at a wait has signalled is above what is posted then: it raises. One that has left by the
/// time of the post need not, since the OS reads the value; so it is tried until it has not.
fn raises_what_is_above(bench: &Bench, fifty: u64) -> anyhow::Result<()> {
    let (mut queue, mut other) = (bench.queue()?, bench.queue()?);
    let deadline = Instant::now() + LONG;
    while Instant::now() < deadline {
        let (gate, fence) = (bench.fence(0)?, bench.fence(fifty - 50)?);
        let raw = RawFence::of(&fence)?;
        let kept = Kept::of(bench, &[&raw]);
        let value = queue.submit(CommandList::new().signal(&fence, fifty).wait(&gate, 1))?;
        until("the engine stands at a wait", || raw.current() == fifty)?;
        raw.posted(&bench.spy, fifty - 1)?;
        bench.until_told(&mut other)?;
        gate.signal(1)?;
        until_completed(&queue, value)?;
        if !kept.raised(&raw).is_empty() || bench.spy.has_collapsed() {
            return Ok(());
        }
    }
    bail!(
        "a MonitoredValue of {} that is posted while an engine stands at a wait, having signalled {fifty}, never raises",
        fifty - 1
    )
}

/// Signals race posts; what comes between a post and the OS's look, and before the post, releases who waits; a post
/// returns while its engine hangs, where the subject's can. That the call and the interrupt's service routine exclude
/// each other is `tests/adoption.rs`: it needs a hand on the engine's thread.
fn posts(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    races(&bench)?;
    looks_again(&bench)?;
    looks_again_after_a_rise(&bench)?;
    if let Some(bench) = ground.bench_if(&Wanted {
        hangs: true,
        ..Wanted::default()
    })? {
        waits_for_nobody(&bench)?;
    }
    Ok(())
}

/// Each signal is of one of three kinds: it can be read when the post returns, or it raises by comparison, or by the
/// adoption that follows.
fn races(bench: &Bench) -> anyhow::Result<()> {
    let (mut queue, fence) = (bench.queue()?, bench.fence(0)?);
    let raw = RawFence::of(&fence)?;
    let kept = Kept::of(bench, &[&raw]);
    for value in 1..=150 {
        let told = kept.told(&raw);
        let end = queue.submit(CommandList::new().signal(&fence, value))?;
        raw.posted(&bench.spy, value - 1)?;
        let is_readable = raw.current() >= value;
        same(
            "MonitoredValue in memory when UpdateMonitoredValues returns",
            &raw.monitored(),
            &(value - 1),
        )?;
        until_completed(&queue, end)?;
        if !is_readable {
            let what = format!(
                "a signal of {value} raises, which could not be read yet when UpdateMonitoredValues had posted {}",
                value - 1
            );
            kept.until_told(&what, &raw, told)?;
        }
        raw.posted(&bench.spy, u64::MAX)?;
    }
    Ok(())
}

fn looks_again(bench: &Bench) -> anyhow::Result<()> {
    for (moment, what) in [
        (
            Moment::BeforeUpdateOfMonitoredValues,
            "before the driver had its post",
        ),
        (
            Moment::AfterUpdateOfMonitoredValues,
            "between the post and the OS's look",
        ),
    ] {
        let fence = bench.fence(0)?;
        let raw = RawFence::of(&fence)?;
        bench.spy.hook(move |at, updates| {
            if at == moment && updates.contains(&(raw.id, 4)) {
                raw.store(5);
            }
        });
        let wait = Listener::of(&fence, 5)?;
        bench.spy.unhook();
        ensure!(
            wait.heard() == 1,
            "a wait for a value that was stored, without a raise, {what}, is not released: the OS does not read \
             CurrentValue after UpdateMonitoredValues"
        );
    }
    Ok(())
}

/// The same where the post raises MonitoredValue, since who waited for the least value is released: of a fence that only
/// went forward, and of one that was rewound.
fn looks_again_after_a_rise(bench: &Bench) -> anyhow::Result<()> {
    let [forward, rewound] = [bench.fence(0)?, bench.fence(20)?];
    rewound.rewind(0)?;
    looks_again_at(bench, &forward, "a fence that never went back")?;
    looks_again_at(bench, &rewound, "a fence that was rewound")
}

fn looks_again_at(bench: &Bench, fence: &Fence, what: &str) -> anyhow::Result<()> {
    let raw = RawFence::of(fence)?;
    let (least, next) = (Listener::of(fence, 5)?, Listener::of(fence, 10)?);
    bench.spy.hook(move |at, updates| {
        if at == Moment::AfterUpdateOfMonitoredValues && updates.contains(&(raw.id, 9)) {
            raw.store(10);
        }
    });
    fence.signal(5)?;
    bench.spy.unhook();
    same("the wait for 5, after a signal of it", &least.heard(), &1)?;
    ensure!(
        next.heard() == 1,
        "of {what}: a wait for 10, which was stored, without a raise, between the post of 9 and the OS's look, is not \
         released: the OS does not read CurrentValue after it has raised MonitoredValue"
    );
    Ok(())
}

fn waits_for_nobody(bench: &Bench) -> anyhow::Result<()> {
    let (mut queue, fence, begun) = (bench.queue()?, bench.fence(0)?, bench.fence(0)?);
    let raw = RawFence::of(&fence)?;
    complete(&mut queue, CommandList::new().signal(&fence, 1))?;
    let mut list = CommandList::new();
    queue.submit(
        list.signal(&begun, 1)
            .stall(StallKind::HeedsNothing, u64::MAX),
    )?;
    until("the engine has come to what hangs it", || {
        begun.current_value() == 1
    })?;
    for value in 2..200 {
        raw.posted(&bench.spy, value)?;
        same(
            "MonitoredValue while the engine hangs",
            &raw.monitored(),
            &value,
        )?;
    }
    let resets = bench.spy.tdr_calls().into_iter();
    let resets =
        resets.filter(|call| matches!(call, TdrCall::ResetEngine(_) | TdrCall::ResetFromTimeout));
    same(
        "resets before UpdateMonitoredValues returned, whose engine hangs",
        &resets.count(),
        &0,
    )?;
    until("the hang is noted", || {
        !bench.adapter.os().records().is_empty()
    })?;
    drop(bench.take_records());
    Ok(())
}
