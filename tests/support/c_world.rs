//! World: one of each thing that the C interface makes, by its calls alone, and what it looks like
//! from outside.
#![allow(dead_code, reason = "each test file uses a part")]

use bytemuck::Zeroable;
use native_fence::abi::LocalHandle;
use native_fence::abi::wddm::{
    CreateDevice, CreateDoorbell, CreateHwContext, CreateHwQueueForUserModeSubmission,
    CreateNativeFence, DestroyDevice, DestroyDoorbell, DestroyHwQueue, KmtHandle, NtStatus,
    SignalFlags, SignalSynchronizationObjectFromCpu, SynchronizationObjectFlags,
    WaitForSynchronizationObjectFromCpu, WaitFromCpuFlags,
};
use native_fence::capi::{
    NativeFencePrivateData, NfD3DKMTCreateDevice, NfD3DKMTCreateDoorbell, NfD3DKMTCreateHwContext,
    NfD3DKMTCreateHwQueueForUserModeSubmission, NfD3DKMTCreateNativeFence, NfD3DKMTDestroyDevice,
    NfD3DKMTDestroyDoorbell, NfD3DKMTDestroyHwQueue, NfD3DKMTDestroySynchronizationObject,
    NfD3DKMTSignalSynchronizationObjectFromCpu, NfD3DKMTWaitForSynchronizationObjectFromCpu,
    NfLastErrorText, NfOpenAdapter, NfShareObject, OpenAdapter, ShareObject,
};
use std::os::fd::{FromRawFd, OwnedFd};

/// Calls a function of the C interface with a structure of this program's.
macro_rules! call {
    ($function:ident, $args:expr) => {{
        let args: &mut _ = $args;
        // SAFETY: the structure is this program's own, and so is what pointers in it point to; no
        // other thread has it.
        unsafe { $function(args) }
    }};
}
pub(crate) use call;

/// The sentence on the last call that failed.
pub(crate) fn last_error() -> String {
    let mut text = vec![0_u8; 512];
    // SAFETY: a buffer of this many bytes of this function's own.
    let length = unsafe { NfLastErrorText(text.as_mut_ptr(), text.len()) };
    text.truncate(length);
    String::from_utf8(text).unwrap()
}

/// Fails with the sentence of the call where it is no success.
#[track_caller]
pub(crate) fn good(status: NtStatus) {
    assert_eq!(status, NtStatus::SUCCESS, "{}", last_error());
}

/// One of each. What is destroyed with its parent is not destroyed here.
pub(crate) struct World {
    pub(crate) adapter: KmtHandle,
    pub(crate) device: KmtHandle,
    pub(crate) other_device: KmtHandle,
    /// Two plain ones at 10, and one of each kind that forbids something.
    pub(crate) fences: [CreateNativeFence; 2],
    pub(crate) no_signal: CreateNativeFence,
    pub(crate) no_wait: CreateNativeFence,
    pub(crate) foreign: CreateNativeFence,
    /// Handles of things that were destroyed: a fence, a context, a queue, a doorbell and a device.
    pub(crate) closed: [KmtHandle; 5],
    pub(crate) context: KmtHandle,
    pub(crate) queue: CreateHwQueueForUserModeSubmission,
    pub(crate) doorbell: CreateDoorbell,
    /// A queue without a doorbell.
    pub(crate) quiet_queue: CreateHwQueueForUserModeSubmission,
}

pub(crate) fn open() -> KmtHandle {
    let mut adapter = OpenAdapter::zeroed();
    good(call!(NfOpenAdapter, &mut adapter));
    adapter.adapter
}

pub(crate) fn device(adapter: KmtHandle) -> KmtHandle {
    let mut device = CreateDevice::zeroed();
    device.adapter = adapter;
    good(call!(NfD3DKMTCreateDevice, &mut device));
    device.device
}

pub(crate) fn fence(
    device: KmtHandle,
    initial: u64,
    flags: SynchronizationObjectFlags,
) -> CreateNativeFence {
    let mut fence = CreateNativeFence::zeroed();
    fence.device = device;
    fence.info.initial_fence_value = initial;
    fence.info.flags = flags;
    good(call!(NfD3DKMTCreateNativeFence, &mut fence));
    fence
}

