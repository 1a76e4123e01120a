//! Log types (LG-11): what is logged at all times, what only while the OS traces verbosely, and who is
//! told of it.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod logs;
    pub(crate) mod raised;
}

use native_fence::abi::{
    LogEntry, LogHeader, LogIndex, LogOperation, LogType, LogTypes, TRACED_LOG_ENTRIES,
};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{Ddi, DdiError};
use native_fence::os::OsError;
use native_fence::{CommandList, HwQueue, Tracing};
use std::sync::{Arc, Mutex};
use support::bench::{Bench, Failing, LONG, Moment, complete, on_every_bench};
use support::logs::signal_all;
use support::raised::entries;

fn told(verbose: bool, generation: u32) -> LogTypes {
    LogTypes {
        verbose,
        generation,
    }
}

/// Third logs that the driver was given.
fn third_logs(bench: &Bench) -> usize {
    let logs = bench.spy.logs().into_iter();
    logs.filter(|set| set.1 == LogType::Verbose).count()
}

/// Has a queue stand at a wait for 1, 2, … of a fence of its own, `count` times, and the engine park
/// at each.
fn stall(bench: &Bench, queue: &mut HwQueue, count: u64) -> native_fence::Fence {
    let fence = bench.fence(0);
    for value in 1..=count {
        let submitted = queue
            .submit(CommandList::new().wait(&fence, value))
            .unwrap();
        bench.until_parked();
        fence.signal(value).unwrap();
        queue.progress_fence().wait(submitted, LONG).unwrap();
    }
    fence
}

/// Without verbose tracing waits and signals are logged and nothing else: no further log is made, no
/// slice is a verbose one, and the user is told of none.
///
/// Kills `every-slice-is-verbose` and `the-third-log-is-there-without-verbose-tracing`.
#[test]
fn lg_11_waits_and_signals_are_logged_always_and_nothing_else() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        for tracing in [Tracing::Off, Tracing::On] {
            bench.adapter.set_tracing(tracing).unwrap();
            let fence = stall(bench, &mut queue, 3);
            signal_all(&mut queue, &fence, 4..=5);
            let waits = queue.read_wait_log().unwrap();
            let signals = queue.read_signal_log().unwrap();
            // Two signals, and a progress write for each of four submissions.
            assert_eq!((waits.entries.len(), signals.entries.len()), (3, 6));
            assert_eq!(queue.read_verbose_log().unwrap().entries, []);
            assert_eq!(queue.log_types(), told(false, 0));
            assert_eq!(queue.os().log_entries(LogType::Verbose), 0);
        }
        assert_eq!(third_logs(bench), 0);
        assert!(bench.engine.take_works().iter().all(|work| !work.verbose));
    });
}

/// While it is on, each wait that is found unsatisfied is logged once, when it is, in the published form
/// with our numbers: the entry stands there while the wait lasts, and has the observed time of the one
/// that follows in the log of waits. Waits that pass at once have none.
///
/// Kills `a-queued-wait-is-logged-at-every-look`, `the-index-of-queued-waits-is-not-saved`,
/// `no-slice-is-verbose` and `a-queued-wait-is-logged-as-unblocked`.
#[test]
fn lg_11_verbose_tracing_logs_waits_when_they_stall() {
    on_every_bench(NodePolicy::default(), |bench| {
        bench.adapter.set_tracing(Tracing::Verbose).unwrap();
        let mut queue = bench.queue();
        assert_eq!(queue.log_types(), told(true, 1));
        let log = bench.spy.log(queue.os().handle(), LogType::Verbose);
        assert_eq!(log.block.word(LogHeader::LOG_TYPE).peek(), 0x8000_0001);
        assert_eq!(entries(&log), TRACED_LOG_ENTRIES);
        let fence = bench.fence(0);
        for value in 1..=5 {
            let mut list = CommandList::new();
            // The first of them is satisfied when the engine comes to it.
            list.wait(&fence, value - 1).wait(&fence, value);
            let submitted = queue.submit(&list).unwrap();
            bench.until_parked();
            // Looks again and again, in slices that end and in others.
            bench.repost(&fence);
            let mut other = bench.queue();
            complete(&mut other, CommandList::new().signal(&bench.fence(0), 1));
            bench.until_parked();
            let read = queue.read_verbose_log().unwrap();
            let [entry] = read.entries[..] else {
                panic!("{read:?}")
            };
            let expected = LogEntry {
                fence_value: value,
                native_fence: fence.handle().raw(),
                operation: LogOperation::WaitQueued as u32,
                end_ticks: entry.observed_ticks,
                ..entry
            };
            assert_eq!(entry, expected);
            assert!(entry.observed_ticks != 0);
            fence.signal(value).unwrap();
            queue.progress_fence().wait(submitted, LONG).unwrap();
            let waits = queue.read_wait_log().unwrap().entries;
            assert_eq!(waits.len(), 2);
            assert_eq!(waits[1].observed_ticks, entry.observed_ticks);
            assert!(waits[1].end_ticks > entry.end_ticks);
        }
        assert_eq!(log.index().first_free_entry_index, 5);
        // More queues than lanes: each in the log of its own.
        let mut queues: Vec<_> = (0..20).map(|_| bench.queue()).collect();
        let gates: Vec<_> = queues.iter().map(|_| bench.fence(0)).collect();
        for value in 1..=3 {
            for (queue, gate) in queues.iter_mut().zip(&gates) {
                queue.submit(CommandList::new().wait(gate, value)).unwrap();
            }
            bench.until_parked();
            for gate in &gates {
                gate.signal(value).unwrap();
            }
        }
        for (queue, gate) in queues.iter().zip(&gates) {
            queue.progress_fence().wait(3, LONG).unwrap();
            let read = queue.read_verbose_log().unwrap();
            let logged = read.entries.iter().map(|e| (e.fence_value, e.native_fence));
            assert!(
                logged.eq((1..=3).map(|value| (value, gate.handle().raw()))),
                "{read:?}"
            );
        }
    });
}

