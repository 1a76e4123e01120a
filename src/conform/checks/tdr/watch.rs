//! Watch: which engines are asked, and who is held up by one that hangs.

use super::scene::{Trouble, hanging, is_one_engine_reset, queue_of, tdr_calls, until_reset};
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::{Check, Ground, LONG, Wanted, until};
use crate::os::Features;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, TdrPolicy, WaitError};
use anyhow::{Context, ensure};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "TD-01",
        "an engine without a step is asked though nobody else wants it; a queue at a wait never is timed out",
        asked,
    ),
    Check::by(
        "TD-13",
        "a shader that never ends is not waited for, and others are hardly held up",
        never_ends,
    ),
];

/// A lone queue's engine is silent; then a queue stands at a wait for many times TdrDelay, while another one keeps the
/// engine, and so who watches it, awake.
fn asked(ground: &Ground) -> anyhow::Result<()> {
    let tdr = TdrPolicy {
        delay: Duration::from_millis(500),
        limit_count: 1000,
        ..TdrPolicy::default()
    };
    let bench = ground.bench_watched(&Wanted::default(), Features::default(), tdr)?;
    let mut queue = bench.queue()?;
    bench.spy.silence_engine(0);
    queue.submit(CommandList::new().nop())?;
    until_reset(&bench, 0, 1)?;
    let calls = bench.spy.tdr_calls();
    same(
        "the first call of the recovery",
        &calls.first(),
        &Some(&TdrCall::RequestPreemption(0)),
    )?;
    is_one_engine_reset(&bench)?;

    let bench = ground.bench_watched(&Wanted::default(), Features::default(), tdr)?;
    let (fence, mut waits) = (bench.fence(0)?, bench.queue()?);
    let value = waits.submit(CommandList::new().wait(&fence, 1))?;
    let (mut busy, begin) = (bench.queue()?, Instant::now());
    while begin.elapsed() < 3 * tdr.delay {
        complete(&mut busy, CommandList::new().nop())?;
    }
    let resets = tdr_calls(&bench, TdrCall::ResetEngine(0));
    same("resets of an engine with a queue at a wait", &resets, &0)?;
    same("the waiting queue's error", &waits.error(), &None)?;
    fence.signal(1)?;
    same(
        "the waiting queue",
        &waits.progress_fence().wait(value, LONG),
        &Ok(()),
    )
}

/// While the recovery stands, another engine's queue runs; when it is over, one of the same engine does, though the
/// packet goes on for good. (In figures: `nfence tdr` and `tests/engine_process.rs`.)
fn never_ends(ground: &Ground) -> anyhow::Result<()> {
    drop(ground.bench_with(&hanging(2))?);
    let trouble = Trouble::new(ground, 2)?;
    let bench = &trouble.bench;
    let innocent = bench.adapter.create_device();
    let (mut here, mut there) = (queue_of(&innocent, 0)?, queue_of(&innocent, 1)?);
    complete(&mut here, CommandList::new().nop())?;
    let fence = innocent.create_fence(0)?;
    let mut guilty = trouble.guilty(0)?;
    let (tell, told) = mpsc::channel();
    let (go_on, goes) = mpsc::channel::<()>();
    let goes = Mutex::new(goes);
    bench.spy.before_tdr(move |call| {
        if matches!(call, TdrCall::CollectDbgInfo(_)) {
            // Who waited long enough is gone.
            let _ = tell.send(());
            let _ = lock(&goes).recv_timeout(LONG);
        }
    });
    trouble.befall(&mut guilty)?;
    let behind = here.submit(CommandList::new().nop())?;
    complete(&mut there, CommandList::new().signal(&fence, 1))?;
    told.recv_timeout(2 * LONG)
        .context("the engine does not time out")?;
    for value in 2..=5 {
        there.submit(CommandList::new().signal(&fence, value))?;
        same(
            "another engine's queue, meanwhile",
            &fence.wait(value, LONG),
            &Ok(()),
        )?;
    }
    go_on.send(()).context("the recovery is over")?;
    same(
        "the same engine's queue",
        &here.progress_fence().wait(behind, LONG),
        &Ok(()),
    )?;
    let ended = guilty.queue.progress_fence().wait(guilty.value, LONG);
    same(
        "the wait for what never ends",
        &ended,
        &Err(WaitError::DeviceLost),
    )?;
    until("the engine is reset", || {
        tdr_calls(bench, TdrCall::ResumeHwEngine(0)) == 1
    })?;
    ensure!(
        guilty.queue.progress_fence().current_value() < guilty.value,
        "a packet that never ends has completed"
    );
    is_one_engine_reset(bench)
}
