//! Play: a guilty program on one engine, and two innocent ones on both: one that submits all the time, and one
//! that has nothing queued. What each of them goes through.

use super::bounds::bounds;
use super::expectation::Expectation;
use super::findings::{Run, Step, microseconds};
use super::guilty::Guilty;
use super::hang::Hang;
use super::idle::Idle;
use super::judgement::Evidence;
use super::loss_at::LossAt;
use super::plan::Plan;
use super::scene::{GUILTY_NODE, OTHER_NODE, Scene};
use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance};
use crate::workload::bystander::{Bystander, queue_on};
use crate::{CommandList, DeviceExecutionState};
use anyhow::Context;
use std::path::Path;
use std::time::{Duration, Instant};

/// What nobody shall have to wait for on any machine, beside the time in which a hang is found.
const PATIENCE: Duration = Duration::from_secs(15);

/// Shows one.
pub(super) fn play(
    instance: &Arc<Instance>,
    info: &AdapterInfo,
    (hang, loss_at): (Hang, Option<LossAt>),
    delay: Duration,
) -> anyhow::Result<Run> {
    let patience = 4 * delay + PATIENCE;
    let scene = Scene::open(instance, info, hang.unit(), delay)?;
    let os = scene.adapter.os();
    let mut guilty = Guilty::new(&scene)?;
    let mut plan = Plan::new(&scene, &mut guilty, (hang, loss_at), delay)?;
    let cut_before = scene.counters().cut;

    let innocent = scene.adapter.create_device();
    let mut idle = Idle::new(&scene)?;
    let same = Bystander::start(&innocent, GUILTY_NODE, patience)?;
    let other = Bystander::start(&innocent, OTHER_NODE, patience)?;
    let ready = Instant::now();
    for bystander in [&same, &other] {
        bystander
            .wait_for_one_after(ready)
            .context("nothing works on it, before anything was done to it")?;
    }

    scene.until_spare_is_kept(patience)?;
    let process = scene.guilty_process();
    let has_fault = scene.arm(hang, patience);
    let completed = guilty.completed();
    let injected = Instant::now();
    let ended = plan.carry_out(&scene, &mut guilty, patience)?;
    let verdict = Instant::now();
    let expected = if ended.is_ok() && plan.is_cut() {
        Expectation::never_hung()
    } else {
        Expectation::of(hang, completed)
    };
    let [first, first_on_other] = [&same, &other].map(|bystander| {
        if expected.ends_innocent() {
            // It has been told of by the time that all are; what it completed before, it may have noted after.
            bystander.wait_for_end(patience);
            None
        } else {
            bystander.wait_for_one_after(verdict)
        }
    });
    let idle_first = idle.go_on(patience);
    let first = first.or_else(|| idle_first.as_ref().ok().copied());
    let recovered = first.unwrap_or_else(Instant::now);
    // Where the other engine is hung too, nobody there completes anything before it is recovered.
    let until = match hang {
        Hang::DependentStalled => recovered.max(first_on_other.unwrap_or(recovered)),
        _ => recovered,
    };
    let (on_same, on_other) = (
        same.between(injected, recovered),
        other.between(injected, until),
    );
    let back = plan.see_return(&scene, &guilty, patience);
    if back.is_some() {
        let now = Instant::now();
        for bystander in [&same, &other] {
            // Why it does not go on, if so, is looked at below.
            let _ = bystander.wait_for_one_after(now);
        }
    }
    let errors = [&same, &other].map(Bystander::error);
    scene.until_noted(expected.records.len(), PATIENCE);
    let system = plan
        .paging()
        .map(|paging| paging.go_on(&idle.device, patience));
    let stopped = os.stopped().is_some();
    let refusal = stopped.then(|| scene.adapter.create_device().create_fence(0).err());
    let again = if stopped {
        Scene::open(instance, info, hang.unit(), delay)
            .and_then(|another| goes_on_anew(&another, patience))
    } else {
        goes_on_anew(&scene, patience)
    };
    drop((same, other));
    let process_gone = process.map(|id| !Path::new(&format!("/proc/{id}")).exists());

    let counters = scene.counters();
    let steps = os.tdr_steps(GUILTY_NODE);
    let text_of = |error: anyhow::Error| format!("{error:#}");
    let evidence = Evidence {
        ended,
        resets: [counters.resets, scene.counters_of(OTHER_NODE).resets],
        recoveries: os.tdr_reports().len(),
        fault_met: has_fault.then(|| scene.faults.met() > 0),
        process_gone,
        guilty_state: guilty.device.execution_state(),
        second_guilty_state: plan.second_guilty_state(),
        innocent_state: innocent.execution_state(),
        idle_state: idle.device.execution_state(),
        errors,
        other_goes_on: first_on_other.is_some() && on_other.completed > 0,
        bounds: bounds(
            hang,
            &expected,
            delay,
            [&on_same, &on_other].map(|on| on.longest),
        ),
        idle: idle_first.err().map(text_of),
        system: system
            .as_ref()
            .and_then(|done| done.as_ref().err())
            .map(|error| format!("{error:#}")),
        came_back: back
            .as_ref()
            .and_then(|back| back.as_ref().err())
            .map(|error| format!("{error:#}")),
        refusal: refusal.flatten().map(|error| error.to_string()),
        again: again.err().map(text_of),
        records: os
            .records()
            .iter()
            .map(|record| (record.code, record.parameters))
            .collect(),
    };
    let (outcome, problems) = evidence.judge(&expected);
    Ok(Run {
        inject: hang,
        lost_at: loss_at,
        expected: expected.outcome,
        outcome,
        problems,
        guilty_wait: match ended {
            Ok(()) => String::from("its packet completed"),
            Err(error) => error.to_string(),
        },
        verdict_us: microseconds(verdict - injected),
        recovery_us: first.map(|first| microseconds(first - verdict)),
        same_engine: on_same.into(),
        other_engine: on_other.into(),
        bounds: evidence.bounds,
        engine_resets: evidence.resets[0],
        other_engine_resets: evidence.resets[1],
        process_gone,
        slices_cut: counters.cut - cut_before,
        guilty_state: name_of(evidence.guilty_state),
        second_guilty_state: evidence.second_guilty_state.map(name_of),
        innocent_state: name_of(evidence.innocent_state),
        idle_state: name_of(evidence.idle_state),
        idle_goes_on: evidence.idle.is_none(),
        came_back: back.map(|back| back.is_ok()),
        system_goes_on: system.map(|done| done.is_ok()),
        refusal: evidence.refusal,
        goes_on_anew: evidence.again.is_none(),
        records: os.records().iter().map(ToString::to_string).collect(),
        steps: steps.into_iter().map(Step::of).collect(),
        reports: os.tdr_reports().iter().map(ToString::to_string).collect(),
    })
}

/// The guilty program opens the adapter anew, and does something with it.
fn goes_on_anew(scene: &Scene, patience: Duration) -> anyhow::Result<()> {
    let device = scene.adapter.create_device();
    let (mut queue, fence) = (queue_on(&device, GUILTY_NODE)?, device.create_fence(0)?);
    queue.submit(CommandList::new().signal(&fence, 1))?;
    Ok(fence.wait(1, patience)?)
}

/// The published name.
fn name_of(state: DeviceExecutionState) -> String {
    let mut values = DeviceExecutionState::VALUES.values.iter();
    let name = values.find(|(_, number)| *number == state.0);
    name.map_or_else(|| state.0.to_string(), |(name, _)| (*name).to_owned())
}
