//! Rules of the log buffers (LG-01 to LG-03), on the real device: what stands in them.
//!
//! The spy sees the buffers that the OS hands to the driver; the tests read their bytes through a
//! mapping of their own, beside what the OS's reader makes of them.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod logs;
}

use native_fence::abi::{LogIndex, LogOperation, LogType};
use native_fence::vulkan::Driver;
use native_fence::{CommandList, HwQueueOptions};
use std::sync::Arc;
use support::bench::{Bench, LONG};
use support::logs::{logs, now, run, signal_all};

const WAIT: u32 = LogOperation::WaitUnblocked as u32;
const SIGNAL: u32 = LogOperation::SignalExecuted as u32;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// LG-01. The CMP address of each buffer, which a driver with `MapToGpuSystemProcess` gets in the same
/// two calls, is shown in `system_process` (NF-16).
/// That OS and engine have an address each is shown by what they read and write through it.
///
/// Mutants: `log-type-always-waits`, `log-entry-overlaps-header`.
#[test]
fn lg_01_each_queue_has_two_logs_of_84_entries_in_the_published_bytes() {
    let bench = Bench::new();
    let mut queue = bench
        .device
        .create_hw_queue_disconnected(HwQueueOptions::default())
        .unwrap();
    let handle = queue.os().handle();

    let mut set = bench.spy.logs();
    set.retain(|log| log.0 == handle);
    let [
        (_, LogType::Waits, waits, 84),
        (_, LogType::Signals, signals, 84),
    ] = &set[..]
    else {
        panic!("two SetNativeFenceLogBuffer calls, waits and signals: {set:?}");
    };
    let apart = waits.1.abs_diff(signals.1) >= 4096;
    assert!(!Arc::ptr_eq(&waits.0, &signals.0) || apart, "two buffers");

    let (wait_log, signal_log) = logs(&bench, &queue);
    for (log, log_type) in [(&wait_log, 1), (&signal_log, 2)] {
        let bytes = log.bytes();
        assert_eq!(u32_at(&bytes, 0), 0, "FirstFreeEntryIndex");
        assert_eq!(u32_at(&bytes, 4), 0, "WraparoundCount");
        assert_eq!(u32_at(&bytes, 8), log_type, "Type");
        assert_eq!(u64_at(&bytes, 16), 84, "NumberOfEntries");
    }

    // Fill both to the last entry.
    queue.connect_doorbell().unwrap();
    let (first, second) = (bench.fence(0), bench.fence(0));
    let mut list = CommandList::new();
    for value in 1..=83 {
        list.signal(&first, value).wait(&first, value);
    }
    list.wait(&first, 7);
    run(&mut queue, &list);
    let handles = (first.handle().raw(), queue.progress_fence().handle().raw());
    for (log, log_type, operation) in [(&wait_log, 1, 1), (&signal_log, 2, 0)] {
        let bytes = log.bytes();
        assert_eq!((u32_at(&bytes, 0), u32_at(&bytes, 4)), (0, 1));
        assert_eq!(u32_at(&bytes, 8), log_type, "Type stays");
        assert_eq!(u64_at(&bytes, 16), 84, "NumberOfEntries stays");
        for i in 0..84 {
            let entry = &bytes[40 + 48 * i..][..48];
            let is_progress = operation == 0 && i == 83;
            let value = match (operation, i) {
                (1, 83) => 7,
                (_, 83) => 1,
                (_, i) => i as u64 + 1,
            };
            assert_eq!(u64_at(entry, 0), value, "FenceValue of entry {i}");
            let handle = if is_progress { handles.1 } else { handles.0 };
            assert_eq!(u32_at(entry, 8), handle, "hNativeFence of entry {i}");
            assert_eq!(u32_at(entry, 12), operation, "OperationType of entry {i}");
            assert_eq!((u64_at(entry, 16), u64_at(entry, 32)), (0, 0), "reserved");
            assert_ne!(u64_at(entry, 40), 0, "FenceEndGpuTimestamp of entry {i}");
        }
        assert_eq!(bytes[4072..], [0; 24], "nothing follows the last entry");
    }

    // The OS reads these bytes.
    let read = queue.read_signal_log().unwrap().entries;
    assert_eq!(read, signal_log.last(83));
    assert_eq!(queue.read_wait_log().unwrap().entries, wait_log.last(83));
    drop(second);
}

