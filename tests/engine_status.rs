//! QueryEngineStatus: whether an engine answers, asked at any moment (TD-19).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod left_out;
}

use native_fence::abi::StallKind;
use native_fence::gpu::{EngineUnit, Injection, LongKernel};
use native_fence::kmd::{DriverFaults, DriverOptions, ResetFault};
use native_fence::os::Record;
use native_fence::vulkan::validation;
use native_fence::{Adapter, AdapterOptions, CommandList, HwQueueOptions, TdrPolicy};
use rustix::process::{Pid, Signal, kill_process};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::bench::{
    Bench, LONG, TdrCall, hang, large, on_recovering_benches, soon, stall, until, until_completed,
};
use support::left_out::opened_or_left_out;

fn on_benches(engines: u32, body: impl Fn(&Bench)) {
    on_recovering_benches(engines, patient(), &DriverOptions::default(), body);
}

/// Nobody but the test asks an engine for anything while it looks.
fn patient() -> TdrPolicy {
    TdrPolicy {
        delay: Duration::from_secs(4),
        ..soon()
    }
}

/// The driver's answer, asked past the OS.
fn is_responsive(bench: &Bench, node_ordinal: u32) -> bool {
    let tdr = bench.spy.driver().tdr().unwrap();
    tdr.query_engine_status(node_ordinal)
}

fn until_reset(bench: &Bench) {
    until("the engine is reset", || {
        bench.spy.tdr_calls().contains(&TdrCall::ResumeHwEngine(0))
    });
    let records = bench.take_records();
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0].code, Record::VIDEO_ENGINE_TIMEOUT_DETECTED);
}

/// TD-19: an engine whose queues stand at waits answers, whether or not it is parked; so does one whose
/// queue was taken out in the midst of a transfer, one in the midst of a transfer of many parts, and one
/// that has nothing to do.
///
/// Kills `an-engine-that-is-not-parked-answers-nothing`.
#[test]
fn td_19_an_engine_at_work_is_responsive() {
    on_benches(2, |bench| {
        assert!(is_responsive(bench, 0), "it has nothing to do");
        let (fence, mut waits) = (bench.fence(0), bench.queue());
        waits.submit(CommandList::new().wait(&fence, 1)).unwrap();
        for _ in 0..10 {
            assert!(is_responsive(bench, 0), "its queue stands at a wait");
        }

        let context = bench.device.create_context(0, 1).unwrap();
        let mut copies = context.create_hw_queue(64).unwrap();
        let [from, to] = [0, 1].map(|_| large(bench));
        let mut list = CommandList::new();
        for _ in 0..8 {
            list.copy(&from, 0..from.bytes(), &to, 0);
        }
        let value = copies.submit(&list).unwrap();
        let mut asked_at_work = 0;
        while copies.progress_fence().current_value() < value && asked_at_work < 20 {
            assert!(is_responsive(bench, 0), "it copies");
            asked_at_work += 1;
        }
        assert!(asked_at_work > 0);
        context.suspend(LONG).unwrap();
        assert!(is_responsive(bench, 0), "its queue is taken out");
        context.resume();
        until_completed(&copies, value);
        fence.signal(1).unwrap();
        until_completed(&waits, 1);
        assert_eq!(bench.take_records(), []);
    });
}

/// TD-19: an engine in a packet that heeds nothing, or the abort word alone, does not answer, whether or not
/// it was asked for anything before; the other engine does. After its reset it answers.
///
/// Kills `every-hung-engine-answers`.
#[test]
fn td_19_a_stalled_engine_is_not_responsive() {
    for kind in [StallKind::HeedsNothing, StallKind::HeedsAbort] {
        on_benches(2, |bench| {
            let mut guilty = bench.queue();
            let value = guilty.submit(CommandList::new().nop()).unwrap();
            until_completed(&guilty, value);
            assert!(is_responsive(bench, 0));
            stall(&mut guilty, kind);
            bench.until_stalled();
            assert!(!is_responsive(bench, 0), "{kind:?}");
            assert!(!is_responsive(bench, 0), "{kind:?}, asked again");
            assert!(is_responsive(bench, 1), "{kind:?}: the other one");
            until_reset(bench);
            assert!(is_responsive(bench, 0), "{kind:?}: after its reset");
        });
    }
}

