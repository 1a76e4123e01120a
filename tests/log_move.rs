//! Logs that move while their queues run (LG-07), by the driver's contract: what stands in the old
//! place and in the new one, byte by byte, through mappings of the test's own.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod logs;
}

use native_fence::abi::{LogEntry, LogHeader, LogIndex, LogType, WordGroup};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{Ddi, HwQueueHandle, Place, SetNativeFenceLogBuffer};
use native_fence::shared::{Block, Region};
use native_fence::{CommandList, Fence, HwQueueOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use support::bench::{Bench, LONG, complete, on_every_bench, until};
use support::logs::signal_all;

/// Memory that a log is moved to.
struct Log {
    region: Arc<Region>,
    block: Block,
    entries: u64,
}

impl Log {
    /// An empty one in a region of its own.
    fn new(bench: &Bench, kind: LogType, entries: u64) -> Self {
        let bytes = LogHeader::BYTES + entries * LogEntry::BYTES;
        let bytes = bytes.next_multiple_of(4096);
        let providers = bench.spy.providers();
        let region = providers.for_words(WordGroup::LargeLog, bytes).unwrap();
        let block = Block::whole(&region.map().unwrap());
        block.word(LogHeader::LOG_TYPE).put(kind as u64);
        block.word(LogHeader::NUMBER_OF_ENTRIES).put(entries);
        Self {
            region,
            block,
            entries,
        }
    }

    /// Has the driver log there from now on.
    fn set(self, bench: &Bench, queue: HwQueueHandle, kind: LogType) -> Self {
        let args = SetNativeFenceLogBuffer {
            hw_queue: queue,
            log: kind,
            buffer: Place {
                region: &self.region,
                offset: 0,
            },
            entries: self.entries,
            system_process: None,
        };
        bench.spy.set_native_fence_log_buffer(&args).unwrap();
        self
    }

    fn index(&self) -> LogIndex {
        LogIndex::from_word(self.block.word(LogHeader::INDEX).observe())
    }

    fn words(&self) -> Vec<u64> {
        let words = 0..self.block.bytes() as u64 / 8;
        words.map(|word| self.block.word(8 * word).peek()).collect()
    }

    /// The entry of a slot.
    fn entry(&self, slot: u32) -> LogEntry {
        bytemuck::cast(self.block.peek_words::<6>(LogIndex::entry_offset(slot)))
    }

    /// Values of a fence, in the order in which they were logged; the log has not wrapped.
    fn values(&self, fence: &Fence) -> Vec<u64> {
        assert_eq!(self.index().wraparound_count, 0);
        let entries = (0..self.index().first_free_entry_index).map(|slot| self.entry(slot));
        let of_fence = entries.filter(|entry| entry.native_fence == fence.handle().raw());
        of_fence.map(|entry| entry.fence_value).collect()
    }
}

/// Every signal is in one of the logs that were in force, once, in order; what stands in one when
/// the call has returned that set the next stands there for good.
///
/// Kills `a-log-moves-under-a-slice`, `a-log-moves-without-a-pause` and
/// `a-queue-whose-log-moved-stays-out`.
#[test]
fn lg_07_no_entry_is_lost_or_written_twice_while_the_log_moves() {
    const LISTS: u64 = 2000;
    const SIGNALS: u64 = 20;
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        // Room for all in each.
        let log = || Log::new(bench, LogType::Signals, 2 * LISTS * SIGNALS);
        let handle = queue.os().handle();
        let mut logs = vec![log().set(bench, handle, LogType::Signals)];
        let signalled = fence.clone();
        let moves = Arc::new(AtomicU64::new(0));
        let moved = Arc::clone(&moves);
        let producer = thread::spawn(move || {
            for list in 0..LISTS {
                // Nine moves, each while the lists of one more tenth are on their way.
                let tenth = list / (LISTS / 10);
                until("the log is moved", || {
                    moved.load(Ordering::Acquire) + 1 >= tenth
                });
                let mut commands = CommandList::new();
                for value in 1..=SIGNALS {
                    commands.signal(&signalled, list * SIGNALS + value);
                }
                queue.submit_blocking(&commands, LONG).unwrap();
            }
            queue
        });
        let mut left = Vec::new();
        for _ in 1..10 {
            let before = logs.last().unwrap();
            until("the queue has logged", || {
                before.index() != LogIndex::from_word(0)
            });
            let next = log().set(bench, handle, LogType::Signals);
            moves.fetch_add(1, Ordering::Release);
            left.push(before.words());
            logs.push(next);
        }
        let queue = producer.join().unwrap();
        let last = queue.last_queued_value();
        queue.progress_fence().wait(last, LONG).unwrap();
        for (log, left) in logs.iter().zip(left) {
            assert!(log.words() == left, "a log was written after it was left");
        }
        let values: Vec<_> = logs.iter().flat_map(|log| log.values(&fence)).collect();
        assert!(values.iter().copied().eq(1..=LISTS * SIGNALS), "{values:?}");
    });
}

