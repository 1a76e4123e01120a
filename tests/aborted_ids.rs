//! Ids of submissions when packets are preempted, aborted, or complete while their engine is reset (TD-03, TD-04,
//! TD-05).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod queue_of;
}

use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::abi::{DoorbellStatus, StallKind};
use native_fence::kmd::{DriverOptions, Interrupt, ResetEngine};
use native_fence::os::Record;
use native_fence::{CommandList, WaitError};
use std::sync::{Arc, Mutex};
use support::bench::{
    Bench, Closed, FOR_EVER, LONG, TdrCall, on_every_bench, on_recovering_benches, short, soon,
    until, until_completed,
};
use support::queue_of::queue_of;

fn on_benches(engines: u32, body: impl Fn(&Bench)) {
    on_recovering_benches(engines, soon(), &DriverOptions::default(), body);
}

/// The only record.
fn assert_noted(bench: &Bench, code: u32) {
    until("the recovery is noted", || {
        !bench.adapter.os().records().is_empty()
    });
    let records = bench.take_records();
    let codes: Vec<_> = records.iter().map(|record| record.code).collect();
    assert_eq!(codes, [code]);
}

/// The ids of a node, last submitted and last completed, as they are at each such call.
fn ids_at(bench: &Bench, call: TdrCall, nodes: u32) -> Arc<Mutex<Vec<(u64, u64)>>> {
    let os = Arc::downgrade(bench.adapter.os());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    bench.spy.before_tdr(move |now| {
        if let (true, Some(os)) = (now == call, os.upgrade()) {
            let ids = (0..nodes).map(|node| os.submission_ids(node));
            noted.lock().unwrap().extend(ids);
        }
    });
    seen
}

/// What ResetEngine answered.
fn answers(bench: &Bench) -> Arc<Mutex<Vec<ResetEngine>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    bench.spy.answer_reset(move |reset| {
        noted.lock().unwrap().push(reset);
        Ok(reset)
    });
    seen
}

/// Lets the engine run when the OS has made up its mind to reset it, until `is_done`.
fn run_before_the_reset(
    bench: &Bench,
    gate: Closed,
    is_done: impl Fn() -> bool + Send + Sync + 'static,
) {
    let gate = Mutex::new(Some(gate));
    bench.spy.before_tdr(move |call| {
        if call == TdrCall::ResetEngine(0) {
            drop(gate.lock().unwrap().take());
            until("what was left to the engine is done", &is_done);
        }
    });
}

/// TD-03: of kernel-mode queues, whose ids are the OS's own: an aborted id below the last completed one, above the
/// last submitted one, or between them and not in the hardware queue any more, since its command was preempted
/// and has another id, stops the adapter with 0x119, P1 = 0xA, the id and the last completed one. (Of user-mode
/// queues the first: `tests/engine_reset.rs`.)
///
/// Kills `ids-of-kernel-mode-queues-are-believed` and `an-aborted-id-need-not-be-queued`.
#[test]
fn td_03_an_id_that_the_engine_does_not_have_stops_the_adapter() {
    for place in 0..3 {
        on_benches(1, |bench| {
            let innocent = bench.adapter.create_device();
            let context = innocent.create_context(0, 1).unwrap();
            let mut kept = context.create_kernel_queue().unwrap();
            let mut guilty = bench.device.create_kernel_queue().unwrap();
            let done = guilty.submit(CommandList::new().nop()).unwrap();
            guilty.progress_fence().wait(done, LONG).unwrap();
            let ids = || bench.adapter.os().submission_ids(0);
            let completed = bench.initialised(0);
            // No engine executes it, so it is handed over, taken back and handed over again.
            context.suspend(LONG).unwrap();
            kept.submit(CommandList::new().nop()).unwrap();
            let preempted = completed + 1;
            until("it is handed over", || ids() == (preempted, completed));
            bench.until_parked();
            let slices = bench.counters().slices;
            bench.adapter.os().preempt(0).unwrap();
            let submitted = preempted + 2;
            until("it has another id", || ids() == (preempted + 1, completed));
            // It has its id before the engine is told of it: a slice without queues, which nobody is to be blamed for.
            until("the engine looks at it", || {
                bench.counters().slices > slices
            });
            let wrong = [completed - 1, preempted, submitted + 1][place];
            bench.spy.answer_reset(move |reset| {
                Ok(ResetEngine {
                    last_aborted_fence_id: wrong,
                    ..reset
                })
            });
            bench.until_parked();
            let _gate = bench.engine.close();
            guilty.submit(CommandList::new().nop()).unwrap();
            until("it is handed over too", || ids() == (submitted, completed));
            until("the adapter is stopped", || {
                bench.adapter.os().stopped().is_some()
            });
            assert_noted(bench, Record::VIDEO_SCHEDULER_INTERNAL_ERROR);
            let record = bench.adapter.os().stopped().unwrap();
            assert_eq!(record.parameters[..3], [0xa, wrong, completed]);
            assert!(record.is_bug_check());
            for queue in [&guilty, &kept] {
                let ended = queue.progress_fence().wait(99, LONG);
                assert_eq!(ended, Err(WaitError::AdapterStopped));
            }
        });
    }
}

