//! Policy: TdrLevel, the limits and the others, and the records that recoveries leave.

use super::scene::{
    ADAPTER, ENGINE, blame, blame_nobody, codes, goes_on, is_one_engine_reset, queue_of, tdr_calls,
    until_reset, until_stopped,
};
use crate::abi::wddm::NtStatus;
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::{Bench, Check, Ground, Wanted, until};
use crate::os::{Features, Record};
use crate::{CommandList, DeviceExecutionState, TdrDebugMode, TdrLevel, TdrPolicy};
use anyhow::ensure;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "TD-10",
        "TdrLevel, TdrDebugMode and the limits have their defaults and effects",
        policy,
    ),
    Check::by(
        "TD-21",
        "each recovery leaves one record with its parameters and reason",
        records,
    ),
];

/// Engines are watched patiently: what is lost is recovered from all the same.
fn patient() -> TdrPolicy {
    TdrPolicy {
        delay: Duration::from_secs(600),
        limit_count: 1000,
        ..TdrPolicy::default()
    }
}

fn bench_of(ground: &Ground, nodes: u32, tdr: TdrPolicy) -> anyhow::Result<Bench> {
    ground.bench_watched(&Wanted::nodes(nodes), Features::default(), tdr)
}

/// The engine is lost with a packet of a new device, which is blamed; waits until it goes on.
fn lose_once(bench: &Bench, times: usize) -> anyhow::Result<()> {
    let device = bench.adapter.create_device();
    let (mut queue, fence) = (queue_of(&device, 0)?, device.create_fence(0)?);
    let value = queue.submit(CommandList::new().wait(&fence, 1))?;
    blame(bench, queue.os().handle(), value);
    bench.spy.lose_engine(0);
    until_reset(bench, 0, times)?;
    same(
        "the device",
        &device.execution_state(),
        &DeviceExecutionState::HUNG,
    )
}

/// The defaults; levels and modes at a loss; engine resets beyond their limit block the program, and count for no
/// limit of the adapter's, which stops it.
fn policy(ground: &Ground) -> anyhow::Result<()> {
    let TdrPolicy {
        level,
        delay,
        ddi_delay,
        limit_count,
        limit_time,
        debug_mode,
    } = TdrPolicy::default();
    let defaults = (level, debug_mode, limit_count);
    let documented = (TdrLevel::Recover, TdrDebugMode::RecoverNoPrompt, 5);
    same(
        "default level, debug mode and limit",
        &defaults,
        &documented,
    )?;
    let times = [delay, ddi_delay, limit_time].map(|time| time.as_secs());
    same(
        "seconds of TdrDelay, TdrDdiDelay and TdrLimitTime",
        &times,
        &[2, 5, 60],
    )?;

    let bench = bench_of(
        ground,
        1,
        TdrPolicy {
            level: TdrLevel::BugCheck,
            ..patient()
        },
    )?;
    bench.spy.lose_engine(0);
    let record = until_stopped(&bench)?;
    same(
        "the record of the level BugCheck",
        &record.code,
        &Record::VIDEO_TDR_FAILURE,
    )?;
    same(
        "resets at that level",
        &tdr_calls(&bench, TdrCall::ResetEngine(0)),
        &0,
    )?;
    until("the device is stopped", || {
        bench.device.execution_state() == DeviceExecutionState::STOPPED
    })?;

    let bench = bench_of(
        ground,
        1,
        TdrPolicy {
            level: TdrLevel::RecoverVga,
            ..patient()
        },
    )?;
    bench.spy.lose_engine(0);
    is_one_engine_reset(&bench)?;
    left_to_itself(ground)?;

    let bench = bench_of(
        ground,
        1,
        TdrPolicy {
            debug_mode: TdrDebugMode::Off,
            ..patient()
        },
    )?;
    bench.spy.lose_engine(0);
    is_one_engine_reset(&bench)?;
    let reports = bench.adapter.os().tdr_reports();
    same("reports with TdrDebugMode Off", &reports.len(), &1)?;
    same(
        "resets in that mode",
        &tdr_calls(&bench, TdrCall::ResetEngine(0)),
        &0,
    )?;
    limits(ground)
}

/// With TdrLevel Off or TdrDebugMode IgnoreTimeout nobody asks a silent engine for anything. By another engine's work
/// the OS had many times TdrDelay to.
fn left_to_itself(ground: &Ground) -> anyhow::Result<()> {
    let soon = TdrPolicy {
        delay: Duration::from_millis(20),
        ..patient()
    };
    let off = TdrPolicy {
        level: TdrLevel::Off,
        ..soon
    };
    let ignored = TdrPolicy {
        debug_mode: TdrDebugMode::IgnoreTimeout,
        ..soon
    };
    for tdr in [off, ignored] {
        let bench = bench_of(ground, 2, tdr)?;
        let (mut silent, mut works) = (bench.queue_on(0)?, bench.queue_on(1)?);
        bench.spy.silence_engine(0);
        complete(&mut silent, CommandList::new().nop())?;
        let begin = Instant::now();
        while begin.elapsed() < 10 * tdr.delay {
            complete(&mut works, CommandList::new().nop())?;
        }
        same("calls of recovery", &bench.spy.tdr_calls(), &vec![])?;
        same("reports", &bench.adapter.os().tdr_reports(), &vec![])?;
    }
    Ok(())
}

