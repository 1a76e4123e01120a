//! Words that two parties share and that no mutex covers, each by itself, in every order that loom finds:
//! native fence logs, values of 32 bits and idle waits. As `tests/loom.rs` otherwise.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_rig;
}

use loom::thread;
use native_fence::abi::{LOG_BUFFER_BYTES, LogEntry, LogHeader, LogOperation, LogType, PAGE_BYTES};
use native_fence::gpu::ExploredLog;
use native_fence::os::{ExploredLowHalf, ExploredMovingLog, LogRead, LogReader};
use native_fence::shared::{Block, Region};
use native_fence::vulkan::ExploredIdleWaits;
use std::convert::Infallible;
use std::sync::Arc;
use support::loom_rig::explore;

/// Entries of an explored log.
const ENTRIES: u32 = 3;

/// An engine that logs, and a reader of the same log.
fn log(kind: LogType) -> (ExploredLog, LogReader) {
    let region = Region::new("fence-log", LOG_BUFFER_BYTES).unwrap();
    let log = Block::whole(&region.map().unwrap());
    // Loom wants the words made before there are several threads.
    let _ = log.part(0, LogHeader::BYTES + u64::from(ENTRIES) * LogEntry::BYTES);
    let engine = ExploredLog::new(&region, ENTRIES).unwrap();
    (engine, LogReader::new(log, kind, ENTRIES))
}

/// What a reader has read of values that are logged one after the other, beginning with 1.
#[derive(Debug, Default)]
struct Seen {
    last: u64,
}

impl Seen {
    /// Each entry is whole, comes once and in order, and what is missing is said to be lost.
    fn takes(&mut self, read: &LogRead) {
        assert_eq!(read.refused, 0);
        self.last += read.lost;
        for entry in &read.entries {
            self.last += 1;
            let whole = (entry.fence_value, entry.end_ticks) == (self.last, self.last);
            assert!(
                whole,
                "{entry:?} is taken for what was logged as {}",
                self.last
            );
        }
    }
}

fn read(reader: &mut LogReader) -> LogRead {
    reader.read(|| Ok::<_, Infallible>(())).unwrap()
}

/// LG-05, LG-06: the engine logs, and goes round, while a reader copies: what it had read when it looked again is what it
/// keeps, and it knows how many it has missed.
#[test]
fn loom_a_log_is_read_while_the_engine_writes_over_it() {
    explore(2..=3, || {
        let (mut engine, mut reader) = log(LogType::Waits);
        let mut log = move |value| engine.log(LogOperation::WaitUnblocked, value).unwrap();
        (1..=2).for_each(&mut log);
        loom::explore();
        let logs = thread::spawn(move || (3..=5).for_each(log));
        let mut seen = Seen::default();
        seen.takes(&read(&mut reader));
        logs.join().unwrap();
        loom::stop_exploring();
        seen.takes(&read(&mut reader));
        assert_eq!(seen.last, 5);
    });
}

/// LG-07: the log is moved while the engine logs and the OS reads: no entry is lost or comes twice, and none of the new
/// place before one of the old.
#[test]
fn loom_a_log_is_moved_while_it_is_written_and_read() {
    explore(2..=3, || {
        let log = Arc::new(ExploredMovingLog::new().unwrap());
        let next = log.next().unwrap();
        log.log();
        loom::explore();
        let moves = thread::spawn({
            let log = Arc::clone(&log);
            move || next(&log)
        });
        // Of two slices, which end before the driver moves the log, or begin after it.
        let slices = [(); 2].map(|()| {
            let log = Arc::clone(&log);
            thread::spawn(move || log.log())
        });
        let mut seen = Seen::default();
        (1..=2).for_each(|_| seen.takes(&log.read()));
        moves.join().unwrap();
        slices.into_iter().for_each(|slice| slice.join().unwrap());
        loom::stop_exploring();
        seen.takes(&log.read());
        assert_eq!(seen.last, 3);
    });
}

