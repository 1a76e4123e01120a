//! Moving logs: logs that get another place and size while their queues run.

use super::scene::{logs, signal_all, signals};
use crate::abi::{LogEntry, LogHeader, LogIndex, LogType, WordGroup};
use crate::conform::bench::{complete, until_completed, until_stands};
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG, until};
use crate::kmd::{Ddi, Place, SetNativeFenceLogBuffer};
use crate::os;
use crate::shared::Block;
use crate::sync::Arc;
use crate::{CommandList, Fence, HwQueue, Tracing};
use anyhow::{Context, anyhow, ensure};
use std::sync::mpsc;
use std::thread;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "LG-07",
    "a log moves while its queue runs: no entry is lost, written twice, or written to the old place",
    moves,
)];

/// Memory that a log is moved to.
struct Log {
    block: Block,
    entries: u64,
}

impl Log {
    /// A new one, in which the queue logs from now on.
    fn set(
        bench: &Bench,
        queue: &os::HwQueue,
        kind: LogType,
        entries: u64,
    ) -> anyhow::Result<Self> {
        let bytes = (LogHeader::BYTES + entries * LogEntry::BYTES).next_multiple_of(4096);
        let region = bench
            .spy
            .providers()
            .for_words(WordGroup::LargeLog, bytes)?;
        let block = Block::whole(&region.map()?);
        block.word(LogHeader::LOG_TYPE).put(kind as u64);
        block.word(LogHeader::NUMBER_OF_ENTRIES).put(entries);
        bench
            .spy
            .set_native_fence_log_buffer(&SetNativeFenceLogBuffer {
                hw_queue: queue.handle(),
                log: kind,
                buffer: Place {
                    region: &region,
                    offset: 0,
                },
                entries,
                system_process: None,
            })?;
        Ok(Self { block, entries })
    }

    fn index(&self) -> LogIndex {
        LogIndex::from_word(self.block.word(LogHeader::INDEX).observe())
    }

    fn total(&self) -> u64 {
        self.index().total(self.entries as u32)
    }

    fn until_logged(&self, entries: u64) -> anyhow::Result<()> {
        until("the entries are logged in the new place", || {
            self.total() >= entries
        })
    }

    fn words(&self) -> Vec<u64> {
        let words = 0..self.block.bytes() as u64 / 8;
        words.map(|word| self.block.word(8 * word).peek()).collect()
    }

    fn entry(&self, slot: u64) -> LogEntry {
        bytemuck::cast(
            self.block
                .peek_words::<6>(LogIndex::entry_offset(slot as u32)),
        )
    }

    /// Values of a fence, in the order in which they were logged; it has not wrapped.
    fn values(&self, fence: &Fence) -> Vec<u64> {
        let entries = (0..self.total()).map(|slot| self.entry(slot));
        let of_fence = entries.filter(|entry| entry.native_fence == fence.handle().raw());
        of_fence.map(|entry| entry.fence_value).collect()
    }
}

fn moves(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    sizes(&bench)?;
    standing(&bench)?;
    disconnected(&bench)?;
    running(&bench)?;
    tracing(&bench)
}

/// A queue that has logged 101 entries gets logs of other sizes: each begins at its first place and wraps at its own end.
fn sizes(bench: &Bench) -> anyhow::Result<()> {
    let fence = bench.fence(0)?;
    let mut queue = bench.queue()?;
    signal_all(&mut queue, &fence, 1..=100)?;
    for (entries, first) in [(3, 101), (500, 201), (84, 301)] {
        let log = Log::set(bench, queue.os(), LogType::Signals, entries)?;
        same(
            "the index of a new log",
            &log.index(),
            &LogIndex::from_word(0),
        )?;
        complete(&mut queue, CommandList::new().signal(&fence, first))?;
        // And the progress of each.
        log.until_logged(2)?;
        let what = format!("the first entry of a new log of {entries}, and those in it");
        same(&what, &(log.entry(0).fence_value, log.total()), &(first, 2))?;
        signal_all(&mut queue, &fence, first + 1..=first + 99)?;
        log.until_logged(102)?;
        let expected = LogIndex {
            first_free_entry_index: (102 % entries) as u32,
            wraparound_count: (102 / entries) as u32,
        };
        same(
            &format!("the index word of a log of {entries} after 102"),
            &log.index(),
            &expected,
        )?;
        let last = log.entry((102 - 2) % entries).fence_value;
        same(
            &format!("the last entry but one of a log of {entries}"),
            &last,
            &(first + 99),
        )?;
    }
    Ok(())
}

