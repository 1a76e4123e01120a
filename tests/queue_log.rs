//! Logs that the OS moves while their queues run and are read (LG-06, LG-07, IN-07 to IN-10): what
//! the readers make of the places, and what stands where the driver refuses.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod logs;
    pub(crate) mod raised;
}

use native_fence::abi::{
    LOG_BUFFER_ENTRIES, LogHeader, LogType, MOST_LOG_ENTRIES, TRACED_LOG_ENTRIES,
};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::DriverOptions;
use native_fence::os::{LogRead, OsError};
use native_fence::shared::Block;
use native_fence::{CommandList, CreateError, Fence, HwQueue, Tracing};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use support::bench::{
    Bench, Failing, LONG, Moment, complete, native, on_benches_with, on_every_bench, until,
};
use support::logs::signal_all;
use support::raised::{any_raised, entries, fence_raised, log_signal, queue_raised, signal_log};

fn on_optimized_benches(body: impl Fn(&Bench)) {
    let optimized = DriverOptions {
        optimized_interrupt: true,
        ..DriverOptions::default()
    };
    on_benches_with(1, NodePolicy::default(), &optimized, body);
}

fn values_of(read: &LogRead, fence: &Fence) -> Vec<u64> {
    let entries = read.entries.iter();
    let of_fence = entries.filter(|entry| entry.native_fence == fence.handle().raw());
    of_fence.map(|entry| entry.fence_value).collect()
}

/// Stores CurrentValue behind the OS's back.
fn store(fence: &Fence, value: u64) {
    let (region, offset) = native(fence).current_value_place();
    let words = Block::whole(&region.map().unwrap());
    words.word(offset).publish(value);
}

/// While an engine signals and waits, both logs move ten times, the user reads both and the OS that
/// of signals: each has every entry once, in order, and none is lost.
///
/// Kills `a-reader-does-not-follow-the-log` and `a-reader-drops-the-place-in-force`.
#[test]
fn lg_07_nothing_is_lost_or_told_twice_while_logs_move_under_their_readers() {
    const LISTS: u64 = 1000;
    const PAIRS: u64 = 20;
    const MOVES: u64 = 10;
    on_every_bench(NodePolicy::default(), |bench| {
        let os = bench.adapter.os();
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        // Room for all in each: nothing is overrun, however slow a reader is.
        let room = 2 * LISTS * PAIRS;
        queue.resize_logs(room).unwrap();
        os.attribute_signals(true);
        let handle = Arc::clone(queue.os());
        let signalled = fence.clone();
        let moves = Arc::new(AtomicU64::new(0));
        let moved = Arc::clone(&moves);
        let producer = thread::spawn(move || {
            for list in 0..LISTS {
                let part = list * (MOVES + 1) / LISTS;
                until("the logs are moved", || {
                    moved.load(Ordering::Acquire) + 1 >= part
                });
                let mut commands = CommandList::new();
                for value in list * PAIRS + 1..=(list + 1) * PAIRS {
                    commands.signal(&signalled, value).wait(&signalled, value);
                }
                queue.submit_blocking(&commands, LONG).unwrap();
            }
            let last = queue.last_queued_value();
            queue.progress_fence().wait(last, LONG).unwrap();
            queue
        });
        let ends = AtomicBool::new(false);
        let rounds = [AtomicU64::new(0), AtomicU64::new(0)];
        let (waits, signals) = thread::scope(|scope| {
            let user = scope.spawn(|| {
                let (mut waits, mut signals) = (LogRead::default(), LogRead::default());
                loop {
                    let last = ends.load(Ordering::Acquire);
                    for (kind, all) in [
                        (LogType::Waits, &mut waits),
                        (LogType::Signals, &mut signals),
                    ] {
                        let read = handle.read_log(kind).unwrap();
                        all.entries.extend(read.entries);
                        all.lost += read.lost;
                        all.refused += read.refused;
                    }
                    rounds[0].fetch_add(1, Ordering::AcqRel);
                    if last {
                        return (waits, signals);
                    }
                }
            });
            scope.spawn(|| {
                while !ends.load(Ordering::Acquire) {
                    bench.spy.interrupt(fence_raised(&fence));
                    rounds[1].fetch_add(1, Ordering::AcqRel);
                }
            });
            for number in 1..=MOVES {
                handle.resize_logs(room + number).unwrap();
                moves.store(number, Ordering::Release);
                // A whole round of each reader between two moves, so that nobody comes too late.
                for readers in &rounds {
                    let before = readers.load(Ordering::Acquire);
                    until("the reader comes round", || {
                        readers.load(Ordering::Acquire) > before + 1
                    });
                }
            }
            let queue = producer.join().unwrap();
            ends.store(true, Ordering::Release);
            drop(queue);
            user.join().unwrap()
        });
        bench.spy.interrupt(fence_raised(&fence));
        for read in [&waits, &signals] {
            assert_eq!((read.lost, read.refused), (0, 0));
            let values = values_of(read, &fence);
            assert!(values.iter().copied().eq(1..=LISTS * PAIRS), "{values:?}");
        }
        let attributions = os.take_attributions();
        let id = native(&fence).id();
        let of_fence = attributions.signals.iter().filter(|a| a.fence == id);
        assert!(of_fence.map(|a| a.value).eq(1..=LISTS * PAIRS));
        assert_eq!(attributions.lost, 0);
    });
}

