//! Device loss, on purpose: a driver's answer `VK_ERROR_DEVICE_LOST` at the k-th call of a kind.
//!
//! No CPU driver ever loses its device, and a GPU is not lost on demand. What a program sees of a loss
//! is what the driver's functions answer; so for a device that is opened for it, entries of ash's
//! function tables are replaced, and nothing else: the first loss is injected, and from then on every
//! call that can say so says that the device is lost, waits under way among them. Memory stays mapped.
//!
//! What the device was given before is over when the loss is first told: nothing runs on it any more, as
//! this program takes it of a lost device. Or, where that is asked for, the real device goes on
//! underneath, as one does that was only thought lost: what its shaders store still comes. It is given
//! nothing more in either case. Calls that wait until it is idle wait for it really, before they answer:
//! whoever destroys something has asked that first, and the driver underneath must be done with it.
//!
//! Of the functions that this program calls, those that Vulkan lets return the loss are those of
//! [`LossyCall`]. `vkCreateDevice` is one of them: the device is lost before anybody has it, and its
//! instance goes on. `vkSignalSemaphore` is not: on a lost device it succeeds, and here it changes nothing
//! then, or a submission that still runs would lower the semaphore.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use super::idle_waits::IdleWaits;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

use ash::vk::{self, Handle};

/// A function that can return `VK_ERROR_DEVICE_LOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossyCall {
    /// `vkCreateDevice`, which a device is made by: once.
    CreateDevice,
    /// `vkQueueSubmit`.
    QueueSubmit,
    /// `vkQueueWaitIdle`.
    QueueWaitIdle,
    /// `vkDeviceWaitIdle`.
    DeviceWaitIdle,
    /// `vkWaitSemaphores`.
    WaitSemaphores,
    /// `vkGetSemaphoreCounterValue`.
    GetSemaphoreCounterValue,
}

impl LossyCall {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::CreateDevice,
        Self::QueueSubmit,
        Self::QueueWaitIdle,
        Self::DeviceWaitIdle,
        Self::WaitSemaphores,
        Self::GetSemaphoreCounterValue,
    ];

    /// As Vulkan calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CreateDevice => "vkCreateDevice",
            Self::QueueSubmit => "vkQueueSubmit",
            Self::QueueWaitIdle => "vkQueueWaitIdle",
            Self::DeviceWaitIdle => "vkDeviceWaitIdle",
            Self::WaitSemaphores => "vkWaitSemaphores",
            Self::GetSemaphoreCounterValue => "vkGetSemaphoreCounterValue",
        }
    }
}

/// When a device is lost, and how often it was called.
#[derive(Debug, Default)]
pub struct DeviceLoss {
    /// By kind of call.
    calls: [AtomicU64; LossyCall::ALL.len()],
    at: Mutex<Option<(LossyCall, u64)>>,
    lost: AtomicBool,
    goes_on: AtomicBool,
    /// Held while the driver is given something.
    submission: Mutex<()>,
    /// Nothing runs any more.
    over: OnceLock<()>,
    /// Of devices whose functions these are.
    idle_waits: Mutex<Vec<Weak<IdleWaits>>>,
}

/// A device whose functions were replaced, by the handle that they are called with: the device's own, or
/// a queue's.
struct Replaced {
    loss: Arc<DeviceLoss>,
    device: vk::Device,
    real: Real,
}

/// What was replaced.
#[derive(Clone, Copy)]
struct Real {
    get_device_queue: vk::PFN_vkGetDeviceQueue,
    queue_submit: vk::PFN_vkQueueSubmit,
    queue_wait_idle: vk::PFN_vkQueueWaitIdle,
    device_wait_idle: vk::PFN_vkDeviceWaitIdle,
    wait_semaphores: vk::PFN_vkWaitSemaphores,
    get_semaphore_counter_value: vk::PFN_vkGetSemaphoreCounterValue,
    signal_semaphore: vk::PFN_vkSignalSemaphore,
}

