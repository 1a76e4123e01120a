//! Adapter reset: what leads to it, and who has lost what by it.

use super::scene::{
    ADAPTER, Trouble, blame, codes, goes_on, is_one_engine_reset, queue_of, tdr_calls, until_reset,
    until_stopped,
};
use crate::conform::bench::{complete, until_rests};
use crate::conform::checks::preemption::scene::initialised;
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::until::until_within;
use crate::conform::{Bench, Check, Ground, LONG, Unfit, Wanted, until};
use crate::kmd::DriverOptions;
use crate::os::{Record, SystemDevice};
use crate::{CommandList, DeviceExecutionState, WaitError};
use anyhow::{Context, ensure};
use std::sync::mpsc;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "TD-08",
        "a reset that fails, or aborts a paging packet, is promoted to the adapter with reason 9",
        promoted,
    ),
    Check::by(
        "TD-16",
        "without SupportPerEngineTDR every time-out resets the adapter, with it an engine",
        per_engine,
    ),
    Check::by(
        "TD-20",
        "an adapter-wide reset ends all work, and what fails of it stops the adapter",
        of_the_adapter,
    ),
];

/// The one record, of a promotion, and the calls.
fn is_promoted(bench: &Bench) -> anyhow::Result<()> {
    until("the recovery is noted", || {
        !bench.adapter.os().records().is_empty()
    })?;
    let records = bench.take_records();
    let seen: Vec<_> = records
        .iter()
        .map(|record| (record.code, record.parameters[2]))
        .collect();
    same(
        "code and reason of the records",
        &seen,
        &vec![(ADAPTER, Record::ENGINE_TIMEOUT_PROMOTED)],
    )?;
    same("the reason's number", &Record::ENGINE_TIMEOUT_PROMOTED, &9)?;
    let calls = [
        TdrCall::ResetEngine(0),
        TdrCall::ResetFromTimeout,
        TdrCall::RestartFromTimeout,
    ];
    let made = bench.spy.tdr_calls();
    ensure!(
        made.ends_with(&calls),
        "the calls are {made:?}, and should end with {calls:?}"
    );
    Ok(())
}

/// ResetEngine fails. Then it has aborted a paging packet, which copies from one device's memory to another's.
fn promoted(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    bench.spy.fail_tdr(TdrCall::ResetEngine(0));
    bench.spy.lose_engine(0);
    is_promoted(&bench)?;
    goes_on(&bench, 0)?;

    let bench = ground.bench()?;
    let devices = [0, 1, 2].map(|_| bench.adapter.create_device());
    let mut memories = Vec::new();
    for device in &devices {
        memories.push(device.create_allocation(64)?);
    }
    let system = SystemDevice::open(bench.adapter.os(), 0)?;
    let mut paged = Vec::new();
    for memory in &memories {
        paged.push(system.open_allocation(memory.os())?);
    }
    let before = system.fill(&paged[2], 0..64, 3)?;
    until("a paging packet completes", || {
        system.progress_fence().fence().current_value() >= before
    })?;
    let aborted = initialised(&bench, 0)? + 1;
    let paging = system.queue();
    paging.context().suspend(Some(LONG))?;
    let value = system.copy((&paged[0], 0), (&paged[1], 0), 64)?;
    blame(&bench, paging.handle(), aborted);
    bench.spy.lose_engine(0);
    is_promoted(&bench)?;
    let states: Vec<_> = devices.iter().map(crate::Device::execution_state).collect();
    let (reset, active) = (DeviceExecutionState::RESET, DeviceExecutionState::ACTIVE);
    let expected = vec![reset, reset, active];
    same(
        "devices whose memory was named, and one whose was before",
        &states,
        &expected,
    )?;
    same("the system device", &system.execution_state(), &active)?;
    same(
        "the queue of what was lost",
        &paging.error(),
        &Some(WaitError::DeviceLost),
    )?;
    let stored = paging.progress_fence().fence().current_value();
    ensure!(stored < value, "the aborted paging packet has completed");
    let again = system.fill(&paged[2], 0..64, 4)?;
    until("the system device goes on", || {
        system.progress_fence().fence().current_value() >= again
    })
}

fn wide() -> Wanted {
    Wanted {
        driver: DriverOptions {
            adapter_wide_tdr: true,
            ..DriverOptions::default()
        },
        ..Wanted::default()
    }
}

/// The calls that follow from the loss of an engine, in both cases.
fn per_engine(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let tdr = bench.spy.driver().tdr();
    let tdr = tdr.ok_or_else(|| Unfit("the driver has no part of TDR".into()))?;
    if tdr.supports_per_engine_tdr() {
        bench.spy.lose_engine(0);
        until_reset(&bench, 0, 1)?;
        for call in [
            TdrCall::QueryDependentEngineGroup(0),
            TdrCall::ResetEngine(0),
        ] {
            same(&format!("calls of {call:?}"), &tdr_calls(&bench, call), &1)?;
        }
        same(
            "resets of the adapter",
            &tdr_calls(&bench, TdrCall::ResetFromTimeout),
            &0,
        )?;
        let _ = tdr.query_engine_status(0);
        is_one_engine_reset(&bench)?;
    }
    let bench = ground.bench_with(&wide())?;
    let tdr = bench.spy.driver().tdr();
    let tdr = tdr.ok_or_else(|| Unfit("the driver has no part of TDR".into()))?;
    // One that has it always gives no driver for this (FQ-05).
    ensure!(
        !tdr.supports_per_engine_tdr(),
        "SupportPerEngineTDR is reported although it is cleared"
    );
    bench.spy.lose_engine(0);
    same("codes of the records", &codes(&bench, 1)?, &vec![ADAPTER])?;
    let calls = [
        TdrCall::ResetEngine(0),
        TdrCall::ResetFromTimeout,
        TdrCall::RestartFromTimeout,
    ];
    let made = calls.map(|call| tdr_calls(&bench, call));
    same(
        "calls of ResetEngine, ResetFromTimeout and RestartFromTimeout",
        &made,
        &[0, 1, 1],
    )?;
    goes_on(&bench, 0)
}