/// TD-04: the last completed id is known at any time and advances by completions alone: what is preempted
/// gets other ids, and the last completed one stays until those have completed.
///
/// Kills `a-preempted-command-counts-as-completed`.
#[test]
fn td_04_the_last_completed_id_advances_by_completions_alone() {
    on_every_bench(short(), |bench| {
        let os = Arc::downgrade(bench.adapter.os());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        bench.spy.on_interrupt(move |interrupt| {
            if let Some(os) = os.upgrade() {
                let is_completion = matches!(interrupt, Interrupt::DmaCompleted { .. });
                let is_preempted = matches!(interrupt, Interrupt::DmaPreempted { .. });
                let kind = (is_completion, is_preempted);
                noted.lock().unwrap().push((kind, os.submission_ids(0).1));
            }
        });
        let target = bench.device.create_allocation(1 << 20).unwrap();
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let before = bench.initialised(0);
        let value = queue.submit(CommandList::new().nop()).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        let first = before + 1;
        until("the first one is told", || {
            bench.adapter.os().submission_ids(0) == (first, first)
        });
        bench.until_parked();
        let gate = bench.engine.close();
        let mut list = CommandList::new();
        list.fill(&target, 0..target.bytes(), 5);
        queue.submit(&list).unwrap();
        let value = queue.submit(CommandList::new().nop()).unwrap();
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        // By this thread, or by the one that handled the first completion and has not come back from that.
        until("both are handed over", || {
            bench.adapter.os().submission_ids(0) == (first + 2, first)
        });
        bench.adapter.os().preempt(0).unwrap();
        assert_eq!(bench.adapter.os().submission_ids(0), (first + 2, first));
        drop(gate);
        queue.progress_fence().wait(value, LONG).unwrap();
        until("all have completed", || {
            let (submitted, completed) = bench.adapter.os().submission_ids(0);
            submitted == completed
        });
        let seen = seen.lock().unwrap();
        assert!(seen.iter().any(|((_, is_preempted), _)| *is_preempted));
        for pair in seen.windows(2) {
            let (((is_completion, _), before), (_, after)) = (pair[0], pair[1]);
            assert!(before <= after, "{seen:?}");
            assert!(is_completion || before == after, "{seen:?}");
        }
    });
}

/// TD-04: when an engine was reset, the last completed id is LastAbortedFenceId, though a lesser one is
/// outstanding: that is handed over again with another id.
///
/// Kills `a-reset-completes-nothing`.
#[test]
fn td_04_a_reset_completes_the_aborted_id() {
    on_benches(1, |bench| {
        let mut guilty = bench.device.create_kernel_queue().unwrap();
        let innocent = bench.adapter.create_device();
        let mut queue = innocent.create_kernel_queue().unwrap();
        let before = bench.initialised(0);
        bench.until_parked();
        let (ids, answers) = (ids_at(bench, TdrCall::ResumeHwEngine(0), 1), answers(bench));
        let _gate = bench.engine.close();
        queue.submit(CommandList::new().nop()).unwrap();
        guilty.submit(CommandList::new().nop()).unwrap();
        let value = queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(queue.progress_fence().wait(value, LONG), Ok(()));
        guilty.progress_fence().wait(1, LONG).unwrap_err();
        assert_noted(bench, Record::VIDEO_ENGINE_TIMEOUT_DETECTED);
        let aborted: Vec<_> = answers.lock().unwrap().clone();
        assert_eq!(aborted.len(), 1);
        assert_eq!(aborted[0].hw_queue, Some(guilty.os().handle()));
        assert_eq!(aborted[0].last_aborted_fence_id, before + 2);
        assert_eq!(*ids.lock().unwrap(), [(before + 3, before + 2)]);
        until("the others have completed with new ids", || {
            bench.adapter.os().submission_ids(0) == (before + 5, before + 5)
        });
    });
}

