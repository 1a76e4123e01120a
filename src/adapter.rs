//! Adapter: a Vulkan device whose engines execute hardware queues.
//!
//! The one place that puts the rooms together: a device of `vulkan`, an engine and a node of `gpu`,
//! the driver of `kmd`, the operating system of `os`, and what the user side starts from.

use crate::gpu::{
    Crowd, Engine, EngineUnit, EngineUnitError, Node, NodeCounters, NodePolicy, ShaderEngine,
    ShaderTuning,
};
use crate::kmd::{Ddi, Driver};
use crate::os;
use crate::sync::Arc;
use crate::umd::Device;
use crate::vulkan::{self, AdapterInfo, Instance, InstanceOptions};
use std::num::NonZeroU32;

/// Why no adapter came up.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No loader, no driver, or the device could not be opened.
    #[error(transparent)]
    BringUp(#[from] vulkan::BringUpError),
    /// No device of that name.
    #[error(transparent)]
    Choice(#[from] vulkan::ChoiceError),
    /// The device lacks something that native fences need.
    #[error("{device} has no native fences: {missing}")]
    NoNativeFences {
        /// Name of the device.
        device: String,
        /// What it lacks, a sentence each.
        missing: String,
    },
    /// The engine's queue could not be had.
    #[error(transparent)]
    Unit(#[from] EngineUnitError),
    /// The engine could not be made.
    #[error("the engine could not be made: {0}")]
    Engine(String),
}

/// How an adapter is opened.
#[derive(Clone, Debug)]
pub struct AdapterOptions {
    /// Part of the name of the wanted device; the best one where `None`.
    pub device: Option<String>,
    /// Khronos validation layers, core and synchronization.
    pub validation: bool,
    /// Engines, each a node of the adapter.
    pub nodes: NonZeroU32,
    /// What an engine is made of; the default for the device where `None`.
    pub unit: Option<EngineUnit>,
    /// How the engines' slices end.
    pub policy: NodePolicy,
    /// How the engines' shader is specialised.
    pub tuning: ShaderTuning,
}

impl Default for AdapterOptions {
    fn default() -> Self {
        Self {
            device: None,
            validation: false,
            nodes: NonZeroU32::MIN,
            unit: None,
            policy: NodePolicy::default(),
            tuning: ShaderTuning::default(),
        }
    }
}

/// An adapter that came up.
#[derive(Clone, Debug)]
pub struct Adapter {
    os: Arc<os::Adapter>,
    info: Option<AdapterInfo>,
}

impl Adapter {
    /// Opens the best device there is: a GPU before lavapipe before `SwiftShader`.
    ///
    /// # Errors
    /// [`OpenError`], each with what to do.
    pub fn open_best() -> Result<Self, OpenError> {
        Self::open(&AdapterOptions::default())
    }

    /// Opens a device.
    ///
    /// # Errors
    /// [`OpenError`], each with what to do.
    pub fn open(options: &AdapterOptions) -> Result<Self, OpenError> {
        let instance = Instance::new(InstanceOptions {
            validation: options.validation,
        })?;
        let adapters = instance.adapters();
        let info = vulkan::choose(&adapters, options.device.as_deref())?;
        Self::open_on(&instance, info, options)
    }

    /// Opens a device of an instance, with an engine for each node.
    ///
    /// # Errors
    /// [`OpenError`], each with what to do.
    pub fn open_on(
        instance: &Arc<Instance>,
        info: &AdapterInfo,
        options: &AdapterOptions,
    ) -> Result<Self, OpenError> {
        let missing: Vec<String> = vulkan::gaps(info)
            .into_iter()
            .map(|gap| gap.sentence.to_string())
            .collect();
        if !missing.is_empty() {
            return Err(OpenError::NoNativeFences {
                device: info.name.clone(),
                missing: missing.join(" "),
            });
        }
        let unit = options
            .unit
            .unwrap_or_else(|| EngineUnit::default_for(info));
        let queues = unit.open_queues(instance, info, options.nodes.get(), options.validation)?;
        let engines = queues
            .into_iter()
            .map(|queue| -> Result<Box<dyn Engine>, OpenError> {
                let engine = ShaderEngine::new(queue, options.tuning)
                    .map_err(|error| OpenError::Engine(format!("{error:#}")))?;
                Ok(Box::new(engine))
            })
            .collect::<Result<_, _>>()?;
        let room = unit.room(info, options.nodes.get());
        let adapter = Self::with_crowd(engines, options.policy, Crowd::new(room))?;
        Ok(Self {
            info: Some(info.clone()),
            ..adapter
        })
    }

    /// An adapter over any engines, models among them, each a node.
    ///
    /// # Errors
    /// When an engine's blocks cannot be had.
    pub fn with_engines(
        engines: Vec<Box<dyn Engine>>,
        policy: NodePolicy,
    ) -> Result<Self, OpenError> {
        Self::with_crowd(engines, policy, Crowd::on_cores())
    }

    fn with_crowd(
        engines: Vec<Box<dyn Engine>>,
        policy: NodePolicy,
        crowd: Crowd,
    ) -> Result<Self, OpenError> {
        let crowd = Arc::new(crowd);
        let nodes = engines.into_iter().zip(0..).map(|(engine, ordinal)| {
            Node::new(ordinal, engine, policy, Arc::clone(&crowd))
                .map_err(|error| OpenError::Engine(error.to_string()))
        });
        Ok(Self::with_driver(Driver::new(
            nodes.collect::<Result<_, _>>()?,
        )))
    }

    /// An adapter over any driver: how a conformance suite puts another implementation, or a
    /// spying one, under the OS.
    #[must_use]
    pub fn with_driver(driver: Arc<dyn Ddi>) -> Self {
        Self {
            os: os::Adapter::start(driver),
            info: None,
        }
    }

    /// The Vulkan device, if there is one under it.
    #[must_use]
    pub fn info(&self) -> Option<&AdapterInfo> {
        self.info.as_ref()
    }

    /// The OS's adapter: caps, counters, the driver.
    #[must_use]
    pub fn os(&self) -> &Arc<os::Adapter> {
        &self.os
    }

    /// Counters of all engines together; [`Ddi::node_counters`] has those of each.
    #[must_use]
    pub fn node_counters(&self) -> NodeCounters {
        let ddi = self.os.ddi();
        let counters = (0..ddi.node_count()).filter_map(|node| ddi.node_counters(node));
        counters.fold(NodeCounters::default(), NodeCounters::plus)
    }

    /// Opens the adapter for a process: a device, with handles of its own.
    #[must_use]
    pub fn create_device(&self) -> Device {
        Device::open(&self.os)
    }
}
