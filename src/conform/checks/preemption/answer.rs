//! Answer: a request to preempt an engine's kernel-mode queues, what the driver answers, and what is handed over again.

use super::scene::{
    AGAIN, NEW, PAGING, context, handed, initialised, is_full_of, nop, told, until_answered,
    until_told,
};
use crate::conform::bench::until_rests;
use crate::conform::seen::same;
use crate::conform::spy::{Call, Failing};
use crate::conform::{Bench, Check, Ground, LONG, Unfit, until};
use crate::kmd::Interrupt;
use crate::os::{Record, SystemDevice};
use anyhow::{Context, ensure};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "PR-04",
        "a preemption's answer has its id and the last completed one; what came after that is preempted",
        answer,
    ),
    Check::by(
        "PR-05",
        "preempted paging packets run first, with their ids and in their order",
        paging_first,
    ),
    Check::by(
        "PR-07",
        "a request is answered where the engine has nothing left, which is not touched",
        nothing_left,
    ),
    Check::by(
        "PR-18",
        "a preemption that is refused, or answered with what cannot be, stops the adapter",
        wrong_answers,
    ),
];

/// Of three commands one has completed, and two cannot run, since their context is suspended. The answer is kept from
/// the OS for a while, in which nothing is handed over.
fn answer(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let context = context(&bench)?;
    let mut queue = context.create_kernel_queue()?;
    let first = initialised(&bench, 0)? + 1;
    bench.spy.take();
    let value = nop(&mut queue)?;
    queue.progress_fence().wait(value, LONG)?;
    until_told(&bench, 1)?;
    context.suspend(LONG)?;
    nop(&mut queue)?;
    nop(&mut queue)?;
    let is_answer = |told: &Interrupt| matches!(told, Interrupt::DmaPreempted { .. });
    bench.spy.hold_interrupts(is_answer);
    bench.preempt(0)?;
    bench.spy.until_handled(is_answer)?;
    let last = nop(&mut queue)?;
    let before = [(first, NEW), (first + 1, NEW), (first + 2, NEW)];
    same(
        "commands handed over before the answer",
        &handed(&bench),
        &before,
    )?;
    let requests = bench.spy.calls().into_iter().filter_map(|call| match call {
        Call::PreemptCommand(request) => Some(request.preemption_id),
        _ => None,
    });
    let requests: Vec<_> = requests.collect();
    let interrupts = bench.spy.interrupts().into_iter();
    let answers: Vec<_> = interrupts.filter(is_answer).collect();
    let expected: Vec<_> = requests
        .iter()
        .map(|id| Interrupt::DmaPreempted {
            preemption_id: *id,
            last_completed_id: first,
            node_ordinal: 0,
            engine_ordinal: 0,
        })
        .collect();
    same("answers to the one request", &answers, &expected)?;
    bench.spy.pass_held_interrupts();
    let again = [(first + 3, AGAIN), (first + 4, AGAIN), (first + 5, NEW)];
    let all: Vec<_> = before.into_iter().chain(again).collect();
    until("what was preempted is handed over again", || {
        handed(&bench).len() >= all.len()
    })?;
    same("commands handed over in all", &handed(&bench), &all)?;
    context.resume();
    queue.progress_fence().wait(last, LONG)?;
    until_told(&bench, 5)?;
    let completed = [
        Ok(first),
        Err(first),
        Ok(first + 3),
        Ok(first + 4),
        Ok(first + 5),
    ];
    same(
        "completions, and the answer among them",
        &told(&bench),
        &completed,
    )?;
    below_what_completed(&bench)
}

/// A command cannot run, and one with the next id has completed when they are preempted: the last completed id is below both.
fn below_what_completed(bench: &Bench) -> anyhow::Result<()> {
    let (waits, well) = (context(bench)?, context(bench)?);
    let (mut held, mut beside) = (waits.create_kernel_queue()?, well.create_kernel_queue()?);
    let before = initialised(bench, 0)?;
    bench.spy.take();
    waits.suspend(LONG)?;
    let last = nop(&mut held)?;
    let value = nop(&mut beside)?;
    beside.progress_fence().wait(value, LONG)?;
    until_told(bench, 1)?;
    bench.preempt(0)?;
    until_answered(bench)?;
    same(
        "a completion, and the answer while a lower id is outstanding",
        &told(bench),
        &[Ok(before + 2), Err(before)],
    )?;
    waits.resume();
    Ok(held.progress_fence().wait(last, LONG)?)
}

