//! Order: who runs first, and for whom nobody has to stop.

use super::rivals::{A_SHARE, Rivals, STAND_BACK};
use super::scene::{context, fill, handed_to, initialised, large, last_word, nop, short, word};
use crate::conform::seen::same;
use crate::conform::spy::{Call, TdrCall};
use crate::conform::{Bench, Check, Ground, LONG, Unfit, Wanted, until};
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

/// Of kernel-mode queues the order of what was held back; which priorities there are; and of user-mode queues who stands
/// back.
fn priority(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&short())?;
    handed_over_by_priority(&bench)?;
    let one = context(&bench)?;
    for priority in [-8, 8] {
        let refused = one.set_priority(priority);
        let is_refused = matches!(refused, Err(CreateError::Os(OsError::Priority(_))));
        ensure!(is_refused, "a priority of {priority}: {refused:?}");
    }
    ground.if_fit(others_stand_back(ground)).map(|_| ())
}

/// Attempts at a contest: how soon a thread of the check runs is chance.
const ATTEMPTS: usize = 20;

/// Seven queues have work for long when an eighth comes to have some. Of what they execute while it executes its own, all
/// with one priority, they may not execute the most when its is the highest and theirs the lowest; whichever it is, and
/// whatever it was before. A contest in which the others had no more to do before the eighth had done its own says nothing,
/// unless they had much to do when it could begin.
///
/// Work of high priority starts within three slices (PR-08). On an engine that runs queues beside each other it has started at
/// once whatever the others do meanwhile; one that divides its time starts it slice by slice, and is asked alone.
fn others_stand_back(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let mut rivals = Rivals::on(&bench)?;
    divides_its_time(&mut rivals)?;
    let mut is_shared = false;
    for _ in 0..ATTEMPTS {
        let beside = rivals.contest(0, (0, 0))?.beside;
        is_shared = beside.is_some_and(|beside| beside >= A_SHARE);
        if is_shared {
            break;
        }
    }
    if !is_shared {
        let why = "its engine executes a whole list of packets before another queue's, or the times that it stores say so";
        return Err(Unfit(why.into()).into());
    }
    for one in [0, 1, 0] {
        goes_first(&mut rivals, one)?;
    }
    Ok(())
}

/// The queue of the highest priority, in one of several attempts.
fn goes_first(rivals: &mut Rivals, one: usize) -> anyhow::Result<()> {
    let (mut least, mut is_asked) = (None, false);
    for _ in 0..ATTEMPTS {
        let contest = rivals.contest(one, (7, -7))?;
        match contest.beside {
            Some(beside) if beside <= STAND_BACK => return Ok(()),
            Some(beside) => least = Some(least.map_or(beside, |least: u64| least.min(beside))),
            None => is_asked |= contest.is_in_time,
        }
    }
    if let Some(least) = least {
        bail!(
            "while a queue of priority 7 executes its packets, seven of priority -7 execute {least} of theirs at the least, \
             and with one priority for all {A_SHARE} or more"
        );
    }
    if is_asked {
        bail!("work of priority 7 is done when all that queues of priority -7 had to do is done");
    }
    let why = "the threads of the check came too late to see whose work goes first";
    Err(Unfit(why.into()).into())
}

/// Goes on where a queue is held up by seven others that have work, at the same priority. The shortest of several times
/// counts: how long an engine has no core does not.
fn divides_its_time(rivals: &mut Rivals) -> anyhow::Result<()> {
    let mut shortest = |is_alone| -> anyhow::Result<u64> {
        let mut shortest = u64::MAX;
        for _ in 0..5 {
            let race = rivals.race(is_alone)?;
            if is_alone || race.beside.is_some() {
                shortest = shortest.min(race.ticks);
            }
        }
        Ok(shortest)
    };
    let (alone, among_others) = (shortest(true)?, shortest(false)?);
    if among_others < alone.max(1).saturating_mul(3) {
        let why = "its engine runs queues beside each other: none is held up by others";
        return Err(Unfit(why.into()).into());
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
        return Err(Unfit("the driver is PreemptionAware always".into()).into());
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
