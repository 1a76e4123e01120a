//! An engine that does not answer is reset: another one takes its place, the device whose packet it was is
//! in error, and all others go on.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod logged;
    pub(crate) mod queue_of;
}

use native_fence::abi::{DoorbellStatus, StallKind};
use native_fence::gpu::{EngineState, SaveArea};
use native_fence::kmd::{
    DriverOptions, Interrupt, NativeFenceSignaled, ResetEngine, SignaledFence,
};
use native_fence::os::{Record, TdrStep};
use native_fence::shared::Block;
use native_fence::{
    CommandList, DeviceExecutionState, EventHandle, Fence, TdrLevel, TdrPolicy, WaitError,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use support::bench::{
    Bench, Call, LONG, TdrCall, hang, hang_until_aborted, native, on_recovering_benches, soon,
    try_until, until,
};
use support::logged::logged;
use support::queue_of::queue_of;

fn on_benches(engines: u32, body: impl Fn(&Bench)) {
    on_recovering_benches(engines, soon(), &DriverOptions::default(), body);
}

/// Codes of the records, oldest first.
fn codes(bench: &Bench) -> Vec<u32> {
    bench
        .take_records()
        .iter()
        .map(|record| record.code)
        .collect()
}

fn until_noted(bench: &Bench, records: usize) {
    until("the recovery is noted", || {
        bench.adapter.os().records().len() >= records
    });
}

const ENGINE: u32 = Record::VIDEO_ENGINE_TIMEOUT_DETECTED;
const ADAPTER: u32 = Record::VIDEO_TDR_TIMEOUT_DETECTED;

/// TD-06, TD-21: the guilty device is in error, which waits and calls report, and its doorbells are gone
/// for good; a queue of another device on the same engine and one on another engine go on, with their order
/// and their logs. One record. The program opens a new device and goes on.
#[test]
fn td_06_the_guilty_device_is_in_error_and_all_others_go_on() {
    on_benches(2, |bench| {
        let innocent = bench.adapter.create_device();
        let mut guilty = bench.queue();
        let mut beside = bench.queue_on(1);
        let (mut same, mut other) = (queue_of(&innocent, 0), queue_of(&innocent, 1));
        let (here, there) = (
            innocent.create_fence(0).unwrap(),
            innocent.create_fence(0).unwrap(),
        );
        let of_guilty = bench.fence(0);
        let waiter = bench.waiter(&of_guilty, 1);

        hang(&mut guilty);
        for value in 1..=20 {
            same.submit(CommandList::new().signal(&here, value))
                .unwrap();
            other
                .submit(CommandList::new().wait(&here, value).signal(&there, value))
                .unwrap();
        }
        assert_eq!(waiter.join(), Err(WaitError::DeviceLost));
        assert_eq!(there.wait(20, LONG), Ok(()));
        assert_eq!(here.current_value(), 20);
        let log = same.read_signal_log().unwrap();
        assert_eq!(log.lost, 0);
        let values = log.entries.iter().map(|entry| entry.fence_value);
        // Each signal, and each submission's progress behind it.
        let expected = (1..=20).flat_map(|value| [value, value]);
        assert_eq!(values.collect::<Vec<_>>(), expected.collect::<Vec<_>>());

        assert_eq!(
            guilty.progress_fence().wait(1, LONG),
            Err(WaitError::DeviceLost)
        );
        assert_eq!(guilty.error(), Some(WaitError::DeviceLost));
        assert_eq!(guilty.doorbell_status(), DoorbellStatus::DisconnectedAbort);
        assert_eq!(
            beside.error(),
            Some(WaitError::DeviceLost),
            "on all its engines"
        );
        beside.submit(&CommandList::new()).unwrap_err();
        until_noted(bench, 1);
        assert_eq!(codes(bench), [ENGINE]);
        for report in bench.adapter.os().tdr_reports() {
            println!("{report}");
        }
        assert_eq!(bench.counters().resets, 1);

        let again = bench.adapter.create_device();
        let (mut queue, fence) = (queue_of(&again, 0), again.create_fence(0).unwrap());
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        assert_eq!(fence.wait(1, LONG), Ok(()));
    });
}

/// TD-02: from the snapshot to the recovery nothing changes by what the engine raises, of whatever kind; it
/// counts when the engine goes on. What other engines raise counts at once.
///
/// Kills `a-resampling-meets-a-reset` and `an-engine-in-reset-is-heard`.
#[test]
fn td_02_what_an_engine_raises_during_its_reset_waits() {
    on_benches(2, |bench| {
        let innocent = bench.adapter.create_device();
        let fences = Arc::new([0; 3].map(|initial| innocent.create_fence(initial).unwrap()));
        let events = Arc::new([(); 3].map(|()| EventHandle::new().unwrap()));
        let both = fences.iter().zip(events.iter());
        let waits: Vec<_> = both
            .map(|(fence, event)| fence.wait_event(1, event))
            .collect();
        let (tell, told) = mpsc::channel();
        let (spy, theirs) = (
            Arc::downgrade(&bench.spy),
            (Arc::clone(&fences), Arc::clone(&events)),
        );
        bench.spy.before_tdr(move |call| {
            if call != TdrCall::ResetEngine(0) {
                return;
            }
            let (spy, (fences, events)) = (spy.upgrade().unwrap(), &theirs);
            let ids = fences.each_ref().map(|fence| native(fence).id());
            for fence in fences.iter() {
                let (region, offset) = native(fence).current_value_place();
                let words = Block::whole(&region.map().unwrap());
                words.word(offset).publish(1);
            }
            let resample = |node_ordinal, slot| Interrupt::ResampleFences {
                node_ordinal,
                slots: vec![slot],
            };
            spy.interrupt(resample(0, ids[0].slot));
            spy.interrupt(Interrupt::NativeFenceSignaled(NativeFenceSignaled {
                node_ordinal: 0,
                engine_ordinal: 0,
                fences: Some(vec![SignaledFence {
                    fence: ids[1],
                    value: 1,
                    hw_queue: None,
                }]),
                hw_queue: None,
                evaluate_legacy_monitored_fences: false,
                taken: Instant::now(),
            }));
            spy.interrupt(resample(1, ids[2].slot));
            tell.send(events.each_ref().map(EventHandle::reset))
                .unwrap();
        });
        let mut guilty = bench.queue();
        hang(&mut guilty);
        let meanwhile = told.recv_timeout(LONG).unwrap();
        assert_eq!(meanwhile, [0, 0, 1]);
        for event in &events[..2] {
            until("it counts", || event.reset() == 1);
        }
        assert_eq!(events[2].reset(), 0, "once");
        assert!(waits.iter().all(|wait| wait.outcome() == Some(Ok(()))));
        until_noted(bench, 1);
        assert_eq!(codes(bench), [ENGINE]);
    });
}

/// TD-02: the calls of the documented sequence, in its order; and its steps, each after the one before.
///
/// Kills `a-step-is-left-out`.
#[test]
fn td_02_the_steps_are_those_of_the_article() {
    on_benches(1, |bench| {
        let mut guilty = bench.queue();
        hang(&mut guilty);
        until_noted(bench, 1);
        until("the engine runs again", || {
            bench.spy.tdr_calls().last() == Some(&TdrCall::ResumeHwEngine(0))
        });
        assert_eq!(
            bench.spy.tdr_calls(),
            [
                TdrCall::RequestPreemption(0),
                TdrCall::CollectDbgInfo(ENGINE),
                TdrCall::QueryDependentEngineGroup(0),
                TdrCall::QueryEngineStatus(0),
                TdrCall::ResetEngine(0),
                TdrCall::ResumeHwEngine(0),
            ]
        );
        assert_eq!(codes(bench), [ENGINE]);
        let taken = bench.adapter.os().tdr_steps(0);
        let steps: Vec<_> = taken.iter().map(|(step, _)| *step).collect();
        assert_eq!(steps, TdrStep::OF_ENGINE);
        assert!(taken.is_sorted_by_key(|(_, after)| *after));
        assert!(2 * taken[1].1 > soon().delay, "TdrDelay comes between");
    });
}

/// TD-02: what an engine was in completes when it has timed out, and nothing is left of it: nothing is reset nor
/// reported, no device is in error, and its interrupts are taken again.
///
/// Kills `an-empty-engine-is-recovered` and `an-engine-with-nothing-left-is-not-heard`.
#[test]
fn td_02_an_engine_with_nothing_left_is_not_reset() {
    on_benches(1, |bench| {
        let (mut queue, fence) = (bench.queue(), bench.fence(0));
        bench.until_parked();
        let gate = Mutex::new(Some(bench.engine.close()));
        let driver = bench.parking_driver();
        bench.spy.on_detection(move || {
            drop(gate.lock().unwrap().take());
            until("the engine is through with all that it had", || {
                driver.engine_state(0) == Some(EngineState::Parked)
            });
        });
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        let steps = || -> Vec<_> {
            let taken = bench.adapter.os().tdr_steps(0).into_iter();
            taken.map(|(step, _)| step).collect()
        };
        let taken = [
            TdrStep::Preempt,
            TdrStep::Detect,
            TdrStep::Snapshot,
            TdrStep::StopIfNothingIsLeft,
        ];
        until("the OS has looked what is left", || {
            steps().starts_with(&taken)
        });
        let interrupts = bench.interrupts();
        let waiter = bench.waiter(&fence, 2);
        waiter.until_asleep();
        queue.submit(CommandList::new().signal(&fence, 2)).unwrap();
        until("its interrupts are taken", || {
            bench.interrupts() > interrupts
        });
        assert_eq!(waiter.join(), Ok(()));
        assert_eq!(steps(), taken);
        let calls = bench.spy.tdr_calls();
        let asks = |call: &TdrCall| matches!(call, TdrCall::RequestPreemption(0));
        assert!(calls.iter().all(asks), "{calls:?}");
        assert_eq!(bench.adapter.os().tdr_reports(), []);
        assert_eq!(bench.adapter.os().records(), []);
        assert_eq!(bench.counters().resets, 0);
        assert_eq!(queue.error(), None);
        let state = bench.device.execution_state();
        assert_eq!(state, DeviceExecutionState::ACTIVE);
    });
}

/// TD-01: a queue that merely waits, alone on its engine and for as long as it likes, is never timed out.
///
/// Kills `a-step-is-a-time-out` and `a-parked-engine-is-a-hang`.
#[test]
fn td_01_a_wait_is_never_a_hang() {
    let tdr = TdrPolicy {
        delay: Duration::from_millis(200),
        ..soon()
    };
    on_recovering_benches(2, tdr, &DriverOptions::default(), |bench| {
        let (fence, mut waits) = (bench.fence(0), bench.queue());
        waits.submit(CommandList::new().wait(&fence, 1)).unwrap();
        // A queue of another engine, which is no sign of life of this one, keeps the watch awake for longer than TdrDelay.
        let begin = Instant::now();
        let mut busy = bench.queue_on(1);
        while begin.elapsed() < 5 * tdr.delay {
            let value = busy.submit(CommandList::new().nop()).unwrap();
            busy.progress_fence().wait(value, LONG).unwrap();
        }
        let calls = bench.spy.tdr_calls();
        let asks = |call: &TdrCall| matches!(call, TdrCall::RequestPreemption(_));
        assert!(calls.iter().all(asks), "{calls:?}");
        assert_eq!(bench.adapter.os().tdr_reports(), []);
        fence.signal(1).unwrap();
        waits.progress_fence().wait(1, LONG).unwrap();
    });
}

/// TD-03: an aborted id below the last completed one is a bug check 0x119, P1 = 0xA, with the value and the
/// last completed id; the adapter is stopped.
///
/// Kills `any-aborted-id-will-do`, `broken-any-aborted-id-is-believed`.
#[test]
fn td_03_an_aborted_id_that_cannot_be_stops_the_adapter() {
    on_benches(1, |bench| {
        let mut guilty = bench.queue();
        let value = guilty.submit(CommandList::new().nop()).unwrap();
        guilty.progress_fence().wait(value, LONG).unwrap();
        bench.spy.answer_reset(|reset| {
            Ok(ResetEngine {
                last_aborted_fence_id: 0,
                ..reset
            })
        });
        hang(&mut guilty);
        until("the adapter is stopped", || {
            bench.adapter.os().stopped().is_some()
        });
        let records = bench.take_records();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].code, Record::VIDEO_SCHEDULER_INTERNAL_ERROR);
        assert_eq!(
            records[0].parameters[..3],
            [Record::INVALID_ABORTED_FENCE, 0, value]
        );
        let ended = guilty.progress_fence().wait(9, LONG);
        assert_eq!(ended, Err(WaitError::AdapterStopped));
    });
}