/// A render command, and a fill and a copy of the system device behind it, none of which can run when they are
/// preempted.
fn paging_first(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let [from, to] = [(), ()].map(|()| bench.device.create_allocation(4096));
    let (from, to) = (from?, to?);
    let system = SystemDevice::open(bench.adapter.os(), 0)?;
    let paged = [
        system.open_allocation(from.os())?,
        system.open_allocation(to.os())?,
    ];
    let context = context(&bench)?;
    let mut queue = context.create_kernel_queue()?;
    let first = initialised(&bench, 0)? + 1;
    bench.spy.take();
    context.suspend(LONG)?;
    let paging = system.queue();
    paging.context().suspend(Some(LONG))?;
    nop(&mut queue)?;
    system.fill(&paged[0], 0..4096, 7)?;
    let paged_in = system.copy((&paged[1], 0), (&paged[0], 0), 4096)?;
    bench.preempt(0)?;
    let last = nop(&mut queue)?;
    until_answered(&bench)?;
    let expected = [
        (first, NEW),
        (first + 1, PAGING),
        (first + 2, PAGING),
        (first + 1, PAGING.with(AGAIN)),
        (first + 2, PAGING.with(AGAIN)),
        (first + 3, AGAIN),
        (first + 4, NEW),
    ];
    until("all is handed over", || {
        handed(&bench).len() >= expected.len()
    })?;
    same("ids and flags of commands", &handed(&bench), &expected)?;
    paging.context().resume();
    context.resume();
    queue.progress_fence().wait(last, LONG)?;
    until("the paging packets complete", || {
        system.progress_fence().fence().current_value() >= paged_in
    })?;
    ensure!(is_full_of(&to, 0, 7), "the copy was made before the fill");
    let last = first + 4;
    until("all ids have completed", || {
        bench.adapter.os().submission_ids(0) == (last, last)
    })
}

/// All has completed, and the engine has come to its end: it has no slice in flight after the answer either, and none was
/// submitted for it, where the driver tells of both. The answer has the last completed id, and the engine goes on.
fn nothing_left(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let mut queue = bench.device.create_kernel_queue()?;
    let only = initialised(&bench, 0)? + 1;
    bench.spy.take();
    let value = nop(&mut queue)?;
    queue.progress_fence().wait(value, LONG)?;
    until_told(&bench, 1)?;
    let driver = bench.spy.driver();
    let slices = || driver.node_counters(0).map(|counters| counters.slices);
    let is_at_work = || driver.tdr().and_then(|tdr| tdr.engine_marks(0)).is_some();
    // Of an engine on its way to its end slices tell nothing: it may submit another one by itself.
    let at_rest = until_rests(&bench.spy, 0).and_then(|()| {
        let why = "the driver does not count the slices of an engine";
        slices().ok_or_else(|| Unfit(why.into()).into())
    });
    let before = ground.if_fit(at_rest)?;
    bench.preempt(0)?;
    until_answered(&bench)?;
    if before.is_some() {
        same(
            "slices of an engine that has nothing left, and whether it is at work, after the answer",
            &(slices(), is_at_work()),
            &(before, false),
        )?;
    }
    until_told(&bench, 2)?;
    same(
        "what the driver told",
        &told(&bench),
        &[Ok(only), Err(only)],
    )?;
    same("commands handed over", &handed(&bench), &[(only, NEW)])?;
    let value = nop(&mut queue)?;
    Ok(queue.progress_fence().wait(value, LONG)?)
}

/// A request that fails; answers with an id that was never submitted, with one below that of the answer before, and
/// one that nobody asked for; and a suspend fence that was never issued.
fn wrong_answers(ground: &Ground) -> anyhow::Result<()> {
    let stopped = |bench: &Bench, what: &str, expected: &[u64]| {
        let record = bench.adapter.os().stopped();
        let record = record.with_context(|| format!("{what} does not stop the adapter"))?;
        same(
            "the code of the record",
            &record.code,
            &Record::VIDEO_SCHEDULER_INTERNAL_ERROR,
        )?;
        let seen = &record.parameters[..expected.len()];
        same(
            &format!("the parameters of the record, after {what}"),
            &seen,
            &expected,
        )?;
        drop(bench.take_records());
        Ok(())
    };
    let bench = ground.bench()?;
    bench.spy.fail(Failing::PreemptCommand);
    bench.preempt(0)?;
    stopped(&bench, "a refused request", &[2])?;

    for (what, is_asked, is_at) in [
        ("an id that was never submitted", true, 2),
        ("an id below that of the last answer", true, 0),
        ("an answer that nobody asked for", false, 1),
    ] {
        let bench = ground.bench()?;
        let mut queue = bench.device.create_kernel_queue()?;
        let last_completed_id = initialised(&bench, 0)? + is_at;
        let value = nop(&mut queue)?;
        queue.progress_fence().wait(value, LONG)?;
        initialised(&bench, 0)?;
        bench.preempt(0)?;
        until_answered(&bench)?;
        same("records so far", &bench.adapter.os().records(), &[])?;
        if is_asked {
            bench.spy.keep_interrupts();
            bench.preempt(0)?;
        }
        bench.spy.interrupt(Interrupt::DmaPreempted {
            preemption_id: bench.adapter.os().preemption(0).0,
            last_completed_id,
            node_ordinal: 0,
            engine_ordinal: 0,
        });
        stopped(&bench, what, &[1, last_completed_id])?;
    }

    let bench = ground.bench()?;
    let suspended = context(&bench)?;
    suspended.suspend(LONG)?;
    let answer = |suspend_fence| Interrupt::SuspendContextCompleted {
        context: suspended.os().handle(),
        suspend_fence,
    };
    bench.spy.interrupt(answer(1));
    same(
        "records of an answer with a fence that was issued",
        &bench.adapter.os().records(),
        &[],
    )?;
    bench.spy.interrupt(answer(2));
    stopped(&bench, "a suspend fence that was never issued", &[0x11, 2])
}
