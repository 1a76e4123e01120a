//! Place: which Vulkan devices an adapter is opened on.
//!
//! Engines are made of new devices, by their unit, or of queues of a device that the program has. What they
//! are made of is the same in both cases: a queue each, and memory that works with them.

use crate::gpu::{EngineUnit, EngineUnitError, SharedQueue, with_host_stores_tried};
use crate::shared::Providers;
use crate::sync::{Arc, lock};
use crate::vulkan::{self, AdapterInfo, Instance};
use crate::{AdapterOptions, LocalProvider, OpenError};

/// Where an adapter is opened.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// On new devices.
    Anew(&'a Arc<Instance>, &'a AdapterInfo),
    /// On the program's.
    On(&'a Arc<vulkan::Device>),
}

impl<'a> Place<'a> {
    pub(crate) fn instance(self) -> &'a Arc<Instance> {
        match self {
            Self::Anew(instance, _) => instance,
            Self::On(device) => device.instance(),
        }
    }

    pub(crate) fn info(self) -> &'a AdapterInfo {
        match self {
            Self::Anew(_, info) => info,
            Self::On(device) => device.adapter(),
        }
    }

    /// What engines are made of.
    pub(crate) fn unit(self, options: &AdapterOptions) -> Result<EngineUnit, OpenError> {
        match self {
            Self::Anew(_, info) => Ok(options
                .unit
                .unwrap_or_else(|| EngineUnit::default_for(info))),
            Self::On(_) => match options.unit {
                None | Some(EngineUnit::Queue) => Ok(EngineUnit::Queue),
                Some(unit) => Err(OpenError::UnitOfProgram(unit)),
            },
        }
    }

    /// A queue for each engine.
    fn queues(self, options: &AdapterOptions) -> Result<Vec<SharedQueue>, OpenError> {
        let (nodes, injection) = (options.nodes.get(), options.injection.as_deref());
        Ok(match self {
            Self::Anew(instance, info) => self.unit(options)?.open_lossy_queues(
                instance,
                info,
                nodes,
                options.validation,
                injection,
            )?,
            Self::On(device) => EngineUnit::queues_of(device, nodes)?,
        })
    }

    /// A device of an adapter without engines.
    pub(crate) fn bare_device(self) -> Result<Arc<vulkan::Device>, OpenError> {
        Ok(match self {
            Self::Anew(instance, info) => {
                vulkan::Device::open(instance, info, vulkan::DeviceOptions::default())?
            }
            Self::On(device) => Arc::clone(device),
        })
    }
}

/// What engines of this process are made of.
pub(crate) struct Opened {
    pub(crate) queues: Vec<SharedQueue>,
    /// Of the first queue.
    pub(crate) device: Arc<vulkan::Device>,
    pub(crate) providers: Arc<Providers>,
}

impl Opened {
    /// A queue for each engine, and memory that works with them.
    pub(crate) fn at(place: Place<'_>, options: &AdapterOptions) -> Result<Self, OpenError> {
        let queues = place.queues(options)?;
        let first = queues.first().ok_or(EngineUnitError::NoQueue)?;
        let device = Arc::clone(lock(first).device());
        let sharers = place.unit(options)?.sharers();
        let instance = place.instance();
        let providers = vulkan::memory_providers(instance, &device, sharers, options.memory)?;
        Ok(Self {
            queues,
            device,
            providers: Arc::new(providers),
        })
    }

    /// The same for engines that are shaders, which while they run may see what the host stores in local memory alone:
    /// that is tried where there is such memory of the device's own.
    pub(crate) fn for_shaders(
        place: Place<'_>,
        options: &AdapterOptions,
    ) -> Result<Self, OpenError> {
        let opened = Self::at(place, options)?;
        let queue = opened.queues.first().ok_or(EngineUnitError::NoQueue)?;
        let providers = Providers::clone(&opened.providers);
        let is_forced = options.memory.local == LocalProvider::OneDevice;
        let providers = with_host_stores_tried(providers, queue, is_forced)
            .map_err(|error| OpenError::Engine(format!("{error:#}")))?;
        Ok(Self {
            providers: Arc::new(providers),
            ..opened
        })
    }
}