/// TD-08, TD-20: an engine that cannot be reset by itself takes the whole adapter: reason 9, and whoever
/// had work queued is in error, on every engine; values of fences stay, who had none goes on.
#[test]
fn td_08_a_reset_that_fails_is_promoted_to_the_adapter() {
    on_benches(2, |bench| {
        let (idle, busy) = (bench.adapter.create_device(), bench.adapter.create_device());
        let mut idle_queue = queue_of(&idle, 1);
        let mut busy_queue = queue_of(&busy, 1);
        let (kept, gate) = (idle.create_fence(7).unwrap(), busy.create_fence(0).unwrap());
        busy_queue
            .submit(CommandList::new().wait(&gate, 1))
            .unwrap();
        let mut guilty = bench.queue();
        bench.spy.fail_tdr(TdrCall::ResetEngine(0));
        hang(&mut guilty);
        for queue in [&guilty, &busy_queue] {
            let ended = queue.progress_fence().wait(1, LONG);
            assert_eq!(ended, Err(WaitError::DeviceLost));
        }
        until_noted(bench, 1);
        let records = bench.take_records();
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(records[0].code, ADAPTER);
        assert_eq!(records[0].parameters[2], Record::ENGINE_TIMEOUT_PROMOTED);
        let calls = bench.spy.tdr_calls();
        assert!(calls.ends_with(&[
            TdrCall::ResetEngine(0),
            TdrCall::ResetFromTimeout,
            TdrCall::RestartFromTimeout
        ]));
        assert_eq!(kept.current_value(), 7);
        idle_queue
            .submit(CommandList::new().signal(&kept, 8))
            .unwrap();
        assert_eq!(kept.wait(8, LONG), Ok(()));
    });
}