/// TD-19: an engine whose device is lost does not answer; the one that takes its place does.
///
/// Kills `a-lost-engine-answers`.
#[test]
fn td_19_a_lost_engine_is_not_responsive() {
    on_benches(1, |bench| {
        let (asked, answers) = (Arc::downgrade(&bench.spy), Arc::default());
        let noted: Arc<std::sync::Mutex<Vec<bool>>> = Arc::clone(&answers);
        bench.spy.before_tdr(move |call| {
            if let (TdrCall::CollectDbgInfo(_), Some(spy)) = (call, asked.upgrade()) {
                let tdr = spy.driver().tdr().unwrap();
                noted.lock().unwrap().push(tdr.query_engine_status(0));
            }
        });
        let mut queue = bench.queue();
        bench.until_parked();
        bench.engine.lose();
        queue.submit(CommandList::new().nop()).unwrap();
        until_reset(bench);
        assert_eq!(*answers.lock().unwrap(), [false]);
        assert!(is_responsive(bench, 0), "the one in its place");
    });
}

/// TD-19: an engine whose queue a kernel keeps does not answer, and does after its reset. On any driver,
/// those that end loops among them.
///
/// Kills `every-hung-engine-answers`.
#[test]
fn td_19_an_engine_behind_a_long_kernel_is_not_responsive() {
    // Minutes on two cores, of which the test waits for none.
    const KERNEL: LongKernel = LongKernel {
        workgroups: 1_000_000,
        passes: 60_000,
    };
    let injection = Injection::new(1).unwrap();
    let opened = Adapter::open(&AdapterOptions {
        validation: validation::asked_for_by_environment(),
        nodes: NonZeroU32::MIN,
        unit: Some(EngineUnit::Instance),
        injection: Some(Arc::clone(&injection)),
        tdr: patient(),
        ..AdapterOptions::default()
    });
    let Some(adapter) = opened_or_left_out(opened) else {
        return;
    };
    let os = Arc::clone(adapter.os());
    let is_responsive = || os.ddi().tdr().unwrap().query_engine_status(0);
    let device = adapter.create_device();
    let queue = device.create_hw_queue_with(HwQueueOptions::default());
    let mut queue = queue.unwrap();
    assert!(is_responsive());
    injection.before_next_slice(0, KERNEL);
    let runs = || injection.workgroups_done(0) > 0;
    while !runs() {
        // A slice in flight takes a submission, and the kernel comes before the next slice.
        let value = queue.submit(CommandList::new().nop()).unwrap();
        until("the kernel runs, or there was no next slice", || {
            runs() || queue.progress_fence().current_value() >= value
        });
    }
    assert!(!is_responsive());
    assert!(!is_responsive(), "asked again");
    until("the engine is reset", || !os.records().is_empty());
    until("the one in its place answers", is_responsive);
}

/// Whether each thread of a process is stopped.
fn is_stopped(process: i32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let mut stats = threads.map(|thread| {
        let stat = thread.unwrap().path().join("stat");
        std::fs::read_to_string(stat).unwrap_or_default()
    });
    // The state follows the name, which stands in parentheses.
    stats.all(|stat| {
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('T'))
    })
}

