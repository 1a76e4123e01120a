//! QueryEngineStatus: whether an engine answers, asked at any moment (TD-19).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod left_out;
}

use native_fence::abi::StallKind;
use native_fence::gpu::{EngineUnit, Injection, LongKernel};
use native_fence::kmd::DriverOptions;
use native_fence::os::Record;
use native_fence::vulkan::validation;
use native_fence::{Adapter, AdapterOptions, CommandList, HwQueueOptions, TdrPolicy};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use support::bench::{
    Bench, FOR_EVER, LONG, TdrCall, large, on_recovering_benches, soon, until, until_completed,
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
            guilty
                .submit(CommandList::new().stall(kind, FOR_EVER))
                .unwrap();
            let driver = bench.parking_driver();
            until("the engine stalls", || {
                driver.node(0).unwrap().stalled_at().is_some()
            });
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