/// TD-04: when the adapter was reset, the last completed id is the last submitted one, on every node.
///
/// Kills `an-adapter-reset-completes-nothing`.
#[test]
fn td_04_an_adapter_reset_completes_the_last_submitted_id_of_every_node() {
    on_benches(2, |bench| {
        // Whichever of the two is found first.
        for node in [0, 1] {
            bench.spy.fail_tdr(TdrCall::ResetEngine(node));
        }
        let devices = [0, 1].map(|_| bench.adapter.create_device());
        let mut queues =
            [0, 1].map(|node| devices[node].create_kernel_queue_on(node as u32).unwrap());
        let before = [0, 1].map(|node| bench.initialised(node));
        bench.until_parked();
        let ids = ids_at(bench, TdrCall::RestartFromTimeout, 2);
        let _gates = [0, 1].map(|node: usize| bench.engines[node].close());
        for (node, queue) in queues.iter_mut().enumerate() {
            for _ in 0..=node {
                queue.submit(CommandList::new().nop()).unwrap();
            }
        }
        for queue in &queues {
            queue.progress_fence().wait(9, LONG).unwrap_err();
        }
        assert_noted(bench, Record::VIDEO_TDR_TIMEOUT_DETECTED);
        let last = [before[0] + 1, before[1] + 2];
        assert_eq!(*ids.lock().unwrap(), last.map(|last| (last, last)));
        for device in &devices {
            assert_ne!(device.execution_state(), DeviceExecutionState::ACTIVE);
        }
        let again = bench.adapter.create_device();
        let mut queue = again.create_kernel_queue_on(1).unwrap();
        let value = queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(queue.progress_fence().wait(value, LONG), Ok(()));
        // One more for the new queue's save area.
        let next = last[1] + 2;
        until("the next id is the next one", || {
            bench.adapter.os().submission_ids(1) == (next, next)
        });
    });
}

/// TD-05: a packet of a user-mode queue completes when the OS has made up its mind to reset the engine, and
/// nothing is behind it: its id is LastAbortedFenceId, its device is in error, and what it stored stays. A
/// device whose queue stands at a wait goes on.
///
/// Kills `what-completed-late-is-nobodys`.
#[test]
fn td_05_a_packet_that_completes_late_is_taken_for_aborted() {
    on_benches(1, |bench| {
        let innocent = bench.adapter.create_device();
        let (open, mut waits) = (innocent.create_fence(0).unwrap(), queue_of(&innocent, 0));
        let behind = waits.submit(CommandList::new().wait(&open, 1)).unwrap();
        let (mut guilty, stored) = (bench.queue(), bench.fence(0));
        let target = bench.device.create_allocation(64).unwrap();
        bench.until_parked();
        let answers = answers(bench);
        let gate = bench.engine.close();
        let mut list = CommandList::new();
        list.fill(&target, 0..64, 7).signal(&stored, 5);
        let value = guilty.submit(&list).unwrap();
        let progress = guilty.progress_fence().clone();
        run_before_the_reset(bench, gate, move || progress.current_value() >= value);

        until("the device is in error", || guilty.error().is_some());
        assert_noted(bench, Record::VIDEO_ENGINE_TIMEOUT_DETECTED);
        let expected = ResetEngine {
            last_aborted_fence_id: value,
            hw_queue: Some(guilty.os().handle()),
        };
        assert_eq!(*answers.lock().unwrap(), [expected]);
        assert_eq!(bench.device.execution_state(), DeviceExecutionState::HUNG);
        assert_eq!(guilty.doorbell_status(), DoorbellStatus::DisconnectedAbort);
        assert_eq!(guilty.progress_fence().current_value(), value);
        assert_eq!(stored.current_value(), 5);
        let mut words = [0; 8];
        target.read(0, &mut words);
        assert_eq!(words, [7; 8]);

        assert_eq!(innocent.execution_state(), DeviceExecutionState::ACTIVE);
        open.signal(1).unwrap();
        assert_eq!(waits.progress_fence().wait(behind, LONG), Ok(()));
    });
}