/// TD-16: without SupportPerEngineTDR every time-out resets the adapter.
#[test]
fn td_16_without_the_cap_every_time_out_resets_the_adapter() {
    let options = DriverOptions {
        adapter_wide_tdr: true,
        ..DriverOptions::default()
    };
    on_recovering_benches(1, soon(), &options, |bench| {
        let mut guilty = bench.queue();
        hang(&mut guilty);
        let ended = guilty.progress_fence().wait(1, LONG);
        assert_eq!(ended, Err(WaitError::DeviceLost));
        until_noted(bench, 1);
        assert_eq!(codes(bench), [ADAPTER]);
        let calls = bench.spy.tdr_calls();
        assert!(!calls.contains(&TdrCall::ResetEngine(0)), "{calls:?}");
    });
}

/// TD-20: between ResetFromTimeout and RestartFromTimeout no engine executes anything, though packets come and
/// doorbells ring; it is executed once the adapter runs again.
///
/// Kills `an-engine-executes-before-the-restart`.
#[test]
fn td_20_nothing_is_executed_between_reset_and_restart() {
    on_benches(2, |bench| {
        let idle = bench.adapter.create_device();
        let fences = [0, 1].map(|_| idle.create_fence(7).unwrap());
        let mut queues = [0, 1].map(|node| queue_of(&idle, node));
        let mut guilty = bench.queue();
        bench.spy.fail_tdr(TdrCall::ResetEngine(0));
        let (tell_reset, is_reset) = mpsc::channel();
        let (tell_seen, is_seen) = mpsc::channel();
        let is_seen = Mutex::new(is_seen);
        bench.spy.before_tdr(move |call| {
            if call == TdrCall::RestartFromTimeout {
                tell_reset.send(()).unwrap();
                is_seen.lock().unwrap().recv_timeout(LONG).unwrap();
            }
        });
        hang(&mut guilty);
        is_reset.recv_timeout(LONG).unwrap();
        let slices = || [0, 1].map(|node| bench.counters_of(node).slices);
        let before = slices();
        for (queue, fence) in queues.iter_mut().zip(&fences) {
            queue.submit(CommandList::new().signal(fence, 8)).unwrap();
            // Whoever rings submits what is to be executed, or leaves it.
            assert_eq!(fence.current_value(), 7);
            assert_eq!(queue.progress_fence().current_value(), 0);
        }
        assert_eq!(slices(), before);
        tell_seen.send(()).unwrap();
        for fence in &fences {
            assert_eq!(fence.wait(8, LONG), Ok(()));
        }
        until_noted(bench, 1);
        assert_eq!(codes(bench), [ADAPTER]);
    });
}

