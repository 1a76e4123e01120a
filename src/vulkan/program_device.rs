//! Program device: a device that the program made for itself, handed over with queues of it.
//!
//! Everything of this room then runs on it beside what the program does there. It stays the program's: nothing
//! here destroys it or waits until it is idle, and its queues are used in turns ([`QueueLock`]). What was turned on
//! when it was made cannot be asked of Vulkan, but for extensions with functions; the program says it.

use std::any::Any;
use std::collections::HashSet;
use std::ffi::CStr;
use std::sync::{Arc, Mutex};

use ash::{ext, khr, vk};
use thiserror::Error;

use super::device::{Device, Owner, Parts};
use super::opening::{find, needs};
use super::{
    AdapterInfo, BringUpError, DeviceLoss, DeviceNeeds, Features, Gap, Instance, QueueLock, gaps,
};

/// A queue that the program hands over, for good or to be used in turns.
#[derive(Clone)]
pub struct ProgramQueue {
    /// The queue, made without flags.
    pub raw: vk::Queue,
    /// Its family.
    pub family: u32,
    /// Held for each submission.
    ///
    /// Work of a queue is begun in the order in which it was submitted. So what the program submits to a queue
    /// in turns must not wait for what an engine on that queue is still to signal: the engine would stand behind
    /// it. On another queue it may.
    pub lock: Arc<dyn QueueLock>,
}

impl ProgramQueue {
    /// A queue that the program does not use any more while it is handed over.
    #[must_use]
    pub fn handed_over(raw: vk::Queue, family: u32) -> Self {
        let lock = Arc::new(Mutex::new(()));
        Self { raw, family, lock }
    }

    /// A queue that the program goes on using while it holds `lock`.
    #[must_use]
    pub fn in_turns(raw: vk::Queue, family: u32, lock: Arc<dyn QueueLock>) -> Self {
        Self { raw, family, lock }
    }
}

/// A device of the program's.
#[derive(Clone)]
pub struct ProgramDevice {
    /// What it was made of, of the instance that it is handed over with.
    pub physical: vk::PhysicalDevice,
    /// The device.
    pub raw: ash::Device,
    /// What was turned on when it was made: [`Instance::device_needs`] says what should be.
    pub turned_on: DeviceNeeds,
    /// Queues for engines, of one family. None where engines are elsewhere, and the device is for
    /// timelines alone.
    pub queues: Vec<ProgramQueue>,
    /// Dropped when nothing of this library uses the device any more, on whichever thread that is. With it a
    /// program may destroy the device, or learn that it can: threads that sleep in Vulkan and engines that were
    /// given up keep it longer than what they were made of.
    pub kept: Arc<dyn Any + Send + Sync>,
    /// When calls of this library on it say that it is lost; for fault injection.
    pub loss: Option<Arc<DeviceLoss>>,
}

/// Why a program's device is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeviceImportError {
    /// Its adapter is too old, or is not read.
    #[error(transparent)]
    BringUp(#[from] BringUpError),
    /// The physical device is of another instance.
    #[error("the device was made of another instance than the one it is handed over with")]
    OtherInstance,
    /// Queues of several families: a command buffer is recorded for one.
    #[error("the queues are of several families: hand over queues of one")]
    SeveralFamilies,
    /// The same queue twice.
    #[error("a queue is handed over twice")]
    QueueTwice,
    /// A queue that runs no compute shaders.
    #[error("queues of family {0} run no compute shaders: hand over others")]
    NoComputeFamily(
        /// The family.
        u32,
    ),
    /// The adapter offers it, native fences need it, and the device was made without it.
    #[error(
        "the device was made without what its adapter offers and native fences need ({}): turn on what \
         Instance::device_needs lists", ids(.0)
    )]
    NotTurnedOn(Vec<Gap>),
    /// `maintenance4`, by which the shaders' workgroups have the sizes that they are given.
    #[error(
        "the device was made without maintenance4, which its adapter offers and the shaders use: turn on \
         what Instance::device_needs lists"
    )]
    NoMaintenance4,
    /// It was said to be turned on, and its functions are not there.
    #[error("the device was made without {0:?}, which was said to be turned on")]
    NoFunctions(&'static CStr),
}

fn ids(gaps: &[Gap]) -> String {
    let ids: Vec<_> = gaps.iter().map(|gap| gap.id).collect();
    ids.join(", ")
}

/// Extensions that have functions, and one of these.
const FUNCTIONS: [(&CStr, &CStr); 3] = [
    (
        ext::external_memory_host::NAME,
        c"vkGetMemoryHostPointerPropertiesEXT",
    ),
    (khr::external_memory_fd::NAME, c"vkGetMemoryFdKHR"),
    (
        ext::calibrated_timestamps::NAME,
        c"vkGetCalibratedTimestampsEXT",
    ),
];

impl Instance {
    /// What a program turns on when it makes a device that is to be handed over.
    ///
    /// # Errors
    /// The physical device is of another instance.
    pub fn device_needs(
        &self,
        physical: vk::PhysicalDevice,
    ) -> Result<DeviceNeeds, DeviceImportError> {
        let adapter = self.offered(physical)?;
        let needs = needs(self, physical, &adapter.features);
        Ok(needs.map_err(BringUpError::from)?)
    }

