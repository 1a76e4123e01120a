//! What the OS notes of recoveries and of the ends of adapters (TD-21).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod queue_of;
}

use native_fence::abi::wddm::NtStatus;
use native_fence::kmd::DriverOptions;
use native_fence::os::Record;
use native_fence::{CommandList, TdrDebugMode, TdrPolicy};
use support::bench::{
    Bench, LONG, TdrCall, hang, hang_until_aborted, on_recovering_benches, soon, until,
};
use support::queue_of::queue_of;

fn on_benches(engines: u32, tdr: TdrPolicy, body: impl Fn(&Bench)) {
    on_recovering_benches(engines, tdr, &DriverOptions::default(), body);
}

/// Code, parameters, and whether it is the end of its adapter.
type Noted = (u32, [u64; 4], bool);

fn noted(bench: &Bench) -> Vec<Noted> {
    let records = bench.take_records();
    let noted = records
        .iter()
        .map(|record| (record.code, record.parameters, record.is_bug_check()));
    noted.collect()
}

/// A queue of a new device hangs the engine, which ends its device.
fn hang_once(bench: &Bench, node_ordinal: u32) {
    let device = bench.adapter.create_device();
    let mut guilty = queue_of(&device, node_ordinal);
    hang(&mut guilty);
    guilty.progress_fence().wait(1, LONG).unwrap_err();
}

/// A new device's queue runs on each node.
fn assert_goes_on(bench: &Bench, nodes: u32) {
    assert_eq!(bench.adapter.os().stopped(), None);
    let device = bench.adapter.create_device();
    for node in 0..nodes {
        let (mut queue, fence) = (queue_of(&device, node), device.create_fence(0).unwrap());
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        assert_eq!(fence.wait(1, LONG), Ok(()));
    }
}

const ENGINE: u32 = Record::VIDEO_ENGINE_TIMEOUT_DETECTED;
const ADAPTER: u32 = Record::VIDEO_TDR_TIMEOUT_DETECTED;

/// TD-21: the reset of an engine leaves one live record 0x141, with its reason and its node, and the adapter
/// goes on.
///
/// Kills `an-engine-timeout-has-no-reason`.
#[test]
fn td_21_an_engine_reset_is_one_live_record() {
    on_benches(2, soon(), |bench| {
        hang_once(bench, 1);
        assert_goes_on(bench, 2);
        let expected = (ENGINE, [0, 0, Record::ENGINE_TIMEOUT, 1], false);
        assert_eq!(noted(bench), [expected]);
        assert_eq!((ENGINE, Record::ENGINE_TIMEOUT), (0x141, 6));
    });
}

/// TD-21, TD-08: an engine's reset that fails is noted as that of the adapter alone, a live record 0x117 with
/// reason 9; one that was never tried, without SupportPerEngineTDR, has another reason.
///
/// Kills `every-reset-of-an-adapter-is-a-promotion`.
#[test]
fn td_21_an_adapter_reset_is_one_live_record() {
    on_benches(2, soon(), |bench| {
        bench.spy.fail_tdr(TdrCall::ResetEngine(0));
        hang_once(bench, 0);
        assert_goes_on(bench, 2);
        assert_eq!(noted(bench), [(ADAPTER, [0, 0, 9, 0], false)]);
        assert_eq!(ADAPTER, 0x117);
    });
    let options = DriverOptions {
        adapter_wide_tdr: true,
        ..DriverOptions::default()
    };
    on_recovering_benches(1, soon(), &options, |bench| {
        hang_once(bench, 0);
        assert_goes_on(bench, 1);
        let reason = Record::PREEMPT_TIMEOUT;
        assert_ne!(reason, Record::ENGINE_TIMEOUT_PROMOTED);
        assert_eq!(noted(bench), [(ADAPTER, [0, 0, reason, 0], false)]);
    });
}

/// TD-21: a program that is blocked is one live record 0x142 more, with its process id, and the adapter is not
/// stopped.
///
/// Kills `a-blocked-program-has-no-process`.
#[test]
fn td_21_a_blocked_program_is_one_live_record() {
    let tdr = TdrPolicy {
        limit_count: 1,
        ..soon()
    };
    on_benches(1, tdr, |bench| {
        hang_once(bench, 0);
        until("the program is blocked", || {
            bench.adapter.os().blocked().is_some()
        });
        let process = u64::from(std::process::id());
        let expected = [
            (ENGINE, [0, 0, Record::ENGINE_TIMEOUT, 0], false),
            (0x142, [0, 0, Record::ENGINE_TIMEOUT, process], false),
        ];
        assert_eq!(noted(bench), expected);
        assert_eq!(bench.adapter.os().stopped(), None);
        assert_eq!(bench.adapter.os().blocked().unwrap().code, 0x142);
    });
}

/// TD-21: 0x116 is the end of an adapter, with the status of what failed last: no live record is beside it,
/// and nothing can be made on the adapter any more.
///
/// Kills `a-failure-has-no-status`.
#[test]
fn td_21_a_failed_recovery_is_the_end() {
    on_benches(1, soon(), |bench| {
        bench.spy.fail_tdr(TdrCall::ResetEngine(0));
        bench.spy.fail_tdr(TdrCall::RestartFromTimeout);
        hang_once(bench, 0);
        until("the adapter is stopped", || {
            bench.adapter.os().stopped().is_some()
        });
        let status = u64::from(NtStatus::INVALID_PARAMETER.0.cast_unsigned());
        assert_eq!(noted(bench), [(0x116, [0, 0, status, 0], true)]);
        assert_eq!(status, 0xC000_000D);
        bench.adapter.create_device().create_fence(0).unwrap_err();
    });
}

/// TD-21, TD-10: of more adapter-wide resets than there may be, those before are live records and the last is
/// 0x116, where nothing failed.
///
/// Kills `one-reset-of-the-adapter-more-is-forgiven`.
#[test]
fn td_21_one_reset_too_many_is_the_end() {
    let tdr = TdrPolicy {
        limit_count: 2,
        ..soon()
    };
    on_benches(1, tdr, |bench| {
        bench.spy.fail_tdr(TdrCall::ResetEngine(0));
        for resets in 1..=2 {
            hang_once(bench, 0);
            until("the reset is noted", || {
                bench.adapter.os().records().len() == resets
            });
        }
        hang_once(bench, 0);
        until("the adapter is stopped", || {
            bench.adapter.os().stopped().is_some()
        });
        let reset = (ADAPTER, [0, 0, 9, 0], false);
        assert_eq!(noted(bench), [reset, reset, (0x116, [0; 4], true)]);
    });
}

/// TD-21, TD-10: where TdrDebugMode has an engine left as it is, the record says that.
///
/// Kills `an-engine-that-is-left-was-reset`.
#[test]
fn td_21_an_engine_that_is_left_is_not_called_reset() {
    let tdr = TdrPolicy {
        debug_mode: TdrDebugMode::Off,
        ..soon()
    };
    on_benches(1, tdr, |bench| {
        let mut guilty = bench.queue();
        hang_until_aborted(&mut guilty);
        until("it is noted", || !bench.adapter.os().records().is_empty());
        let driver = bench.parking_driver();
        driver.node(0).unwrap().abort_stall();
        until("the packet has ended", || guilty.error().is_some());
        bench.until_parked();
        let records = bench.take_records();
        let is_left = |record: &Record| {
            record.code == ENGINE && record.reason.ends_with("and is left as it is")
        };
        assert!(records.iter().all(is_left), "{records:?}");
        assert_eq!(bench.counters().resets, 0);
        assert_goes_on(bench, 1);
    });
}