/// A C function has no place for what it needs but its arguments.
static REPLACED: LazyLock<RwLock<HashMap<u64, Arc<Replaced>>>> = LazyLock::new(RwLock::default);

thread_local! {
    /// Whose device this thread makes, and by what: it has no handle yet, and the adapter's, which it is made
    /// of, is others' too.
    static MAKING: Cell<Option<(Arc<DeviceLoss>, vk::PFN_vkCreateDevice)>> = const { Cell::new(None) };
}

/// How long a wait on a replaced device sleeps before it looks whether the device was lost meanwhile.
const LOOK_NS: u64 = 500_000;

impl DeviceLoss {
    /// None is planned.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Loses the device at the `count`-th call of a kind since it was opened, counted from 1; at none of
    /// this kind any more if there were as many already.
    pub fn plan(&self, call: LossyCall, count: u64) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some((call, count));
    }

    /// The same of a call from now on, the next one being 1; how many there were before.
    pub fn plan_from_now(&self, call: LossyCall, count: u64) -> u64 {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever is counted after this looks for the plan when it stands.
        let before = self.calls(call);
        *at = Some((call, before.saturating_add(count)));
        before
    }

    /// Loses the device now. Who sleeps apart from the driver hears of it too, as in the driver.
    pub fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        let idle_waits = self.idle_waits.lock();
        let idle_waits = idle_waits.unwrap_or_else(PoisonError::into_inner);
        for waits in idle_waits.iter().filter_map(Weak::upgrade) {
            waits.note_loss();
        }
    }

    /// A device is this one, and these sleep for it.
    pub(super) fn is_told_to(&self, waits: &Arc<IdleWaits>) {
        let idle_waits = self.idle_waits.lock();
        let mut idle_waits = idle_waits.unwrap_or_else(PoisonError::into_inner);
        idle_waits.push(Arc::downgrade(waits));
        drop(idle_waits);
        if self.is_lost() {
            waits.note_loss();
        }
    }

    /// Threads that sleep apart from the driver until it is given something, or lost.
    #[must_use]
    pub fn sleepers(&self) -> u64 {
        let idle_waits = self.idle_waits.lock();
        let idle_waits = idle_waits.unwrap_or_else(PoisonError::into_inner);
        let alive = idle_waits.iter().filter_map(Weak::upgrade);
        alive.map(|waits| waits.sleepers()).sum()
    }

    /// From its loss on the real device goes on with what it was given.
    pub fn let_go_on(&self) {
        self.goes_on.store(true, Ordering::Relaxed);
    }

    /// Whether it is lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Calls of a kind so far.
    #[must_use]
    pub fn calls(&self, call: LossyCall) -> u64 {
        self.calls[call as usize].load(Ordering::Relaxed)
    }

    /// Counts a call; whether the device is lost by now.
    fn loses(&self, call: LossyCall) -> bool {
        let count = self.calls[call as usize].fetch_add(1, Ordering::Relaxed) + 1;
        if *self.at.lock().unwrap_or_else(PoisonError::into_inner) == Some((call, count)) {
            self.lose();
        }
        self.is_lost()
    }

    fn submission(&self) -> MutexGuard<'_, ()> {
        self.submission
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The instance, whose next device on this thread is this one and may be lost while it is made.
    pub(super) fn replace_functions_of_maker(
        self: &Arc<Self>,
        instance: &ash::Instance,
    ) -> ash::Instance {
        let mut core = instance.fp_v1_0().clone();
        MAKING.set(Some((Arc::clone(self), core.create_device)));
        core.create_device = create_device;
        ash::Instance::from_parts_1_3(
            instance.handle(),
            core,
            instance.fp_v1_1().clone(),
            instance.fp_v1_3().clone(),
        )
    }

    /// The device with functions that lose it. [`DeviceLoss::forget`] it before it is destroyed.
    pub(super) fn replace_functions_of(self: &Arc<Self>, device: &ash::Device) -> ash::Device {
        let mut core = device.fp_v1_0().clone();
        let mut timelines = device.fp_v1_2().clone();
        let replaced = Replaced {
            loss: Arc::clone(self),
            device: device.handle(),
            real: Real {
                get_device_queue: core.get_device_queue,
                queue_submit: core.queue_submit,
                queue_wait_idle: core.queue_wait_idle,
                device_wait_idle: core.device_wait_idle,
                wait_semaphores: timelines.wait_semaphores,
                get_semaphore_counter_value: timelines.get_semaphore_counter_value,
                signal_semaphore: timelines.signal_semaphore,
            },
        };
        remember(device.handle().as_raw(), Arc::new(replaced));
        core.get_device_queue = get_device_queue;
        core.queue_submit = queue_submit;
        core.queue_wait_idle = queue_wait_idle;
        core.device_wait_idle = device_wait_idle;
        timelines.wait_semaphores = wait_semaphores;
        timelines.get_semaphore_counter_value = get_semaphore_counter_value;
        timelines.signal_semaphore = signal_semaphore;
        ash::Device::from_parts_1_3(
            device.handle(),
            core,
            device.fp_v1_1().clone(),
            timelines,
            device.fp_v1_3().clone(),
        )
    }

    /// The same of a device that the program made, and of its queues. The program's own calls lose nothing.
    pub(super) fn replace_functions_of_imported(
        self: &Arc<Self>,
        device: &ash::Device,
        queues: impl Iterator<Item = vk::Queue>,
    ) -> ash::Device {
        let replaced = self.replace_functions_of(device);
        for queue in queues {
            remember(queue.as_raw(), of(device.handle().as_raw()));
        }
        replaced
    }

    /// A device is to be destroyed, or left to the program: then its handle, and those of its queues, may come again.
    pub(super) fn forget(device: &ash::Device) {
        let device = device.handle();
        REPLACED
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|_, replaced| replaced.device != device);
    }
}

