//! Verdict: why a queue makes no progress, told apart.

use super::scene::{queue_of, tdr_calls};
use crate::conform::bench::{complete, until_completed};
use crate::conform::checks::preemption::scene::{fill, initialised, large, short};
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::{Bench, Check, Ground, LONG, Wanted, until};
use crate::os::{QueueVerdict, Verdict};
use crate::{CommandList, HwQueue, QueueStop, WaitError};
use anyhow::{bail, ensure};

pub(super) const CHECKS: &[Check] = &[Check::by(
    "TD-15",
    "Waiting, Deadlocked, Orphaned, Hung and LostNotification are told apart",
    verdicts,
)];

const ORPHANED: WaitError = WaitError::QueueStopped(QueueStop::Orphaned);
const DEADLOCKED: WaitError = WaitError::QueueStopped(QueueStop::Deadlocked);
const WAITING: Verdict = Verdict::Waiting { suspicion: None };

fn of(queue: &HwQueue, verdict: Verdict) -> QueueVerdict {
    let hw_queue = queue.os().handle();
    QueueVerdict { hw_queue, verdict }
}

fn told(bench: &Bench) -> Vec<QueueVerdict> {
    bench.adapter.os().verdicts()
}

/// Waits until the verdicts are these: the OS knows of a wait when the driver tells of it.
fn are(bench: &Bench, what: &str, expected: &[QueueVerdict]) -> anyhow::Result<()> {
    let mut seen = Vec::new();
    let is = until(what, || {
        seen = told(bench);
        seen == expected
    });
    is.map_err(|_| anyhow::anyhow!("{what}: {seen:?}, and should be {expected:?}"))
}

fn error_of(queue: &HwQueue) -> anyhow::Result<Option<WaitError>> {
    until("the queue is stopped", || queue.error().is_some())?;
    Ok(queue.error())
}

/// One of each.
fn verdicts(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&Wanted::nodes(2))?;
    let fence = bench.fence(0)?;
    let mut queue = bench.queue_on(0)?;
    let value = queue.submit(CommandList::new().wait(&fence, 7))?;
    are(&bench, "a queue at a wait", &[of(&queue, WAITING)])?;
    initialised(&bench, 0)?;
    let asked = || tdr_calls(&bench, TdrCall::QueryEngineStatus(0));
    let before = asked();
    bench.spy.silence_engine(0);
    are(
        &bench,
        "a queue at a wait, whose engine is silent",
        &[of(&queue, WAITING)],
    )?;
    same(
        "questions after an engine whose queue waits",
        &asked(),
        &before,
    )?;
    bench.spy.hear_engine(0);
    fence.signal(7)?;
    until_completed(&queue, value)?;
    are(&bench, "idle queues", &[])?;

    let (a, b) = (bench.fence(0)?, bench.fence(0)?);
    let (mut one, mut other) = (bench.queue_on(0)?, bench.queue_on(1)?);
    let ends = [
        one.submit(CommandList::new().wait(&a, 1).signal(&b, 2))?,
        other.submit(CommandList::new().wait(&b, 2).signal(&a, 1))?,
    ];
    until("a circle that the CPU can open is a suspicion", || {
        let told = told(&bench);
        let suspected = |told: &QueueVerdict| matches!(&told.verdict, Verdict::Waiting { suspicion: Some(cycle) } if cycle.0.len() == 2);
        told.len() == 2 && told.iter().all(suspected)
    })?;
    same(
        "errors of queues of a suspicion",
        &(one.error(), other.error()),
        &(None, None),
    )?;
    a.signal(1)?;
    until_completed(&one, ends[0])?;
    until_completed(&other, ends[1])?;
    same(
        "verdicts that were acted by",
        &bench.adapter.os().certain_verdicts(),
        &vec![],
    )?;
    deadlocked(&bench)?;
    orphaned(&bench)?;
    lost_notification(&ground.bench_with(&Wanted::nodes(2))?)?;
    hung(&ground.bench_with(&short())?)
}

