//! Once: what was under way at a reset takes effect once.

use super::scene::{ENGINE, Trouble, codes, hanging, queue_of, until_reset};
use crate::abi::{RingControl, StallKind};
use crate::conform::bench::{complete, logged};
use crate::conform::checks::preemption::scene::is_full_of;
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG, Wanted, until};
use crate::gpu::NodePolicy;
use crate::os::Features;
use crate::sync::Ordering;
use crate::{CommandList, TdrPolicy};
use anyhow::{Context, bail, ensure};
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[Check::by(
    "TD-22",
    "a packet of an innocent queue that was under way takes effect once",
    once,
)];

/// At whatever moment; and, where engines hang, behind packets that are done and that their engine has saved nothing of.
fn once(ground: &Ground) -> anyhow::Result<()> {
    let mut attempts = 0..20;
    while !at_any_moment(ground)? {
        ensure!(
            attempts.next().is_some(),
            "in 20 attempts an engine that runs did not come to the end of a slice in time"
        );
    }
    let slow = NodePolicy {
        slice_time: LONG,
        idle_window: LONG,
        company_window: LONG,
        crowded_window: LONG,
        ..NodePolicy::default()
    };
    let wanted = Wanted {
        policy: slow,
        ..hanging(1)
    };
    let tdr = TdrPolicy {
        delay: Duration::from_secs(600),
        limit_count: 1_000_000,
        ..TdrPolicy::default()
    };
    let bench = ground.bench_watched(&wanted, Features::default(), tdr);
    ground
        .if_fit(bench)?
        .map_or(Ok(()), |bench| unsaved(&bench))
}

/// Three resets at whatever moment, of an engine that works for nobody else: a queue waits for what it has signalled
/// before, fills, and signals on. False where the engine was so slow to end that the driver took that queue's packet for
/// aborted.
fn at_any_moment(ground: &Ground) -> anyhow::Result<bool> {
    const RESETS: usize = 3;
    let trouble = Trouble::by_losses(ground, 1)?;
    let bench = &trouble.bench;
    let innocent = bench.adapter.create_device();
    let mut queue = queue_of(&innocent, 0)?;
    let (fence, memory) = (
        innocent.create_fence(0)?,
        innocent.create_allocation(1 << 16)?,
    );
    let (mut signalled, mut values) = (0, Vec::new());
    for reset in 1..=RESETS {
        let mut guilty = trouble.guilty(0)?;
        let mut last = 0;
        for submission in 0..20 {
            let mut list = CommandList::new();
            list.wait(&fence, signalled)
                .fill(&memory, 0..memory.bytes(), signalled + 1);
            signalled += 1;
            list.signal(&fence, signalled);
            last = queue.submit(&list)?;
            if submission == 10 {
                trouble.befall(&mut guilty)?;
            }
        }
        until_reset(bench, 0, reset)?;
        if guilty.is_other_aborted.load(Ordering::Acquire) {
            drop(codes(bench, reset)?);
            return Ok(false);
        }
        same(
            "what was under way at a reset",
            &queue.progress_fence().wait(last, LONG),
            &Ok(()),
        )?;
        values.extend(logged(&queue, &fence)?);
        ensure!(
            is_full_of(&memory, 0, signalled),
            "a fill that was under way is not whole"
        );
    }
    let all: Vec<u64> = (1..=signalled).collect();
    same("values logged, each once and in their order", &values, &all)?;
    let seen = (
        fence.current_value(),
        queue.progress_fence().current_value(),
    );
    same(
        "the fence and the progress",
        &seen,
        &(signalled, queue.last_queued_value()),
    )?;
    same("the queue's error", &queue.error(), &None)?;
    same(
        "codes of the records",
        &codes(bench, RESETS)?,
        &vec![ENGINE; RESETS],
    )?;
    Ok(true)
}

/// Passes of a stall that keeps its engine from a reset for longer than that waits.
fn long(bench: &Bench) -> anyhow::Result<u64> {
    let mut queue = bench.queue()?;
    for passes in (8..40).map(|power| 1 << power) {
        let begin = Instant::now();
        complete(
            &mut queue,
            CommandList::new().stall(StallKind::HeedsNothing, passes),
        )?;
        if begin.elapsed() > Duration::from_millis(500) {
            return Ok(passes);
        }
    }
    bail!("no stall takes long")
}

/// A queue has signalled, filled and taken the time, and stands at a wait; its user has changed what it stored. In the same
/// slice, which no engine ends by itself here, another device's queue comes to a packet that ends too late and heeds
/// nothing.
fn unsaved(bench: &Bench) -> anyhow::Result<()> {
    let passes = long(bench)?;
    let (innocent, guilty) = (bench.adapter.create_device(), bench.adapter.create_device());
    let (mut queue, mut hung) = (queue_of(&innocent, 0)?, queue_of(&guilty, 0)?);
    let (fence, gate) = (innocent.create_fence(0)?, innocent.create_fence(0)?);
    let (memory, begin) = (innocent.create_allocation(4096)?, guilty.create_fence(0)?);
    hung.submit(
        CommandList::new()
            .wait(&begin, 1)
            .stall(StallKind::HeedsNothing, passes),
    )?;
    // From here on the engine has all that it needs for the next list.
    complete(&mut queue, CommandList::new().fill(&memory, 0..8, 1))?;
    let written = queue.raw_memory().0.word(RingControl::WRITE_INDEX);
    let done = written.observe() + 3;
    let mut list = CommandList::new();
    list.signal(&fence, 1)
        .fill(&memory, 0..8, 7)
        .timestamp(&memory, 8)
        .wait(&gate, 1);
    let end = queue.submit(&list)?;
    until("a signal, a fill and a timestamp are done", || {
        queue.read_index() >= done
    })?;
    memory.write(0, &[3, 4]);
    fence.rewind(0)?;
    begin.signal(1)?;
    until("the other queue's wait is over", || hung.read_index() > 0)?;
    bench.spy.lose_engine(0);
    until_reset(bench, 0, 1)?;
    gate.signal(1)
        .context("a signal of an innocent device, after the reset")?;
    same(
        "the wait behind what was done",
        &queue.progress_fence().wait(end, LONG),
        &Ok(()),
    )?;
    let mut words = [0; 2];
    memory.read(0, &mut words);
    same(
        "memory that its user wrote after a fill and a timestamp were done there, after the reset",
        &words,
        &[3, 4],
    )?;
    same(
        "a fence that was rewound after it was signalled, after the reset",
        &fence.current_value(),
        &0,
    )?;
    same(
        "signals of it that were logged",
        &logged(&queue, &fence)?,
        &vec![1],
    )?;
    same("the queue's error", &queue.error(), &None)?;
    same("codes of the records", &codes(bench, 1)?, &vec![ENGINE])
}