/// TD-20: a ResetFromTimeout that fails stops the adapter, as a RestartFromTimeout does.
#[test]
fn td_20_a_failed_restart_stops_the_adapter() {
    for failing in [TdrCall::ResetFromTimeout, TdrCall::RestartFromTimeout] {
        on_benches(1, |bench| {
            let mut guilty = bench.queue();
            bench.spy.fail_tdr(TdrCall::ResetEngine(0));
            bench.spy.fail_tdr(failing);
            hang(&mut guilty);
            until("the adapter is stopped", || {
                bench.adapter.os().stopped().is_some()
            });
            assert_eq!(codes(bench), [Record::VIDEO_TDR_FAILURE]);
        });
    }
}

/// TD-10: TdrLevel 1 stops the adapter at the first time-out, and its devices with it.
///
/// Kills `a-stop-leaves-devices-active`.
#[test]
fn td_10_the_level_bug_check_recovers_nothing() {
    let tdr = TdrPolicy {
        level: TdrLevel::BugCheck,
        ..soon()
    };
    on_recovering_benches(1, tdr, &DriverOptions::default(), |bench| {
        let mut guilty = bench.queue();
        hang(&mut guilty);
        until("the adapter is stopped", || {
            bench.adapter.os().stopped().is_some()
        });
        assert_eq!(codes(bench), [Record::VIDEO_TDR_FAILURE]);
        assert_eq!(bench.counters().resets, 0);
        let state = bench.device.execution_state();
        assert_eq!(state, DeviceExecutionState::STOPPED);
    });
}