/// A queue that stands at a wait logs it in the new place, with the time of its first look.
fn standing(bench: &Bench) -> anyhow::Result<()> {
    let fence = bench.fence(0)?;
    let (mut queue, mut clock) = (bench.queue()?, bench.queue()?);
    let old = Log::set(bench, queue.os(), LogType::Waits, 84)?;
    let end = queue.submit(CommandList::new().wait(&fence, 5))?;
    until_stands(bench, &queue, 5)?;
    let [_, times] = logs(bench, &clock);
    signal_all(&mut clock, &bench.fence(0)?, [1])?;
    let before = times.entry(0).end_ticks;
    let new = Log::set(bench, queue.os(), LogType::Waits, 84)?;
    fence.signal(5)?;
    until_completed(&queue, end)?;
    same("entries in the old place", &old.total(), &0)?;
    same("waits in the new place", &new.values(&fence), &vec![5])?;
    let entry = new.entry(0);
    ensure!(
        entry.observed_ticks <= before && before <= entry.end_ticks,
        "a wait that stood before time {before} and ended after it is logged as {entry:?}"
    );
    Ok(())
}

/// So does a queue whose doorbell is disconnected meanwhile.
fn disconnected(bench: &Bench) -> anyhow::Result<()> {
    let fence = bench.fence(0)?;
    let mut queue = bench.queue()?;
    signal_all(&mut queue, &fence, 1..=10)?;
    queue.os().disconnect_doorbell();
    let log = Log::set(bench, queue.os(), LogType::Signals, 84)?;
    queue.connect_doorbell()?;
    signal_all(&mut queue, &fence, 11..=20)?;
    same(
        "signals in the log that was set while disconnected",
        &log.values(&fence),
        &(11..=20).collect::<Vec<u64>>(),
    )
}

/// Nine moves while a producer goes on: every signal is in one of the logs, once, in order, and what stands in one when
/// the next is set stands there for good.
fn running(bench: &Bench) -> anyhow::Result<()> {
    const LISTS: u64 = 400;
    const SIGNALS: u64 = 20;
    let fence = bench.fence(0)?;
    let mut queue = bench.queue()?;
    let os = Arc::clone(queue.os());
    // Room for all in each.
    let log = || Log::set(bench, &os, LogType::Signals, 2 * LISTS * SIGNALS);
    let mut logs = vec![log()?];
    let mut left = Vec::new();
    let (go, goes) = mpsc::channel();
    let signalled = fence.clone();
    let producer = thread::spawn(move || -> anyhow::Result<HwQueue> {
        for list in 0..LISTS {
            // Each move is made while the lists of one more tenth are on their way.
            if list >= LISTS / 5 && list % (LISTS / 10) == 0 {
                goes.recv()?;
            }
            let values = list * SIGNALS + 1..=(list + 1) * SIGNALS;
            queue.submit_blocking(&signals(&signalled, values), LONG)?;
        }
        Ok(queue)
    });
    for _ in 1..10 {
        let before = logs.last().context("there is one")?;
        until("the queue has logged in its newest log", || {
            before.total() > 0
        })?;
        let next = log()?;
        left.push(before.words());
        logs.push(next);
        // It may be past the last move.
        let _ = go.send(());
    }
    let queue = producer
        .join()
        .map_err(|_| anyhow!("the producer panicked"))??;
    until_completed(&queue, queue.last_queued_value())?;
    for (log, left) in logs.iter().zip(left) {
        ensure!(
            log.words() == left,
            "a log was written after another was set in its stead"
        );
    }
    let values: Vec<_> = logs.iter().flat_map(|log| log.values(&fence)).collect();
    let odd = (1..).zip(&values).find(|(value, logged)| value != *logged);
    ensure!(
        odd.is_none(),
        "of signals 1, 2, … the logs have another one (should be, is): {odd:?}"
    );
    same(
        "signals in all the logs",
        &values.len(),
        &((LISTS * SIGNALS) as usize),
    )
}

/// While something is traced the logs are longer, of queues that are there and of new ones; then they are as before.
fn tracing(bench: &Bench) -> anyhow::Result<()> {
    let queue = bench.queue()?;
    let entries = |queue: &HwQueue| {
        let mut set = bench.spy.logs();
        set.retain(|log| log.0 == queue.os().handle());
        [LogType::Waits, LogType::Signals].map(|kind| {
            set.iter()
                .rev()
                .find(|log| log.1 == kind)
                .map_or(0, |log| log.3)
        })
    };
    bench.adapter.set_tracing(Tracing::On)?;
    for queue in [&queue, &bench.queue()?] {
        let seen = entries(queue);
        ensure!(
            seen[0] > 84 && seen[1] > 84,
            "with tracing on, the logs have {seen:?} entries: they should have more than 84"
        );
    }
    bench.adapter.set_tracing(Tracing::Off)?;
    same(
        "entries of the logs when tracing is off again",
        &entries(&queue),
        &[84, 84],
    )
}