/// LG-02. That the observed time is of the first look is shown by the clock on lavapipe, whose
/// engine clock is the host's monotonic clock; on other devices, by its order alone.
///
/// Mutants: `log-observed-at-the-end`, `log-operation-swapped`.
#[test]
fn lg_02_a_stalled_wait_and_a_signal_log_value_handle_operation_and_times() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let (awaited, done) = (bench.fence(0), bench.fence(0));

    let submitted = now();
    let mut list = CommandList::new();
    list.nop().wait(&awaited, 5).signal(&done, 9);
    let value = queue.submit(&list).unwrap();
    // The engine parks: it has looked, and looked again in more than one slice.
    bench.until_parked();
    let stalled = now();
    awaited.signal(6).unwrap();
    queue.progress_fence().wait(value, LONG).unwrap();
    let completed = now();

    let waits = queue.read_wait_log().unwrap().entries;
    let signals = queue.read_signal_log().unwrap().entries;
    let [wait] = waits[..] else {
        panic!("one wait: {waits:?}")
    };
    assert_eq!(
        (wait.fence_value, wait.native_fence, wait.operation),
        (5, awaited.handle().raw(), WAIT),
        "the value waited for, by the user's handle"
    );
    let [signal, progress] = signals[..] else {
        panic!("a signal and the progress write: {signals:?}")
    };
    assert_eq!(
        (signal.fence_value, signal.native_fence, signal.operation),
        (9, done.handle().raw(), SIGNAL)
    );
    assert_eq!(
        (
            progress.fence_value,
            progress.native_fence,
            progress.operation
        ),
        (value, queue.progress_fence().handle().raw(), SIGNAL)
    );
    assert!(wait.observed_ticks < wait.end_ticks, "{wait:?}");
    assert!(wait.end_ticks <= signal.end_ticks && signal.end_ticks <= progress.end_ticks);
    if bench.info().driver == Driver::Lavapipe {
        let times = [
            submitted,
            wait.observed_ticks,
            stalled,
            wait.end_ticks,
            completed,
        ];
        assert!(times.is_sorted(), "not in order: {times:?}");
        assert!(signal.end_ticks <= completed && progress.end_ticks <= completed);
    }
}

/// LG-02, the choice.
///
/// Mutant: `log-satisfied-wait-unobserved`.
#[test]
fn lg_02_a_satisfied_wait_is_logged_with_observed_equal_to_end() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let fence = bench.device.create_fence(3).unwrap();
    let mut list = CommandList::new();
    list.wait(&fence, 3)
        .wait(&fence, 0)
        .signal(&fence, 4)
        .wait(&fence, 4);
    run(&mut queue, &list);
    let waits = queue.read_wait_log().unwrap().entries;
    let values: Vec<u64> = waits.iter().map(|wait| wait.fence_value).collect();
    assert_eq!(values, [3, 0, 4]);
    for wait in waits {
        assert_eq!(
            (wait.native_fence, wait.operation),
            (fence.handle().raw(), WAIT)
        );
        assert_ne!(wait.end_ticks, 0);
        assert_eq!(wait.observed_ticks, wait.end_ticks);
    }
}

/// LG-03. The one store is shown by `load_log_buffer`, where a thread reads the word all the time.
///
/// Mutants: `log-wrap-without-count`, `log-index-one-past-the-end`.
#[test]
fn lg_03_after_the_last_entry_the_index_is_zero_and_the_count_one_more() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let fence = bench.fence(0);
    let (waits, signals) = logs(&bench, &queue);
    let at = |index, count| LogIndex {
        first_free_entry_index: index,
        wraparound_count: count,
    };

    // Each submission logs one signal more: the progress write, whose entry comes after its value.
    let mut logged = |first: u64, values: u64| {
        signal_all(&mut queue, &fence, first..first + values);
        bench.until_parked();
        signals.index()
    };
    assert_eq!(logged(1, 82), at(83, 0));
    assert_eq!(logged(83, 0), at(0, 1));
    assert_eq!(logged(83, 1), at(2, 1));
    assert_eq!(logged(84, 3 * 84 - 1), at(2, 4));
    assert_eq!(waits.word(), 0, "no wait was logged");

    let mut list = CommandList::new();
    for _ in 0..84 {
        list.wait(&fence, 1);
    }
    run(&mut queue, &list);
    assert_eq!(waits.index(), at(0, 1));
}