fn limits(ground: &Ground) -> anyhow::Result<()> {
    // More resets of engines than may be of the adapter, of which no program is the cause; then those of the adapter.
    let bench = bench_of(
        ground,
        1,
        TdrPolicy {
            limit_count: 1,
            ..patient()
        },
    )?;
    blame_nobody(&bench);
    for reset in 1..=2 {
        bench.spy.lose_engine(0);
        until_reset(&bench, 0, reset)?;
    }
    let engines = vec![ENGINE; 2];
    same("records of two engine resets", &codes(&bench, 2)?, &engines)?;
    bench.spy.fail_tdr(TdrCall::ResetEngine(0));
    bench.spy.lose_engine(0);
    let with_adapter = vec![ENGINE, ENGINE, ADAPTER];
    let what = "records of these and one reset of the adapter, where more than one stop it";
    same(what, &codes(&bench, 3)?, &with_adapter)?;
    bench.spy.lose_engine(0);
    let record = until_stopped(&bench)?;
    same(
        "the record of one reset of the adapter too many",
        &record.code,
        &Record::VIDEO_TDR_FAILURE,
    )?;

    let bench = bench_of(
        ground,
        1,
        TdrPolicy {
            limit_count: 2,
            ..patient()
        },
    )?;
    lose_once(&bench, 1)?;
    same(
        "programs blocked by the first reset",
        &bench.adapter.os().blocked(),
        &None,
    )?;
    lose_once(&bench, 2)?;
    until("the program is blocked", || {
        bench.adapter.os().blocked().is_some()
    })?;
    same(
        "codes of the records",
        &codes(&bench, 3)?,
        &vec![ENGINE, ENGINE, Record::VIDEO_PROGRAM_BLOCKED],
    )?;
    same("the adapter", &bench.adapter.os().stopped(), &None)?;
    let made = bench.adapter.create_device().create_fence(0);
    ensure!(made.is_err(), "a blocked program makes a fence");
    bench.spy.fail_tdr(TdrCall::ResetEngine(0));
    bench.spy.lose_engine(0);
    let last = codes(&bench, 4)?.pop();
    let what =
        "the record of the first reset of the adapter, after as many of engines as may be of it";
    same(what, &last, &Some(ADAPTER))?;
    is_forgotten(ground)
}

/// Resets of the adapter that are further apart than TdrLimitTime: as many as come.
fn is_forgotten(ground: &Ground) -> anyhow::Result<()> {
    let tdr = TdrPolicy {
        limit_count: 1,
        limit_time: Duration::from_millis(50),
        ..patient()
    };
    let bench = bench_of(ground, 1, tdr)?;
    bench.spy.fail_tdr(TdrCall::ResetEngine(0));
    for resets in 1..=3 {
        bench.spy.lose_engine(0);
        let what = "records of resets of the adapter, each long after the one before";
        same(what, &codes(&bench, resets)?, &vec![ADAPTER; resets])?;
        let noted = Instant::now();
        let device = bench.adapter.create_device();
        let mut works = queue_of(&device, 0)?;
        while noted.elapsed() < 2 * tdr.limit_time {
            complete(&mut works, CommandList::new().nop())?;
        }
    }
    same("the adapter", &bench.adapter.os().stopped(), &None)
}

/// Code, parameters, and whether it is the end of its adapter.
fn noted(bench: &Bench, count: usize) -> anyhow::Result<Vec<(u32, [u64; 4], bool)>> {
    until("the recovery is noted", || {
        bench.adapter.os().records().len() >= count
    })?;
    let records = bench.take_records();
    let noted = records
        .iter()
        .map(|record| (record.code, record.parameters, record.is_bug_check()));
    Ok(noted.collect())
}

/// One of each kind.
fn records(ground: &Ground) -> anyhow::Result<()> {
    let bench = bench_of(ground, 2, patient())?;
    blame_nobody(&bench);
    bench.spy.lose_engine(1);
    let mut expected = vec![(0x141, [0, 0, Record::ENGINE_TIMEOUT, 1], false)];
    same(
        "the record of an engine's reset",
        &noted(&bench, 1)?,
        &expected,
    )?;
    until_reset(&bench, 1, 1)?;
    goes_on(&bench, 1)?;
    bench.spy.fail_tdr(TdrCall::ResetEngine(0));
    bench.spy.lose_engine(0);
    expected.push((0x117, [0, 0, 9, 0], false));
    same(
        "the records, with a reset of the adapter",
        &noted(&bench, 2)?,
        &expected,
    )?;
    goes_on(&bench, 0)?;
    bench.spy.fail_tdr(TdrCall::RestartFromTimeout);
    bench.spy.lose_engine(0);
    let status = u64::from(NtStatus::INVALID_PARAMETER.0.cast_unsigned());
    expected.push((0x116, [0, 0, status, 0], true));
    same(
        "the records, with a restart that fails",
        &noted(&bench, 3)?,
        &expected,
    )?;
    until_stopped(&bench)?;
    let made = bench.adapter.create_device().create_fence(0);
    ensure!(made.is_err(), "a fence is made on a stopped adapter");

    let bench = bench_of(
        ground,
        1,
        TdrPolicy {
            limit_count: 1,
            ..patient()
        },
    )?;
    lose_once(&bench, 1)?;
    let process = u64::from(std::process::id());
    let expected = vec![
        (0x141, [0, 0, Record::ENGINE_TIMEOUT, 0], false),
        (0x142, [0, 0, Record::ENGINE_TIMEOUT, process], false),
    ];
    same(
        "the records where the program is blocked",
        &noted(&bench, 2)?,
        &expected,
    )?;
    same("the adapter", &bench.adapter.os().stopped(), &None)
}