/// The first entry of a new log is its first place, with count 0, whatever numbers the packets carry;
/// its size is the one that it was set with.
///
/// Kills `a-moved-log-goes-on-at-the-old-index`, `a-log-stays-where-it-was`.
#[test]
fn lg_07_a_new_log_starts_at_index_0_and_count_0() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        signal_all(&mut queue, &fence, 1..=100);
        for (entries, first) in [(3, 101), (500, 201), (84, 301)] {
            let log = Log::new(bench, LogType::Signals, entries).set(
                bench,
                queue.os().handle(),
                LogType::Signals,
            );
            assert_eq!(log.index(), LogIndex::from_word(0));
            complete(&mut queue, CommandList::new().signal(&fence, first));
            // The entry of a progress write comes after its value.
            bench.until_parked();
            let entry = log.entry(0);
            assert_eq!(entry.fence_value, first);
            // And the submission's progress.
            assert_eq!(u64::from(log.index().first_free_entry_index), 2);
            signal_all(&mut queue, &fence, first + 1..=first + 99);
            bench.until_parked();
            // 99 more and one for the progress.
            let all = 2 + 100;
            let index = log.index();
            assert_eq!(u64::from(index.first_free_entry_index), all % entries);
            assert_eq!(u64::from(index.wraparound_count), all / entries);
        }
    });
}

/// A queue that stands at a wait, whose engine is parked, logs it in the new place, with the time of
/// its first look.
///
/// Kills `a-moved-log-forgets-the-first-look`.
#[test]
fn lg_07_a_standing_wait_is_logged_in_the_new_place() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        let old =
            Log::new(bench, LogType::Waits, 84).set(bench, queue.os().handle(), LogType::Waits);
        queue.submit(CommandList::new().wait(&fence, 5)).unwrap();
        bench.until_parked();
        // By the same clock, after the first look and before the log moves.
        let (other, mut clock) = (bench.fence(0), bench.queue());
        complete(&mut clock, CommandList::new().signal(&other, 1));
        bench.until_parked();
        let before = clock.read_signal_log().unwrap().entries[0].end_ticks;
        let new =
            Log::new(bench, LogType::Waits, 84).set(bench, queue.os().handle(), LogType::Waits);
        bench.until_parked();
        fence.signal(5).unwrap();
        queue.progress_fence().wait(1, LONG).unwrap();
        assert_eq!(old.index(), LogIndex::from_word(0));
        assert_eq!(new.values(&fence), [5]);
        let entry = new.entry(0);
        assert!(entry.observed_ticks <= before, "{entry:?}");
        assert!(entry.observed_ticks < entry.end_ticks, "{entry:?}");
    });
}

/// So does a queue whose doorbell is disconnected, once it is connected again.
///
/// Kills `a-log-that-moved-is-forgotten`.
#[test]
fn lg_07_a_log_moves_while_the_doorbell_is_disconnected() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let options = HwQueueOptions::default();
        let mut queue = bench.device.create_hw_queue_disconnected(options).unwrap();
        queue.connect_doorbell().unwrap();
        signal_all(&mut queue, &fence, 1..=10);
        queue.os().disconnect_doorbell();
        let log =
            Log::new(bench, LogType::Signals, 84).set(bench, queue.os().handle(), LogType::Signals);
        queue.connect_doorbell().unwrap();
        signal_all(&mut queue, &fence, 11..=20);
        assert!(log.values(&fence).into_iter().eq(11..=20));
    });
}

/// A queue that is aborted while a slice executes it leaves the run list at once, and the slice goes
/// on: when the call has returned that set the next log, the slice has ended, and what stands in the
/// old log stands there for good. On the model whatever comes later finds nothing mapped.
///
/// Kills `nobody-knows-a-queue-that-was-stopped`.
#[test]
fn lg_07_the_log_of_an_aborted_queue_is_left_when_the_call_returns() {
    const SIGNALS: u64 = 90_000;
    on_every_bench(NodePolicy::default(), |bench| {
        let options = HwQueueOptions {
            ring_capacity: 1 << 17,
            ..HwQueueOptions::default()
        };
        for _ in 0..5 {
            let (fence, other) = (bench.fence(0), bench.fence(0));
            let mut list = CommandList::new();
            for value in 1..=SIGNALS {
                list.signal(&fence, value);
            }
            let mut queue = bench.device.create_hw_queue_with(options).unwrap();
            let handle = queue.os().handle();
            let log = || Log::new(bench, LogType::Signals, 2 * SIGNALS);
            let old = log().set(bench, handle, LogType::Signals);
            queue.submit(&list).unwrap();
            until("the queue logs", || old.index().first_free_entry_index > 10);
            bench.spy.abort_doorbell(handle);
            let last = bench.engine.submitted();
            let _new = log().set(bench, handle, LogType::Signals);
            let left = old.words();
            assert!(
                bench.engine.has_really_ended(last),
                "a slice that may know it is in flight"
            );
            // What comes after it has ended as well.
            complete(&mut bench.queue(), CommandList::new().signal(&other, 1));
            assert!(old.words() == left, "a log was written after it was left");
        }
    });
}
