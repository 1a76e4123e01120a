//! Engine reset: what is submitted again after it, and who is reset as well.

use super::scene::{
    ENGINE, blame_nobody, codes, is_one_engine_reset, tdr_calls, until_reset, until_stopped,
};
use crate::conform::checks::preemption::scene::{
    AGAIN, NEW, PAGING, context, handed, initialised, is_full_of, nop,
};
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::{Check, Ground, LONG, Wanted, until};
use crate::os::{Record, SystemDevice};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "TD-07",
        "packets that a reset did not affect are submitted again before anything new",
        submitted_again,
    ),
    Check::by(
        "TD-09",
        "dependent engines are preempted or reset too, in ordinal order",
        dependent,
    ),
];

/// Render commands with paging packets between them, none of which can run when their engine is reset; and a command
/// that comes while it is.
fn submitted_again(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let memory = bench.device.create_allocation(4096)?;
    let system = SystemDevice::open(bench.adapter.os(), 0)?;
    let paged = system.open_allocation(memory.os())?;
    let context = context(&bench)?;
    let mut queue = context.create_kernel_queue()?;
    let first = initialised(&bench, 0)? + 1;
    bench.spy.take();
    context.suspend(LONG)?;
    let paging = system.queue();
    paging.context().suspend(Some(LONG))?;
    nop(&mut queue)?;
    system.fill(&paged, 0..4096, 1)?;
    nop(&mut queue)?;
    let paged_in = system.fill(&paged, 0..4096, 2)?;
    blame_nobody(&bench);
    bench.spy.lose_engine(0);
    until_reset(&bench, 0, 1)?;
    let last = nop(&mut queue)?;
    let expected = [
        (first, NEW),
        (first + 1, PAGING),
        (first + 2, NEW),
        (first + 3, PAGING),
        (first + 1, PAGING.with(AGAIN)),
        (first + 3, PAGING.with(AGAIN)),
        (first + 4, AGAIN),
        (first + 5, AGAIN),
        (first + 6, NEW),
    ];
    until("all is submitted again", || {
        handed(&bench).len() >= expected.len()
    })?;
    same("ids and flags of commands", &handed(&bench), &expected)?;
    paging.context().resume();
    context.resume();
    same(
        "the last of them",
        &queue.progress_fence().wait(last, LONG),
        &Ok(()),
    )?;
    until("the paging packets complete", || {
        system.progress_fence().fence().current_value() >= paged_in
    })?;
    ensure!(
        is_full_of(&memory, 0, 2),
        "paging packets have run in another order"
    );
    is_one_engine_reset(&bench)
}

/// The driver's own groups have their nodes in them. Of a group of three one is lost, one answers and one is silent; another
/// group leaves its own node out. (That a
/// dependent engine has 500 ms: `tests/engine_status.rs`.)
fn dependent(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&Wanted::nodes(3))?;
    if let Some(tdr) = bench.spy.driver().tdr() {
        for node in 0..3 {
            let group = tdr.query_dependent_engine_group(node);
            let is_one = group & 1 << node != 0 && group < 1 << 3;
            ensure!(
                is_one,
                "the engines that depend on engine {node}: {group:#b}"
            );
        }
    }
    let mut queue = bench.queue_on(1)?;
    bench.spy.answer_group(|_| 0b111);
    bench.silence_engine(2)?;
    bench.spy.lose_engine(0);
    until_reset(&bench, 2, 1)?;
    let calls = bench.spy.tdr_calls();
    let resets = calls
        .iter()
        .filter(|call| matches!(call, TdrCall::ResetEngine(_)));
    let resets: Vec<_> = resets.copied().collect();
    let expected = vec![TdrCall::ResetEngine(0), TdrCall::ResetEngine(2)];
    same(
        "resets of a group whose second engine answers",
        &resets,
        &expected,
    )?;
    for node in [1, 2] {
        let is_asked = tdr_calls(&bench, TdrCall::RequestPreemption(node)) > 0;
        ensure!(
            is_asked,
            "dependent engine {node} is not asked to be preempted"
        );
    }
    let place = |of| calls.iter().position(|call| *call == of);
    let is_one = place(TdrCall::ResetEngine(2)) < place(TdrCall::ResumeHwEngine(0));
    ensure!(
        is_one,
        "the first engine goes on before the dependent one is reset: {calls:?}"
    );
    same("codes of the records", &codes(&bench, 2)?, &vec![ENGINE; 2])?;
    let value = queue.submit(&crate::CommandList::new())?;
    same(
        "the queue of the engine that was preempted",
        &queue.progress_fence().wait(value, LONG),
        &Ok(()),
    )?;

    let bench = ground.bench_with(&Wanted::nodes(2))?;
    bench.spy.answer_group(|_| 0b01);
    bench.spy.lose_engine(1);
    let record = until_stopped(&bench)?;
    let seen = (record.code, &record.parameters[..2]);
    let parameters = [Record::NODE_WITHOUT_ITSELF, 1];
    let should = (Record::VIDEO_SCHEDULER_INTERNAL_ERROR, &parameters[..]);
    same("the record of a group without its own node", &seen, &should)
}
