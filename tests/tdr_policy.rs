//! What can be said of the recovery of an adapter: TdrLevel, TdrDelay and the others, with their documented
//! defaults and what each of the modes does at a time-out (TD-10). The limits are shown with the records
//! (`tests/recovery_records.rs`), and TdrLevel BugCheck with the sequence (`tests/engine_reset.rs`).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod queue_of;
}

use native_fence::kmd::DriverOptions;
use native_fence::os::Record;
use native_fence::{
    AdapterOptions, CommandList, DeviceExecutionState, TdrDebugMode, TdrLevel, TdrPolicy, WaitError,
};
use std::time::{Duration, Instant};
use support::bench::{Bench, LONG, hang, hang_until_aborted, on_recovering_benches, soon, until};
use support::queue_of::queue_of;

/// TD-10: who says nothing gets what the documents say, and the levels and modes have the documents' numbers.
///
/// Kills `tdr-delay-has-another-default`, `tdr-ddi-delay-has-another-default`, `tdr-limit-time-has-another-default`
/// and `time-outs-are-ignored-by-default`.
#[test]
fn td_10_the_defaults_are_the_documented_ones() {
    let TdrPolicy {
        level,
        delay,
        ddi_delay,
        limit_count,
        limit_time,
        debug_mode,
    } = AdapterOptions::default().tdr;
    assert_eq!((level as u32, debug_mode as u32, limit_count), (3, 2, 5));
    let documented = [2, 5, 60].map(Duration::from_secs);
    assert_eq!([delay, ddi_delay, limit_time], documented);
    assert_eq!(TdrPolicy::default(), AdapterOptions::default().tdr);
    let levels = [
        TdrLevel::Off,
        TdrLevel::BugCheck,
        TdrLevel::RecoverVga,
        TdrLevel::Recover,
    ];
    assert_eq!(levels.map(|level| level as u32), [0, 1, 2, 3]);
    let modes = [
        TdrDebugMode::Off,
        TdrDebugMode::IgnoreTimeout,
        TdrDebugMode::RecoverNoPrompt,
        TdrDebugMode::RecoverUnconditional,
    ];
    assert_eq!(modes.map(|mode| mode as u32), [0, 1, 2, 3]);
}

/// A packet hangs the first engine for many times TdrDelay, and nothing follows from that; when it ends, the
/// engine is the one that it was.
fn assert_left_to_itself(bench: &Bench, delay: Duration) {
    let (mut hangs, mut works) = (bench.queue_on(0), bench.queue_on(1));
    let innocent = bench.adapter.create_device();
    let mut behind = queue_of(&innocent, 0);
    hang_until_aborted(&mut hangs);
    bench.until_stalled();
    let driver = bench.parking_driver();
    let value = behind.submit(CommandList::new().nop()).unwrap();
    // The other engine works for that time, so that whoever watches engines is awake.
    let begin = Instant::now();
    while begin.elapsed() < 8 * delay {
        let value = works.submit(CommandList::new().nop()).unwrap();
        works.progress_fence().wait(value, LONG).unwrap();
    }
    assert_eq!(bench.spy.tdr_calls(), []);
    assert_eq!(bench.adapter.os().tdr_reports(), []);
    assert_eq!(bench.adapter.os().records(), []);
    assert_eq!((hangs.error(), behind.error()), (None, None));
    let state = bench.device.execution_state();
    assert_eq!(state, DeviceExecutionState::ACTIVE);
    assert!(driver.node(0).unwrap().stalled_at().is_some());
    driver.node(0).unwrap().abort_stall();
    assert_eq!(behind.progress_fence().wait(value, LONG), Ok(()));
    until("the packet has ended", || hangs.error().is_some());
    assert_eq!(bench.counters().resets, 0);
}

/// TD-10: with TdrLevel Off a time-out is not even looked for, and with TdrDebugMode IgnoreTimeout neither: no
/// request, no report, no record, no device in error.
///
/// Kills `the-level-off-detects` and `ignored-time-outs-are-recovered-from`.
#[test]
fn td_10_a_time_out_is_left_to_itself() {
    let tdr = TdrPolicy {
        delay: Duration::from_millis(100),
        ..soon()
    };
    let off = TdrPolicy {
        level: TdrLevel::Off,
        ..tdr
    };
    let ignored = TdrPolicy {
        debug_mode: TdrDebugMode::IgnoreTimeout,
        ..tdr
    };
    for tdr in [off, ignored] {
        on_recovering_benches(2, tdr, &DriverOptions::default(), |bench| {
            assert_left_to_itself(bench, tdr.delay);
        });
    }
}

/// TD-10: TdrLevel RecoverVga, which is documented as not implemented, is a level at which a time-out is
/// recovered from, as Recover is.
///
/// Kills `the-level-recover-vga-recovers-nothing`.
#[test]
fn td_10_the_level_recover_vga_recovers() {
    let tdr = TdrPolicy {
        level: TdrLevel::RecoverVga,
        ..soon()
    };
    on_recovering_benches(1, tdr, &DriverOptions::default(), |bench| {
        let guilty = bench.adapter.create_device();
        let mut hangs = queue_of(&guilty, 0);
        hang(&mut hangs);
        let ended = hangs.progress_fence().wait(1, LONG);
        assert_eq!(ended, Err(WaitError::DeviceLost));
        until("the recovery is noted", || {
            !bench.adapter.os().records().is_empty()
        });
        let records = bench.take_records();
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(records[0].code, Record::VIDEO_ENGINE_TIMEOUT_DETECTED);
        assert_eq!(guilty.execution_state(), DeviceExecutionState::HUNG);
        let mut goes_on = bench.queue();
        let value = goes_on.submit(CommandList::new().nop()).unwrap();
        assert_eq!(goes_on.progress_fence().wait(value, LONG), Ok(()));
    });
}
