//! Device: an adapter, opened.
//!
//! Opening turns on what the adapter has of the features that this program uses, and fixes how many
//! queues there are. Everything else in this room is made on a device and keeps it alive; the device
//! keeps its instance alive. Losing a device loses all that was made on it, and nothing else.
//!
//! A device that a program made for itself is taken as it is (`program_device`), and is left so.

use std::any::Any;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

use ash::{ext, khr, vk};
use gpu_allocator::vulkan::Allocator;

use super::idle_waits::IdleWaits;
use super::opening::{allocator, create, family, find};
use super::refusal::{DeviceFailure, again_with_memory};
use super::{AdapterInfo, BringUpError, DeviceLoss, InVulkan, Instance, ProgramQueue, Queue};
use crate::sync::{AtomicBool, Ordering};

/// How to open a [`Device`].
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// How many queues are wanted; there may be fewer, see [`Device::queue_count`].
    pub queues: u32,
    /// When its functions say that it is lost; for fault injection.
    pub loss: Option<Arc<DeviceLoss>>,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self {
            queues: 1,
            loss: None,
        }
    }
}

/// Who destroys a device, and where its queues are from.
pub(super) enum Owner {
    /// This library.
    Library,
    /// The program.
    Program {
        /// Handed over.
        queues: Vec<ProgramQueue>,
        /// Dropped when nothing here uses the device.
        _kept: Arc<dyn Any + Send + Sync>,
    },
}

/// What a device is put together of.
pub(super) struct Parts {
    pub(super) instance: Arc<Instance>,
    pub(super) physical: vk::PhysicalDevice,
    pub(super) adapter: AdapterInfo,
    pub(super) raw: ash::Device,
    pub(super) family: u32,
    pub(super) queues: usize,
    pub(super) owner: Owner,
    /// When its functions say that it is lost.
    pub(super) loss: Option<Arc<DeviceLoss>>,
}

/// An opened adapter.
pub struct Device {
    raw: ash::Device,
    // Dropped by hand: it frees memory of the device, so it goes before it.
    allocator: ManuallyDrop<Mutex<Allocator>>,
    host_memory: Option<ext::external_memory_host::Device>,
    external_memory_fd: Option<khr::external_memory_fd::Device>,
    calibration: Option<ext::calibrated_timestamps::Device>,
    memory: vk::PhysicalDeviceMemoryProperties,
    adapter: AdapterInfo,
    family: u32,
    /// One entry a queue: whether it is given out.
    given_out: Mutex<Vec<bool>>,
    idle_waits: Arc<IdleWaits>,
    /// The last one.
    failure: Mutex<Option<DeviceFailure>>,
    /// Until the process ends.
    is_kept: AtomicBool,
    // Before the instance: what is kept may destroy the device.
    owner: Owner,
    instance: Arc<Instance>,
}

impl Device {
    /// Opens the adapter that `adapter` describes, whichever instance the description came from.
    ///
    /// # Errors
    /// The adapter is not among this instance's, is too old, runs no compute shaders, or its driver
    /// refuses.
    pub fn open(
        instance: &Arc<Instance>,
        adapter: &AdapterInfo,
        options: DeviceOptions,
    ) -> Result<Arc<Self>, BringUpError> {
        let DeviceOptions { queues, loss } = options;
        let (physical, adapter) = find(instance, adapter)?;
        adapter.must_be_answered()?;
        let (major, minor, _) = adapter.api_version;
        if !adapter.has_vulkan_1_2() {
            return Err(BringUpError::OldDevice {
                name: adapter.name,
                major,
                minor,
            });
        }
        let Some(family) = family(&adapter.features.compute_families, queues) else {
            return Err(BringUpError::NoComputeQueue { name: adapter.name });
        };
        let queues = queues.clamp(1, family.queues);
        let of_family = (family.index, queues);
        let raw = create(
            instance,
            physical,
            &adapter.features,
            of_family,
            &[],
            loss.as_ref(),
        )?;
        Self::of_parts(Parts {
            instance: Arc::clone(instance),
            physical,
            adapter,
            raw,
            family: family.index,
            queues: queues as usize,
            owner: Owner::Library,
            loss,
        })
    }

    /// Puts a device together of what Vulkan made.
    pub(super) fn of_parts(parts: Parts) -> Result<Arc<Self>, BringUpError> {
        let Parts {
            instance,
            physical,
            adapter,
            raw,
            family,
            queues,
            owner,
            loss,
        } = parts;
        let idle_waits = Arc::<IdleWaits>::default();
        if let Some(loss) = loss {
            loss.is_told_to(&idle_waits);
        }
        let features = &adapter.features;
        let allocator = match allocator(&instance, &raw, physical, features) {
            Ok(allocator) => ManuallyDrop::new(Mutex::new(allocator)),
            Err(error) => {
                DeviceLoss::forget(&raw);
                if let Owner::Library = owner {
                    // SAFETY: nothing was made on it yet.
                    unsafe { raw.destroy_device(None) };
                }
                return Err(error);
            }
        };
        let host_memory = features
            .host_import
            .then(|| ext::external_memory_host::Device::new(instance.raw(), &raw));
        let external_memory_fd = features
            .external_memory_fd
            .then(|| khr::external_memory_fd::Device::new(instance.raw(), &raw));
        let calibration = features
            .calibrated_monotonic
            .then(|| ext::calibrated_timestamps::Device::new(instance.raw(), &raw));
        // SAFETY: the adapter is of this instance.
        let memory = unsafe {
            instance
                .raw()
                .get_physical_device_memory_properties(physical)
        };
        Ok(Arc::new(Self {
            raw,
            allocator,
            host_memory,
            external_memory_fd,
            calibration,
            memory,
            adapter,
            family,
            given_out: Mutex::new(vec![false; queues]),
            idle_waits,
            failure: Mutex::new(None),
            is_kept: AtomicBool::new(false),
            owner,
            instance,
        }))
    }