fn remember(handle: u64, replaced: Arc<Replaced>) {
    REPLACED
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(handle, replaced);
}

/// What a handle is of: only functions of a replaced device get here.
fn of(handle: u64) -> Arc<Replaced> {
    let replaced = REPLACED.read().unwrap_or_else(PoisonError::into_inner);
    let found = replaced.get(&handle).map(Arc::clone);
    found.expect("a replaced function is called for a device that was remembered")
}

impl Replaced {
    /// Counts a call; whether the answer is the loss.
    fn loses(&self, call: LossyCall) -> bool {
        let is_lost = self.loss.loses(call);
        if is_lost {
            self.see_to_the_end();
        }
        is_lost
    }

    /// What a call says that ended with `answer`, when the device may have been lost meanwhile.
    fn unless_lost(&self, answer: vk::Result) -> vk::Result {
        if self.loss.is_lost() {
            self.see_to_the_end();
            return vk::Result::ERROR_DEVICE_LOST;
        }
        answer
    }

    /// Before the loss is told: what the device was given is over.
    fn see_to_the_end(&self) {
        if !self.loss.goes_on.load(Ordering::Relaxed) {
            self.loss.over.get_or_init(|| {
                let _submission = self.loss.submission();
                // SAFETY: the device is alive, since one of its functions was called; nobody submits.
                let _idle = unsafe { (self.real.device_wait_idle)(self.device) };
            });
        }
    }
}

unsafe extern "system" fn create_device(
    adapter: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    let making = MAKING.take();
    let (loss, real) =
        making.expect("a replaced function is called by who has said whose device it makes");
    if loss.loses(LossyCall::CreateDevice) {
        return vk::Result::ERROR_DEVICE_LOST;
    }
    // SAFETY: the caller's arguments, given to the function that they were meant for.
    unsafe { real(adapter, info, callbacks, device) }
}

