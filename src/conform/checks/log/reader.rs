//! Log reader: what the OS reads, when, and what it makes of an overrun; and the times that it finds.

use super::scene::{logs, said, signal_all, signals, until_logged, values};
use crate::abi::{LogEntry, LogIndex, LogOperation, LogType};
use crate::conform::bench::{complete, until_completed};
use crate::conform::seen::same;
use crate::conform::spy::{Call, Moment};
use crate::conform::until::until_tried;
use crate::conform::{Bench, Check, Ground, Wanted};
use crate::gpu::NodePolicy;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, HwQueueOptions};
use anyhow::{bail, ensure};
use std::sync::mpsc;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "LG-05",
        "the driver commits the logs of queues with new entries before the OS reads one",
        committed,
    ),
    Check::by(
        "LG-06",
        "an overrun never blocks the GPU, and its entries are lost, never data",
        overrun,
    ),
    Check::by(
        "LG-08",
        "times in a log never go back; zero and repeated ones are accepted",
        times,
    ),
];

/// Inside UpdateNativeFenceLogs an entry is changed: the reader gives what stands there after the call. Queues without news
/// are not named. That there is one barrier for a signal stands in the shader's text (`tests/engine_shader.rs`).
fn committed(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (mut queue, silent) = (bench.queue()?, bench.queue()?);
    let updates = || {
        let named = |call| match call {
            Call::UpdateNativeFenceLogs(queues) => Some(queues),
            _ => None,
        };
        bench
            .spy
            .calls()
            .into_iter()
            .filter_map(named)
            .collect::<Vec<_>>()
    };
    let nothing = queue.read_signal_log()?.entries;
    same("what is read of a new log", &nothing, &Vec::new())?;
    same(
        "UpdateNativeFenceLogs where there is nothing new",
        &updates(),
        &Vec::<Vec<_>>::new(),
    )?;
    let [_, log] = logs(&bench, &queue);
    signal_all(&mut queue, &bench.fence(0)?, 1..=3)?;
    until_logged(&log, 4)?;
    let changed = log.clone();
    bench.spy.once(Moment::InUpdateOfLogs, move || {
        changed.block.word(LogIndex::entry_offset(1)).publish(77);
    });
    let read = queue.read_signal_log()?;
    let what = "values read of entries 1, 2, 3, 1, of which the driver makes the second 77 in UpdateNativeFenceLogs";
    same(what, &values(&read.entries), &vec![1, 77, 3, 1])?;
    same(
        "what is read of a log without news",
        &silent.read_signal_log()?.entries,
        &Vec::new(),
    )?;
    same(
        "UpdateNativeFenceLogs",
        &updates(),
        &vec![vec![queue.os().handle()]],
    )
}

fn overrun(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    at_moments(&bench)?;
    for behind in [1, 60, 80, 200] {
        at_any_moment(&bench, behind)?;
    }
    Ok(())
}

/// Six logs full at once, which nobody reads; then the engine goes on inside UpdateNativeFenceLogs, by less and by more
/// than a log full.
fn at_moments(bench: &Bench) -> anyhow::Result<()> {
    let fence = bench.fence(0)?;
    let mut queue = bench.queue()?;
    let [_, log] = logs(bench, &queue);
    signal_all(&mut queue, &fence, 1..=500)?;
    until_logged(&log, 501)?;
    let read = queue.read_signal_log()?;
    // The place that is written next may be half written, and is not trusted.
    let expected: Vec<_> = (419..=500).chain([1]).collect();
    same(
        "values read after 501 entries",
        &values(&read.entries),
        &expected,
    )?;
    same(
        "entries that are lost or refused",
        &(read.lost, read.refused),
        &(501 - 83, 0),
    )?;
    signal_all(&mut queue, &fence, 501..=502)?;
    until_logged(&log, 504)?;
    let read = queue.read_signal_log()?;
    same(
        "values read after that",
        &(values(&read.entries), read.lost),
        &(vec![501, 502, 2], 0),
    )?;

    for more in [1_u64, 30, 83, 84, 200] {
        let queue = Arc::new(Mutex::new(bench.queue()?));
        let fence = bench.fence(0)?;
        let os = Arc::clone(lock(&queue).os());
        let [_, log] = logs(bench, &lock(&queue));
        signal_all(&mut lock(&queue), &fence, 1..=80)?;
        until_logged(&log, 81)?;
        let (engine, goes_on) = (Arc::clone(&queue), fence.clone());
        let (tell, went) = mpsc::channel();
        bench.spy.once(Moment::InUpdateOfLogs, move || {
            // With the progress.
            let list = signals(&goes_on, 81..80 + more);
            let done = complete(&mut lock(&engine), &list);
            // Who asks has the error.
            let _ = tell.send(done.and_then(|_| until_logged(&log, 81 + more)));
        });
        let read = os.read_log(LogType::Signals)?;
        went.recv()??;
        // Of the 83 that the log keeps beside the next place, those that the engine has not reached.
        let kept = 83_usize.saturating_sub(more as usize).min(81);
        let all: Vec<_> = (1..=80).chain([1]).collect();
        let what = format!("what is read of 81 entries while {more} more are logged");
        same(&what, &values(&read.entries), &all[81 - kept..].to_vec())?;
        same(
            "entries that are lost or refused",
            &(read.lost, read.refused),
            &(81 - kept as u64, 0),
        )?;
        let rest = os.read_log(LogType::Signals)?;
        let told = rest.entries.len() as u64 + rest.lost;
        same("entries that are told of afterwards", &told, &more)?;
    }
    Ok(())
}

