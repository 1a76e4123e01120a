//! Log buffer: which logs a queue has, and what the engine writes there.

use super::scene::{logs, said, signal_all, signals, until_logged};
use crate::abi::{LOG_BUFFER_ENTRIES, LogIndex, LogOperation, LogType};
use crate::conform::bench::{complete, until_completed, until_stands};
use crate::conform::seen::same;
use crate::conform::spy::RawLog;
use crate::conform::{Bench, Check, Ground, Wanted, until};
use crate::kmd::DriverOptions;
use crate::sync::Arc;
use crate::{CommandList, HwQueue, HwQueueOptions};
use anyhow::{Context, bail, ensure};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "LG-01",
        "a queue has two logs of 84 entries, for waits and for signals, in the published bytes",
        two_logs,
    ),
    Check::by(
        "LG-02",
        "an entry tells value, handle, operation and times",
        entries,
    ),
    Check::by(
        "LG-03",
        "index and wrap count are published by one store, after value and entry",
        one_word,
    ),
];

const WAIT: u32 = LogOperation::WaitUnblocked as u32;
const SIGNAL: u32 = LogOperation::SignalExecuted as u32;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytemuck::pod_read_unaligned(&bytes[at..at + 4])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytemuck::pod_read_unaligned(&bytes[at..at + 8])
}

/// Index, wrap count, type and number of entries, at the published places.
fn header(bytes: &[u8]) -> (u32, u32, u32, u64) {
    (
        u32_at(bytes, 0),
        u32_at(bytes, 4),
        u32_at(bytes, 8),
        u64_at(bytes, 16),
    )
}

/// Two logs are set for a queue, and filled to their last entry; their bytes are read at the published places. Then what a
/// driver gets that maps them for the system process, and one that does not. That OS and engine have an address each is
/// seen by what one writes and the other reads.
fn two_logs(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let mut queue = bench
        .device
        .create_hw_queue_disconnected(HwQueueOptions::default())?;
    let set: Vec<_> = bench.spy.logs();
    let set: Vec<_> = set
        .iter()
        .filter(|log| log.0 == queue.os().handle())
        .collect();
    let [
        (_, LogType::Waits, waits, 84),
        (_, LogType::Signals, signals, 84),
    ] = set[..]
    else {
        bail!(
            "the OS should have set a log of waits and one of signals, of 84 entries each: {set:?}"
        );
    };
    let apart = waits.1.abs_diff(signals.1) >= 4096;
    ensure!(
        !Arc::ptr_eq(&waits.0, &signals.0) || apart,
        "the two logs overlap"
    );
    let logs = logs(&bench, &queue);
    for (log, kind) in logs.iter().zip([1, 2]) {
        same(
            "the header of a new log",
            &header(&log.bytes()),
            &(0, 0, kind, 84),
        )?;
    }
    queue.connect_doorbell()?;
    let fence = bench.fence(0)?;
    let mut list = CommandList::new();
    for value in 1..=83 {
        list.signal(&fence, value).wait(&fence, value);
    }
    complete(&mut queue, list.wait(&fence, 7))?;
    let handles = [fence.handle().raw(), queue.progress_fence().handle().raw()];
    for (log, kind) in logs.iter().zip([1, 2]) {
        until_logged(log, 84)?;
        let bytes = log.bytes();
        same(
            "the header of a log that is full",
            &header(&bytes),
            &(0, 1, kind, 84),
        )?;
        for i in 0..84_usize {
            let entry = &bytes[40 + 48 * i..][..48];
            let (handle, value) = match (kind, i) {
                (1, 83) => (handles[0], 7),
                (_, 83) => (handles[1], 1),
                _ => (handles[0], i as u64 + 1),
            };
            let said = (u64_at(entry, 0), u32_at(entry, 8), u32_at(entry, 12));
            let operation = if kind == 1 { WAIT } else { SIGNAL };
            let which =
                format!("value, handle and operation of entry {i} of the log of type {kind}");
            same(&which, &said, &(value, handle, operation))?;
        }
        same(
            "what follows the last entry",
            &&bytes[4072..],
            &&[0; 24][..],
        )?;
    }
    system_process(&bench)?;
    let mapped = ground.bench_if(&Wanted::with(DriverOptions {
        map_to_gpu_system_process: true,
        ..DriverOptions::default()
    }))?;
    mapped.as_ref().map_or(Ok(()), system_process)
}

/// The system process's address of both logs is there exactly if the driver has the cap.
fn system_process(bench: &Bench) -> anyhow::Result<()> {
    let queue = bench.queue()?;
    let caps = bench.adapter.os().ddi().native_fence_caps();
    let has_cap = caps.published.map_to_gpu_system_process != 0;
    let logs = bench.spy.logs();
    for (_, kind, (region, offset), _) in logs.iter().filter(|log| log.0 == queue.os().handle()) {
        let passed = bench.spy.passed();
        let mut of_log = passed.iter().rev();
        let place = of_log.find(|p| Arc::ptr_eq(&p.region, region) && p.offset == *offset);
        let place = place.context("a log was set of which the spy knows no place")?;
        let address = place.system_process.as_ref().map_or(0, |p| p.gpu_va(0).0);
        same(
            &format!("whether the log of {kind:?} has an address of the system process"),
            &(address != 0),
            &has_cap,
        )?;
    }
    Ok(())
}

