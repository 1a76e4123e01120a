//! Submission: signals that are made when what stands before them is handed over.

use super::scene::{
    AGAIN, NEW, context, fill, handed, initialised, is_full_of, large, short, until_answered,
};
use crate::conform::bench::finish;
use crate::conform::seen::same;
use crate::conform::{Check, Ground, LONG};
use anyhow::ensure;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "PR-17",
    "a signal at submission is stored when its packet is submitted, and once",
    at_submission,
)];

/// Behind a fill that cannot run, since its context is suspended; the fill is preempted and handed over again when both
/// fences were rewound. Behind a wait nothing is submitted, and so nothing is signalled.
fn at_submission(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&short())?;
    let context = context(&bench)?;
    let mut queue = context.create_kernel_queue()?;
    let (target, native) = (large(&bench)?, bench.fence(0)?);
    let monitored = |value| bench.device.create_monitored_fence(value);
    let (done, gate, behind) = (monitored(0)?, monitored(0)?, monitored(0)?);
    let first = initialised(&bench, 0)? + 1;
    bench.spy.take();
    context.suspend(LONG)?;
    queue.submit(&fill(&target, 7))?;
    queue.signal_at_submission(&done, 1)?;
    queue.signal_native_at_submission(&native, 1)?;
    let values = || (done.current_value(), native.current_value());
    same(
        "values behind what was submitted and has not run",
        &values(),
        &(1, 1),
    )?;
    same(
        "a wait for one of them",
        &native.wait(1, Duration::ZERO),
        &Ok(()),
    )?;
    ensure!(
        is_full_of(&target, 0, 0),
        "a fill of a suspended context has run"
    );
    done.rewind(0)?;
    native.rewind(0)?;
    bench.preempt(0)?;
    until_answered(&bench)?;
    context.resume();
    finish(&mut queue)?;
    ensure!(is_full_of(&target, 0, 7), "the fill is not whole");
    same(
        "ids and flags of commands",
        &handed(&bench),
        &[(first, NEW), (first + 1, AGAIN)],
    )?;
    same(
        "the rewound values, after it was submitted again",
        &values(),
        &(0, 0),
    )?;
    let logged = queue.read_signal_log().entries;
    let of_native = logged
        .iter()
        .filter(|entry| entry.native_fence == native.handle().raw());
    same(
        "entries of the native fence's signal",
        &of_native.count(),
        &1,
    )?;

    queue.wait(&gate, 1)?;
    queue.submit(crate::CommandList::new().nop())?;
    queue.signal_at_submission(&behind, 1)?;
    same(
        "a signal at submission behind a wait",
        &behind.current_value(),
        &0,
    )?;
    gate.signal(1)?;
    Ok(behind.wait(1, LONG)?)
}
