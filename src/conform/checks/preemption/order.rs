//! Order: who runs first, and for whom nobody has to stop.

use super::scene::{context, fill, handed_to, initialised, large, last_word, nop, short, word};
use crate::conform::seen::same;
use crate::conform::spy::{Call, TdrCall};
use crate::conform::{Bench, Check, Ground, LONG, Wanted, until};
use crate::kmd::{DriverOptions, Interrupt, VidSchCaps};
use crate::os::{Features, OsError, Record};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, CreateError, TdrPolicy};
use anyhow::{Context, bail, ensure};
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "PR-01",
        "before a time-out a preemption request is left unanswered for TdrDelay",
        asked_before,
    ),
    Check::by(
        "PR-08",
        "work of high priority goes first, by the priority that it has now",
        priority,
    ),
    Check::by(
        "PR-11",
        "without PreemptionAware nobody is asked, and a packet's parts run back to back",
        not_preemptible,
    ),
];

/// A lone engine that shows nothing is asked, and has TdrDelay; one whose device is lost is asked for nothing.
fn asked_before(ground: &Ground) -> anyhow::Result<()> {
    let tdr = TdrPolicy {
        delay: Duration::from_millis(500),
        limit_count: 1000,
        ..TdrPolicy::default()
    };
    let bench = ground.bench_watched(&Wanted::default(), Features::default(), tdr)?;
    bench.needs_engine_reset()?;
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&times);
    bench
        .spy
        .before_tdr(move |call| lock(&noted).push((call, Instant::now())));
    let mut queue = bench.queue()?;
    bench.silence_engine(0)?;
    let value = queue.submit(CommandList::new().nop())?;
    let is_resumed = || {
        lock(&times)
            .iter()
            .any(|(call, _)| *call == TdrCall::ResumeHwEngine(0))
    };
    until("the silent engine is reset", is_resumed)?;
    let at = |of| {
        let times = lock(&times);
        let found = times.iter().find(|(call, _)| *call == of);
        found.map(|(_, at)| *at)
    };
    let asked = at(TdrCall::RequestPreemption(0));
    let asked = asked.context("a lone engine is reset without a preemption request")?;
    let collected = at(TdrCall::CollectDbgInfo(
        Record::VIDEO_ENGINE_TIMEOUT_DETECTED,
    ));
    let collected = collected.context("no information was collected")?;
    let given = collected.saturating_duration_since(asked);
    ensure!(
        given >= tdr.delay,
        "the engine had {given:?} to answer, and TdrDelay is {:?}",
        tdr.delay
    );
    // Its packet may be what was aborted.
    let _ = queue.progress_fence().wait(value, LONG);

    lock(&times).clear();
    bench.spy.lose_engine(0);
    until("the lost engine is reset", is_resumed)?;
    same(
        "the request to a lost engine",
        &at(TdrCall::RequestPreemption(0)),
        &None,
    )?;
    drop(bench.take_records());
    Ok(())
}

/// Of kernel-mode queues the order of what was held back; of user-mode queues a signal that comes before the end of
/// long work of lower priority, and again when the two have changed places.
fn priority(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&short())?;
    handed_over_by_priority(&bench)?;
    let contexts = [context(&bench)?, context(&bench)?];
    for priority in [-8, 8] {
        let refused = contexts[0].set_priority(priority);
        let is_refused = matches!(refused, Err(CreateError::Os(OsError::Priority(_))));
        ensure!(is_refused, "a priority of {priority}: {refused:?}");
    }
    let mut queues = [
        contexts[0].create_hw_queue(64)?,
        contexts[1].create_hw_queue(64)?,
    ];
    let target = bench.device.create_allocation(16 << 20)?;
    let fence = bench.fence(0)?;
    let mut value = 0;
    for low in [0, 1] {
        let high = 1 - low;
        contexts[low].set_priority(-7)?;
        contexts[high].set_priority(7)?;
        let mut is_first = false;
        for _ in 0..20 {
            target.write(0, &vec![0; target.bytes() as usize / 8]);
            value += 1;
            let end = queues[low].submit(&fill(&target, 1))?;
            until("the low work has begun", || word(&target, 0) == 1)?;
            queues[high].submit(CommandList::new().signal(&fence, value))?;
            until("the high work is done", || fence.current_value() == value)?;
            is_first = last_word(&target) == 0;
            queues[low].progress_fence().wait(end, LONG)?;
            if is_first {
                break;
            }
        }
        ensure!(
            is_first,
            "in 20 attempts a signal of priority 7 came after a long fill of priority -7"
        );
    }
    Ok(())
}