/// A wait that stands, with another queue's signal meanwhile whose time lies between its observed time and its end; the
/// signals behind it; waits that are satisfied when the engine comes to them.
fn entries(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (mut queue, mut clock) = (bench.queue()?, bench.queue()?);
    let (awaited, done) = (bench.fence(0)?, bench.fence(0)?);
    let time = |clock: &mut HwQueue, value| -> anyhow::Result<u64> {
        let log = &logs(&bench, clock)[1];
        let before = log.total();
        signal_all(clock, &bench.fence(0)?, [value])?;
        until_logged(log, before + 1)?;
        Ok(log.entry((before % LOG_BUFFER_ENTRIES) as u32).end_ticks)
    };
    let before = time(&mut clock, 1)?;
    let list = &mut CommandList::new();
    let value = queue.submit(list.nop().wait(&awaited, 5).signal(&done, 9))?;
    until_stands(&bench, &queue, 5)?;
    let standing = time(&mut clock, 2)?;
    awaited.signal(6)?;
    until_completed(&queue, value)?;
    let [waits, signals] = logs(&bench, &queue);
    until_logged(&signals, 2)?;
    let (wait, signals) = (waits.entry(0), [signals.entry(0), signals.entry(1)]);
    let handle = awaited.handle().raw();
    same(
        "value, handle and operation of a wait for 5",
        &said(&[wait]),
        &vec![(5, handle, WAIT)],
    )?;
    let (done, progress) = (done.handle().raw(), queue.progress_fence().handle().raw());
    let expected = vec![(9, done, SIGNAL), (value, progress, SIGNAL)];
    same(
        "those of a signal of 9 and of the progress",
        &said(&signals),
        &expected,
    )?;
    let times = [
        before,
        wait.observed_ticks,
        standing,
        wait.end_ticks,
        signals[0].end_ticks,
        signals[1].end_ticks,
    ];
    ensure!(
        times.is_sorted() && wait.observed_ticks < wait.end_ticks,
        "before a wait, its first look, while it stands, its end, the signals behind it: these times are not in order: {times:?}"
    );
    let satisfied = bench.fence(3)?;
    let list = &mut CommandList::new();
    list.wait(&satisfied, 3)
        .wait(&satisfied, 0)
        .signal(&satisfied, 4)
        .wait(&satisfied, 4);
    complete(&mut queue, list)?;
    let handle = satisfied.handle().raw();
    let (total, waits) = (waits.total(), waits.last(3));
    same("the waits logged", &total, &4)?;
    let expected = vec![(3, handle, WAIT), (0, handle, WAIT), (4, handle, WAIT)];
    same("waits that are satisfied at once", &said(&waits), &expected)?;
    for wait in waits {
        same(
            "their observed time, which is their end",
            &wait.observed_ticks,
            &wait.end_ticks,
        )?;
        ensure!(
            wait.end_ticks >= times[5],
            "a wait ended before the submission ahead of it: {wait:?}"
        );
    }
    Ok(())
}

/// At its wrap, index and count are looked at one by one. Then a thread looks all the time while thousands are logged: no
/// pair that cannot be, none that goes back, and none before the value of its entry is stored. How often it looks in
/// between is chance. What stands in the entry itself then is IN-01's.
fn one_word(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let options = HwQueueOptions {
        ring_capacity: 1 << 14,
        ..HwQueueOptions::default()
    };
    let mut queue = bench.device.create_hw_queue_with(options)?;
    let log = &logs(&bench, &queue)[1];
    let mut total = 0;
    // With the progress of each.
    for signalled in [82, 0, 1] {
        signal_all(&mut queue, &bench.fence(0)?, 1..=signalled)?;
        total += signalled + 1;
        until_logged(log, total)?;
        let expected = LogIndex {
            first_free_entry_index: (total % LOG_BUFFER_ENTRIES) as u32,
            wraparound_count: (total / LOG_BUFFER_ENTRIES) as u32,
        };
        same(
            &format!("the index word after {total} entries"),
            &log.index(),
            &expected,
        )?;
    }
    for _ in 0..4 {
        watched(&bench, &mut queue, log)?;
    }
    Ok(())
}

/// Twelve thousand signals of a new fence, watched.
fn watched(bench: &Bench, queue: &mut HwQueue, log: &RawLog) -> anyhow::Result<()> {
    const ALL: u64 = 12_000;
    let fence = bench.fence(0)?;
    let total = log.total();
    let end = queue.submit(&signals(&fence, 1..=ALL))?;
    let (mut last, mut wrong) = (total, None);
    until("all is logged", || {
        let index = log.index();
        let now = index.total(LOG_BUFFER_ENTRIES as u32);
        // Those of the fence, without the progress.
        let (logged, stored) = (now.saturating_sub(total).min(ALL), fence.current_value());
        if u64::from(index.first_free_entry_index) >= LOG_BUFFER_ENTRIES {
            wrong = Some(format!("an index past the end: {index:?}"));
        } else if now < last {
            wrong = Some(format!(
                "the index went back, from entry {last} to entry {now}"
            ));
        } else if stored < logged {
            let what = "signals are logged, and CurrentValue is still";
            wrong = Some(format!("{logged} {what} {stored}: the index came first"));
        }
        last = now;
        wrong.is_some() || now > total + ALL || queue.error().is_some()
    })?;
    if let Some(wrong) = wrong {
        bail!(wrong);
    }
    until_completed(queue, end)?;
    same("entries logged", &log.total(), &(total + ALL + 1))
}