    /// What this device is.
    #[must_use]
    pub fn adapter(&self) -> &AdapterInfo {
        &self.adapter
    }

    /// The instance that it belongs to.
    #[must_use]
    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    /// Whether it is the program's ([`Device::import`]).
    #[must_use]
    pub fn is_programs(&self) -> bool {
        matches!(self.owner, Owner::Program { .. })
    }

    /// How many queues it was opened with: as many as asked for, or as its best family has; or as many as the
    /// program handed over.
    #[must_use]
    pub fn queue_count(&self) -> u32 {
        u32::try_from(self.given_out().len()).unwrap_or(u32::MAX)
    }

    /// Queue number `index`, while nobody else has it; dropping it gives it back.
    #[must_use]
    pub fn queue(self: &Arc<Self>, index: u32) -> Option<Queue> {
        {
            let mut given_out = self.given_out();
            let taken = given_out.get_mut(index as usize)?;
            if std::mem::replace(taken, true) {
                return None;
            }
        }
        let (raw, lock) = match &self.owner {
            Owner::Library => {
                // SAFETY: the device was opened with this many queues of this family, without flags.
                let raw = unsafe { self.raw.get_device_queue(self.family, index) };
                (raw, None)
            }
            Owner::Program { queues, .. } => {
                let queue = &queues[index as usize];
                (queue.raw, Some(Arc::clone(&queue.lock)))
            }
        };
        Some(Queue::new(Arc::clone(self), raw, lock, index))
    }

    pub(super) fn give_back(&self, index: u32) {
        if let Some(taken) = self.given_out().get_mut(index as usize) {
            *taken = false;
        }
    }

    pub(super) fn raw(&self) -> &ash::Device {
        &self.raw
    }

    pub(super) fn allocator(&self) -> &Mutex<Allocator> {
        &self.allocator
    }

    pub(super) fn host_memory(&self) -> Option<&ext::external_memory_host::Device> {
        self.host_memory.as_ref()
    }

    pub(super) fn external_memory_fd(&self) -> Option<&khr::external_memory_fd::Device> {
        self.external_memory_fd.as_ref()
    }

    pub(super) fn calibration(&self) -> Option<&ext::calibrated_timestamps::Device> {
        self.calibration.as_ref()
    }

    pub(super) fn memory_types(&self) -> &[vk::MemoryType] {
        self.memory.memory_types_as_slice()
    }

    pub(super) fn family(&self) -> u32 {
        self.family
    }

    /// Threads that have waited for so long for what was not submitted that they sleep apart from the driver
    /// ([`Timeline::wait_for_submission`](super::Timeline::wait_for_submission)).
    #[must_use]
    pub fn idle_waiters(&self) -> u64 {
        self.idle_waits.sleepers()
    }

    pub(super) fn idle_waits(&self) -> &IdleWaits {
        &self.idle_waits
    }

    /// What a wait, a signal or a submission on it was last told instead of being done; once it was called lost, that.
    #[must_use]
    pub fn failure(&self) -> Option<DeviceFailure> {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call has failed. Who sleeps apart from the driver hears of it, but where memory was wanting: what he sleeps for may
    /// come then.
    pub(super) fn failed(&self, call: &'static str, code: vk::Result) -> DeviceFailure {
        let failure = DeviceFailure::of(call, code);
        let mut last = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        // A loss is for good, and what comes after it has that cause.
        if !last.is_some_and(|last| last.is_loss()) {
            *last = Some(failure);
        }
        drop(last);
        if !failure.is_want() {
            self.idle_waits.note_loss();
        }
        failure
    }

    /// Nobody can tell whether it is done with what it was given: it, and all that was made on it, is there until the process
    /// ends. Nothing that it may use is freed from now on, which those look at that free (`is_kept`), memory of the host that
    /// it imported among it; its handles stay, so that none comes again; and the instance stays, with the driver's library.
    ///
    /// It may be at work when the process ends, as one that was given up: then nothing that is run at the end may take apart
    /// what it uses (`at_exit`).
    pub(super) fn keep_for_good(self: &Arc<Self>, failure: DeviceFailure) {
        if !self.is_kept.swap(true, Ordering::AcqRel) {
            std::mem::forget(Arc::clone(self));
            std::mem::forget(InVulkan::begin());
            eprintln!(
                "native-fence: {failure}: whether it is done is not known, and all that it may use is kept until the \
                 process ends"
            );
        }
    }

    /// Whether nothing of it is freed any more.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Acquire)
    }

    fn given_out(&self) -> std::sync::MutexGuard<'_, Vec<bool>> {
        self.given_out
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Owner::Library = self.owner {
            // Each queue waited for its work when it was dropped, or has kept the device from coming here; this is for
            // what a driver does itself, and an answer other than that it is done changes nothing: nothing of ours is left.
            // SAFETY: queues hold an Arc of this, so none is in use by another thread.
            let wait = || unsafe { self.raw.device_wait_idle() };
            let _ended = again_with_memory(wait);
        }
        // SAFETY: this is the only place that drops it, and nothing uses it afterwards; buffers hold
        // an Arc of this, so all of its memory was freed.
        unsafe { ManuallyDrop::drop(&mut self.allocator) };
        DeviceLoss::forget(&self.raw);
        if let Owner::Library = self.owner {
            // SAFETY: all that is made on a device holds an Arc of it, so nothing is left.
            unsafe { self.raw.destroy_device(None) };
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("name", &self.adapter.name)
            .finish_non_exhaustive()
    }
}