/// TD-10, TD-21: engine resets beyond a maximum one lower than TdrLimitCount keep the program from the
/// adapter: a live record 0x142 with its process id.
#[test]
fn td_10_who_causes_too_many_resets_is_blocked() {
    let tdr = TdrPolicy {
        limit_count: 3,
        ..soon()
    };
    on_recovering_benches(1, tdr, &DriverOptions::default(), |bench| {
        for reset in 1..=3 {
            let device = bench.adapter.create_device();
            let mut guilty = queue_of(&device, 0);
            hang(&mut guilty);
            let ended = guilty.progress_fence().wait(1, LONG);
            assert_eq!(ended, Err(WaitError::DeviceLost));
            until_noted(bench, reset);
        }
        until_noted(bench, 4);
        let records = bench.take_records();
        let codes: Vec<_> = records.iter().map(|record| record.code).collect();
        assert_eq!(
            codes,
            [ENGINE, ENGINE, ENGINE, Record::VIDEO_PROGRAM_BLOCKED]
        );
        assert_eq!(records[3].parameters[3], u64::from(std::process::id()));
        assert_eq!(bench.adapter.os().stopped(), None);
        let refused = bench.adapter.create_device().create_fence(0).unwrap_err();
        assert!(refused.to_string().contains("0x142"), "{refused}");
    });
}

/// The gentle way: a packet that heeds the abort word ends by it, its device is in error, and the engine is
/// the one that it was.
#[test]
fn td_06_a_packet_that_heeds_abort_costs_no_engine() {
    on_benches(1, |bench| {
        let mut guilty = bench.queue();
        hang_until_aborted(&mut guilty);
        until_noted(bench, 1);
        assert_eq!(codes(bench), [ENGINE]);
        assert_eq!(bench.counters().resets, 0);
        assert!(guilty.error().is_some());
        let innocent = bench.adapter.create_device();
        let (mut queue, fence) = (queue_of(&innocent, 0), innocent.create_fence(0).unwrap());
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        assert_eq!(fence.wait(1, LONG), Ok(()));
    });
}

/// TD-22: a queue that was under way goes on where it was: each of its packets takes effect once, however
/// far they had come. Many resets, at whatever moment.
#[test]
fn td_22_what_was_under_way_takes_effect_once() {
    on_benches(1, |bench| {
        let innocent = bench.adapter.create_device();
        let mut queue = queue_of(&innocent, 0);
        let fence = innocent.create_fence(0).unwrap();
        let mut signalled = 0;
        let mut expected = Vec::new();
        let mut values = Vec::new();
        for _ in 0..3 {
            let device = bench.adapter.create_device();
            let mut guilty = queue_of(&device, 0);
            let mut last = 0;
            for submission in 0..20 {
                let mut list = CommandList::new();
                list.nop();
                signalled += 1;
                list.wait(&fence, signalled - 1).signal(&fence, signalled);
                expected.push(signalled);
                last = queue.submit(&list).unwrap();
                if submission == 10 {
                    hang(&mut guilty);
                }
            }
            let ended = queue.progress_fence().wait(last, LONG);
            for report in bench.adapter.os().tdr_reports() {
                println!("{report}");
            }
            ended.unwrap();
            values.extend(logged(&queue, &fence));
            guilty.progress_fence().wait(1, LONG).unwrap_err();
        }
        assert_eq!(values, expected);
        assert_eq!(fence.current_value(), signalled);
        assert_eq!(queue.error(), None);
        until_noted(bench, 3);
        assert_eq!(codes(bench), [ENGINE; 3]);
    });
}

/// TD-22: an engine that answers, and is reset with the adapter while it executes: what was submitted after the
/// snapshot takes effect once, whether the engine before did it or the next one, and nobody is blamed.
///
/// Kills `a-packet-is-passed-over`.
#[test]
fn td_22_an_engine_that_runs_is_reset_between_packets() {
    const SUBMISSIONS: u64 = 600;
    on_benches(2, |bench| {
        let idle = bench.adapter.create_device();
        let (mut queue, fence) = (queue_of(&idle, 1), idle.create_fence(0).unwrap());
        let mut guilty = bench.queue();
        bench.spy.fail_tdr(TdrCall::ResetEngine(0));
        let (begin, begun) = mpsc::channel();
        bench.spy.before_tdr(move |call| {
            if call == TdrCall::ResetFromTimeout {
                begin.send(()).unwrap();
            }
        });
        hang(&mut guilty);
        begun.recv_timeout(LONG).unwrap();
        let mut values = Vec::new();
        for submission in 1..=SUBMISSIONS {
            let (first, second) = (2 * submission - 1, 2 * submission);
            let mut list = CommandList::new();
            list.wait(&fence, first - 1).signal(&fence, first);
            list.nop().signal(&fence, second);
            let progress = queue.submit(&list).unwrap();
            // Before its log comes round.
            if submission % 20 == 0 {
                queue.progress_fence().wait(progress, LONG).unwrap();
                values.extend(logged(&queue, &fence));
            }
        }
        assert_eq!(values, (1..=2 * SUBMISSIONS).collect::<Vec<_>>());
        assert_eq!(fence.current_value(), 2 * SUBMISSIONS);
        until_noted(bench, 1);
        assert_eq!(codes(bench), [ADAPTER]);
        assert_eq!(queue.error(), None);
        let counters = bench.adapter.os().ddi().node_counters(1).unwrap();
        assert_eq!(counters.resets, 1);
    });
}

