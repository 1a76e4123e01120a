//! Engine unit: what of Vulkan one engine is made of (`decisions.md` 16).
//!
//! The smaller the unit, the faster two engines hand over to each other; the larger, the less is
//! lost with one. lavapipe and SwiftShader have one queue a device and one thread pool an instance,
//! so there an engine that shall not stand in another's way is an instance of its own.

use crate::sync::Arc;
use crate::vulkan::BringUpError;
use crate::vulkan::{AdapterInfo, Device, DeviceOptions, Driver, Instance, InstanceOptions, Queue};

/// What one engine is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EngineUnit {
    /// A queue of a device that the engines of an adapter share; they are lost together.
    Queue,
    /// A device of its own, of an instance that the engines share.
    Device,
    /// An instance and a device of its own.
    Instance,
    /// A process of its own, which the OS can kill.
    Process,
}

/// Why an engine's queue could not be had.
#[derive(Debug, thiserror::Error)]
pub enum EngineUnitError {
    /// The device could not be opened.
    #[error(transparent)]
    BringUp(#[from] BringUpError),
    /// The device has no queue left.
    #[error("the device gives out no queue for the engine")]
    NoQueue,
    /// Engines in processes of their own are not offered.
    #[error("engines in processes of their own are not offered yet; choose the instance as unit")]
    Process,
}

impl EngineUnit {
    /// The unit for an adapter where none is asked for.
    #[must_use]
    pub fn default_for(adapter: &AdapterInfo) -> Self {
        match adapter.driver {
            Driver::Lavapipe | Driver::SwiftShader => Self::Instance,
            Driver::Other => Self::Queue,
        }
    }

    /// A queue for one engine: of a new device, and where the unit says so of a new instance.
    ///
    /// # Errors
    /// [`EngineUnitError`].
    pub fn open_queue(
        self,
        instance: &Arc<Instance>,
        adapter: &AdapterInfo,
        validation: bool,
    ) -> Result<Queue, EngineUnitError> {
        let instance = match self {
            Self::Queue | Self::Device => Arc::clone(instance),
            Self::Instance => Instance::new(InstanceOptions { validation })?,
            Self::Process => return Err(EngineUnitError::Process),
        };
        let device = Device::open(&instance, adapter, DeviceOptions { queues: 1 })?;
        device.queue(0).ok_or(EngineUnitError::NoQueue)
    }
}
