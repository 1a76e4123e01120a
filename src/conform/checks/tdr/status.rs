//! Status: whether an engine answers, asked of the driver at any moment.

use super::scene::{goes_on, hanging, queue_of, until_reset};
use crate::CommandList;
use crate::abi::StallKind;
use crate::conform::bench::{complete, until_completed, until_rests};
use crate::conform::checks::preemption::scene::{
    context, fill, large, short, taken_out_in_the_middle,
};
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::until::until_tried;
use crate::conform::{Bench, Check, Ground, LONG, Unfit, until};
use crate::sync::plain::{Mutex, lock};
use anyhow::ensure;
use std::sync::mpsc;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "TD-19",
    "QueryEngineStatus says Responsive exactly while the engine makes steps or answers",
    status,
)];

fn is_responsive(bench: &Bench, node_ordinal: u32) -> anyhow::Result<bool> {
    let tdr = bench.spy.driver().tdr();
    let tdr = tdr.ok_or_else(|| Unfit("the driver has no part of TDR".into()))?;
    Ok(tdr.query_engine_status(node_ordinal))
}

/// With nothing to do, at a wait, in long transfers, with a queue taken out of one; and, where engines hang, in a packet
/// that heeds its abort alone. (Of other hangs: `tests/engine_status.rs`.)
fn status(ground: &Ground) -> anyhow::Result<()> {
    // An engine that has no core for a while answers all the same.
    let mut patient = short();
    patient.driver.answer_time = LONG;
    let bench = ground.bench_with(&patient)?;
    let answers = |what: &str| -> anyhow::Result<()> {
        ensure!(
            is_responsive(&bench, 0)?,
            "an engine that {what} is not Responsive"
        );
        Ok(())
    };
    answers("has nothing to do")?;
    let (fence, mut waits) = (bench.fence(0)?, bench.queue()?);
    let waited = waits.submit(CommandList::new().wait(&fence, 1))?;
    let suspended = context(&bench)?;
    let mut queue = suspended.create_hw_queue(64)?;
    let from = large(&bench)?;
    let little = bench.device.create_allocation(1 << 20)?;
    answers("has a queue at a wait")?;
    let mut list = CommandList::new();
    list.copy(&from, 0..little.bytes(), &little, 0);
    let mut end = 0;
    for _ in 0..2 {
        end = queue.submit(&list)?;
    }
    while queue.progress_fence().current_value() < end {
        answers("copies")?;
    }
    taken_out_in_the_middle(suspended.os(), &mut queue, &fill(&from, 7), &from)?;
    answers("has a queue taken out in the middle of a fill")?;
    suspended.resume();
    fence.signal(1)?;
    until_completed(&waits, waited)?;
    let hung = ground.bench_if(&hanging(2))?;
    hung.map_or(Ok(()), |bench| does_not_answer(&bench))
}

/// The recovery stands until the engine was asked.
fn does_not_answer(bench: &Bench) -> anyhow::Result<()> {
    let device = bench.adapter.create_device();
    let mut queue = queue_of(&device, 0)?;
    complete(&mut queue, CommandList::new().nop())?;
    let (go_on, goes) = mpsc::channel::<()>();
    let goes = Mutex::new(goes);
    bench.spy.before_tdr(move |call| {
        if matches!(call, TdrCall::CollectDbgInfo(_)) {
            // Who waited long enough is gone.
            let _ = lock(&goes).recv_timeout(LONG);
        }
    });
    queue.submit(CommandList::new().stall(StallKind::HeedsAbort, 1 << 40))?;
    // What it stored before the packet need not be seen: the slice does not end. Until it has begun it answers, or has no
    // core to answer in time.
    until_tried(
        "an engine that hangs is not Responsive, asked twice",
        || Ok(!is_responsive(bench, 0)? && !is_responsive(bench, 0)?),
    )?;
    ensure!(
        is_responsive(bench, 1)?,
        "the engine beside one that hangs is not Responsive"
    );
    go_on.send(())?;
    until("the recovery is noted", || {
        !bench.adapter.os().records().is_empty()
    })?;
    until_reset(bench, 0, 1)?;
    until_rests(&bench.spy, 0)?;
    ensure!(
        is_responsive(bench, 0)?,
        "after its reset an engine is not Responsive"
    );
    same("records", &bench.take_records().len(), &1)?;
    goes_on(bench, 0)
}