/// Both sides are told when it changes. The driver: by the log that it is given, and that is taken from
/// it. The user: by a word in his page, after the engine writes the new log, and before it ceases to.
///
/// Kills `the-user-is-told-too-early`, `the-user-is-told-too-late` and
/// `the-user-is-told-without-a-generation`.
#[test]
fn lg_11_both_sides_are_told_when_it_changes() {
    on_every_bench(NodePolicy::default(), |bench| {
        let queue = Arc::new(Mutex::new(bench.queue()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let look = |moment| {
            let (queue, seen) = (Arc::clone(&queue), Arc::clone(&seen));
            bench.spy.once(moment, move || {
                seen.lock().unwrap().push(queue.lock().unwrap().log_types());
            });
        };
        let now = || queue.lock().unwrap().log_types();
        bench.adapter.set_tracing(Tracing::On).unwrap();
        for round in 0..3 {
            // The third log is the only one that is set or taken away.
            look(Moment::AfterSetOfLog);
            bench.adapter.set_tracing(Tracing::Verbose).unwrap();
            assert_eq!(third_logs(bench), round + 1);
            let generation = 2 * round as u32;
            assert_eq!(seen.lock().unwrap().pop(), Some(told(false, generation)));
            assert_eq!(now(), told(true, generation + 1));
            look(Moment::BeforeRemovalOfLog);
            bench.adapter.set_tracing(Tracing::On).unwrap();
            assert_eq!(
                seen.lock().unwrap().pop(),
                Some(told(false, generation + 2))
            );
            assert_eq!(now(), told(false, generation + 2));
        }
    });
}

/// When it is off again the engine writes nothing more there, not even for a wait at which its queue has
/// stood since before; what was logged is still read. On again, it begins anew.
///
/// Kills `the-engine-keeps-the-third-log`.
#[test]
fn lg_11_a_log_that_is_taken_away_is_written_no_more_and_read_to_its_end() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        bench.adapter.set_tracing(Tracing::Verbose).unwrap();
        stall(bench, &mut queue, 3);
        let log = bench.spy.log(queue.os().handle(), LogType::Verbose);
        assert_eq!(log.index().first_free_entry_index, 3);
        bench.adapter.set_tracing(Tracing::Off).unwrap();
        let _ = bench.engine.take_works();
        stall(bench, &mut queue, 3);
        assert!(bench.engine.take_works().iter().all(|work| !work.verbose));
        assert_eq!(log.index(), LogIndex::from_word(3));
        let read = queue.read_verbose_log().unwrap();
        let values = |read: &[LogEntry]| read.iter().map(|e| e.fence_value).collect::<Vec<_>>();
        assert_eq!((values(&read.entries), read.lost), (vec![1, 2, 3], 0));
        bench.adapter.set_tracing(Tracing::Verbose).unwrap();
        stall(bench, &mut queue, 2);
        assert_eq!(log.index(), LogIndex::from_word(3));
        let read = queue.read_verbose_log().unwrap();
        assert_eq!((values(&read.entries), read.lost), (vec![1, 2], 0));
    });
}

/// Where the third log cannot be had as much is traced as before, and the user is told nothing; logs
/// that every queue has are never taken away.
///
/// Kills `a-log-that-every-queue-has-is-taken-away` and `a-third-log-that-failed-is-told`.
#[test]
fn lg_11_what_cannot_be_had_is_not_told() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        bench.adapter.set_tracing(Tracing::On).unwrap();
        bench.spy.fail(Failing::SetNativeFenceLogBuffer);
        let refused = bench.adapter.set_tracing(Tracing::Verbose);
        assert!(matches!(refused, Err(OsError::Driver(_))), "{refused:?}");
        assert_eq!(bench.adapter.os().tracing(), Tracing::On);
        assert_eq!(queue.log_types(), told(false, 0));
        for log in [LogType::Waits, LogType::Signals] {
            let refused = bench
                .spy
                .remove_native_fence_log_buffer(queue.os().handle(), log);
            assert!(
                matches!(refused, Err(DdiError::InvalidParameter(_))),
                "{refused:?}"
            );
        }
        bench.spy.succeed();
        stall(bench, &mut queue, 2);
        assert_eq!(queue.read_wait_log().unwrap().entries.len(), 2);
        assert_eq!(queue.read_verbose_log().unwrap().entries, []);
    });
}