/// IN-07: the signal of a waiter stands in the place that was in force when it was logged. Whether the
/// interrupt is handled before the log is moved, or after, or with one of the new place: its waiter
/// wakes, by the log alone.
///
/// Kills `what-was-left-is-given-up-at-once`.
#[test]
fn in_07_a_waiter_whose_entry_is_in_the_old_place_wakes_after_the_move() {
    on_optimized_benches(|bench| {
        let queue = bench.queue();
        let fences = [bench.fence(0), bench.fence(0), bench.fence(0)];
        let waiters = fences.each_ref().map(|fence| bench.waiter(fence, 5));
        bench.until_parked();
        log_signal(bench, &queue, &fences[0], 5);
        queue.resize_logs(500).unwrap();
        bench.spy.interrupt(queue_raised(&queue));
        let [first, second, third] = waiters;
        first.join().unwrap();
        assert!(!second.is_finished() && !third.is_finished());
        // Both places have news.
        log_signal(bench, &queue, &fences[1], 5);
        queue.resize_logs(1000).unwrap();
        log_signal(bench, &queue, &fences[2], 5);
        bench.spy.interrupt(queue_raised(&queue));
        second.join().unwrap();
        third.join().unwrap();
        let read = queue.read_signal_log().unwrap();
        assert_eq!((read.entries.len(), read.lost, read.refused), (3, 0, 0));
    });
}

/// IN-07: the engine logs in the new place, and interrupts, before the driver's call has returned: the
/// OS reads it there.
///
/// Kills `a-new-place-is-appended-too-late`.
#[test]
fn in_07_an_interrupt_inside_the_move_finds_its_entry_in_the_new_place() {
    on_optimized_benches(|bench| {
        let queue = bench.queue();
        let fence = bench.fence(0);
        let waiter = bench.waiter(&fence, 5);
        bench.until_parked();
        thread::scope(|scope| {
            let (moves, goes_on) = std::sync::mpsc::channel();
            let (told, is_told) = std::sync::mpsc::channel::<()>();
            // Inside the move of the log of waits, which is the first; that of signals is the next.
            let spy = Arc::clone(&bench.spy);
            bench.spy.once(Moment::AfterSetOfLog, move || {
                spy.once(Moment::AfterSetOfLog, move || {
                    moves.send(()).unwrap();
                    is_told.recv_timeout(LONG).unwrap();
                });
            });
            let moving = scope.spawn(|| queue.resize_logs(500).unwrap());
            goes_on.recv_timeout(LONG).unwrap();
            assert_eq!(entries(&signal_log(bench, &queue)), 500);
            log_signal(bench, &queue, &fence, 5);
            bench.spy.interrupt(queue_raised(&queue));
            waiter.join().unwrap();
            assert!(!moving.is_finished());
            told.send(()).unwrap();
            moving.join().unwrap();
        });
        // Read once, also where it was read early.
        assert_eq!(values_of(&queue.read_signal_log().unwrap(), &fence), [5]);
    });
}

/// By the engine itself: the log moves after every signal, before its interrupt is handled or after.
#[test]
fn waiters_wake_while_the_log_moves_after_every_signal() {
    on_optimized_benches(|bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        for value in 1..=20 {
            let waiter = bench.waiter(&fence, value);
            queue
                .submit(CommandList::new().signal(&fence, value))
                .unwrap();
            queue.resize_logs(100 + value).unwrap();
            waiter.join().unwrap();
        }
    });
}