/// While an engine is being preempted, commands of three priorities come.
fn handed_over_by_priority(bench: &Bench) -> anyhow::Result<()> {
    let contexts = [context(bench)?, context(bench)?, context(bench)?];
    for (context, priority) in contexts.iter().zip([0, -3, 3]) {
        context.set_priority(priority)?;
    }
    let mut queues = Vec::new();
    for context in &contexts {
        queues.push(context.create_kernel_queue()?);
    }
    initialised(bench, 0)?;
    bench.spy.take();
    contexts[0].suspend(LONG)?;
    nop(&mut queues[0])?;
    let is_answer = |told: &Interrupt| matches!(told, Interrupt::DmaPreempted { .. });
    bench.spy.hold_interrupts(is_answer);
    bench.preempt(0)?;
    bench.spy.until_handled(is_answer)?;
    let mut ends = Vec::new();
    for queue in &mut queues {
        ends.push(nop(queue)?);
    }
    bench.spy.pass_held_interrupts();
    contexts[0].resume();
    for (queue, end) in queues.iter().zip(ends) {
        queue.progress_fence().wait(end, LONG)?;
    }
    let handed: Vec<_> = handed_to(bench)
        .into_iter()
        .map(|(queue, ..)| queue)
        .collect();
    let [normal, low, high] = [0, 1, 2].map(|at: usize| queues[at].os().handle());
    same(
        "queues of commands, with one of normal priority that is handed over again",
        &handed,
        &vec![normal, normal, high, normal, low],
    )
}

/// What another context has queued behind the first part of a fill is made after its last. An attempt in which the
/// fill was over before counts for nothing.
fn not_preemptible(ground: &Ground) -> anyhow::Result<()> {
    let wanted = Wanted {
        driver: DriverOptions {
            not_preemption_aware: true,
            ..DriverOptions::default()
        },
        ..short()
    };
    let bench = ground.bench_with(&wanted)?;
    let os = bench.adapter.os();
    if os.vidsch_caps().has(VidSchCaps::PREEMPTION_AWARE) {
        return Err(crate::conform::Unfit("the driver is PreemptionAware always".into()).into());
    }
    let refused = os.preempt(0);
    ensure!(
        matches!(refused, Err(OsError::NotPreemptionAware)),
        "a request to preempt: {refused:?}"
    );
    let asked = bench
        .spy
        .count(|call| matches!(call, Call::PreemptCommand(_)));
    same(
        "requests to a driver that is not PreemptionAware",
        &asked,
        &0,
    )?;
    let contexts = [context(&bench)?, context(&bench)?];
    let (mut fills, mut other) = (
        contexts[0].create_hw_queue(64)?,
        contexts[1].create_hw_queue(64)?,
    );
    let (target, fence) = (large(&bench)?, bench.fence(0)?);
    for attempt in 1..=50 {
        target.write(0, &vec![0; target.bytes() as usize / 8]);
        let end = fills.submit(&fill(&target, 7))?;
        until("the fill has begun", || word(&target, 0) == 7)?;
        let is_in_it = last_word(&target) == 0;
        other.submit(CommandList::new().signal(&fence, attempt))?;
        let is_in_it = is_in_it && last_word(&target) == 0;
        until("the other context's signal is made", || {
            fence.current_value() == attempt
        })?;
        same(
            "the last word of a fill when another context runs",
            &last_word(&target),
            &7,
        )?;
        fills.progress_fence().wait(end, LONG)?;
        if is_in_it {
            return Ok(());
        }
    }
    bail!("in 50 attempts nothing was queued in the middle of a fill")
}
