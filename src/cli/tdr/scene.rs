//! Scene: an adapter of two engines, a guilty program on one of them, and two innocent ones on both: one that
//! submits all the time, and one that has nothing queued.

use super::expectation::Expectation;
use super::findings::{Run, microseconds};
use super::guilty::{Guilty, Plan};
use super::hang::Hang;
use super::idle::Idle;
use super::judgement::Evidence;
use crate::gpu::{EngineUnit, Injection, ShaderTuning};
use crate::kmd::{DriverFaults, DriverOptions, ResetFault};
use crate::os::NodeCounters;
use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance};
use crate::workload::bystander::{Bystander, queue_on};
use crate::{Adapter, AdapterOptions, CommandList, DeviceExecutionState, TdrPolicy};
use anyhow::{Context, ensure};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{Duration, Instant};

/// The node that is hung.
pub(super) const GUILTY_NODE: u32 = 0;
/// The one that goes on.
pub(super) const OTHER_NODE: u32 = 1;
pub(super) const NODES: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

/// What nobody shall have to wait for on any machine, beside the time in which a hang is found.
const PATIENCE: Duration = Duration::from_secs(15);

/// Between two looks at what has no event.
const LOOK: Duration = Duration::from_millis(1);

/// See the file's head.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) adapter: Adapter,
    pub(super) injection: Arc<Injection>,
    faults: Arc<DriverFaults>,
}

impl Scene {
    fn open(
        instance: &Arc<Instance>,
        info: &AdapterInfo,
        unit: EngineUnit,
        delay: Duration,
    ) -> anyhow::Result<Self> {
        let injection = Injection::new(NODES.get())?;
        let faults = DriverFaults::new();
        let options = AdapterOptions {
            nodes: NODES,
            unit: Some(unit),
            tuning: ShaderTuning {
                stalls: true,
                ..ShaderTuning::default()
            },
            tdr: TdrPolicy {
                delay,
                // A show of hangs is no program that hangs.
                limit_count: u32::MAX,
                ..TdrPolicy::default()
            },
            driver: DriverOptions {
                faults: Some(Arc::clone(&faults)),
                ..DriverOptions::default()
            },
            // What is put in the way of engines of this process.
            injection: (unit != EngineUnit::Process).then(|| Arc::clone(&injection)),
            ..AdapterOptions::default()
        };
        let adapter = Adapter::open_on(instance, info, &options)?;
        Ok(Self {
            adapter,
            injection,
            faults,
        })
    }

    /// What the driver will do wrong; whether there is something.
    fn arm(&self, hang: Hang, patience: Duration) -> bool {
        let reset = |fault| self.faults.at_next_reset(GUILTY_NODE, fault);
        match hang {
            Hang::FailedReset => reset(ResetFault::Fails),
            Hang::WrongAbortedId => reset(ResetFault::SaysAborted(Expectation::WRONG_ID)),
            Hang::Late | Hang::LateWithOthers => reset(ResetFault::ComesLate(patience)),
            Hang::Dependent | Hang::DependentStalled => self.faults.make_one_group(),
            Hang::Lost
            | Hang::KilledProcess
            | Hang::StoppedProcess
            | Hang::Endless
            | Hang::Abort
            | Hang::Paging
            | Hang::Dispatch
            | Hang::Stall => return false,
        }
        true
    }

    /// Where the engine of the node that is hung is, if that is not this process.
    pub(super) fn guilty_process(&self) -> Option<u32> {
        self.adapter.engine_process(GUILTY_NODE)
    }

    /// Of the node that is hung.
    pub(super) fn counters(&self) -> NodeCounters {
        self.counters_of(GUILTY_NODE)
    }

    fn counters_of(&self, node_ordinal: u32) -> NodeCounters {
        let ddi = self.adapter.os().ddi();
        ddi.node_counters(node_ordinal).unwrap_or_default()
    }

    /// Waits for so many records: the last one may be noted when programs go on already.
    fn until_noted(&self, records: usize, patience: Duration) {
        let is_noted = || self.adapter.os().records().len() >= records;
        // Whether they are there is looked at later.
        let _ = until("the records are noted", patience, is_noted);
    }

    /// Waits until the operating system has made up its mind to reset the engine, and the driver holds that up.
    pub(super) fn until_reset_is_held(&self, patience: Duration) -> anyhow::Result<()> {
        until("the engine is about to be reset", patience, || {
            self.faults.met() > 0
        })
    }

    /// Waits until the engine that is about to be reset has done all that it was given.
    pub(super) fn until_all_is_done(&self, patience: Duration) -> anyhow::Result<()> {
        let ddi = self.adapter.os().ddi();
        let is_at_rest = || {
            let tdr = ddi.tdr();
            tdr.is_some_and(|tdr| tdr.engine_marks(GUILTY_NODE).is_none())
        };
        until("the engine has done all", patience, is_at_rest)
    }

    /// The driver holds the reset up no longer.
    pub(super) fn let_reset_go(&self) {
        self.faults.let_go(GUILTY_NODE);
    }
}

fn until(
    what: &'static str,
    patience: Duration,
    condition: impl Fn() -> bool,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    while !condition() {
        ensure!(begin.elapsed() < patience, "it never came to this: {what}");
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Shows one.
pub(super) fn play(
    instance: &Arc<Instance>,
    info: &AdapterInfo,
    hang: Hang,
    delay: Duration,
) -> anyhow::Result<Run> {
    let scene = Scene::open(instance, info, hang.unit(), delay)?;
    let os = scene.adapter.os();
    let mut guilty = Guilty::new(&scene)?;
    let mut plan = Plan::new(&scene, &mut guilty, hang, delay)?;
    let cut_before = scene.counters().cut;
    let patience = 4 * delay + PATIENCE;

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

    let process = scene.guilty_process();
    let has_fault = scene.arm(hang, patience);
    let completed = guilty.completed();
    let injected = Instant::now();
    let ended = guilty.carry_out(&scene, &mut plan, patience)?;
    let verdict = Instant::now();
    let expected = if ended.is_ok() && plan.is_cut() {
        Expectation::never_hung()
    } else {
        Expectation::of(hang, completed)
    };
    if expected.ends_innocent() {
        // It has been told of by the time that all are.
        for bystander in [&same, &other] {
            bystander.wait_for_end(patience);
        }
    }
    let first = same.wait_for_one_after(verdict);
    let first_on_other = other.wait_for_one_after(verdict);
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
        idle: idle_first.err().map(text_of),
        system: system
            .as_ref()
            .and_then(|done| done.as_ref().err())
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
        engine_resets: evidence.resets[0],
        other_engine_resets: evidence.resets[1],
        process_gone,
        slices_cut: counters.cut - cut_before,
        guilty_state: name_of(evidence.guilty_state),
        second_guilty_state: evidence.second_guilty_state.map(name_of),
        innocent_state: name_of(evidence.innocent_state),
        idle_state: name_of(evidence.idle_state),
        idle_goes_on: evidence.idle.is_none(),
        system_goes_on: system.map(|done| done.is_ok()),
        refusal: evidence.refusal,
        goes_on_anew: evidence.again.is_none(),
        records: os.records().iter().map(ToString::to_string).collect(),
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