/// IN-08: a NULL queue makes the OS read the logs of all queues where they lie and where they lay.
///
/// Kills `a-place-that-is-left-is-not-read`.
#[test]
fn in_08_a_null_queue_reads_places_that_were_left() {
    on_optimized_benches(|bench| {
        let queues = [bench.queue(), bench.queue()];
        let fences = [bench.fence(0), bench.fence(0)];
        let waiters = fences.each_ref().map(|fence| bench.waiter(fence, 3));
        bench.until_parked();
        for (queue, fence) in queues.iter().zip(&fences) {
            log_signal(bench, queue, fence, 3);
            queue.resize_logs(200).unwrap();
        }
        bench.spy.interrupt(any_raised());
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
}

/// IN-09 and LG-06: a place that was overrun before it was left is told as lost, and the fences of the
/// device are looked at; so is one that was left too long ago to be kept.
///
/// Kills `what-is-given-up-is-not-counted` and `places-that-nobody-reads-are-kept`.
#[test]
fn in_09_what_was_lost_in_an_old_place_makes_the_os_read_the_fences_of_the_device() {
    on_optimized_benches(|bench| {
        let queue = bench.queue();
        let fence = bench.fence(0);
        let waiter = bench.waiter(&fence, 6);
        bench.until_parked();
        // Twice round and five, in the first place.
        let log = signal_log(bench, &queue);
        log.block.word(LogHeader::INDEX).publish(2 << 32 | 5);
        queue.resize_logs(500).unwrap();
        store(&fence, 6);
        bench.spy.interrupt(queue_raised(&queue));
        waiter.join().unwrap();

        let waiter = bench.waiter(&fence, 7);
        bench.until_parked();
        log_signal(bench, &queue, &fence, 7);
        // More than are kept.
        for entries in 501..=506 {
            queue.resize_logs(entries).unwrap();
        }
        store(&fence, 7);
        bench.spy.interrupt(queue_raised(&queue));
        waiter.join().unwrap();
        let read = queue.read_signal_log().unwrap();
        // 2 * 84 + 5 of which none is data, and the one.
        assert_eq!((values_of(&read, &fence), read.lost), (vec![], 2 * 84 + 6));
    });
}

/// LG-06 across moves by the engine itself: of what a small place could not hold some is lost and
/// counted, and together with what was read it is all, in order.
///
/// Kills `what-was-left-is-given-up-at-once`.
#[test]
fn lg_06_entries_that_an_old_place_could_not_hold_are_counted() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        signal_all(&mut queue, &fence, 1..=200);
        queue.resize_logs(1000).unwrap();
        signal_all(&mut queue, &fence, 201..=300);
        queue.resize_logs(LOG_BUFFER_ENTRIES).unwrap();
        signal_all(&mut queue, &fence, 301..=310);
        let read = queue.read_signal_log().unwrap();
        // 200 signals and a progress write in a log of 84, which keeps 83.
        assert_eq!((read.lost, read.refused), (201 - 83, 0));
        assert!(values_of(&read, &fence).into_iter().eq(119..=310));
        assert_eq!(queue.read_signal_log().unwrap(), LogRead::default());
    });
}

/// The log in force stays so, with its entries and its size, where the next cannot be had: the
/// driver refuses it, or no log is as long.
///
/// Kills `a-place-that-was-refused-stays` and `any-number-of-entries-is-taken`.
#[test]
fn lg_07_a_move_that_fails_leaves_the_log_in_force() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        signal_all(&mut queue, &fence, 1..=10);
        // Of both logs: that of waits is moved first.
        complete(
            &mut queue,
            CommandList::new().wait(&fence, 9).wait(&fence, 10),
        );
        let log = signal_log(bench, &queue);
        for entries in [0, 83, MOST_LOG_ENTRIES + 1, u64::MAX] {
            let refused = queue.resize_logs(entries);
            let Err(CreateError::Os(OsError::LogEntries(named))) = refused else {
                panic!("{refused:?}")
            };
            assert_eq!(named, entries);
        }
        bench.spy.fail(Failing::SetNativeFenceLogBuffer);
        // So often that a place which stayed would take the room of one that holds something.
        for _ in 0..6 {
            let refused = queue.resize_logs(500);
            assert!(
                matches!(refused, Err(CreateError::Os(OsError::Driver(_)))),
                "{refused:?}"
            );
        }
        assert_eq!(queue.os().log_entries(LogType::Signals), 84);
        signal_all(&mut queue, &fence, 11..=20);
        // 20 signals and three progress writes, whose entries come after their values.
        bench.until_parked();
        assert_eq!(log.index().first_free_entry_index, 23);
        bench.spy.succeed();
        queue.resize_logs(500).unwrap();
        signal_all(&mut queue, &fence, 21..=30);
        let read = queue.read_signal_log().unwrap();
        assert_eq!((read.lost, read.refused), (0, 0));
        assert!(values_of(&read, &fence).into_iter().eq(1..=30));
        let read = queue.read_wait_log().unwrap();
        assert_eq!((read.lost, read.refused), (0, 0));
        assert_eq!(values_of(&read, &fence), [9, 10]);
    });
}