pub(crate) fn context(device: KmtHandle) -> KmtHandle {
    let mut context = CreateHwContext::zeroed();
    context.device = device;
    context.engine_affinity = 1;
    good(call!(NfD3DKMTCreateHwContext, &mut context));
    context.hw_context
}

pub(crate) fn queue(context: KmtHandle) -> CreateHwQueueForUserModeSubmission {
    let mut queue = CreateHwQueueForUserModeSubmission::zeroed();
    queue.hw_context = context;
    good(call!(
        NfD3DKMTCreateHwQueueForUserModeSubmission,
        &mut queue
    ));
    queue
}

pub(crate) fn doorbell(queue: KmtHandle) -> CreateDoorbell {
    let mut doorbell = CreateDoorbell::zeroed();
    doorbell.hw_queue = queue;
    good(call!(NfD3DKMTCreateDoorbell, &mut doorbell));
    doorbell
}

/// A descriptor of a fence that was created shared, at 10.
pub(crate) fn shared(device: KmtHandle) -> OwnedFd {
    let flags = SynchronizationObjectFlags::SHARED;
    let flags = flags.with(SynchronizationObjectFlags::NT_SECURITY_SHARING);
    share(fence(device, 10, flags).sync_object)
}

/// A descriptor of a fence.
pub(crate) fn share(fence: KmtHandle) -> OwnedFd {
    let mut args = ShareObject::zeroed();
    args.sync_object = fence;
    good(call!(NfShareObject, &mut args));
    // SAFETY: the call gave it to this program.
    unsafe { OwnedFd::from_raw_fd(args.nt_handle as i32) }
}

/// A wait for all of these.
pub(crate) fn wait(device: KmtHandle, fences: &[KmtHandle], values: &[u64]) -> NtStatus {
    let mut wait = wait_args(device, fences, values);
    call!(NfD3DKMTWaitForSynchronizationObjectFromCpu, &mut wait)
}

/// A wait for one of these.
pub(crate) fn wait_any(device: KmtHandle, fences: &[KmtHandle], values: &[u64]) -> NtStatus {
    let mut wait = wait_args(device, fences, values);
    wait.flags = WaitFromCpuFlags::WAIT_ANY;
    call!(NfD3DKMTWaitForSynchronizationObjectFromCpu, &mut wait)
}

pub(crate) fn wait_args(
    device: KmtHandle,
    fences: &[KmtHandle],
    values: &[u64],
) -> WaitForSynchronizationObjectFromCpu {
    let mut wait = WaitForSynchronizationObjectFromCpu::zeroed();
    wait.device = device;
    wait.object_count = fences.len() as u32;
    wait.object_handle_array = fences.as_ptr().expose_provenance() as u64;
    wait.fence_value_array = values.as_ptr().expose_provenance() as u64;
    wait
}

pub(crate) fn signal(
    device: KmtHandle,
    fences: &[KmtHandle],
    values: &[u64],
    flags: SignalFlags,
) -> NtStatus {
    let mut signal = signal_args(device, fences, values);
    signal.flags = flags;
    call!(NfD3DKMTSignalSynchronizationObjectFromCpu, &mut signal)
}

pub(crate) fn signal_args(
    device: KmtHandle,
    fences: &[KmtHandle],
    values: &[u64],
) -> SignalSynchronizationObjectFromCpu {
    let mut signal = SignalSynchronizationObjectFromCpu::zeroed();
    signal.device = device;
    signal.object_count = fences.len() as u32;
    signal.object_handle_array = fences.as_ptr().expose_provenance() as u64;
    signal.fence_value_array = values.as_ptr().expose_provenance() as u64;
    signal
}

pub(crate) fn destroy(fence: KmtHandle) -> NtStatus {
    let mut args = native_fence::abi::wddm::DestroySynchronizationObject { sync_object: fence };
    call!(NfD3DKMTDestroySynchronizationObject, &mut args)
}