    /// The adapter that a physical device of this instance is.
    fn offered(&self, physical: vk::PhysicalDevice) -> Result<AdapterInfo, DeviceImportError> {
        if !self.physical_devices().contains(&physical) {
            return Err(DeviceImportError::OtherInstance);
        }
        let adapter = AdapterInfo::read(self, physical);
        adapter.must_be_answered()?;
        if adapter.has_vulkan_1_2() {
            return Ok(adapter);
        }
        let (major, minor, _) = adapter.api_version;
        let name = adapter.name;
        Err(BringUpError::OldDevice { name, major, minor }.into())
    }
}

impl Device {
    /// Takes a device that the program made for itself.
    ///
    /// It stays the program's, and what it lacks only because nobody turned it on is told by name.
    ///
    /// # Errors
    /// [`DeviceImportError`].
    ///
    /// # Safety
    /// The device was made of `physical` of the instance, with what `turned_on` says, and its queues without
    /// flags. It and its queues stay valid until `kept` is dropped. While a queue's lock runs what it is given no
    /// other thread uses the queue, and where the program calls `vkDeviceWaitIdle` it holds the locks of all of
    /// them. Nothing else is externally synchronised with the program: objects that are made here stay here.
    pub unsafe fn import(
        instance: &Arc<Instance>,
        program: ProgramDevice,
    ) -> Result<Arc<Self>, DeviceImportError> {
        let ProgramDevice {
            physical,
            raw,
            turned_on,
            queues,
            kept,
            loss,
        } = program;
        let offered = instance.offered(physical)?;
        let mut adapter = AdapterInfo {
            features: turned_on.turned_on(&offered.features),
            ..offered.clone()
        };
        check_turned_on(&offered, &adapter)?;
        check_functions(instance, &raw, &turned_on)?;
        let family = family_of(&queues, &offered.features)?;
        if let Some(family) = family {
            let families = &mut adapter.features.compute_families;
            families.retain(|one| one.index == family);
            for one in families {
                one.queues = u32::try_from(queues.len()).unwrap_or(u32::MAX);
            }
        }
        let raw = match &loss {
            Some(loss) => loss.replace_functions_of_imported(&raw, queues.iter().map(|q| q.raw)),
            None => raw,
        };
        Ok(Self::of_parts(Parts {
            instance: Arc::clone(instance),
            physical,
            adapter,
            raw,
            family: family.unwrap_or(0),
            queues: queues.len(),
            owner: Owner::Program {
                queues,
                _kept: kept,
            },
            loss,
        })?)
    }

    /// Takes a device of this library's as a program's, with its first queue: what a program does that is no code of C's, for
    /// who may not promise anything.
    ///
    /// # Errors
    /// As [`Device::import`].
    ///
    /// # Panics
    /// Somebody has its first queue.
    pub(crate) fn hand_over(self: &Arc<Self>) -> Result<Arc<Self>, DeviceImportError> {
        let (physical, adapter) = find(self.instance(), self.adapter())?;
        adapter.must_be_answered()?;
        let turned_on = self.instance().device_needs(physical)?;
        let taken = self.queue(0).expect("nobody has the first queue");
        // SAFETY: the device has this queue of this family, without flags.
        let raw = unsafe { self.raw().get_device_queue(self.family(), 0) };
        let program = ProgramDevice {
            physical,
            raw: self.raw().clone(),
            turned_on,
            queues: vec![ProgramQueue::handed_over(raw, self.family())],
            // The queue before the device that it is of; as long as it is kept nobody else has it.
            kept: Arc::new((Mutex::new(taken), Arc::clone(self))),
            loss: None,
        };
        // SAFETY: the device was made of that physical one of that instance, with all that is needed turned on; it and the
        // queue, which nobody else uses, are kept.
        unsafe { Self::import(self.instance(), program) }
    }
}

/// Whether nothing was left out that the adapter offers and native fences need.
fn check_turned_on(offered: &AdapterInfo, on: &AdapterInfo) -> Result<(), DeviceImportError> {
    let without = gaps(offered);
    let mut left_out = gaps(on);
    left_out.retain(|gap| !without.contains(gap));
    if !left_out.is_empty() {
        return Err(DeviceImportError::NotTurnedOn(left_out));
    }
    if offered.features.maintenance4 && !on.features.maintenance4 {
        return Err(DeviceImportError::NoMaintenance4);
    }
    Ok(())
}

/// A driver has no function of an extension that is not on.
fn check_functions(
    instance: &Instance,
    raw: &ash::Device,
    turned_on: &DeviceNeeds,
) -> Result<(), DeviceImportError> {
    for (extension, function) in FUNCTIONS {
        if !turned_on.extensions.contains(&extension) {
            continue;
        }
        // SAFETY: the device is alive, and the name ends with a NUL.
        let found = unsafe {
            let get = instance.raw().fp_v1_0().get_device_proc_addr;
            get(raw.handle(), function.as_ptr())
        };
        if found.is_none() {
            return Err(DeviceImportError::NoFunctions(extension));
        }
    }
    Ok(())
}

/// The one family of the queues, where there is any.
fn family_of(
    queues: &[ProgramQueue],
    offered: &Features,
) -> Result<Option<u32>, DeviceImportError> {
    let Some(family) = queues.first().map(|queue| queue.family) else {
        return Ok(None);
    };
    if queues.iter().any(|queue| queue.family != family) {
        return Err(DeviceImportError::SeveralFamilies);
    }
    let mut seen = HashSet::new();
    if !queues.iter().all(|queue| seen.insert(queue.raw)) {
        return Err(DeviceImportError::QueueTwice);
    }
    let mut computing = offered.compute_families.iter();
    if !computing.any(|one| one.index == family) {
        return Err(DeviceImportError::NoComputeFamily(family));
    }
    Ok(Some(family))
}