/// Words of memory.
fn words(block: &Block) -> Vec<u64> {
    let words = (0..block.bytes() as u64).step_by(8);
    words.map(|at| block.word(at).observe()).collect()
}

/// TD-23, for ring, doorbell, progress words, logs, save area and interrupt records. While nobody uses the engine
/// that came after it, the one that was given up ends its packet and its slice, faults at what it has in place of
/// the next packet, saves its queues and raises: no word of them changes. To a ring or a doorbell no engine stores
/// at all, which the model looks after at each store; of those this shows the bytes. (What it would store to
/// fences: `tests/cut_off.rs`.)
///
/// Kills `save-areas-are-not-cut-off`, `records-are-not-cut-off` and `progress-is-not-cut-off`.
#[test]
fn td_23_an_engine_that_comes_back_changes_nothing() {
    on_benches(1, |bench| {
        try_until("it is in its packet still", |attempt| {
            let innocent = bench.adapter.create_device();
            let context = innocent.create_context(0, 1).unwrap();
            let mut same = context.create_hw_queue(64).unwrap();
            let guilty = bench.adapter.create_device();
            let (mirror, behind) = (
                innocent.create_fence(0).unwrap(),
                guilty.create_fence(0).unwrap(),
            );
            let guilty_context = guilty.create_context(0, 1).unwrap();
            let mut guilty = guilty_context.create_hw_queue(64).unwrap();
            let passes = passes_of_seconds(bench);
            let mut list = CommandList::new();
            list.stall(StallKind::HeedsNothing, passes)
                .signal(&behind, 77);
            guilty.submit(&list).unwrap();
            // What it comes to when it is back.
            same.submit(CommandList::new().signal(&mirror, 1)).unwrap();
            let ended = guilty.progress_fence().wait(1, LONG);
            assert_eq!(ended, Err(WaitError::DeviceLost));
            mirror.wait(1, LONG).unwrap();
            let waiter = bench.waiter(&mirror, 2);
            bench.until_parked();

            let mut all = Vec::new();
            for queue in [&same, &guilty] {
                let (control, packets) = queue.raw_memory();
                all.push(("ring", control.clone()));
                all.push(("ring", packets.clone()));
                all.push(("doorbell", queue.raw_doorbell().clone()));
            }
            for context in [&context, &guilty_context] {
                for area in bench.spy.save_areas(context.os().handle()) {
                    let block = area.region.host().unwrap();
                    all.push(("save area", block.part(area.offset, SaveArea::BYTES)));
                }
            }
            for (name, what) in [
                ("engine-report", "records"),
                ("hw-queue-progress", "progress"),
                ("fence-log", "log"),
            ] {
                let regions = bench.engine.named(name);
                all.extend(regions.into_iter().map(|of| (what, of.host)));
            }
            let before: Vec<_> = all.iter().map(|(_, block)| words(block)).collect();
            let status = same.doorbell_status();
            let driver = bench.parking_driver();
            // The machine may have been slower when the packet was measured.
            let is_in_it = driver.given_up() == 1;
            until("the engine that was given up ends", || {
                driver.given_up() == 0
            });
            for ((name, block), before) in all.iter().zip(&before) {
                assert!(words(block) == *before, "{name}");
            }
            let named: Vec<_> = all.iter().map(|(name, _)| *name).collect();
            assert!(
                ["save area", "records", "progress", "log"]
                    .iter()
                    .all(|name| named.contains(name)),
                "{named:?}"
            );
            assert_eq!(same.doorbell_status(), status);
            let values = [&mirror, &behind].map(Fence::current_value);
            assert_eq!(values, [1, 0]);
            same.submit(CommandList::new().signal(&mirror, 2)).unwrap();
            assert_eq!(waiter.join(), Ok(()));
            until_noted(bench, attempt as usize);
            is_in_it
        });
        assert!(codes(bench).iter().all(|code| *code == ENGINE));
        assert_eq!(bench.counters().refused_words, 0);
    });
}

/// Passes of a stall that takes some times as long as its engine has to answer, by how long few take.
fn passes_of_seconds(bench: &Bench) -> u64 {
    let device = bench.adapter.create_device();
    let mut queue = queue_of(&device, 0);
    let mut passes = 1000;
    loop {
        let begin = Instant::now();
        let list = &mut CommandList::new();
        let value = queue
            .submit(list.stall(StallKind::HeedsNothing, passes))
            .unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        let taken = begin.elapsed();
        if taken >= soon().delay / 20 {
            return passes * 80;
        }
        passes *= 2;
    }
}

