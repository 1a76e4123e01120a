//! Object: what a handle can name.

use super::async_waits::AsyncWaits;
use super::refusal::Refusal;
use crate::os::{self, FenceObject, SyncObject};
use crate::sync::{Arc, Mutex};
use crate::{Adapter, umd};

/// An adapter that was opened. One whose device has no native fences says so in its caps, and refuses
/// them (FQ-04).
#[derive(Debug)]
pub(super) struct OpenedAdapter {
    pub(super) adapter: Adapter,
}

/// A device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) device: umd::Device,
    /// Those that have an event.
    pub(super) waits: AsyncWaits,
}

/// A native fence or a monitored one, as one device has it.
#[derive(Debug)]
pub(super) struct Fence {
    pub(super) device: Arc<Device>,
    pub(super) object: Arc<SyncObject>,
    /// It carries the progress of a queue and goes with it.
    pub(super) is_progress: bool,
}

/// A hardware context: where queues are made.
#[derive(Debug)]
pub(super) struct HwContext {
    pub(super) device: Arc<Device>,
    pub(super) context: umd::HwContext,
}

/// A hardware queue.
#[derive(Debug)]
pub(super) struct HwQueue {
    pub(super) queue: Arc<os::HwQueue>,
}

/// A hardware queue of kernel-mode submission.
#[derive(Debug)]
pub(super) struct KernelQueue {
    pub(super) device: Arc<Device>,
    pub(super) queue: os::KernelQueue,
}

/// A hardware queue of either kind, for who does the same to both.
#[derive(Debug)]
pub(super) struct AnyHwQueue;

/// The doorbell of a queue.
#[derive(Debug)]
pub(super) struct Doorbell {
    pub(super) queue: Arc<HwQueue>,
    /// Taken by who uses it, and by its end: see [`Doorbell::while_it_is`].
    pub(super) is_destroyed: Mutex<bool>,
}

/// What a handle names.
#[derive(Debug)]
pub(super) enum Object {
    Adapter(Arc<OpenedAdapter>),
    Device(Arc<Device>),
    Fence(Arc<Fence>),
    HwContext(Arc<HwContext>),
    HwQueue(Arc<HwQueue>),
    KernelQueue(Arc<KernelQueue>),
    Doorbell(Arc<Doorbell>),
}

impl Fence {
    /// The native fence that it is.
    ///
    /// # Errors
    /// What is refused to monitored fences.
    pub(super) fn native(
        &self,
        refused: impl Fn() -> Refusal,
    ) -> Result<&Arc<FenceObject>, Refusal> {
        match self.object.as_ref() {
            SyncObject::Native(object) => Ok(object),
            SyncObject::Monitored(_) => Err(refused()),
        }
    }
}

impl Object {
    /// A fence of this device; `is_progress`: it goes with its queue.
    pub(super) fn fence(device: Arc<Device>, object: SyncObject, is_progress: bool) -> Self {
        Self::Fence(Arc::new(Fence {
            device,
            object: Arc::new(object),
            is_progress,
        }))
    }

    /// Ends what no handle names any more: another thread may be in a call with it, and drops it
    /// then.
    pub(super) fn end(self) {
        match self {
            // Waits end; packets that carry it fault.
            Self::Fence(fence) => fence.object.close(),
            // Nothing of it goes to the engine any more, though another thread has it in a call.
            Self::KernelQueue(queue) => queue.queue.close(),
            // Before its queue, which stands over it: a queue that another thread still has in a call
            // runs no more when the call that destroys it returns.
            Self::Doorbell(doorbell) => doorbell.end(),
            // After its fences, whose end has ended them and told their events.
            Self::Device(device) => device.waits.end(),
            Self::Adapter(_) | Self::HwContext(_) | Self::HwQueue(_) => {}
        }
    }
}

/// A kind of object.
pub(super) trait Kind {
    /// What it is called in a sentence.
    const NAME: &str;

    /// The object, if it is of this kind.
    fn of(object: &Object) -> Option<Arc<Self>>;
}

macro_rules! kind {
    ($type:ident, $variant:ident, $name:literal) => {
        impl Kind for $type {
            const NAME: &str = $name;

            fn of(object: &Object) -> Option<Arc<Self>> {
                match object {
                    Object::$variant(of) => Some(Arc::clone(of)),
                    _ => None,
                }
            }
        }
    };
}

kind!(OpenedAdapter, Adapter, "adapter");
kind!(Device, Device, "device");
kind!(Fence, Fence, "fence of this device");
kind!(HwContext, HwContext, "hardware context");
kind!(HwQueue, HwQueue, "hardware queue of user-mode submission");
kind!(
    KernelQueue,
    KernelQueue,
    "hardware queue of kernel-mode submission"
);
kind!(Doorbell, Doorbell, "doorbell");

impl Kind for AnyHwQueue {
    const NAME: &str = "hardware queue";

    fn of(object: &Object) -> Option<Arc<Self>> {
        match object {
            Object::HwQueue(_) | Object::KernelQueue(_) => Some(Arc::new(Self)),
            _ => None,
        }
    }
}