/// Nobody knows what still runs on an engine that is lost: its logs are not moved, so that their old
/// places are not another queue's by the time it writes.
///
/// Kills `a-log-of-a-lost-engine-is-moved`.
#[test]
fn lg_07_a_log_of_a_lost_engine_is_not_moved() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        signal_all(&mut queue, &fence, 1..=10);
        bench.until_parked();
        bench.engine.lose();
        let _ = queue.submit(CommandList::new().signal(&fence, 11));
        until("the OS is told", || queue.error().is_some());
        let refused = queue.resize_logs(500);
        assert!(
            matches!(refused, Err(CreateError::Os(OsError::Driver(_)))),
            "{refused:?}"
        );
        assert_eq!(queue.os().log_entries(LogType::Signals), 84);
        // What it logged before is read as ever.
        assert!(
            values_of(&queue.read_signal_log().unwrap(), &fence)
                .into_iter()
                .eq(1..=10)
        );
    });
}

fn sizes(bench: &Bench, queue: &HwQueue) -> [(u64, u64); 2] {
    [LogType::Waits, LogType::Signals].map(|kind| {
        let log = bench.spy.log(queue.os().handle(), kind);
        assert_eq!(
            log.block.word(LogHeader::LOG_TYPE).peek() as u32,
            kind as u32
        );
        (entries(&log), queue.os().log_entries(kind))
    })
}

/// With tracing on the logs of all queues are larger, those that are there and those to come, and
/// hold what a page does not; off brings them back. Their headers say so.
///
/// Kills `tracing-enlarges-no-log-that-is-there`, `tracing-enlarges-no-log-to-come` and
/// `tracing-off-leaves-the-logs-large`.
#[test]
fn lg_07_tracing_enlarges_the_logs_of_every_queue() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut before = bench.queue();
        let small = [(LOG_BUFFER_ENTRIES, LOG_BUFFER_ENTRIES); 2];
        let large = [(TRACED_LOG_ENTRIES, TRACED_LOG_ENTRIES); 2];
        assert_eq!(sizes(bench, &before), small);
        bench.adapter.set_tracing(Tracing::On).unwrap();
        assert_eq!(bench.adapter.os().tracing(), Tracing::On);
        let mut after = bench.queue();
        let mut value = 0;
        for queue in [&mut before, &mut after] {
            assert_eq!(sizes(bench, queue), large);
            for _ in 0..5 {
                signal_all(queue, &fence, value + 1..=value + 200);
                value += 200;
            }
            let read = queue.read_signal_log().unwrap();
            assert_eq!((read.entries.len(), read.lost), (1005, 0));
        }
        bench.adapter.set_tracing(Tracing::Off).unwrap();
        assert_eq!(sizes(bench, &before), small);
        assert_eq!(sizes(bench, &after), small);
        assert_eq!(sizes(bench, &bench.queue()), small);
    });
}

/// Where a queue's logs cannot be enlarged as much is traced as before, on every queue.
///
/// Kills `tracing-that-failed-is-on`.
#[test]
fn lg_07_tracing_that_cannot_be_had_changes_nothing() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        bench.spy.fail(Failing::SetNativeFenceLogBuffer);
        let refused = bench.adapter.set_tracing(Tracing::On);
        assert!(matches!(refused, Err(OsError::Driver(_))), "{refused:?}");
        assert_eq!(bench.adapter.os().tracing(), Tracing::Off);
        bench.spy.succeed();
        let fence = bench.fence(0);
        complete(&mut queue, CommandList::new().signal(&fence, 1));
        assert_eq!(values_of(&queue.read_signal_log().unwrap(), &fence), [1]);
        let small = [(LOG_BUFFER_ENTRIES, LOG_BUFFER_ENTRIES); 2];
        assert_eq!(sizes(bench, &bench.queue()), small);
    });
}
