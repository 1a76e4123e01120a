//! CollectDbgInfo is at passive level and level zero: while it is held up, all others go on (TD-17). What it says
//! fits into its buffer (TD-11).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod queue_of;
}

use native_fence::kmd::{CollectDbgInfo, DriverOptions, Level};
use native_fence::os::{Record, TdrReport};
use native_fence::{CommandList, Device, FenceOptions, HwQueue, WaitError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use support::bench::{
    Bench, Ended, LONG, TdrCall, hang, on_patient_benches, on_recovering_benches, soon, until,
};
use support::queue_of::queue_of;

/// What was called, at which level, while the call is held up.
struct HeldUp {
    goes_on: Arc<AtomicBool>,
    calls: Arc<Mutex<Vec<(TdrCall, Level)>>>,
}

impl HeldUp {
    /// CollectDbgInfo is from now on.
    fn in_collection(bench: &Bench) -> Self {
        let (goes_on, calls) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let held = Self {
            goes_on: Arc::clone(&goes_on),
            calls: Arc::clone(&calls),
        };
        bench.spy.before_tdr(move |call| {
            calls.lock().unwrap().push((call, Level::of_thread()));
            if matches!(call, TdrCall::CollectDbgInfo(_)) {
                until("the test lets it go on", || goes_on.load(Ordering::Acquire));
            }
        });
        held
    }

    fn until_inside(&self) -> (u32, Level) {
        let mut inside = None;
        until("the OS collects", || {
            inside = self.calls.lock().unwrap().last().copied();
            matches!(inside, Some((TdrCall::CollectDbgInfo(_), _)))
        });
        match inside {
            Some((TdrCall::CollectDbgInfo(reason), level)) => (reason, level),
            other => panic!("{other:?}"),
        }
    }
}

/// What other devices do, on other engines and with the adapter. Gives what was made on the engine that does
/// not answer: to destroy that is to wait for its slices.
fn others_go_on(bench: &Bench, running: &mut HwQueue) -> (Device, HwQueue) {
    let os = bench.adapter.os();
    // A device and its fences and queues of either kind, also on the engine that does not answer.
    let device = bench.adapter.create_device();
    let (fence, mut queue) = (device.create_fence(0).unwrap(), queue_of(&device, 1));
    let mut kernel = device.create_kernel_queue_on(1).unwrap();
    let on_the_hung_one = queue_of(&device, 0);
    let memory = device.create_allocation(64).unwrap();
    // Queries.
    os.native_fence_caps().unwrap();
    // Two queues of it have an area each, and one of these is initialised when the engine answers again.
    assert_eq!(os.submission_ids(0), (2, 1));
    assert!(os.query_wddm_3_1_caps().0 != 0);
    assert!(os.ddi().node_counters(0).is_some());
    // Interrupts wake those who stand in a wait, and each queue goes on.
    let interrupts = os.interrupts().native_fence_signaled();
    let waiter = bench.waiter(&fence, 20);
    for value in 1..=20 {
        queue
            .submit(CommandList::new().signal(&fence, value))
            .unwrap();
        let own = running.submit(CommandList::new().nop()).unwrap();
        assert_eq!(running.progress_fence().wait(own, LONG), Ok(()));
    }
    assert_eq!(waiter.join(), Ok(()));
    assert!(os.interrupts().native_fence_signaled() > interrupts);
    let mut list = CommandList::new();
    list.fill(&memory, 0..64, 3);
    let value = kernel.submit(&list).unwrap();
    assert_eq!(kernel.progress_fence().wait(value, LONG), Ok(()));
    fence.signal(21).unwrap();
    assert_eq!(fence.wait(21, LONG), Ok(()));
    (device, on_the_hung_one)
}

/// TD-17: for an engine's time-out and for the adapter's, with the reason of each.
///
/// Kills `every-collection-is-of-an-engine`, `collection-is-level-one`.
#[test]
fn td_17_others_go_on_while_information_is_collected() {
    let wide = DriverOptions {
        adapter_wide_tdr: true,
        ..DriverOptions::default()
    };
    let engine = Record::VIDEO_ENGINE_TIMEOUT_DETECTED;
    let adapter = Record::VIDEO_TDR_TIMEOUT_DETECTED;
    for (options, reason) in [(DriverOptions::default(), engine), (wide, adapter)] {
        on_recovering_benches(2, soon(), &options, |bench| {
            let device = bench.adapter.create_device();
            let mut queue = queue_of(&device, 1);
            let mut guilty = bench.queue();
            let held = HeldUp::in_collection(bench);
            let ends = Ended(&held.goes_on);
            hang(&mut guilty);
            assert_eq!(held.until_inside(), (reason, Level::Passive));
            let _made = others_go_on(bench, &mut queue);
            let (now, _) = *held.calls.lock().unwrap().last().unwrap();
            assert_eq!(now, TdrCall::CollectDbgInfo(reason), "still held up");
            assert_eq!(bench.adapter.os().records(), []);
            assert_eq!(guilty.error(), None);
            drop(ends);
            let ended = guilty.progress_fence().wait(1, LONG);
            assert_eq!(ended, Err(WaitError::DeviceLost));
            until("it is noted", || !bench.adapter.os().records().is_empty());
            let records = bench.take_records();
            assert_eq!(records.len(), 1, "{records:?}");
            assert_eq!(records[0].code, reason);
        });
    }
}

/// TD-11: whatever room there is for what the driver says, it says no more than that, and begins with the same.
///
/// Kills `a-report-outgrows-its-buffer`.
#[test]
fn td_11_a_report_is_no_longer_than_its_buffer() {
    on_patient_benches(1, |bench| {
        let (fence, mut queue) = (bench.fence(0), bench.queue());
        queue.submit(CommandList::new().wait(&fence, 9)).unwrap();
        bench.until_parked();
        let tdr = bench.spy.driver().tdr().unwrap();
        let collect = |buffer_size| {
            let args = CollectDbgInfo {
                reason: Record::VIDEO_ENGINE_TIMEOUT_DETECTED,
                node_ordinal: 0,
                buffer_size,
            };
            tdr.collect_dbg_info(&args).unwrap()
        };
        let whole = collect(TdrReport::MOST_BYTES);
        assert!(whole.contains("waits for 9 of the fence"), "{whole}");
        assert_eq!(collect(usize::MAX), whole);
        for bytes in 0..=whole.len() {
            assert_eq!(collect(bytes), whole[..bytes]);
        }
    });
}

/// TD-11: a driver that says more than there is room for is not believed: the rest is left out, no character in
/// part, and the recovery goes on.
///
/// Kills `a-driver-says-as-much-as-it-likes` and `a-report-ends-within-a-character`.
#[test]
fn td_11_what_a_driver_says_too_much_is_left_out() {
    on_recovering_benches(1, soon(), &DriverOptions::default(), |bench| {
        let begin = |characters| format!("x{}", "\u{e9}".repeat(characters));
        bench.spy.answer_dbg_info(begin(TdrReport::MOST_BYTES));
        let mut guilty = bench.queue();
        hang(&mut guilty);
        let ended = guilty.progress_fence().wait(1, LONG);
        assert_eq!(ended, Err(WaitError::DeviceLost));
        until("it is noted", || !bench.adapter.os().records().is_empty());
        assert_eq!(bench.take_records().len(), 1);
        let reports = bench.adapter.os().tdr_reports();
        assert_eq!(reports.len(), 1);
        let expected = begin(TdrReport::MOST_BYTES / 2 - 1);
        assert_eq!(expected.len(), TdrReport::MOST_BYTES - 1);
        assert!(reports[0].driver == Ok(expected));
    });
}

/// TD-11, NF-13: a queue of the engine stands at a fence of type INTRA_GPU. The report says so, without a value, which no CPU
/// reads; the engine is recovered, and the queue goes on when the fence is signalled.
///
/// Kills `a-report-reads-what-no-cpu-reads`.
#[test]
fn td_11_a_report_does_not_read_an_intra_gpu_fence() {
    on_recovering_benches(1, soon(), &DriverOptions::default(), |bench| {
        let device = bench.adapter.create_device();
        let options = FenceOptions {
            intra_gpu: true,
            ..FenceOptions::default()
        };
        let fence = device.create_fence_with(options).unwrap();
        let (mut waits, mut signals) = (queue_of(&device, 0), queue_of(&device, 0));
        let end = waits.submit(CommandList::new().wait(&fence, 9)).unwrap();
        bench.until_parked();
        let mut guilty = bench.queue();
        hang(&mut guilty);
        let ended = guilty.progress_fence().wait(1, LONG);
        assert_eq!(ended, Err(WaitError::DeviceLost));
        until("it is noted", || !bench.adapter.os().records().is_empty());
        assert_eq!(bench.take_records().len(), 1);
        let report = bench.adapter.os().tdr_reports()[0].to_string();
        assert!(report.contains("which no CPU reads"), "{report}");
        signals
            .submit(CommandList::new().signal(&fence, 9))
            .unwrap();
        assert_eq!(waits.progress_fence().wait(end, LONG), Ok(()));
    });
}
