//! Rules of the log buffers (LG) that show under load: a reader and an engine at the same time.
//!
//! Each test loads two cores for a moment.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod logs;
}

use native_fence::abi::{LogOperation, LogType};
use native_fence::vulkan::Driver;
use native_fence::{CommandList, HwQueueOptions};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::bench::{Bench, Ended, LONG};
use support::logs::now;

/// A queue whose ring holds `packets`.
fn options(packets: u64) -> HwQueueOptions {
    HwQueueOptions {
        ring_capacity: packets,
        ..HwQueueOptions::default()
    }
}

/// LG-03: a thread reads the index word all the time. Two stores, or a count that is late, would
/// show as an index that goes back or stands past the end.
///
/// Mutants: `log-wrap-without-count`, `log-index-one-past-the-end`.
#[test]
fn lg_03_a_reader_of_the_header_never_sees_an_impossible_pair() {
    let bench = Bench::new();
    let mut queue = bench.device.create_hw_queue_with(options(1 << 14)).unwrap();
    let log = bench.spy.log(queue.os().handle(), LogType::Signals);
    let fence = bench.fence(0);
    let ended = AtomicBool::new(false);
    let rounds = 8u64;
    let signals = 8000;
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut last, mut sights) = (0, 0u64);
            while !ended.load(Ordering::Acquire) {
                let index = log.index();
                assert!(index.first_free_entry_index < 84, "{index:?}");
                let total = u64::from(index.wraparound_count) * 84
                    + u64::from(index.first_free_entry_index);
                assert!(total >= last, "went back from {last} to {total}");
                sights += u64::from(total > last);
                last = total;
            }
            sights
        });
        let end = Ended(&ended);
        for round in 0..rounds {
            let mut list = CommandList::new();
            for value in 1..=signals {
                list.signal(&fence, round * signals + value);
            }
            let value = queue.submit(&list).unwrap();
            queue.progress_fence().wait(value, LONG).unwrap();
        }
        drop(end);
        let sights = watcher.join().unwrap();
        println!("{sights} different indices seen");
    });
    assert_eq!(log.total(), rounds * (signals + 1));
}

/// LG-06: a reader that reads while the engine writes gives each entry exactly as it was written,
/// at its place in the row, or counts it as lost.
///
/// Kills `log-lost-entries-not-counted`.
#[test]
fn lg_06_what_a_racing_reader_gives_is_what_was_written_or_lost() {
    let bench = Bench::new();
    let mut queue = bench.device.create_hw_queue_with(options(1 << 14)).unwrap();
    let os = std::sync::Arc::clone(queue.os());
    let fence = bench.fence(0);
    let (handle, progress) = (fence.handle().raw(), queue.progress_fence().handle().raw());
    let (rounds, signals) = (16u64, 4000u64);
    let ended = AtomicBool::new(false);
    // Running number → what that entry says.
    let expected = |number: u64| {
        let (round, place) = (number / (signals + 1), number % (signals + 1));
        if place == signals {
            (progress, round + 1)
        } else {
            (handle, round * signals + place + 1)
        }
    };
    let mut signal = |round| {
        let mut list = CommandList::new();
        for place in 0..signals {
            list.signal(&fence, round * signals + place + 1);
        }
        let value = queue.submit(&list).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
    };
    // However fast the reader is, it is overrun here.
    signal(0);
    let (told, lost) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut number, mut told, mut lost, mut end_ticks) = (0, 0, 0, 0);
            loop {
                let last_look = ended.load(Ordering::Acquire);
                let read = os.read_log(LogType::Signals).unwrap();
                assert_eq!(read.refused, 0);
                lost += read.lost;
                number += read.lost;
                for entry in read.entries {
                    assert_eq!(
                        (entry.native_fence, entry.fence_value),
                        expected(number),
                        "entry {number}"
                    );
                    assert_eq!(entry.operation, LogOperation::SignalExecuted as u32);
                    assert!(
                        entry.end_ticks >= end_ticks,
                        "time went back at entry {number}"
                    );
                    end_ticks = entry.end_ticks;
                    number += 1;
                    told += 1;
                }
                if last_look {
                    return (told, lost);
                }
            }
        });
        let end = Ended(&ended);
        (1..rounds).for_each(&mut signal);
        drop(end);
        reader.join().unwrap()
    });
    println!("{told} entries, {lost} lost");
    assert_eq!(told + lost, rounds * (signals + 1));
    assert!(lost >= signals + 1 - 84, "the first round was not all kept");
}

/// LG-08: across the wrap of lavapipe's clock, which gives the low 32 bits of nanoseconds. The
/// test sleeps until shortly before the wrap, at most 4.3 s; on a device with a whole clock there
/// is nothing to cross.
///
/// Mutants: `log-clock-not-extended`, `log-base-ticks-zero`.
#[test]
fn lg_08_times_never_go_back_across_the_wrap_of_a_short_clock() {
    let bench = Bench::new();
    if bench.info().driver != Driver::Lavapipe || bench.info().features.shader_clock_bits != 32 {
        println!(
            "skipped: the clock of {} has no wrap to cross",
            bench.info().name
        );
        return;
    }
    let mut queue = bench.queue();
    let mut stalled = bench.queue();
    let (fence, awaited) = (bench.fence(0), bench.fence(0));
    let value = stalled
        .submit(CommandList::new().wait(&awaited, 1))
        .unwrap();
    // The engine has looked at it.
    bench.until_parked();

    // Signals before, over and after the wrap, and a wait that stood all the time.
    let mut number = 0;
    let mut forty = || {
        let mut list = CommandList::new();
        for _ in 0..40 {
            number += 1;
            list.signal(&fence, number);
        }
        let value = queue.submit(&list).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        queue.read_signal_log().unwrap().entries
    };
    let mut signals = forty();
    let wrap = (signals.last().unwrap().end_ticks & !0xffff_ffff) + (1 << 32);
    let margin = 20_000_000;
    std::thread::sleep(Duration::from_nanos(wrap.saturating_sub(now() + margin)));
    while now() <= wrap {
        signals.extend(forty());
    }
    signals.extend(forty());
    awaited.signal(1).unwrap();
    stalled.progress_fence().wait(value, LONG).unwrap();
    let ended = now();

    assert!(signals.is_sorted_by_key(|entry| entry.end_ticks));
    assert!(signals.first().unwrap().end_ticks < wrap && signals.last().unwrap().end_ticks > wrap);
    assert!(signals.last().unwrap().end_ticks <= ended);
    let waits = stalled.read_wait_log().unwrap().entries;
    assert_eq!(waits.len(), 1);
    assert!(
        waits[0].observed_ticks < wrap && waits[0].end_ticks > wrap,
        "{waits:?}"
    );
    assert!(waits[0].end_ticks <= ended);
}
