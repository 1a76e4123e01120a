//! Report: what is collected of an engine that is to be reset, and who goes on meanwhile.

use super::scene::{ADAPTER, ENGINE, is_one_engine_reset, queue_of, until_reset};
use crate::CommandList;
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::{Bench, Check, Ground, LONG, Unfit, Wanted, until};
use crate::kmd::{CollectDbgInfo, DriverOptions, Level};
use crate::os::TdrReport;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use anyhow::{Context, ensure};
use std::sync::mpsc;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "TD-11",
        "a report names the engine, its queues and their waits, and is no longer than its buffer",
        report,
    ),
    Check::by(
        "TD-17",
        "while information is collected all others go on",
        collection,
    ),
];

/// Of a queue at a wait, with the driver's part, and without where CollectDbgInfo fails or says too much.
fn report(ground: &Ground) -> anyhow::Result<()> {
    for fails in [false, true] {
        let bench = ground.bench()?;
        let (fence, mut waits) = (bench.fence(3)?, bench.queue()?);
        complete(&mut waits, CommandList::new().nop())?;
        waits.submit(CommandList::new().wait(&fence, 9))?;
        let handle = waits.os().handle();
        until("the queue stands at its wait", || {
            bench.spy.driver().hw_queue_wait(handle).is_some()
        })?;
        if fails {
            bench.spy.fail_tdr(TdrCall::CollectDbgInfo(ENGINE));
        } else {
            fits_its_buffer(&bench)?;
        }
        bench.spy.lose_engine(0);
        until_reset(&bench, 0, 1)?;
        let reports = bench.adapter.os().tdr_reports();
        same("reports", &reports.len(), &1)?;
        let text = reports[0].to_string();
        let value = fence.handle().raw();
        let wait = format!("waits for 9 of the fence with handle {value:#x}, whose value is 3");
        for part in ["0x141: engine of node 0", "completed 1 of 2", wait.as_str()] {
            ensure!(text.contains(part), "the report has not {part:?}: {text}");
        }
        same(
            "whether the driver's part is there",
            &reports[0].driver.is_ok(),
            &!fails,
        )?;
        is_one_engine_reset(&bench)?;
        waits.progress_fence().wait(1, LONG)?;
    }
    let bench = ground.bench()?;
    bench
        .spy
        .answer_dbg_info("\u{e9}".repeat(TdrReport::MOST_BYTES));
    bench.spy.lose_engine(0);
    until_reset(&bench, 0, 1)?;
    let reports = bench.adapter.os().tdr_reports();
    let driver = reports.first().context("no report")?.driver.as_ref();
    let driver = driver.map_err(|why| anyhow::anyhow!("{why}"))?;
    let bytes = driver.len();
    ensure!(
        bytes <= TdrReport::MOST_BYTES,
        "{bytes} bytes of what the driver says are kept"
    );
    is_one_engine_reset(&bench)
}

/// Whatever room it has.
fn fits_its_buffer(bench: &Bench) -> anyhow::Result<()> {
    let tdr = bench.spy.driver().tdr().context("a driver with TDR")?;
    let collect = |buffer_size| {
        tdr.collect_dbg_info(&CollectDbgInfo {
            reason: ENGINE,
            node_ordinal: 0,
            buffer_size,
        })
    };
    let whole = collect(TdrReport::MOST_BYTES)?.len();
    ensure!(whole > 0, "CollectDbgInfo says nothing");
    for room in [0, 1, whole / 2, whole.saturating_sub(1), whole] {
        let said = collect(room)?.len();
        ensure!(
            said <= room,
            "CollectDbgInfo says {said} bytes where there is room for {room}"
        );
    }
    Ok(())
}

/// For an engine's loss and for the adapter's, the call is held up.
fn collection(ground: &Ground) -> anyhow::Result<()> {
    let wide = DriverOptions {
        adapter_wide_tdr: true,
        ..DriverOptions::default()
    };
    for (driver, reason) in [(DriverOptions::default(), ENGINE), (wide, ADAPTER)] {
        let wanted = Wanted {
            driver,
            ..Wanted::nodes(2)
        };
        let bench = ground.bench_with(&wanted)?;
        let tdr = bench.spy.driver().tdr();
        let is_wide = tdr.is_some_and(|tdr| !tdr.supports_per_engine_tdr());
        if is_wide != (reason == ADAPTER) {
            return Err(Unfit("the driver resets engines in one way".into()).into());
        }
        let running = bench.adapter.create_device();
        let mut queue = queue_of(&running, 1)?;
        complete(&mut queue, CommandList::new().nop())?;
        let (tell, told) = mpsc::channel();
        let (go_on, goes) = mpsc::channel::<()>();
        let goes = Mutex::new(goes);
        let made = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&made);
        bench.spy.before_tdr(move |call| {
            lock(&noted).push(call);
            if let TdrCall::CollectDbgInfo(reason) = call {
                // Who waited long enough is gone.
                let _ = tell.send((reason, Level::of_thread()));
                let _ = lock(&goes).recv_timeout(LONG);
            }
        });
        bench.spy.lose_engine(0);
        let inside = told.recv_timeout(LONG).context("nothing is collected")?;
        same(
            "reason and level of the collection",
            &inside,
            &(reason, Level::Passive),
        )?;
        let kept = others_go_on(&bench, &mut queue)?;
        let last = lock(&made).last().copied();
        same(
            "the last call of the recovery",
            &last,
            &Some(TdrCall::CollectDbgInfo(reason)),
        )?;
        same("records so far", &bench.adapter.os().records(), &[])?;
        go_on.send(()).context("the collection is over")?;
        until("the recovery is noted", || {
            !bench.adapter.os().records().is_empty()
        })?;
        let codes: Vec<_> = bench
            .take_records()
            .iter()
            .map(|record| record.code)
            .collect();
        same("codes of the records", &codes, &vec![reason])?;
        drop(kept);
    }
    Ok(())
}

/// Fences and queues of either kind are made, also on the engine that is lost; the adapter is queried; interrupts come;
/// and queues of the other engine go on. Gives what was made on the lost one.
fn others_go_on(bench: &Bench, running: &mut crate::HwQueue) -> anyhow::Result<crate::HwQueue> {
    let device = bench.adapter.create_device();
    let (fence, mut queue) = (device.create_fence(0)?, queue_of(&device, 1)?);
    let mut kernel = device.create_kernel_queue_on(1)?;
    let on_the_lost_one = queue_of(&device, 0)?;
    bench.adapter.os().native_fence_caps()?;
    let waiter = bench.waiter(&fence, 5)?;
    for value in 1..=5 {
        queue.submit(CommandList::new().signal(&fence, value))?;
        complete(running, CommandList::new().nop())?;
    }
    same("a wait on another engine", &waiter.join(), &Ok(()))?;
    let value = kernel.submit(CommandList::new().nop())?;
    same(
        "a kernel-mode queue of another engine",
        &kernel.progress_fence().wait(value, LONG),
        &Ok(()),
    )?;
    fence.signal(6)?;
    Ok(on_the_lost_one)
}