/// TD-05: the same of a command of a kernel-mode queue, whether or not the driver has looked at its
/// completion: the id is the OS's, and all ids are accounted for.
///
/// Kills `a-command-that-completed-late-is-nobodys`.
#[test]
fn td_05_a_command_that_completes_late_is_taken_for_aborted() {
    on_benches(1, |bench| {
        let mut guilty = bench.device.create_kernel_queue().unwrap();
        let target = bench.device.create_allocation(64).unwrap();
        let aborted = bench.initialised(0) + 2;
        let first = guilty.submit(CommandList::new().nop()).unwrap();
        guilty.progress_fence().wait(first, LONG).unwrap();
        bench.until_parked();
        let answers = answers(bench);
        let gate = bench.engine.close();
        let mut list = CommandList::new();
        list.fill(&target, 0..64, 7);
        let value = guilty.submit(&list).unwrap();
        let progress = guilty.progress_fence().clone();
        run_before_the_reset(bench, gate, move || progress.current_value() >= value);
        assert_noted(bench, Record::VIDEO_ENGINE_TIMEOUT_DETECTED);
        let expected = ResetEngine {
            last_aborted_fence_id: aborted,
            hw_queue: Some(guilty.os().handle()),
        };
        assert_eq!(*answers.lock().unwrap(), [expected]);
        assert_eq!(guilty.error(), Some(WaitError::DeviceLost));
        assert_eq!(bench.device.execution_state(), DeviceExecutionState::HUNG);
        let mut words = [0; 8];
        target.read(0, &mut words);
        assert_eq!(words, [7; 8]);
        let ids = bench.adapter.os().submission_ids(0);
        assert_eq!(ids, (aborted, aborted));
    });
}

/// TD-05: where something is behind the packet that completes late, the aborted id is that of what the engine
/// is in then: of the next submission of the same queue, or of another device's queue, and that device alone
/// is in error.
///
/// Kills `the-aborted-id-is-the-completed-one`.
#[test]
fn td_05_with_others_behind_the_next_one_is_aborted() {
    for is_same in [true, false] {
        on_benches(1, |bench| {
            let (first, second) = (bench.adapter.create_device(), bench.adapter.create_device());
            let (mut completes, mut hangs) = (queue_of(&first, 0), queue_of(&second, 0));
            bench.until_parked();
            let answers = answers(bench);
            let gate = bench.engine.close();
            let value = completes.submit(CommandList::new().nop()).unwrap();
            let stall = &mut CommandList::new();
            stall.stall(StallKind::HeedsNothing, FOR_EVER);
            let behind = if is_same { &mut completes } else { &mut hangs };
            let aborted = behind.submit(stall).unwrap();
            let handle = behind.os().handle();
            let (driver, progress) = (bench.parking_driver(), completes.progress_fence().clone());
            run_before_the_reset(bench, gate, move || {
                let stalled = driver.node(0).unwrap().stalled_at();
                progress.current_value() >= value && stalled.is_some()
            });
            assert_noted(bench, Record::VIDEO_ENGINE_TIMEOUT_DETECTED);
            let expected = ResetEngine {
                last_aborted_fence_id: aborted,
                hw_queue: Some(handle),
            };
            assert_eq!(*answers.lock().unwrap(), [expected]);
            let (hung, goes_on) = if is_same {
                (&first, &second)
            } else {
                (&second, &first)
            };
            assert_eq!(hung.execution_state(), DeviceExecutionState::HUNG);
            assert_eq!(goes_on.execution_state(), DeviceExecutionState::ACTIVE);
            let rest = if is_same { &mut hangs } else { &mut completes };
            let value = rest.submit(CommandList::new().nop()).unwrap();
            until_completed(rest, value);
            assert_eq!(rest.error(), None);
        });
    }
}
