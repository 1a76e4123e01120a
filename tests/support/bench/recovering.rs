//! Benches whose engines are reset when they do not answer.

use super::adapter::tuned_devices;
use super::{Bench, memory, model_is_asked_for, until};
use native_fence::abi::StallKind;
use native_fence::gpu::{
    Engine, EngineUnit, Injection, LongKernel, ModelEngine, ModelMemory, ModelOptions, NodePolicy,
    ShaderEngine, ShaderTuning, SpareEngines, SparePolicy,
};
use native_fence::kmd::DriverOptions;
use native_fence::vulkan::{AdapterInfo, Instance, InstanceOptions, validation};
use native_fence::{CommandList, FenceMemory, HwQueue, TdrPolicy};
use std::sync::Arc;
use std::time::Duration;

/// Passes of a stall that no test waits for the end of.
pub(crate) const FOR_EVER: u64 = 1 << 40;

/// What the tests recover by: as soon as a busy machine allows for, and as often as they like.
pub(crate) fn soon() -> TdrPolicy {
    TdrPolicy {
        delay: Duration::from_secs(1),
        limit_count: 1_000_000,
        ..TdrPolicy::default()
    }
}

fn tuning(stalls: bool) -> ShaderTuning {
    ShaderTuning {
        stalls,
        ..ShaderTuning::default()
    }
}

fn model(stalls: bool) -> ModelEngine {
    ModelEngine::new(ModelOptions {
        stalls,
        ..ModelOptions::default()
    })
}

/// Runs a body on the model and on the device, if nothing ends its loops: on one that does nothing hangs
/// by a stall.
pub(crate) fn on_recovering_benches(
    engines: u32,
    tdr: TdrPolicy,
    options: &DriverOptions,
    body: impl Fn(&Bench),
) {
    on_benches_with_spares(engines, tdr, (options, ends_loops), true, body);
}

/// The same of engines that know no stalls: behind one that does, kernels do not schedule themselves.
pub(crate) fn on_recovering_benches_without_stalls(
    engines: u32,
    tdr: TdrPolicy,
    body: impl Fn(&Bench),
) {
    let options = &DriverOptions::default();
    on_benches_with_spares(engines, tdr, (options, ends_loops), false, body);
}

/// Runs a body on the model and on any device, whose engines answer for themselves: nobody finds in a test's
/// time that one does not.
pub(crate) fn on_patient_benches(engines: u32, body: impl Fn(&Bench)) {
    let tdr = TdrPolicy {
        delay: Duration::from_secs(600),
        ..soon()
    };
    let options = &DriverOptions::default();
    on_benches_with_spares(engines, tdr, (options, |_| false), true, body);
}

fn on_benches_with_spares(
    engines: u32,
    tdr: TdrPolicy,
    (options, is_left_out): (&DriverOptions, fn(&AdapterInfo) -> bool),
    stalls: bool,
    body: impl Fn(&Bench),
) {
    let policy = NodePolicy::default();
    if model_is_asked_for() {
        let engines = (0..engines).map(|_| model(stalls)).collect();
        body(&over_models(engines, policy, stalls, options, tdr));
    }
    let (memory, _) = memory::asked_for();
    let Some((engines, info)) = tuned_devices(engines, None, memory, tuning(stalls)) else {
        return;
    };
    if is_left_out(&info) {
        println!("left out on the device, whose driver ends every loop");
        return;
    }
    println!("on the shader");
    body(&over_shaders((engines, info), policy, stalls, options, tdr));
}

fn over_models(
    engines: Vec<ModelEngine>,
    policy: NodePolicy,
    stalls: bool,
    options: &DriverOptions,
    tdr: TdrPolicy,
) -> Bench {
    let spares = SpareEngines::new(SparePolicy::OnSuspicion, move || {
        Ok(Box::new(model(stalls)))
    });
    let boxed = |engine| -> Box<dyn Engine> { Box::new(engine) };
    Bench::watched(
        engines.into_iter().map(boxed).collect(),
        None,
        policy,
        FenceMemory::System,
        options,
        (Some(spares), tdr),
    )
}

fn over_shaders(
    (engines, info): (Vec<Box<dyn Engine>>, AdapterInfo),
    policy: NodePolicy,
    stalls: bool,
    options: &DriverOptions,
    tdr: TdrPolicy,
) -> Bench {
    let (_, fences) = memory::asked_for();
    let providers = Arc::clone(engines[0].providers());
    let device = info.clone();
    let spares = SpareEngines::new(SparePolicy::OnSuspicion, move || {
        spare(&device, &providers, stalls).map_err(|error| format!("{error:#}"))
    });
    Bench::watched(
        engines,
        Some(info),
        policy,
        fences,
        options,
        (Some(spares), tdr),
    )
}

fn spare(
    info: &AdapterInfo,
    providers: &Arc<native_fence::shared::Providers>,
    stalls: bool,
) -> anyhow::Result<Box<dyn Engine>> {
    let validation = validation::asked_for_by_environment();
    let instance = Instance::new(InstanceOptions { validation })?;
    let queues = EngineUnit::Device.open_queues(&instance, info, 1, validation)?;
    let engine = ShaderEngine::new(Arc::clone(&queues[0]), tuning(stalls))?;
    Ok(Box::new(engine.with_providers(providers)))
}

/// lavapipe up to 22 ends every loop after some 65,000 passes.
fn ends_loops(info: &AdapterInfo) -> bool {
    info.driver_info.starts_with("Mesa 22")
}

/// Has a queue keep its engine for good.
pub(crate) fn hang(queue: &mut HwQueue) -> u64 {
    stall(queue, StallKind::HeedsNothing)
}

/// Has a queue keep its engine until somebody aborts its packet.
pub(crate) fn hang_until_aborted(queue: &mut HwQueue) -> u64 {
    stall(queue, StallKind::HeedsAbort)
}

/// Has a queue keep its engine by a packet of this kind.
pub(crate) fn stall(queue: &mut HwQueue, kind: StallKind) -> u64 {
    let list = &mut CommandList::new();
    queue.submit(list.stall(kind, FOR_EVER)).unwrap()
}

impl Bench {
    /// As [`Bench::on_model`], of an engine in whose place another comes when it is reset.
    pub(crate) fn recovering_on_model(
        policy: NodePolicy,
        tdr: TdrPolicy,
    ) -> (Self, Arc<ModelMemory>) {
        let engine = model(false);
        let memory = Arc::clone(engine.memory());
        let options = &DriverOptions::default();
        (
            over_models(vec![engine], policy, false, options, tdr),
            memory,
        )
    }

    /// The same on the device, if there is one.
    pub(crate) fn recovering_on_device(policy: NodePolicy, tdr: TdrPolicy) -> Option<Self> {
        let (memory, _) = memory::asked_for();
        let device = tuned_devices(1, None, memory, tuning(false))?;
        let options = &DriverOptions::default();
        Some(over_shaders(device, policy, false, options, tdr))
    }

    /// Waits until the first engine is in such a packet.
    pub(crate) fn until_stalled(&self) {
        let driver = self.parking_driver();
        until("the engine stalls", || {
            driver.node(0).unwrap().stalled_at().is_some()
        });
    }
}
