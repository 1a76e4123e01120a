//! Rules of the log buffers (LG-05 to LG-08), on the real device: what the OS's reader makes of them.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod logs;
}

use native_fence::CommandList;
use native_fence::abi::{LogEntry, LogIndex, LogType};
use native_fence::gpu::NodePolicy;
use native_fence::vulkan::Driver;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::bench::{Bench, Call, Moment};
use support::logs::{logs, now, run, signal_all};

/// LG-05: the driver's call comes before any entry is read. Inside the call the test changes an
/// entry: the reader must give what stands there after the call.
///
/// Mutants: `log-read-without-commit`, `log-read-commits-late`, `log-read-commits-always`.
#[test]
fn lg_05_update_native_fence_logs_is_called_before_entries_are_read() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let silent = bench.queue();
    let fence = bench.fence(0);
    let updates = |bench: &Bench| {
        bench
            .spy
            .count(|call| matches!(call, Call::UpdateNativeFenceLogs(_)))
    };
    assert_eq!(queue.read_signal_log().unwrap().entries, []);
    assert_eq!(updates(&bench), 0, "no call where there are no new entries");

    signal_all(&mut queue, &fence, 1..=3);
    let (_, signals) = logs(&bench, &queue);
    let changed = signals.clone();
    bench.spy.once(Moment::InUpdateOfLogs, move || {
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
    let Some(Call::UpdateNativeFenceLogs(named)) = bench.spy.calls_of_os().pop() else {
        panic!("the call is the last")
    };
    assert_eq!(
        named,
        [queue.os().handle()],
        "the queue with new entries alone"
    );
    assert_eq!(updates(&bench), 1);
}

/// LG-06: nobody reads, the GPU goes on, the reader finds out.
///
/// Mutant: `log-lost-entries-not-counted`.
#[test]
fn lg_06_an_overrun_never_blocks_the_gpu_and_the_rest_is_counted_as_lost() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let fence = bench.fence(0);
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
}

/// LG-06: the engine laps the reader between its look at the index and its copy.
///
/// Mutant: `log-overtaken-entries-are-data`.
#[test]
fn lg_06_an_overrun_while_the_reader_copies_is_detected() {
    for overrun in [1, 30, 83, 84, 200] {
        let bench = Bench::new();
        let queue = Arc::new(Mutex::new(bench.queue()));
        let os = Arc::clone(queue.lock().unwrap().os());
        let fence = bench.fence(0);
        signal_all(&mut queue.lock().unwrap(), &fence, 1..=83);
        assert!(os.read_log(LogType::Signals).unwrap().lost <= 1);
        signal_all(&mut queue.lock().unwrap(), &fence, 84..=163);

        let (engine, goes_on) = (Arc::clone(&queue), fence.clone());
        bench.spy.once(Moment::InUpdateOfLogs, move || {
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
    let mut queue = bench.queue();
    let mut partner = bench.queue();
    let (there, back) = (bench.fence(0), bench.fence(0));
    let slices = bench.counters().slices;
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
    let slices = bench.counters().slices - slices;
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
    if bench.info().driver == Driver::Lavapipe {
        for entry in waits.iter().chain(&signals) {
            assert!((began..=ended).contains(&entry.end_ticks), "{entry:?}");
        }
    }
}

/// LG-08: zero and repeated times are data, not errors.
///
/// Mutant: `log-zero-time-refused`.
#[test]
fn lg_08_zero_and_repeated_times_are_accepted() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let fence = bench.fence(0);
    signal_all(&mut queue, &fence, 1..=4);
    let (_, signals) = logs(&bench, &queue);
    bench.spy.once(Moment::InUpdateOfLogs, move || {
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
}
