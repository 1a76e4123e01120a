//! Sequence: the steps of a recovery, what an engine raises meanwhile, and when there is nothing to recover.

use super::scene::{ENGINE, is_one_engine_reset, tdr_calls, until_reset};
use crate::conform::bench::{complete, until_rests};
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::{Bench, Check, Ground, LONG, Wanted, until};
use crate::kmd::{Interrupt, NativeFenceSignaled, SignaledFence};
use crate::os::{Features, TdrStep};
use crate::shared::Block;
use crate::sync::Arc;
use crate::{CommandList, DeviceExecutionState, EventHandle, Fence, TdrPolicy};
use anyhow::{Context, ensure};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[Check::by(
    "TD-02",
    "the steps of a recovery come in their order, and nothing that the engine raises counts meanwhile",
    sequence,
)];

/// Long enough that an engine which is well, and has no core for a while, is not found hung.
fn watched(ground: &Ground) -> anyhow::Result<Bench> {
    let tdr = TdrPolicy {
        delay: Duration::from_secs(1),
        limit_count: 1000,
        ..TdrPolicy::default()
    };
    ground.bench_watched(&Wanted::nodes(2), Features::default(), tdr)
}

/// An engine that shows nothing; one that shows again, when it has timed out, that nothing is left; and what both
/// engines raise while one is reset.
fn sequence(ground: &Ground) -> anyhow::Result<()> {
    let bench = watched(ground)?;
    let mut queue = bench.queue()?;
    complete(&mut queue, CommandList::new().nop())?;
    until_rests(&bench.spy, 0)?;
    // It may have been asked on its way there.
    let before = bench.spy.tdr_calls().len();
    bench.silence_engine(0)?;
    queue.submit(CommandList::new().nop())?;
    until_reset(&bench, 0, 1)?;
    let calls = [
        TdrCall::RequestPreemption(0),
        TdrCall::CollectDbgInfo(ENGINE),
        TdrCall::QueryDependentEngineGroup(0),
        TdrCall::QueryEngineStatus(0),
        TdrCall::ResetEngine(0),
        TdrCall::ResumeHwEngine(0),
    ];
    same(
        "calls of the recovery",
        &bench.spy.tdr_calls().split_off(before).as_slice(),
        &calls.as_slice(),
    )?;
    let steps = bench.adapter.os().tdr_steps(0);
    ensure!(
        steps.is_sorted_by_key(|(_, at)| *at),
        "steps go back in time: {steps:?}"
    );
    same(
        "steps of the recovery",
        &taken(&bench).as_slice(),
        &TdrStep::OF_ENGINE.as_slice(),
    )?;
    is_one_engine_reset(&bench)?;
    nothing_left(&watched(ground)?)?;
    raised_meanwhile(&ground.bench_with(&Wanted::nodes(2))?)
}

fn taken(bench: &Bench) -> Vec<TdrStep> {
    let steps = bench.adapter.os().tdr_steps(0).into_iter();
    steps.map(|(step, _)| step).collect()
}

fn nothing_left(bench: &Bench) -> anyhow::Result<()> {
    let (mut queue, fence) = (bench.queue()?, bench.fence(0)?);
    let spy = Arc::downgrade(&bench.spy);
    bench.spy.on_detection(move || {
        if let Some(spy) = spy.upgrade() {
            spy.hear_engine(0);
            let _ = until_rests(&spy, 0);
        }
    });
    bench.silence_engine(0)?;
    complete(&mut queue, CommandList::new().signal(&fence, 1))?;
    let steps = [
        TdrStep::Preempt,
        TdrStep::Detect,
        TdrStep::Snapshot,
        TdrStep::StopIfNothingIsLeft,
    ];
    until("the OS has looked what is left", || {
        taken(bench).starts_with(&steps)
    })?;
    let waiter = bench.waiter(&fence, 2)?;
    waiter.until_asleep()?;
    queue.submit(CommandList::new().signal(&fence, 2))?;
    same(
        "a wait for the next signal of an engine that was not reset",
        &waiter.join(),
        &Ok(()),
    )?;
    same(
        "steps where nothing is left",
        &taken(bench).as_slice(),
        &steps.as_slice(),
    )?;
    same(
        "resets where nothing is left",
        &tdr_calls(bench, TdrCall::ResetEngine(0)),
        &0,
    )?;
    same("records", &bench.adapter.os().records(), &[])?;
    same(
        "the device",
        &bench.device.execution_state(),
        &DeviceExecutionState::ACTIVE,
    )
}

/// Stores to a fence's memory, as an engine does.
fn store(fence: &Fence, value: u64) -> anyhow::Result<()> {
    let (region, offset) = fence.object().fence().current_value_place();
    Block::whole(&region.map()?).word(offset).publish(value);
    Ok(())
}

/// The reset engine raises for two fences in two ways, and the other engine for a third: that one counts at once, the two
/// when the engine goes on.
fn raised_meanwhile(bench: &Bench) -> anyhow::Result<()> {
    let mut fences = Vec::new();
    let mut waits = Vec::new();
    for _ in 0..3 {
        let (fence, event) = (bench.fence(0)?, EventHandle::new()?);
        waits.push((fence.wait_event(1, &event), event));
        fences.push(fence);
    }
    let events: Vec<_> = waits.iter().map(|(_, event)| event.clone()).collect();
    let (tell, told) = mpsc::channel();
    let (spy, in_reset) = (Arc::downgrade(&bench.spy), events.clone());
    bench.spy.before_tdr(move |call| {
        let (TdrCall::ResetEngine(0), Some(spy)) = (call, spy.upgrade()) else {
            return;
        };
        let ids: Vec<_> = fences
            .iter()
            .map(|fence| fence.object().fence().id())
            .collect();
        if fences.iter().any(|fence| store(fence, 1).is_err()) {
            return;
        }
        let resample = |node_ordinal, slot| Interrupt::ResampleFences {
            node_ordinal,
            slots: vec![slot],
        };
        spy.interrupt(resample(0, ids[0].slot));
        spy.interrupt(Interrupt::NativeFenceSignaled(NativeFenceSignaled {
            node_ordinal: 0,
            engine_ordinal: 0,
            fences: Some(vec![SignaledFence {
                fence: ids[1],
                value: 1,
                hw_queue: None,
            }]),
            hw_queue: None,
            evaluate_legacy_monitored_fences: false,
            taken: Instant::now(),
        }));
        spy.interrupt(resample(1, ids[2].slot));
        let seen: Vec<_> = in_reset.iter().map(EventHandle::reset).collect();
        // Who waited long enough is gone.
        let _ = tell.send(seen);
    });
    bench.spy.lose_engine(0);
    let seen = told.recv_timeout(LONG).context("the engine is not reset")?;
    same(
        "waits that ended during the reset, of two fences of its engine and one of another",
        &seen,
        &vec![0, 0, 1],
    )?;
    for event in &events[..2] {
        until("what was raised during the reset counts after it", || {
            event.reset() == 1
        })?;
    }
    let outcomes: Vec<_> = waits.iter().map(|(wait, _)| wait.outcome()).collect();
    same("outcomes of the waits", &outcomes, &vec![Some(Ok(())); 3])?;
    is_one_engine_reset(bench)
}