/// No engine has anything to do, and each answers: a driver which says that it resets engines that run has no reason to
/// fail here. One is said to be lost, and its own reset is made to fail.
fn of_quiet_engines(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&Wanted::nodes(2))?;
    let tdr = bench.spy.driver().tdr();
    let Some(tdr) = tdr.filter(|_| bench.needs_reset_of_running_engines().is_ok()) else {
        return Ok(());
    };
    for node in 0..2 {
        let mut queue = queue_of(&bench.device, node)?;
        complete(&mut queue, CommandList::new().nop())?;
        // One that has not come to its end yet may have no core to answer in time.
        until_rests(&bench.spy, node)?;
        let answers = tdr.query_engine_status(node);
        ensure!(answers, "the idle engine of node {node} does not answer");
    }
    bench.spy.fail_tdr(TdrCall::ResetEngine(0));
    bench.spy.lose_engine(0);
    is_promoted(&bench)?;
    (0..2).try_for_each(|node| goes_on(&bench, node))
}

/// First where nothing hangs. Then a guilty device, one with work queued, and an idle one, whose fence keeps its value; what is submitted between the
/// two calls is executed after them. Then each of the two fails.
fn of_the_adapter(ground: &Ground) -> anyhow::Result<()> {
    of_quiet_engines(ground)?;
    let trouble = Trouble::by_losses(ground, 2)?;
    let bench = &trouble.bench;
    let (busy, idle) = (bench.adapter.create_device(), bench.adapter.create_device());
    let (mut waits, gate) = (queue_of(&busy, 1)?, busy.create_fence(0)?);
    waits.submit(CommandList::new().wait(&gate, 1))?;
    let mut queues = [queue_of(&idle, 0)?, queue_of(&idle, 1)?];
    let kept = [idle.create_fence(7)?, idle.create_fence(7)?];
    let mut guilty = trouble.guilty(0)?;
    let (tell, is_reset) = mpsc::channel();
    let (go_on, goes) = mpsc::channel::<()>();
    let goes = crate::sync::plain::Mutex::new(goes);
    bench.spy.before_tdr(move |call| {
        if call == TdrCall::RestartFromTimeout {
            // Who waited long enough is gone.
            let _ = tell.send(());
            let _ = crate::sync::plain::lock(&goes).recv_timeout(LONG);
        }
    });
    bench.spy.fail_tdr(TdrCall::ResetEngine(0));
    trouble.befall(&mut guilty)?;
    let is_stopped = || bench.adapter.os().stopped().is_some();
    // Two engines and an engine reset that fails come before it.
    until_within(2 * LONG, "the adapter is restarted", || {
        is_reset.try_recv().is_ok() || is_stopped()
    })?;
    ensure!(!is_stopped(), "the adapter is stopped, and not restarted");
    for (queue, fence) in queues.iter_mut().zip(&kept) {
        queue.submit(CommandList::new().signal(fence, 8))?;
        let seen = (
            fence.current_value(),
            queue.progress_fence().current_value(),
        );
        same(
            "what an adapter executes before it is restarted",
            &seen,
            &(7, 0),
        )?;
    }
    go_on.send(()).context("the recovery is over")?;
    for fence in &kept {
        same(
            "what was submitted before the restart",
            &fence.wait(8, LONG),
            &Ok(()),
        )?;
    }
    is_promoted(bench)?;
    let ended = waits.progress_fence().wait(1, LONG);
    same(
        "the wait for work that was lost",
        &ended,
        &Err(WaitError::DeviceLost),
    )?;
    let states = [&guilty.device, &busy, &idle].map(crate::Device::execution_state);
    // By a failed ResetEngine no one is named, unless the driver knows whose packet it was.
    let blamed = [DeviceExecutionState::HUNG, DeviceExecutionState::RESET];
    ensure!(
        blamed.contains(&states[0]),
        "the guilty device is {:?}",
        states[0]
    );
    let expected = [DeviceExecutionState::RESET, DeviceExecutionState::ACTIVE];
    same(
        "a device that has lost work, and one that had none",
        &states[1..].to_vec(),
        &expected.to_vec(),
    )?;
    goes_on(bench, 1)?;

    for failing in [TdrCall::ResetFromTimeout, TdrCall::RestartFromTimeout] {
        let bench = ground.bench()?;
        bench.spy.fail_tdr(TdrCall::ResetEngine(0));
        bench.spy.fail_tdr(failing);
        bench.spy.lose_engine(0);
        let record = until_stopped(&bench)?;
        same(
            &format!("the record, where {failing:?} fails"),
            &record.code,
            &Record::VIDEO_TDR_FAILURE,
        )?;
    }
    Ok(())
}
