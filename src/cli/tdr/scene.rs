//! Scene: an adapter of two engines, a guilty program on one of them, and an innocent one on both.

use super::findings::{Run, microseconds};
use super::guilty::{Guilty, Plan};
use super::hang::Hang;
use super::judgement::Evidence;
use crate::gpu::{EngineUnit, Injection, ShaderTuning};
use crate::os::NodeCounters;
use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance};
use crate::workload::bystander::{Bystander, queue_on};
use crate::{Adapter, AdapterOptions, CommandList, DeviceExecutionState, TdrPolicy};
use anyhow::Context;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{Duration, Instant};

/// The node that is hung.
pub(super) const GUILTY_NODE: u32 = 0;
/// The one that goes on.
const OTHER_NODE: u32 = 1;
const NODES: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

/// What nobody shall have to wait for on any machine, beside the time in which a hang is found.
const PATIENCE: Duration = Duration::from_secs(15);

/// See the file's head.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) adapter: Adapter,
    pub(super) injection: Arc<Injection>,
}

impl Scene {
    fn open(
        instance: &Arc<Instance>,
        info: &AdapterInfo,
        unit: EngineUnit,
        delay: Duration,
    ) -> anyhow::Result<Self> {
        let injection = Injection::new(NODES.get())?;
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
            // What is put in the way of engines of this process.
            injection: (unit != EngineUnit::Process).then(|| Arc::clone(&injection)),
            ..AdapterOptions::default()
        };
        let adapter = Adapter::open_on(instance, info, &options)?;
        Ok(Self { adapter, injection })
    }

    /// Where the engine of the node that is hung is, if that is not this process.
    pub(super) fn guilty_process(&self) -> Option<u32> {
        self.adapter.engine_process(GUILTY_NODE)
    }

    /// Of the node that is hung.
    pub(super) fn counters(&self) -> NodeCounters {
        let ddi = self.adapter.os().ddi();
        ddi.node_counters(GUILTY_NODE).unwrap_or_default()
    }
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
    let plan = Plan::new(&scene, &mut guilty, hang, delay)?;
    let cut_before = scene.counters().cut;
    let patience = 4 * delay + PATIENCE;

    let innocent = scene.adapter.create_device();
    let same = Bystander::start(&innocent, GUILTY_NODE, patience)?;
    let other = Bystander::start(&innocent, OTHER_NODE, patience)?;
    let ready = Instant::now();
    for bystander in [&same, &other] {
        bystander
            .wait_for_one_after(ready)
            .context("nothing works on it, before anything was done to it")?;
    }

    let process = scene.guilty_process();
    let injected = Instant::now();
    let ended = guilty.carry_out(&scene, &plan, patience);
    let verdict = Instant::now();
    let first = same.wait_for_one_after(verdict);
    let goes_on = other.wait_for_one_after(verdict).is_some();
    let recovered = first.unwrap_or_else(Instant::now);
    let (on_same, on_other) = (
        same.between(injected, recovered),
        other.between(injected, recovered),
    );
    let errors = [&same, &other].map(Bystander::error);
    let again = goes_on_anew(&scene, patience);
    drop((same, other));
    let process_gone = process.map(|id| !Path::new(&format!("/proc/{id}")).exists());

    let counters = scene.counters();
    let evidence = Evidence {
        ended,
        is_cut: matches!(plan, Plan::Stall { is_cut: true, .. }),
        engine_resets: counters.resets,
        process_gone,
        guilty_state: guilty.device.execution_state(),
        innocent_state: innocent.execution_state(),
        errors,
        other_goes_on: goes_on && on_other.completed > 0,
        again: again.err().map(|error| format!("{error:#}")),
        records: os.records(),
    };
    let (outcome, problems) = evidence.judge();
    Ok(Run {
        inject: hang,
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
        engine_resets: counters.resets,
        process_gone,
        slices_cut: counters.cut - cut_before,
        guilty_state: name_of(evidence.guilty_state),
        innocent_state: name_of(evidence.innocent_state),
        goes_on_anew: evidence.again.is_none(),
        records: evidence.records.iter().map(ToString::to_string).collect(),
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