/// A reader looks again and again while thousands are logged, each time when so many are new, and so the engine goes on
/// while it copies as well: each entry is given once, in order and whole, or is lost. How often the engine overtakes the
/// reader is chance.
fn at_any_moment(bench: &Bench, behind: u64) -> anyhow::Result<()> {
    const ALL: u64 = 12_000;
    let options = HwQueueOptions {
        ring_capacity: 1 << 14,
        ..HwQueueOptions::default()
    };
    let mut queue = bench.device.create_hw_queue_with(options)?;
    let fence = bench.fence(0)?;
    let [_, log] = logs(bench, &queue);
    let [signalled, progress] = [&fence, queue.progress_fence()].map(|of| of.handle().raw());
    let signal = LogOperation::SignalExecuted as u32;
    let end = queue.submit(&signals(&fence, 1..=ALL))?;
    // Entries that were told of, given or lost, and the time of the last one.
    let (mut told, mut ticks) = (0, 0);
    until_tried("all entries are given or lost", || {
        if log.total() < (told + behind).min(ALL + 1) {
            return Ok(queue.error().is_some());
        }
        let read = queue.read_signal_log()?;
        same("entries that are refused", &read.refused, &0)?;
        told += read.lost;
        for entry in read.entries {
            told += 1;
            let should = if told <= ALL {
                (told, signalled, signal)
            } else {
                (end, progress, signal)
            };
            same(
                &format!("what is given as entry {told}, of {ALL} signals and their progress"),
                &said(&[entry]),
                &vec![should],
            )?;
            // One without a time is accepted (LG-08).
            ensure!(
                entry.end_ticks == 0 || entry.end_ticks >= ticks,
                "entry {told} ended before the one ahead of it: {entry:?}"
            );
            ticks = ticks.max(entry.end_ticks);
        }
        Ok(told > ALL)
    })?;
    same("entries that are given or lost", &told, &(ALL + 1))
}

/// Two queues answer each other over many short slices, where the engine runs slices. Then the times of some entries are
/// made zero and the same.
fn times(ground: &Ground) -> anyhow::Result<()> {
    let short = Duration::from_micros(20);
    let bench = ground.bench_with(&Wanted {
        policy: NodePolicy {
            slice_time: short,
            idle_window: short,
            ..NodePolicy::default()
        },
        ..Wanted::default()
    })?;
    let (mut queue, mut partner) = (bench.queue()?, bench.queue()?);
    let (there, back) = (bench.fence(0)?, bench.fence(0)?);
    let [_, log] = logs(&bench, &queue);
    let (mut waited, mut signalled) = (Vec::new(), Vec::new());
    for round in 0..10_u64 {
        let (mut list, mut answers) = (CommandList::new(), CommandList::new());
        for value in round * 40 + 1..=round * 40 + 40 {
            list.signal(&there, value).wait(&back, value);
            answers.wait(&there, value).signal(&back, value);
        }
        let end = partner.submit(&answers)?;
        complete(&mut queue, &list)?;
        until_completed(&partner, end)?;
        until_logged(&log, 41 * (round + 1))?;
        waited.extend(queue.read_wait_log()?.entries);
        signalled.extend(queue.read_signal_log()?.entries);
    }
    same(
        "waits and signals that were logged",
        &(waited.len(), signalled.len()),
        &(400, 410),
    )?;
    for entries in [&waited, &signalled] {
        // An entry without a time has none that goes back.
        let timed: Vec<_> = entries
            .iter()
            .filter(|entry| entry.end_ticks != 0)
            .collect();
        let mut pairs = timed.windows(2);
        if let Some(back) = pairs.find(|two| two[1].end_ticks < two[0].end_ticks) {
            bail!("times of a log go back: {back:?}");
        }
    }
    let late = waited
        .iter()
        .find(|wait| wait.end_ticks != 0 && wait.observed_ticks > wait.end_ticks);
    ensure!(
        late.is_none(),
        "a wait was observed after its end: {late:?}"
    );

    let mut queue = bench.queue()?;
    let [_, log] = logs(&bench, &queue);
    signal_all(&mut queue, &bench.fence(0)?, 1..=4)?;
    until_logged(&log, 5)?;
    bench.spy.once(Moment::InUpdateOfLogs, move || {
        let end = |slot| {
            log.block
                .word(LogIndex::entry_offset(slot) + LogEntry::END_TICKS)
        };
        end(0).publish(0);
        end(1).publish(0);
        end(3).publish(end(2).peek());
    });
    let read = queue.read_signal_log()?;
    let counts = (read.entries.len(), read.lost, read.refused);
    same(
        "entries with zero and repeated times that are read, lost, refused",
        &counts,
        &(5, 0, 0),
    )?;
    let ends: Vec<_> = read.entries.iter().map(|entry| entry.end_ticks).collect();
    same("the zero times", &&ends[..2], &&[0, 0][..])?;
    same("the repeated one", &ends[3], &ends[2])
}