/// TD-04, TD-07: what an innocent kernel-mode queue was handed and has not completed is handed over again,
/// with new ids, in its order, before anything new; the ids of the aborted command count as completed then.
#[test]
fn td_07_commands_of_the_innocent_are_handed_over_again() {
    on_benches(1, |bench| {
        let innocent = bench.adapter.create_device();
        let mut queue = innocent.create_kernel_queue().unwrap();
        let fence = innocent.create_monitored_fence(0).unwrap();
        let mut guilty = bench.device.create_kernel_queue().unwrap();
        let value = guilty.submit(CommandList::new().nop()).unwrap();
        guilty.progress_fence().wait(value, LONG).unwrap();
        let list = &mut CommandList::new();
        let is_handed = Arc::new(AtomicBool::new(false));
        let reset_waits = Arc::clone(&is_handed);
        bench.spy.before_tdr(move |call| {
            if call == TdrCall::QueryEngineStatus(0) {
                until("all was handed over", || {
                    reset_waits.load(Ordering::Acquire)
                });
            }
        });
        guilty
            .submit(list.stall(StallKind::HeedsNothing, support::bench::FOR_EVER))
            .unwrap();
        until("the engine hangs", || {
            let calls = bench.spy.tdr_calls();
            calls.contains(&TdrCall::RequestPreemption(0))
        });
        for value in 1..=3 {
            queue.signal(&fence, value).unwrap().flush().unwrap();
        }
        is_handed.store(true, Ordering::Release);
        fence.wait(3, LONG).unwrap();
        assert_eq!(
            guilty.progress_fence().wait(2, LONG),
            Err(WaitError::DeviceLost)
        );
        until_noted(bench, 1);
        let (handle, ids) = (queue.os().handle(), bench.adapter.os().submission_ids(0));
        until("all ids are accounted for", || {
            let (last, completed) = bench.adapter.os().submission_ids(0);
            last == completed
        });
        let calls = bench.spy.calls();
        let ids: Vec<_> = calls
            .iter()
            .filter_map(|call| match call {
                Call::SubmitCommand {
                    hw_queue,
                    submission_id,
                    ..
                } if *hw_queue == handle => Some(*submission_id),
                _ => None,
            })
            .chain(std::iter::once(ids.0))
            .collect();
        // Three, and the same again: new ids, in their order.
        assert!(ids.is_sorted() && ids.len() == 7, "{ids:?}");
        let rest = queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(queue.progress_fence().wait(rest, LONG), Ok(()));
        assert_eq!(codes(bench), [ENGINE]);
    });
}

/// PR-01: before a time-out there was a preemption request, and it had all of TdrDelay.
#[test]
fn pr_01_a_preemption_request_precedes_the_time_out() {
    on_benches(1, |bench| {
        let asked = Arc::new(std::sync::Mutex::new(None));
        let reset_after = Arc::new(std::sync::Mutex::new(None));
        let early = Arc::new(AtomicBool::new(false));
        let (asks, resets, is_early) = (
            Arc::clone(&asked),
            Arc::clone(&reset_after),
            Arc::clone(&early),
        );
        bench.spy.before_tdr(move |call| match call {
            TdrCall::RequestPreemption(0) => {
                asks.lock().unwrap().get_or_insert_with(Instant::now);
            }
            TdrCall::ResetEngine(0) => match *asks.lock().unwrap() {
                Some(at) => *resets.lock().unwrap() = Some(at.elapsed()),
                None => is_early.store(true, Ordering::Relaxed),
            },
            _ => {}
        });
        let mut guilty = bench.queue();
        hang(&mut guilty);
        until_noted(bench, 1);
        assert!(!early.load(Ordering::Relaxed));
        let after = reset_after.lock().unwrap().unwrap();
        assert!(after >= soon().delay, "{after:?}");
        assert_eq!(codes(bench), [ENGINE]);
    });
}

/// TD-11: the report names the engine and its queues, the packet of each, what it waits for and who could signal
/// that, and the last entries of the logs; where the driver gives nothing, recovery goes on without.
///
/// Kills `the-report-names-no-packet`, `the-report-has-the-oldest-entries`, `nobody-could-signal`.
#[test]
fn td_11_a_report_a_person_can_read() {
    for fails in [false, true] {
        on_benches(1, |bench| {
            if fails {
                bench.spy.fail_tdr(TdrCall::CollectDbgInfo(ENGINE));
            }
            let (fence, mut waits) = (bench.fence(3), bench.queue());
            let logged = bench.fence(0);
            let mut list = CommandList::new();
            for value in 1..=10 {
                list.signal(&logged, value);
            }
            waits.submit(list.wait(&fence, 9)).unwrap();
            bench.until_parked();
            let mut guilty = bench.queue();
            hang(&mut guilty);
            until_noted(bench, 1);
            let reports = bench.adapter.os().tdr_reports();
            assert_eq!(reports.len(), 1);
            let text = reports[0].to_string();
            println!("{text}");
            assert!(text.starts_with("0x141: engine of node 0"), "{text}");
            assert!(text.contains("completed 0 of 1"), "{text}");
            let (handle, device) = (fence.handle().raw(), bench.device.process().id().0);
            let wait = format!(
                "waits for 9 of the fence with handle {handle:#x}, whose value is 3, to be signaled by \
                 device {device}\n"
            );
            assert!(text.contains(&wait), "{text}");
            assert_eq!(reports[0].driver.is_err(), fails);
            if !fails {
                let packet = format!("packet 10: Wait, handle {handle:#x}, value 9\n");
                assert!(text.contains(&packet), "{text}");
                assert!(text.contains("packet 0: Stall, "), "{text}");
                let of_os = "queue 0 of the operating system: ";
                assert!(text.contains(of_os), "{text}");
                let mut lines = text
                    .lines()
                    .skip_while(|line| !line.contains("packet 10: "));
                let last = lines.find(|line| line.contains("last signals: "));
                let last = last.unwrap_or_else(|| panic!("{text}"));
                let values: Vec<_> = last.split(" = ").skip(1).collect();
                let values = values.iter().map(|rest| rest.split(' ').next().unwrap());
                assert!(values.eq(["7", "8", "9", "10"]), "{last}");
            }
            assert_eq!(codes(bench), [ENGINE]);
        });
    }
}