/// A word at an address that a call gave out.
pub(crate) fn word(address: u64) -> u64 {
    let word: *const u64 = std::ptr::with_exposed_provenance(address as usize);
    // SAFETY: an address that a call gave out for reading, of something that was not destroyed.
    unsafe { word.read_volatile() }
}

/// CurrentValue, as the program reads it.
pub(crate) fn value(fence: &CreateNativeFence) -> u64 {
    word(fence.info.native_fence_mapping.current_value_cpu_va)
}

/// One of each kind, destroyed: the device with what is left on it.
fn closed(adapter: KmtHandle) -> [KmtHandle; 5] {
    let device = device(adapter);
    let fence = fence(device, 10, SynchronizationObjectFlags::default()).sync_object;
    let context = context(device);
    let hw_queue = queue(context).hw_queue;
    let doorbell = doorbell(hw_queue).doorbell;
    good(destroy(fence));
    good(call!(
        NfD3DKMTDestroyDoorbell,
        &mut DestroyDoorbell { doorbell }
    ));
    good(call!(
        NfD3DKMTDestroyHwQueue,
        &mut DestroyHwQueue { hw_queue }
    ));
    good(call!(NfD3DKMTDestroyDevice, &mut DestroyDevice { device }));
    [fence, context, hw_queue, doorbell, device]
}

impl World {
    pub(crate) fn new() -> Self {
        type Flags = SynchronizationObjectFlags;
        let adapter = open();
        let (own, other_device) = (device(adapter), device(adapter));
        let plain = || fence(own, 10, Flags::default());
        let closed = closed(adapter);
        let context = context(own);
        let queue_with_doorbell = queue(context);
        Self {
            adapter,
            device: own,
            other_device,
            fences: [plain(), plain()],
            no_signal: fence(own, 10, Flags::NO_SIGNAL),
            no_wait: fence(own, 10, Flags::NO_WAIT),
            foreign: fence(other_device, 10, Flags::default()),
            closed,
            context,
            doorbell: doorbell(queue_with_doorbell.hw_queue),
            queue: queue_with_doorbell,
            quiet_queue: queue(context),
        }
    }

    /// Handles that name no thing of this kind: none, never given out, closed, and things of all
    /// other kinds.
    pub(crate) fn not(&self, kind: &str) -> Vec<(String, KmtHandle)> {
        let things = [
            ("adapter", self.adapter),
            ("device", self.device),
            ("fence", self.fences[0].sync_object),
            ("context", self.context),
            ("queue", self.queue.hw_queue),
            ("doorbell", self.doorbell.doorbell),
        ];
        let others = things.into_iter().filter(|(name, _)| *name != kind);
        let never = [("nothing", 0), ("never given out", 0xfff7_ffff)];
        let closed = self.closed.map(|handle| ("closed", handle));
        never
            .into_iter()
            .chain(closed)
            .chain(others)
            .map(|(name, handle)| (format!("{kind}: {name}"), handle))
            .collect()
    }

    /// What a refused call must leave: values, doorbells, and how many handles there are. The next
    /// handle, and the next one for packets, have the number that follows.
    pub(crate) fn seen(&self) -> Vec<u64> {
        let fences = self.fences.iter();
        let others = [&self.no_signal, &self.no_wait, &self.foreign];
        let mut seen: Vec<u64> = fences.chain(others).map(value).collect();
        for queue in [&self.queue, &self.quiet_queue] {
            seen.push(word(queue.doorbell_status_cpu_va));
            seen.push(word(queue.progress_fence_mapping.current_value_cpu_va));
            seen.push(word(queue.progress_fence_last_queued_value_cpu_va));
        }
        seen
    }

    /// Slots of two handles that are given out now: one of the program's table, and one of the
    /// device's for packets.
    pub(crate) fn next_slots(&self) -> (u32, u32) {
        let fence = fence(self.device, 0, SynchronizationObjectFlags::default());
        let private: NativeFencePrivateData = bytemuck::cast(fence.private_driver_data);
        good(destroy(fence.sync_object));
        let slot = |handle| LocalHandle::from_raw(handle).slot();
        (slot(fence.sync_object), slot(private.packet_handle))
    }
}