/// MF-06: of a fence of 32 bits an engine stores one signal and then another, as far from the first as may be, and so beyond
/// what the value before it can be carried to. Who saw that the first command has completed may queue the second; whoever
/// looks finds a value that was stored; and what is too far from the one that is stored, or will be, is refused.
#[test]
fn loom_a_value_of_32_bits_is_carried_while_it_is_signalled() {
    const FIRST: u64 = 0x5_0000_0000;
    const SECOND: u64 = FIRST + ExploredLowHalf::FURTHEST;
    const THIRD: u64 = SECOND + ExploredLowHalf::FURTHEST;
    explore(2..=3, || {
        let fence = ExploredLowHalf::new(FIRST).unwrap();
        let second = fence.queue(SECOND, 1).unwrap();
        loom::explore();
        let engine = thread::spawn({
            let (fence, second) = (fence.clone(), second.clone());
            move || fence.execute(&second)
        });
        let looks = thread::spawn({
            let fence = fence.clone();
            move || {
                let mut last = FIRST;
                for _ in 0..2 {
                    let now = fence.current_value();
                    assert!(
                        [FIRST, SECOND, THIRD].contains(&now),
                        "{now:#x} was never stored"
                    );
                    assert!(now >= last, "{now:#x} after {last:#x}");
                    last = now;
                }
            }
        });
        assert!(fence.queue(FIRST - ExploredLowHalf::FURTHEST, 2).is_none());
        let mut last = SECOND;
        if fence.has_completed(&second) {
            let third = fence.queue(THIRD, 2).expect("it is near");
            fence.execute(&third);
            fence.tell(&third);
            last = THIRD;
        }
        engine.join().unwrap();
        looks.join().unwrap();
        loom::stop_exploring();
        fence.tell(&second);
        assert_eq!(fence.current_value(), last);
    });
}

/// Who sleeps apart from the driver for what is submitted, as that is looked at under a lock: he sees that it was
/// submitted, or whoever submits that he sleeps.
#[test]
fn loom_something_is_submitted_while_its_waiter_goes_to_sleep() {
    explore(3..=4, || {
        let waits = Arc::new(ExploredIdleWaits::default());
        let promised = Arc::new(loom::sync::Mutex::new(0));
        loom::explore();
        let submits = thread::spawn({
            let (waits, promised) = (Arc::clone(&waits), Arc::clone(&promised));
            move || {
                for value in 1..=2 {
                    *promised.lock().unwrap() = value;
                    waits.call();
                }
            }
        });
        waits.sleep_until(|| *promised.lock().unwrap() >= 2);
        submits.join().unwrap();
        loom::stop_exploring();
    });
}

/// The same of what is looked at without a lock.
#[test]
fn loom_waits_are_ended_while_their_waiter_goes_to_sleep() {
    explore(3..=4, || {
        let waits = Arc::new(ExploredIdleWaits::default());
        let page = Region::new("ended", PAGE_BYTES).unwrap().map().unwrap();
        let ended = Block::whole(&page);
        loom::explore();
        let ends = thread::spawn({
            let (waits, ended) = (Arc::clone(&waits), ended.clone());
            move || {
                ended.word(0).put(1);
                waits.call_anyway();
            }
        });
        waits.sleep_until(|| ended.word(0).peek() == 1);
        ends.join().unwrap();
        loom::stop_exploring();
    });
}

/// The device is lost while its waiters go to sleep.
#[test]
fn loom_a_device_is_lost_while_its_waiters_go_to_sleep() {
    explore(3..=4, || {
        let waits = Arc::new(ExploredIdleWaits::default());
        loom::explore();
        let sleeps = thread::spawn({
            let waits = Arc::clone(&waits);
            move || waits.sleep_until(|| false)
        });
        let loses = thread::spawn({
            let waits = Arc::clone(&waits);
            move || waits.note_loss()
        });
        // Somebody submits what they do not wait for.
        waits.call();
        waits.sleep_until(|| false);
        sleeps.join().unwrap();
        loses.join().unwrap();
        loom::stop_exploring();
    });
}
