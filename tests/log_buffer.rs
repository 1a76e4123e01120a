//! Rules of the log buffers (LG), on the real device.
//!
//! The spy sees the buffers that the OS hands to the driver; the tests read their bytes through a
//! mapping of their own, beside what the OS's reader makes of them.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod engine_spy;
    pub(crate) mod log_spy;
}

use native_fence::abi::{
    FaultCode, LogEntry, LogIndex, LogOperation, LogType, PACKET_BYTES, Packet,
};
use native_fence::gpu::NodePolicy;
use native_fence::vulkan::Driver;
use native_fence::{CommandList, Fence, HwQueue, HwQueueOptions, WaitError};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::bench::{Bench, LONG, assert_no_validation_message};
use support::log_spy::{Call, RawLog};

const WAIT: u32 = LogOperation::WaitUnblocked as u32;
const SIGNAL: u32 = LogOperation::SignalExecuted as u32;

fn run(queue: &mut HwQueue, list: &CommandList) {
    let value = queue.submit(list).unwrap();
    queue.progress_fence().wait(value, LONG).unwrap();
}

/// Signals `values` of `fence`, in one submission that is completed on return.
fn signal_all(queue: &mut HwQueue, fence: &Fence, values: impl IntoIterator<Item = u64>) {
    let mut list = CommandList::new();
    for value in values {
        list.signal(fence, value);
    }
    run(queue, &list);
}

