//! Engine unit: what of Vulkan one engine is made of (`decisions.md` 16).
//!
//! The smaller the unit, the faster two engines hand over to each other; the larger, the less is
//! lost with one. lavapipe and SwiftShader have one queue a device and one thread pool an instance,
//! so there an engine that shall not stand in another's way is an instance of its own.

use super::Injection;
use crate::sync::{Arc, Mutex, cores};
use crate::vulkan::BringUpError;
use crate::vulkan::{
    AdapterInfo, Device, DeviceLoss, DeviceOptions, Driver, Instance, InstanceOptions, Queue,
    Sharers,
};

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
    /// The engine's queue is in another process.
    #[error(
        "an engine in a process of its own has its queue there; one that executes command buffers is of this \
         process: choose another unit"
    )]
    OtherProcess,
}

impl EngineUnit {
    /// All, the smallest first.
    pub const ALL: [Self; 4] = [Self::Queue, Self::Device, Self::Instance, Self::Process];

    /// Its name, for people and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Device => "device",
            Self::Instance => "instance",
            Self::Process => "process",
        }
    }

    /// The unit for an adapter where none is asked for: queues of one device where it has several,
    /// which a GPU runs together; else an instance each, the unit that `nfence doctor` finds fastest
    /// where a device has one queue (lavapipe: an instance has threads of its own).
    #[must_use]
    pub fn default_for(adapter: &AdapterInfo) -> Self {
        if adapter.most_compute_queues() > 1 {
            Self::Queue
        } else {
            Self::Instance
        }
    }

    /// Who shares memory with the host, where engines are of this.
    #[must_use]
    pub fn sharers(self) -> Sharers {
        match self {
            Self::Queue => Sharers::OneDevice,
            Self::Device | Self::Instance | Self::Process => Sharers::Several,
        }
    }

    /// How many of `engines` engines run at the same time: a CPU device has its cores for them, a
    /// GPU runs queues of one device together, and takes turns between devices.
    pub(crate) fn room(self, adapter: &AdapterInfo, engines: u32) -> u32 {
        let cores = u32::try_from(cores()).unwrap_or(u32::MAX);
        let queues = adapter.most_compute_queues();
        match (adapter.driver, self) {
            (Driver::Lavapipe | Driver::SwiftShader, Self::Queue) => cores.min(queues),
            (Driver::Lavapipe | Driver::SwiftShader, _) => cores,
            (Driver::Other, Self::Queue) => engines.min(queues),
            (Driver::Other, Self::Device | Self::Instance | Self::Process) => 1,
        }
    }

    /// A queue for each of `engines` engines, of new devices, and where the unit says so of new
    /// instances. Engines that shall have queues of one device share those that it has where they
    /// are fewer: then their slices take turns.
    ///
    /// # Errors
    /// [`EngineUnitError`].
    pub fn open_queues(
        self,
        instance: &Arc<Instance>,
        adapter: &AdapterInfo,
        engines: u32,
        validation: bool,
    ) -> Result<Vec<SharedQueue>, EngineUnitError> {
        self.open_lossy_queues(instance, adapter, engines, validation, None)
    }

    /// The same, of devices that are lost as an injection says.
    ///
    /// # Errors
    /// [`EngineUnitError`].
    pub fn open_lossy_queues(
        self,
        instance: &Arc<Instance>,
        adapter: &AdapterInfo,
        engines: u32,
        validation: bool,
        injection: Option<&Injection>,
    ) -> Result<Vec<SharedQueue>, EngineUnitError> {
        let loss = |node| injection.map(|injection| injection.device_loss(node));
        let own = |instance: &Arc<Instance>, node| Self::open_own(instance, adapter, loss(node));
        let connect = instance.maker();
        match self {
            Self::Queue => {
                let queues = open(instance, adapter, engines, loss(0))?;
                Ok(dealt(&queues, engines))
            }
            Self::Device => (0..engines).map(|node| own(instance, node)).collect(),
            Self::Instance => (0..engines)
                .map(|node| own(&connect(InstanceOptions { validation })?, node))
                .collect(),
            Self::Process => Err(EngineUnitError::OtherProcess),
        }
    }

    /// A queue for each of `engines` engines, of a device that is open: those that are not given out,
    /// shared where they are fewer.
    ///
    /// # Errors
    /// None is left.
    pub fn queues_of(
        device: &Arc<Device>,
        engines: u32,
    ) -> Result<Vec<SharedQueue>, EngineUnitError> {
        Ok(dealt(&all_of(device)?, engines))
    }

    /// The queue of a device of its own, which is lost as is said.
    ///
    /// # Errors
    /// [`EngineUnitError`].
    pub fn open_own(
        instance: &Arc<Instance>,
        adapter: &AdapterInfo,
        loss: Option<Arc<DeviceLoss>>,
    ) -> Result<SharedQueue, EngineUnitError> {
        let queues = open(instance, adapter, 1, loss)?;
        queues.into_iter().next().ok_or(EngineUnitError::NoQueue)
    }
}

/// A queue on which one engine, or several by turns, submit.
pub type SharedQueue = Arc<Mutex<Queue>>;

/// At most as many queues of a new device as are wanted, at least one.
fn open(
    instance: &Arc<Instance>,
    adapter: &AdapterInfo,
    wanted: u32,
    loss: Option<Arc<DeviceLoss>>,
) -> Result<Vec<SharedQueue>, EngineUnitError> {
    let options = DeviceOptions {
        queues: wanted,
        loss,
    };
    all_of(&Device::open(instance, adapter, options)?)
}

/// The same queues in turn for each of several engines.
fn dealt(queues: &[SharedQueue], engines: u32) -> Vec<SharedQueue> {
    let shared = queues.iter().cycle().take(engines as usize);
    shared.map(Arc::clone).collect()
}

/// The queues of a device that are not given out.
fn all_of(device: &Arc<Device>) -> Result<Vec<SharedQueue>, EngineUnitError> {
    let queues = (0..device.queue_count()).filter_map(|index| device.queue(index));
    let queues: Vec<_> = queues.map(|queue| Arc::new(Mutex::new(queue))).collect();
    if queues.is_empty() {
        return Err(EngineUnitError::NoQueue);
    }
    Ok(queues)
}
