//! Engine reset: what is submitted again after it, and who is reset as well.

use super::scene::{
    ENGINE, FOR_EVER, blame_nobody, codes, hanging, is_one_engine_reset, queue_of, tdr_calls,
    until_reset, until_stopped,
};
use crate::abi::StallKind;
use crate::conform::bench::{complete, until_rests};
use crate::conform::checks::preemption::scene::{
    AGAIN, NEW, PAGING, context, handed, initialised, is_full_of, nop,
};
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::{Check, Ground, LONG, Unfit, Wanted, until};
use crate::kmd::DriverOptions;
use crate::os::{Features, Record, SystemDevice};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, TdrPolicy};
use anyhow::{Context, ensure};
use std::time::{Duration, Instant};

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
/// group leaves its own node out.
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
    // One that is at work yet may have no core to answer in time.
    complete(&mut queue, CommandList::new().nop())?;
    until_rests(&bench.spy, 1)?;
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
    ground.if_fit(has_its_time(ground))?;

    let bench = ground.bench_with(&Wanted::nodes(2))?;
    bench.spy.answer_group(|_| 0b01);
    bench.spy.lose_engine(1);
    let record = until_stopped(&bench)?;
    let seen = (record.code, &record.parameters[..2]);
    let parameters = [Record::NODE_WITHOUT_ITSELF, 1];
    let should = (Record::VIDEO_SCHEDULER_INTERNAL_ERROR, &parameters[..]);
    same("the record of a group without its own node", &seen, &should)
}

/// How long a dependent engine has to be preempted.
const DEPENDENT_TIME: Duration = Duration::from_millis(500);

/// Of a group of the driver's own the second engine is said to be lost while the first is in a packet that it does not come
/// out of, for which it has its time though the driver gives engines none otherwise. It comes first in the order of resets:
/// so nothing but its time lies between the request and its reset. An attempt in which it was asked before it had begun
/// that packet counts for nothing; and an engine that answers in the middle of it is rightly left alone each time.
fn has_its_time(ground: &Ground) -> anyhow::Result<()> {
    let wanted = Wanted {
        driver: DriverOptions {
            shared_device: true,
            answer_time: Duration::ZERO,
            ..DriverOptions::default()
        },
        ..hanging(2)
    };
    // The watch finds nobody hung, who hangs for as long as this takes.
    let tdr = TdrPolicy {
        delay: Duration::from_secs(600),
        limit_count: 1_000_000,
        ..TdrPolicy::default()
    };
    let bench = ground.bench_watched(&wanted, Features::default(), tdr)?;
    let group = bench
        .spy
        .driver()
        .tdr()
        .map_or(0, |tdr| tdr.query_dependent_engine_group(1));
    if group & 0b01 == 0 {
        return Err(Unfit("no engine of it depends on another one".into()).into());
    }
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&times);
    bench
        .spy
        .before_tdr(move |call| lock(&noted).push((call, Instant::now())));
    let guilty = bench.adapter.create_device();
    let mut queue = queue_of(&guilty, 0)?;
    complete(&mut queue, CommandList::new().nop())?;
    queue.submit(CommandList::new().stall(StallKind::HeedsAbort, FOR_EVER))?;
    let (mut attempts, deadline) = (0, Instant::now() + LONG / 2);
    while tdr_calls(&bench, TdrCall::ResetEngine(0)) == 0 {
        if Instant::now() >= deadline {
            drop(bench.take_records());
            return Err(
                Unfit("its engine answers in the middle of a packet that hangs".into()).into(),
            );
        }
        lock(&times).clear();
        attempts += 1;
        bench.spy.lose_engine(1);
        until_reset(&bench, 1, attempts)?;
    }
    let times = lock(&times).clone();
    let at = |of| {
        times
            .iter()
            .find(|(call, _)| *call == of)
            .map(|(_, at)| *at)
    };
    let asked = at(TdrCall::RequestPreemption(0));
    let asked = asked.context("a dependent engine is reset that was not asked to be preempted")?;
    let reset = at(TdrCall::ResetEngine(0)).context("it is reset in this attempt")?;
    let given = reset.saturating_duration_since(asked);
    ensure!(
        given >= DEPENDENT_TIME,
        "a dependent engine had {given:?} to be preempted, and not {DEPENDENT_TIME:?}"
    );
    let resets = attempts + 1;
    same(
        "codes of the records",
        &codes(&bench, resets)?,
        &vec![ENGINE; resets],
    )
}