fn logs(bench: &Bench, queue: &HwQueue) -> (RawLog, RawLog) {
    let handle = queue.os().handle();
    (
        bench.spy.log(handle, LogType::Waits),
        bench.spy.log(handle, LogType::Signals),
    )
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The monotonic clock in nanoseconds, which is lavapipe's shader clock.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// LG-01. Open: the CMP address of each buffer, which the call does not carry before there is
/// `MapToGpuSystemProcess` (NF-16); a driver with the cap would show it in the same two calls.
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

    let set: Vec<_> = bench
        .spy
        .calls()
        .into_iter()
        .filter_map(|call| match call {
            Call::SetLog(of, log, place, entries) if of == handle => Some((log, place, entries)),
            _ => None,
        })
        .collect();
    let [(LogType::Waits, waits, 84), (LogType::Signals, signals, 84)] = &set[..] else {
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
    let (first, second) = (bench.fence(), bench.fence());
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
    assert_no_validation_message();
}

/// LG-02. That the observed time is of the first look is shown by the clock on lavapipe, whose
/// engine clock is the host's monotonic clock; on other devices, by its order alone.
///
/// Mutants: `log-observed-at-the-end`, `log-operation-swapped`.
#[test]
fn lg_02_a_stalled_wait_and_a_signal_log_value_handle_operation_and_times() {
    let bench = Bench::new();
    let mut queue = bench.device.create_hw_queue().unwrap();
    let (awaited, done) = (bench.fence(), bench.fence());

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
    if bench.info.driver == Driver::Lavapipe {
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
    assert_no_validation_message();
}

/// LG-02, the choice.
///
/// Mutant: `log-satisfied-wait-unobserved`.
#[test]
fn lg_02_a_satisfied_wait_is_logged_with_observed_equal_to_end() {
    let bench = Bench::new();
    let mut queue = bench.device.create_hw_queue().unwrap();
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
    assert_no_validation_message();
}

/// LG-03. The one store is shown by `load_log_buffer`, where a thread reads the word all the time.
///
/// Mutants: `log-wrap-without-count`, `log-index-one-past-the-end`.
#[test]
fn lg_03_after_the_last_entry_the_index_is_zero_and_the_count_one_more() {
    let bench = Bench::new();
    let mut queue = bench.device.create_hw_queue().unwrap();
    let fence = bench.fence();
    let (waits, signals) = logs(&bench, &queue);
    let at = |index, count| LogIndex {
        first_free_entry_index: index,
        wraparound_count: count,
    };

    // Each submission logs one signal more: the progress write.
    signal_all(&mut queue, &fence, 1..=82);
    assert_eq!(signals.index(), at(83, 0));
    signal_all(&mut queue, &fence, []);
    assert_eq!(signals.index(), at(0, 1));
    signal_all(&mut queue, &fence, 83..=83);
    assert_eq!(signals.index(), at(2, 1));
    signal_all(&mut queue, &fence, 84..=84 + 3 * 84 - 2);
    assert_eq!(signals.index(), at(2, 4));
    assert_eq!(waits.word(), 0, "no wait was logged");

    let mut list = CommandList::new();
    for _ in 0..84 {
        list.wait(&fence, 1);
    }
    run(&mut queue, &list);
    assert_eq!(waits.index(), at(0, 1));
    assert_no_validation_message();
}

/// LG-04: the entry is the one that the packet's number says.
///
/// Mutants: `log-number-not-counted`, `log-index-one-past-the-end`.
#[test]
fn lg_04_packets_carry_running_numbers_and_the_engine_makes_the_entry_of_them() {
    let bench = Bench::new();
    let mut queue = bench.device.create_hw_queue().unwrap();
    let fence = bench.fence();
    let (_, signals) = logs(&bench, &queue);
    let mut list = CommandList::new();
    let (mut number, mut waits, mut packet) = (0, 0, 0);
    for round in 0..40u64 {
        list.clear();
        list.signal(&fence, 2 * round + 1)
            .wait(&fence, 1)
            .nop()
            .signal(&fence, 2 * round + 2);
        run(&mut queue, &list);
        let numbers = [
            Some(number),
            Some(waits),
            None,
            Some(number + 1),
            Some(number + 2),
        ];
        for expected in numbers {
            let (_, packets) = queue.raw_memory();
            let at = packet % 1024 * PACKET_BYTES + Packet::LOG_NUMBER;
            if let Some(expected) = expected {
                assert_eq!(packets.word(at).peek(), expected, "packet {packet}");
            }
            packet += 1;
        }
        let entry = |number: u64| signals.entry((number % 84) as u32);
        assert_eq!(entry(number).fence_value, 2 * round + 1);
        assert_eq!(entry(number + 1).fence_value, 2 * round + 2);
        assert_eq!(
            entry(number + 2).fence_value,
            round + 1,
            "the progress write"
        );
        number += 3;
        waits += 1;
    }
    assert_eq!(signals.total(), number);
    assert_no_validation_message();
}

/// LG-04: a number that is not the next one.
///
/// Mutant: `log-number-unchecked`.
#[test]
fn lg_04_a_number_that_is_not_the_next_one_faults_the_queue() {
    let bench = Bench::new();
    let fence = bench.device.create_fence(10).unwrap();
    let mut other = bench.device.create_hw_queue().unwrap();
    // Packets: signal 0, wait 0, signal 1, wait 1, progress 2.
    for (packet, number) in [(2, 2), (2, 0), (2, u64::MAX), (3, 0), (3, 2), (4, 1)] {
        let mut queue = bench
            .device
            .create_hw_queue_disconnected(HwQueueOptions::default())
            .unwrap();
        let (_, signals) = logs(&bench, &queue);
        let target = bench.fence();
        let mut list = CommandList::new();
        list.signal(&target, 1)
            .wait(&fence, 1)
            .signal(&target, 2)
            .wait(&fence, 2);
        let value = queue.queue_commands(&list).unwrap();
        let (_, packets) = queue.raw_memory();
        packets
            .word(packet * PACKET_BYTES + Packet::LOG_NUMBER)
            .publish(number);
        queue.connect_doorbell().unwrap();

        let Err(WaitError::QueueFaulted(fault)) = queue.progress_fence().wait(value, LONG) else {
            panic!("packet {packet} with number {number} was taken")
        };
        assert_eq!((fault.code, fault.packet), (FaultCode::LogNumber, packet));
        assert_eq!(
            queue.read_index(),
            packet,
            "nothing after the packet before it"
        );
        let logged = if packet == 2 { 1 } else { 2 };
        assert_eq!(signals.total(), logged);
        assert_eq!(target.current_value(), logged, "the packet stored nothing");
        assert_eq!(queue.progress_fence().current_value(), 0);
        // Another queue goes on.
        signal_all(&mut other, &fence, [10 + value]);
    }
    assert_no_validation_message();
}

/// LG-04: who has an address of a log. Logs lie in a file with nothing else; the process's table of
/// mappings shows the OS's and the engine's, both of the OS side, and none of the user's.
///
/// Mutant: none by a one-line edit: a third mapping would have to be made.
#[test]
fn lg_04_the_user_has_no_mapping_of_a_log() {
    let bench = Bench::new();
    let queue = bench.device.create_hw_queue().unwrap();
    let handle = queue.os().handle();
    for call in bench.spy.calls() {
        let Call::SetLog(of, _, (region, _), _) = call else {
            continue;
        };
        assert_eq!(of, handle);
        let inode = rustix::fs::fstat(region.as_fd())
            .unwrap()
            .st_ino
            .to_string();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let of_log = |line: &&str| line.split_whitespace().nth(4) == Some(&inode);
        assert_eq!(maps.lines().filter(of_log).count(), 2, "{maps}");
    }
    assert_no_validation_message();
}

/// LG-05: the driver's call comes before any entry is read. Inside the call the test changes an
/// entry: the reader must give what stands there after the call.
///
/// Mutants: `log-read-without-commit`, `log-read-commits-late`, `log-read-commits-always`.
#[test]
fn lg_05_update_native_fence_logs_is_called_before_entries_are_read() {
    let bench = Bench::new();
    let mut queue = bench.device.create_hw_queue().unwrap();
    let silent = bench.device.create_hw_queue().unwrap();
    let fence = bench.fence();
    let updates = |bench: &Bench| bench.spy.count(|call| matches!(call, Call::UpdateLogs(_)));
    assert_eq!(queue.read_signal_log().unwrap().entries, []);
    assert_eq!(updates(&bench), 0, "no call where there are no new entries");

    signal_all(&mut queue, &fence, 1..=3);
    let (_, signals) = logs(&bench, &queue);
    let changed = signals.clone();
    bench.spy.in_next_update_logs(move || {
        changed.block.word(LogIndex::entry_offset(1)).publish(77);
    });
    let values = |entries: Vec<LogEntry>| -> Vec<u64> {
        entries.iter().map(|entry| entry.fence_value).collect()
    };
    assert_eq!(
        values(queue.read_signal_log().unwrap().entries),
        [1, 77, 3, 1]
    );
    assert_eq!(silent.read_signal_log().unwrap().entries, []);
    let Some(Call::UpdateLogs(named)) = bench.spy.calls().pop() else {
        panic!("the call is the last")
    };
    assert_eq!(
        named,
        [queue.os().handle()],
        "the queue with new entries alone"
    );
    assert_eq!(updates(&bench), 1);
    assert_no_validation_message();
}

/// LG-06: nobody reads, the GPU goes on, the reader finds out.
///
/// Mutant: `log-lost-entries-not-counted`.
#[test]
fn lg_06_an_overrun_never_blocks_the_gpu_and_the_rest_is_counted_as_lost() {
    let bench = Bench::new();
    let mut queue = bench.device.create_hw_queue().unwrap();
    let fence = bench.fence();
    signal_all(&mut queue, &fence, 1..=500);
    assert_eq!(fence.current_value(), 500);

    let read = queue.read_signal_log().unwrap();
    let values: Vec<u64> = read.entries.iter().map(|entry| entry.fence_value).collect();
    // 501 entries with the progress write; the place that is written next is not trusted.
    let expected: Vec<u64> = (419..=500).chain([1]).collect();
    assert_eq!(values, expected);
    assert_eq!((read.lost, read.refused), (501 - 83, 0));

    signal_all(&mut queue, &fence, 501..=502);
    let read = queue.read_signal_log().unwrap();
    let values: Vec<u64> = read.entries.iter().map(|entry| entry.fence_value).collect();
    assert_eq!(
        (values, read.lost),
        (vec![501, 502, 2], 0),
        "then it goes on as before"
    );
    assert_no_validation_message();
}

/// LG-06: the engine laps the reader between its look at the index and its copy.
///
/// Mutant: `log-overtaken-entries-are-data`.
#[test]
fn lg_06_an_overrun_while_the_reader_copies_is_detected() {
    for overrun in [1, 30, 83, 84, 200] {
        let bench = Bench::new();
        let queue = Arc::new(Mutex::new(bench.device.create_hw_queue().unwrap()));
        let os = Arc::clone(queue.lock().unwrap().os());
        let fence = bench.fence();
        signal_all(&mut queue.lock().unwrap(), &fence, 1..=83);
        assert!(os.read_log(LogType::Signals).unwrap().lost <= 1);
        signal_all(&mut queue.lock().unwrap(), &fence, 84..=163);

        let (engine, goes_on) = (Arc::clone(&queue), fence.clone());
        bench.spy.in_next_update_logs(move || {
            // `overrun` entries with the progress write.
            signal_all(&mut engine.lock().unwrap(), &goes_on, 164..163 + overrun);
        });
        let read = os.read_log(LogType::Signals).unwrap();
        let values: Vec<u64> = read.entries.iter().map(|entry| entry.fence_value).collect();
        // 81 entries were new: of the 83 that the log keeps beside the next place, those remain
        // that the engine has not reached.
        let all: Vec<u64> = (84..=163).chain([2]).collect();
        let kept = 83usize.saturating_sub(overrun as usize).min(81);
        assert_eq!(values, all[81 - kept..], "after {overrun} more");
        assert_eq!((read.lost, read.refused), (81 - kept as u64, 0));

        let rest = os.read_log(LogType::Signals).unwrap();
        assert_eq!(
            rest.entries.len() as u64 + rest.lost,
            overrun,
            "each is told of once"
        );
    }
    assert_no_validation_message();
}

/// LG-08, over many slices. The wrap of lavapipe's clock, every 4.29 s, is in `load_log_buffer`.
///
/// Mutants: `log-clock-not-extended`, `log-base-ticks-zero`.
#[test]
fn lg_08_times_never_go_back_across_slices() {
    let bench = Bench::with_policy(NodePolicy {
        slice_time: Duration::from_micros(20),
        idle_window: Duration::from_micros(20),
        ..NodePolicy::default()
    });
    let mut queue = bench.device.create_hw_queue().unwrap();
    let mut partner = bench.device.create_hw_queue().unwrap();
    let (there, back) = (bench.fence(), bench.fence());
    let slices = bench.adapter.node_counters().slices;
    let began = now();
    let (mut waits, mut signals) = (vec![], vec![]);
    for round in 0..20u64 {
        let (mut list, mut answers) = (CommandList::new(), CommandList::new());
        for value in round * 40 + 1..=round * 40 + 40 {
            list.signal(&there, value).wait(&back, value);
            answers.wait(&there, value).signal(&back, value);
        }
        partner.submit(&answers).unwrap();
        run(&mut queue, &list);
        waits.extend(queue.read_wait_log().unwrap().entries);
        signals.extend(queue.read_signal_log().unwrap().entries);
    }
    let ended = now();
    let slices = bench.adapter.node_counters().slices - slices;
    assert!(slices > 20, "{slices} slices do not show much");
    assert_eq!((waits.len(), signals.len()), (20 * 40, 20 * 41));
    for log in [&waits, &signals] {
        assert!(log.is_sorted_by_key(|entry| entry.end_ticks));
    }
    assert!(
        waits
            .iter()
            .all(|wait| wait.observed_ticks <= wait.end_ticks)
    );
    if bench.info.driver == Driver::Lavapipe {
        for entry in waits.iter().chain(&signals) {
            assert!((began..=ended).contains(&entry.end_ticks), "{entry:?}");
        }
    }
    assert_no_validation_message();
}

/// LG-08: zero and repeated times are data, not errors.
///
/// Mutant: `log-zero-time-refused`.
#[test]
fn lg_08_zero_and_repeated_times_are_accepted() {
    let bench = Bench::new();
    let mut queue = bench.device.create_hw_queue().unwrap();
    let fence = bench.fence();
    signal_all(&mut queue, &fence, 1..=4);
    let (_, signals) = logs(&bench, &queue);
    bench.spy.in_next_update_logs(move || {
        let end = |slot| {
            signals
                .block
                .word(LogIndex::entry_offset(slot) + LogEntry::END_TICKS)
        };
        end(0).publish(0);
        end(1).publish(0);
        end(3).publish(end(2).peek());
    });
    let read = queue.read_signal_log().unwrap();
    assert_eq!((read.entries.len(), read.lost, read.refused), (5, 0, 0));
    assert_eq!(
        (read.entries[0].end_ticks, read.entries[1].end_ticks),
        (0, 0)
    );
    assert_eq!(read.entries[2].end_ticks, read.entries[3].end_ticks);
    assert_no_validation_message();
}