/// TD-09: engines that depend on the one that is reset are preempted, or reset with it in ordinal order;
/// a group without the node itself is a bug check 0x119, P1 = 8.
#[test]
fn td_09_dependent_engines_are_preempted_or_reset_too() {
    on_benches(3, |bench| {
        bench.spy.answer_group(|_| 0b111);
        let mut hung = [0, 2].map(|node| {
            let device = bench.adapter.create_device();
            queue_of(&device, node)
        });
        let mut idle = queue_of(&bench.adapter.create_device(), 1);
        for queue in &mut hung {
            hang(queue);
        }
        for queue in &hung {
            let ended = queue.progress_fence().wait(1, LONG);
            assert_eq!(ended, Err(WaitError::DeviceLost));
        }
        until("both engines go on", || {
            let calls = bench.spy.tdr_calls();
            calls.contains(&TdrCall::ResumeHwEngine(2))
        });
        let calls = bench.spy.tdr_calls();
        let resets = calls
            .iter()
            .filter(|call| matches!(call, TdrCall::ResetEngine(_)));
        assert_eq!(
            resets.collect::<Vec<_>>(),
            [&TdrCall::ResetEngine(0), &TdrCall::ResetEngine(2)]
        );
        // In one recovery: before the first engine goes on.
        let place = |of| calls.iter().position(|call| *call == of).unwrap();
        assert!(place(TdrCall::ResetEngine(2)) < place(TdrCall::ResumeHwEngine(0)));
        assert_eq!(codes(bench), [ENGINE; 2]);
        let value = idle.submit(&CommandList::new()).unwrap();
        assert_eq!(idle.progress_fence().wait(value, LONG), Ok(()));
    });
    on_benches(1, |bench| {
        bench.spy.answer_group(|_| 0);
        let mut guilty = bench.queue();
        hang(&mut guilty);
        until("the adapter is stopped", || {
            bench.adapter.os().stopped().is_some()
        });
        let records = bench.take_records();
        let parameters = records[0].parameters;
        assert_eq!(records[0].code, Record::VIDEO_SCHEDULER_INTERNAL_ERROR);
        assert_eq!(parameters[..2], [Record::NODE_WITHOUT_ITSELF, 0]);
    });
}

/// TD-12: an engine whose device is lost is recovered from at once, without a preemption request; alone, since no other
/// depends on it (TD-09).
///
/// Kills `broken-the-driver-names-the-wrong-group`.
#[test]
fn td_12_a_lost_device_is_recovered_from_the_same_way() {
    on_benches(2, |bench| {
        let mut queue = bench.queue();
        let (mut other, fence) = (bench.queue_on(1), bench.fence(0));
        let value = queue.submit(CommandList::new().nop()).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        bench.until_parked();
        bench.engines[0].lose();
        let innocent = bench.adapter.create_device();
        let mut goes_on = queue_of(&innocent, 0);
        let value = goes_on.submit(CommandList::new().nop()).unwrap();
        let ended = goes_on.progress_fence().wait(value, LONG);
        until_noted(bench, 1);
        assert_eq!(codes(bench), [ENGINE]);
        // Which packet it was that found the loss: nobody's device is the worse for it.
        assert_eq!(ended, Ok(()));
        assert_eq!(innocent.execution_state(), DeviceExecutionState::ACTIVE);
        other.submit(CommandList::new().signal(&fence, 1)).unwrap();
        assert_eq!(fence.wait(1, LONG), Ok(()));
        let again = queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(queue.progress_fence().wait(again, LONG), Ok(()));
        let calls = bench.spy.tdr_calls();
        assert!(!calls.contains(&TdrCall::RequestPreemption(0)), "{calls:?}");
    });
}
