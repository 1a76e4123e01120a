//! Stage: on what programs are played: models, one made for each, or the shader on a device.

use crate::kernels::{self, HARMLESS};
use crate::neighbour;
use crate::node::{CaseNode, Shape};
use crate::packets::PART_BYTES;
use native_fence::MemoryOptions;
use native_fence::gpu::{
    EngineUnit, ShaderEngine, ShaderTuning, SharedQueue, with_host_stores_tried,
};
use native_fence::shared::Providers;
use native_fence::vulkan::{Instance, InstanceOptions, choose, memory_providers, validation};
use std::sync::Arc;

/// The process whose packets may be malformed.
pub(crate) const PROCESS: u64 = 1;
/// Lanes that an engine on a device has at most.
const DEVICE_LANES: u32 = 512;
/// Cases that one node of a device serves: its shaders take a while to make, and each node has a shape of its own.
const CASES: u32 = 128;

/// How a program is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As it says.
    AsSaid,
    /// All that queues can do is done before anything else happens, so nothing depends on who is quicker: each engine does the
    /// same.
    Settled,
}

/// See the file's head.
pub struct Stage(Option<OnDevice>);

struct OnDevice {
    queue: SharedQueue,
    providers: Arc<Providers>,
    /// What plays the next program.
    node: Option<CaseNode>,
}

impl Stage {
    /// Models.
    #[must_use]
    pub fn of_models() -> Self {
        Self(None)
    }

    /// The best device.
    ///
    /// # Errors
    /// There is none that runs the engine's shader.
    pub fn of_device() -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let validation = validation::asked_for_by_environment();
        let instance = Instance::new(InstanceOptions { validation })?;
        let adapters = instance.adapters();
        let info = choose(&adapters, None)?;
        let unit = EngineUnit::Device;
        let queues = unit.open_queues(&instance, info, 1, validation)?;
        let queue = Arc::clone(queues.first().ok_or("the device has no queue")?);
        let device = Arc::clone(queue.lock().map_err(|_| "a panic")?.device());
        let memory =
            memory_providers(&instance, &device, unit.sharers(), MemoryOptions::default())?;
        let providers = Arc::new(with_host_stores_tried(memory, &queue, false)?);
        // Where the shader is not taken there is no engine.
        ShaderEngine::new(Arc::clone(&queue), ShaderTuning::default())?;
        Ok(Self(Some(OnDevice {
            queue,
            providers,
            node: None,
        })))
    }

    /// Whether a program has a model of its own shape.
    pub(crate) fn is_of_models(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes of a part of a transfer, of a model with so many lanes; of a device at most, whose slices are not cut.
    pub(crate) fn part_bytes(&self, lanes: u32) -> u64 {
        let lanes = if self.is_of_models() {
            lanes
        } else {
            DEVICE_LANES
        };
        PART_BYTES * u64::from(lanes)
    }

    /// What plays a program of this shape.
    pub(crate) fn node(&mut self, shape: Shape, has_kernels: bool) -> CaseNode {
        let codes = kernels::codes();
        let own = codes.iter().map(|code| (PROCESS, code));
        let kernels = own.chain([(neighbour::PROCESS, &codes[HARMLESS])]);
        let Some(device) = &mut self.0 else {
            let node = CaseNode::of_model(shape);
            return if has_kernels {
                node.with_kernels(kernels)
            } else {
                node
            };
        };
        let mut node = device.node.take().unwrap_or_else(|| {
            let tuning = ShaderTuning {
                rounds: shape.rounds,
                ..ShaderTuning::default()
            };
            let engine = ShaderEngine::new(Arc::clone(&device.queue), tuning);
            let engine = engine.expect("it was taken before");
            let engine = engine.with_providers(&device.providers);
            CaseNode::of_device(engine, shape.slice_time).with_kernels(kernels)
        });
        node.begin(shape.observer);
        node
    }

    /// Takes it back, from which the case has let go.
    pub(crate) fn take_back(&mut self, mut node: CaseNode) {
        if let Some(device) = &mut self.0
            && node.end() <= CASES
        {
            device.node = Some(node);
        }
    }
}