/// TD-19: an engine in a process of its own does not answer while that is stopped, and does when it goes on; one
/// whose process is killed, in the midst of its work or while it has none, does not from when the loss is found
/// until another one takes its place, which is kept back here. The other engine answers all the time.
///
/// Kills `every-hung-engine-answers` and `a-lost-engine-answers`.
#[test]
fn td_19_an_engine_whose_process_was_struck_is_not_responsive() {
    for has_work in [true, false] {
        let faults = DriverFaults::new();
        let opened = Adapter::open(&AdapterOptions {
            validation: validation::asked_for_by_environment(),
            nodes: NonZeroU32::new(2).unwrap(),
            unit: Some(EngineUnit::Process),
            engine_program: Some(PathBuf::from(env!("CARGO_BIN_EXE_nfence"))),
            driver: DriverOptions {
                faults: Some(Arc::clone(&faults)),
                ..DriverOptions::default()
            },
            tdr: TdrPolicy {
                delay: Duration::from_secs(600),
                ..TdrPolicy::default()
            },
            ..AdapterOptions::default()
        });
        let Some(adapter) = opened_or_left_out(opened) else {
            return;
        };
        faults.at_next_reset(0, ResetFault::ComesLate(3 * LONG));
        let id = adapter.engine_process(0).unwrap().cast_signed();
        let strike = |signal| kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
        let tdr = adapter.os().ddi().tdr().unwrap();
        let device = adapter.create_device();
        let mut queue = device.create_hw_queue().unwrap();
        let value = queue.submit(CommandList::new().nop()).unwrap();
        until_completed(&queue, value);
        assert!(tdr.query_engine_status(0));
        if has_work {
            strike(Signal::STOP);
            until("all of it is stopped", || is_stopped(id));
            let value = queue.submit(CommandList::new().nop()).unwrap();
            for _ in 0..2 {
                assert!(!tdr.query_engine_status(0), "its process is stopped");
                assert!(tdr.query_engine_status(1), "the other one");
            }
            strike(Signal::CONT);
            until_completed(&queue, value);
            // Of the slice that was asked for long it may have the end before it still.
            until("it answers again", || tdr.query_engine_status(0));
            strike(Signal::STOP);
            queue.submit(CommandList::new().nop()).unwrap();
        }
        strike(Signal::KILL);
        until("the loss is found", || faults.met() == 1);
        for _ in 0..2 {
            assert!(!tdr.query_engine_status(0), "its process is killed");
            assert!(tdr.query_engine_status(1), "the other one");
        }
        faults.let_go(0);
        until("the recovery is noted", || {
            !adapter.os().records().is_empty()
        });
        assert!(tdr.query_engine_status(0), "the one in its place");
        let records = adapter.os().records();
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(records[0].code, Record::VIDEO_ENGINE_TIMEOUT_DETECTED);
    }
}

/// An engine hangs, and its driver says so when it was asked for at least `least`.
fn is_given(least: Duration, options: &DriverOptions) {
    on_recovering_benches(2, patient(), options, |bench| {
        let mut guilty = bench.queue();
        bench.until_parked();
        let begin = Instant::now();
        hang(&mut guilty);
        bench.until_stalled();
        assert!(!is_responsive(bench, 0));
        assert!(begin.elapsed() >= least);
        until_reset(bench);
    });
}

/// TD-19: an engine that does not answer has as long to as the driver was made with, from when it was first asked.
///
/// Kills `every-engine-has-half-a-second-to-answer`.
#[test]
fn td_19_an_engine_has_as_long_to_answer_as_it_is_given() {
    let answer_time = Duration::from_millis(1500);
    let options = DriverOptions {
        answer_time,
        ..DriverOptions::default()
    };
    is_given(answer_time, &options);
}

/// TD-09: an engine of a group has 500 ms, however little the driver was made with.
///
/// Kills `a-dependent-engine-has-no-time-of-its-own`.
#[test]
fn td_09_an_engine_of_a_group_has_half_a_second() {
    let options = DriverOptions {
        answer_time: Duration::ZERO,
        shared_device: true,
        ..DriverOptions::default()
    };
    is_given(Duration::from_millis(500), &options);
}