/// Queues that wait for each other's progress; and one that waits for its own.
fn deadlocked(bench: &Bench) -> anyhow::Result<()> {
    let (mut one, mut other) = (bench.queue_on(0)?, bench.queue_on(1)?);
    let (of_one, of_other) = (one.progress_fence().clone(), other.progress_fence().clone());
    one.submit(CommandList::new().wait(&of_other, 1))?;
    until("the first one stands at its wait", || {
        told(bench) == [of(&one, WAITING)]
    })?;
    other.submit(CommandList::new().wait(&of_one, 1))?;
    let errors = (error_of(&one)?, error_of(&other)?);
    same(
        "the older and the younger of a circle",
        &errors,
        &(Some(ORPHANED), Some(DEADLOCKED)),
    )?;
    let mut alone = bench.queue_on(0)?;
    let own = alone.progress_fence().clone();
    alone.submit(CommandList::new().wait(&own, 1))?;
    same(
        "one that waits for itself",
        &error_of(&alone)?,
        &Some(DEADLOCKED),
    )
}

/// A queue waits for the progress of one that goes, another for its, and a thread for that one's.
fn orphaned(bench: &Bench) -> anyhow::Result<()> {
    let goes = bench.queue_on(0)?;
    let (mut first, mut second) = (bench.queue_on(1)?, bench.queue_on(0)?);
    let (of_goes, of_first) = (
        goes.progress_fence().clone(),
        first.progress_fence().clone(),
    );
    first.submit(CommandList::new().wait(&of_goes, 5))?;
    second.submit(CommandList::new().wait(&of_first, 1))?;
    let waiter = bench.waiter(second.progress_fence(), 1)?;
    until("both wait", || told(bench).len() == 2)?;
    same(
        "their errors",
        &(first.error(), second.error()),
        &(None, None),
    )?;
    drop(goes);
    same("the thread's wait", &waiter.join(), &Err(ORPHANED))?;
    same("the first one's error", &error_of(&first)?, &Some(ORPHANED))
}

/// Nobody is told of values that are reached, until somebody asks.
fn lost_notification(bench: &Bench) -> anyhow::Result<()> {
    let (fence, other) = (bench.fence(0)?, bench.fence(0)?);
    let (mut signals, mut stands) = (bench.queue_on(0)?, bench.queue_on(1)?);
    complete(&mut signals, CommandList::new().nop())?;
    let end = stands.submit(CommandList::new().wait(&fence, 1))?;
    until("the engine waits for a value by an interrupt", || {
        crate::conform::bench::monitored_value(&fence) == 0
    })?;
    let armed = other.arm(1);
    bench.until_told(&mut signals)?;
    bench.spy.keep_interrupts();
    signals.submit(CommandList::new().signal(&fence, 1).signal(&other, 1))?;
    until("the values are stored", || other.current_value() == 1)?;
    let verdicts = told(bench);
    same(
        "the verdict on the queue",
        &verdicts,
        &vec![of(&stands, Verdict::LostNotification)],
    )?;
    same(
        "notifications that were lost",
        &bench.adapter.os().lost_notifications(),
        &2,
    )?;
    until_completed(&stands, end)?;
    same("the thread's wait", &armed.outcome(), &Some(Ok(())))
}

/// A queue at work whose engine is silent, and a queue at a wait beside it. What was over before it was asked counts
/// for nothing.
fn hung(bench: &Bench) -> anyhow::Result<()> {
    let well = bench.adapter.create_device();
    let (fence, mut stands) = (well.create_fence(0)?, queue_of(&well, 0)?);
    stands.submit(CommandList::new().wait(&fence, 1))?;
    are(bench, "a queue at a wait", &[of(&stands, WAITING)])?;
    let (mut works, target) = (bench.queue()?, large(bench)?);
    bench.spy.silence_engine(0);
    for _ in 0..50 {
        let mut end = 0;
        for _ in 0..4 {
            end = works.submit(&fill(&target, 7))?;
        }
        let verdicts = told(bench);
        let is_at_work = works.progress_fence().current_value() < end;
        works.progress_fence().wait(end, LONG)?;
        if is_at_work && verdicts.len() == 2 {
            let expected = vec![of(&stands, WAITING), of(&works, Verdict::Hung)];
            same(
                "a queue at a wait and one at work, whose engine is silent",
                &verdicts,
                &expected,
            )?;
            bench.spy.hear_engine(0);
            ensure!(stands.error().is_none(), "a queue at a wait was stopped");
            return Ok(());
        }
    }
    bail!("in 50 attempts no queue at work was Hung, whose engine answers nothing")
}