unsafe extern "system" fn get_device_queue(
    device: vk::Device,
    family: u32,
    index: u32,
    queue: *mut vk::Queue,
) {
    let replaced = of(device.as_raw());
    // SAFETY: the caller's arguments, given to the function that they were meant for.
    unsafe { (replaced.real.get_device_queue)(device, family, index, queue) };
    // SAFETY: the function has stored the queue.
    let queue = unsafe { *queue };
    remember(queue.as_raw(), replaced);
}

unsafe extern "system" fn queue_submit(
    queue: vk::Queue,
    count: u32,
    submits: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    let replaced = of(queue.as_raw());
    if replaced.loses(LossyCall::QueueSubmit) {
        return vk::Result::ERROR_DEVICE_LOST;
    }
    let _submission = replaced.loss.submission();
    if replaced.loss.is_lost() {
        return vk::Result::ERROR_DEVICE_LOST;
    }
    // SAFETY: the caller's arguments, given to the function that they were meant for.
    unsafe { (replaced.real.queue_submit)(queue, count, submits, fence) }
}

unsafe extern "system" fn queue_wait_idle(queue: vk::Queue) -> vk::Result {
    let replaced = of(queue.as_raw());
    let is_lost = replaced.loses(LossyCall::QueueWaitIdle);
    // SAFETY: the caller's argument, given to the function that it was meant for.
    let idle = unsafe { (replaced.real.queue_wait_idle)(queue) };
    if is_lost {
        vk::Result::ERROR_DEVICE_LOST
    } else {
        replaced.unless_lost(idle)
    }
}

unsafe extern "system" fn device_wait_idle(device: vk::Device) -> vk::Result {
    let replaced = of(device.as_raw());
    let is_lost = replaced.loses(LossyCall::DeviceWaitIdle);
    // SAFETY: the caller's argument, given to the function that it was meant for.
    let idle = unsafe { (replaced.real.device_wait_idle)(device) };
    if is_lost {
        vk::Result::ERROR_DEVICE_LOST
    } else {
        replaced.unless_lost(idle)
    }
}

unsafe extern "system" fn wait_semaphores(
    device: vk::Device,
    info: *const vk::SemaphoreWaitInfo<'_>,
    timeout: u64,
) -> vk::Result {
    let replaced = of(device.as_raw());
    if replaced.loses(LossyCall::WaitSemaphores) {
        return vk::Result::ERROR_DEVICE_LOST;
    }
    let mut left = timeout;
    loop {
        let part = left.min(LOOK_NS);
        // SAFETY: the caller's arguments, given to the function that they were meant for.
        let answer = unsafe { (replaced.real.wait_semaphores)(device, info, part) };
        // A wait without end stays one.
        left -= if timeout == u64::MAX { 0 } else { part };
        if answer != vk::Result::TIMEOUT || left == 0 || replaced.loss.is_lost() {
            return replaced.unless_lost(answer);
        }
    }
}

unsafe extern "system" fn get_semaphore_counter_value(
    device: vk::Device,
    semaphore: vk::Semaphore,
    value: *mut u64,
) -> vk::Result {
    let replaced = of(device.as_raw());
    if replaced.loses(LossyCall::GetSemaphoreCounterValue) {
        return vk::Result::ERROR_DEVICE_LOST;
    }
    // SAFETY: the caller's arguments, given to the function that they were meant for.
    let answer = unsafe { (replaced.real.get_semaphore_counter_value)(device, semaphore, value) };
    replaced.unless_lost(answer)
}

unsafe extern "system" fn signal_semaphore(
    device: vk::Device,
    info: *const vk::SemaphoreSignalInfo<'_>,
) -> vk::Result {
    let replaced = of(device.as_raw());
    if replaced.loss.is_lost() {
        return vk::Result::SUCCESS;
    }
    // SAFETY: the caller's arguments, given to the function that they were meant for.
    unsafe { (replaced.real.signal_semaphore)(device, info) }
}
