//! Log types: what is logged at all times, what only while the OS traces verbosely, and who is told of it.

use super::scene::{logs, said, until_logged};
use crate::abi::{LogHeader, LogIndex, LogOperation, LogType, LogTypes};
use crate::conform::bench::{complete, until_completed, until_stands};
use crate::conform::seen::same;
use crate::conform::spy::Moment;
use crate::conform::{Bench, Check, Ground, until};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, Fence, HwQueue, Tracing};

pub(super) const CHECKS: &[Check] = &[Check::by(
    "LG-11",
    "waits and signals are always logged, other things while verbose tracing is on, of which both sides are told",
    types,
)];

fn told(verbose: bool, generation: u32) -> LogTypes {
    LogTypes {
        verbose,
        generation,
    }
}

fn third_logs(bench: &Bench) -> usize {
    let logs = bench.spy.logs();
    logs.iter().filter(|set| set.1 == LogType::Verbose).count()
}

/// Has a queue stand at waits for 1, 2, … of a fence of its own.
fn stall(bench: &Bench, queue: &mut HwQueue, count: u64) -> anyhow::Result<Fence> {
    let fence = bench.fence(0)?;
    for value in 1..=count {
        let end = queue.submit(CommandList::new().wait(&fence, value))?;
        until_stands(bench, queue, value)?;
        fence.signal(value)?;
        until_completed(queue, end)?;
    }
    Ok(fence)
}

fn types(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    always(&bench)?;
    let queue = verbosely(&bench)?;
    telling(&bench, queue)
}

/// Off and on, but not verbosely: two logs, and no word of a third.
fn always(bench: &Bench) -> anyhow::Result<()> {
    let mut queue = bench.queue()?;
    for tracing in [Tracing::Off, Tracing::On] {
        bench.adapter.set_tracing(tracing)?;
        let fence = stall(bench, &mut queue, 2)?;
        complete(&mut queue, CommandList::new().signal(&fence, 3))?;
        let (mut waits, mut signals) = (0, 0);
        until(
            "two waits, a signal and three progress writes are read",
            || {
                waits += queue.read_wait_log().map_or(0, |read| read.entries.len());
                signals += queue.read_signal_log().map_or(0, |read| read.entries.len());
                (waits, signals) == (2, 4)
            },
        )?;
        same(
            "the verbose log, without verbose tracing",
            &queue.read_verbose_log()?.entries,
            &Vec::new(),
        )?;
        same("what the user is told", &queue.log_types(), &told(false, 0))?;
    }
    same(
        "third logs that the driver was given",
        &third_logs(bench),
        &0,
    )
}

/// Verbosely a wait that stands is logged, once, while it stands, and with the observed time of the entry that follows in
/// the log of waits. Switched off, nothing more is written there.
fn verbosely(bench: &Bench) -> anyhow::Result<HwQueue> {
    let mut queue = bench.queue()?;
    bench.adapter.set_tracing(Tracing::Verbose)?;
    same(
        "what the user is told of verbose tracing",
        &queue.log_types(),
        &told(true, 1),
    )?;
    let log = bench.spy.log(queue.os().handle(), LogType::Verbose);
    let kind = log.block.word(LogHeader::LOG_TYPE).peek();
    same(
        "the type of the third log",
        &kind,
        &(LogType::Verbose as u64),
    )?;
    // The first of them is satisfied when the engine comes to it.
    let fence = bench.fence(1)?;
    let end = queue.submit(CommandList::new().wait(&fence, 1).wait(&fence, 2))?;
    until("the wait that stands is logged verbosely", || {
        log.index() != LogIndex::from_word(0)
    })?;
    // The engine looks again.
    let mut other = bench.queue()?;
    complete(&mut other, CommandList::new().signal(&bench.fence(0)?, 1))?;
    fence.signal(2)?;
    until_completed(&queue, end)?;
    let queued = queue.read_verbose_log()?.entries;
    let expected = vec![(2, fence.handle().raw(), LogOperation::WaitQueued as u32)];
    same(
        "what was logged verbosely of a wait that passes and one that stands",
        &said(&queued),
        &expected,
    )?;
    let waits = queue.read_wait_log()?.entries;
    let observed: Vec<_> = waits
        .iter()
        .skip(1)
        .map(|wait| wait.observed_ticks)
        .collect();
    same(
        "the observed time of the wait",
        &observed,
        &vec![queued[0].observed_ticks],
    )?;

    bench.adapter.set_tracing(Tracing::Off)?;
    stall(bench, &mut queue, 3)?;
    same(
        "the index of the third log, taken away",
        &log.index(),
        &LogIndex::from_word(1),
    )?;
    let [waits, _] = logs(bench, &queue);
    until_logged(&waits, 3)?;
    Ok(queue)
}

/// The driver has a third log by the time that the user is told of it, and is without it only after the user was told.
fn telling(bench: &Bench, queue: HwQueue) -> anyhow::Result<()> {
    let queue = Arc::new(queue);
    for generation in [2, 4] {
        let switch = |moment, tracing| -> anyhow::Result<Option<LogTypes>> {
            let seen = Arc::new(Mutex::new(None));
            let (looks, there) = (Arc::clone(&queue), Arc::clone(&seen));
            bench
                .spy
                .once(moment, move || *lock(&there) = Some(looks.log_types()));
            bench.adapter.set_tracing(tracing)?;
            let seen = lock(&seen).take();
            Ok(seen)
        };
        bench.adapter.set_tracing(Tracing::On)?;
        let logs = third_logs(bench);
        let seen = switch(Moment::AfterSetOfLog, Tracing::Verbose)?;
        same(
            "what the user is told while the driver gets the third log",
            &seen,
            &Some(told(false, generation)),
        )?;
        same(
            "third logs that it was given",
            &third_logs(bench),
            &(logs + 1),
        )?;
        same(
            "what the user is told then",
            &queue.log_types(),
            &told(true, generation + 1),
        )?;
        let seen = switch(Moment::BeforeRemovalOfLog, Tracing::On)?;
        same(
            "what the user is told before it is taken away",
            &seen,
            &Some(told(false, generation + 2)),
        )?;
        bench.adapter.set_tracing(Tracing::Off)?;
        same(
            "what the user is told then",
            &queue.log_types(),
            &told(false, generation + 2),
        )?;
    }
    Ok(())
}
