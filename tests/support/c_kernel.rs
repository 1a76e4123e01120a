//! Kernel-mode queues and monitored fences through the C interface, by its calls alone.
#![allow(dead_code, reason = "each test file uses a part")]

use crate::c_world::{self, call, good, word};
use bytemuck::Zeroable;
use native_fence::abi::Opcode;
use native_fence::abi::wddm::{
    CreateHwQueue, CreateSynchronizationObject2, KmtHandle, NtStatus,
    SignalSynchronizationObjectFromGpu, SignalSynchronizationObjectFromGpu2,
    SubmitCommandToHwQueue, SubmitSignalSyncObjectsToHwQueue, SubmitWaitForSyncObjectsToHwQueue,
    SynchronizationObjectFlags, SynchronizationObjectType, WaitForSynchronizationObjectFromGpu,
};
use native_fence::capi::{
    HwQueueCommand, NfD3DKMTCreateHwQueue, NfD3DKMTCreateSynchronizationObject2,
    NfD3DKMTSubmitCommandToHwQueue, NfD3DKMTSubmitSignalSyncObjectsToHwQueue,
    NfD3DKMTSubmitWaitForSyncObjectsToHwQueue,
};

fn address<T>(array: &[T]) -> u64 {
    array.as_ptr().expose_provenance() as u64
}

pub(crate) fn monitored_args(
    device: KmtHandle,
    initial: u64,
    flags: SynchronizationObjectFlags,
) -> CreateSynchronizationObject2 {
    let mut fence = CreateSynchronizationObject2::zeroed();
    fence.device = device;
    fence.info.object_type = SynchronizationObjectType::MONITORED_FENCE;
    fence.info.flags = flags;
    fence.info.initial_fence_value = initial;
    fence
}

pub(crate) fn monitored(
    device: KmtHandle,
    initial: u64,
    flags: SynchronizationObjectFlags,
) -> CreateSynchronizationObject2 {
    let mut fence = monitored_args(device, initial, flags);
    good(call!(NfD3DKMTCreateSynchronizationObject2, &mut fence));
    fence
}

/// Its value, as the program reads it.
pub(crate) fn value(fence: &CreateSynchronizationObject2) -> u64 {
    word(fence.info.fence_value_cpu_virtual_address)
}

pub(crate) fn kernel_queue(context: KmtHandle) -> CreateHwQueue {
    let mut queue = CreateHwQueue::zeroed();
    queue.hw_context = context;
    good(call!(NfD3DKMTCreateHwQueue, &mut queue));
    queue
}

pub(crate) fn nop() -> HwQueueCommand {
    command(Opcode::Nop as u32, 0, 0)
}

/// A signal that the engine makes.
pub(crate) fn signal_of(fence: KmtHandle, value: u64) -> HwQueueCommand {
    command(Opcode::Signal as u32, fence, value)
}

pub(crate) fn command(opcode: u32, sync_object: KmtHandle, fence_value: u64) -> HwQueueCommand {
    HwQueueCommand {
        opcode,
        sync_object,
        fence_value,
    }
}

/// The arrays must outlive what is made of them here, as in C.
pub(crate) fn submit_args(
    queue: KmtHandle,
    progress: u64,
    commands: &[HwQueueCommand],
) -> SubmitCommandToHwQueue {
    let mut args = SubmitCommandToHwQueue::zeroed();
    (args.hw_queue, args.progress_fence_id) = (queue, progress);
    args.private_driver_data = address(commands);
    args.private_driver_data_size = size_of_val(commands) as u32;
    args
}

pub(crate) fn submit(queue: KmtHandle, progress: u64, commands: &[HwQueueCommand]) -> NtStatus {
    let mut args = submit_args(queue, progress, commands);
    call!(NfD3DKMTSubmitCommandToHwQueue, &mut args)
}

pub(crate) fn wait_args(
    queue: KmtHandle,
    fences: &[KmtHandle],
    values: &[u64],
) -> SubmitWaitForSyncObjectsToHwQueue {
    SubmitWaitForSyncObjectsToHwQueue {
        hw_queue: queue,
        object_count: fences.len() as u32,
        object_handle_array: address(fences),
        fence_value_array: address(values),
    }
}

/// The queue waits.
pub(crate) fn wait(queue: KmtHandle, fences: &[KmtHandle], values: &[u64]) -> NtStatus {
    let mut args = wait_args(queue, fences, values);
    call!(NfD3DKMTSubmitWaitForSyncObjectsToHwQueue, &mut args)
}

pub(crate) fn signal_args(
    queues: &[KmtHandle],
    fences: &[KmtHandle],
    values: &[u64],
) -> SubmitSignalSyncObjectsToHwQueue {
    let mut args = SubmitSignalSyncObjectsToHwQueue::zeroed();
    args.broadcast_hw_queue_count = queues.len() as u32;
    args.broadcast_hw_queue_array = address(queues);
    args.object_count = fences.len() as u32;
    args.object_handle_array = address(fences);
    args.fence_value_array = address(values);
    args
}

/// The queue signals, by the OS.
pub(crate) fn signal(queue: KmtHandle, fences: &[KmtHandle], values: &[u64]) -> NtStatus {
    let queues = [queue];
    let mut args = signal_args(&queues, fences, values);
    call!(NfD3DKMTSubmitSignalSyncObjectsToHwQueue, &mut args)
}

pub(crate) fn context_wait_args(
    context: KmtHandle,
    fences: &[KmtHandle],
    values: &[u64],
) -> WaitForSynchronizationObjectFromGpu {
    let mut args = WaitForSynchronizationObjectFromGpu::zeroed();
    (args.context, args.object_count) = (context, fences.len() as u32);
    args.object_handle_array = address(fences);
    args.monitored_fence_value_array = address(values);
    args
}

pub(crate) fn context_signal_args(
    context: KmtHandle,
    fences: &[KmtHandle],
    values: &[u64],
) -> SignalSynchronizationObjectFromGpu {
    bytemuck::cast(context_wait_args(context, fences, values))
}

pub(crate) fn context_signal2_args(
    contexts: &[KmtHandle],
    fences: &[KmtHandle],
    values: &[u64],
) -> SignalSynchronizationObjectFromGpu2 {
    let mut args = SignalSynchronizationObjectFromGpu2::zeroed();
    args.object_count = fences.len() as u32;
    args.object_handle_array = address(fences);
    args.broadcast_context_count = contexts.len() as u32;
    args.broadcast_context_array = address(contexts);
    args.monitored_fence_value_array = address(values);
    args
}

/// One of each, on the device of a world.
pub(crate) struct Kernel {
    /// Two at 10, and one of each kind that forbids something.
    pub(crate) fences: [CreateSynchronizationObject2; 2],
    pub(crate) no_signal: CreateSynchronizationObject2,
    pub(crate) no_wait: CreateSynchronizationObject2,
    pub(crate) no_gpu: CreateSynchronizationObject2,
    pub(crate) foreign: CreateSynchronizationObject2,
    /// It has one kernel-mode queue.
    pub(crate) context: KmtHandle,
    pub(crate) queue: CreateHwQueue,
    /// It has two.
    pub(crate) crowded: KmtHandle,
}

impl Kernel {
    pub(crate) fn on(world: &c_world::World) -> Self {
        type Flags = SynchronizationObjectFlags;
        let fence = |flags| monitored(world.device, 10, flags);
        let [context, crowded] = [(); 2].map(|()| c_world::context(world.device));
        for _ in 0..2 {
            kernel_queue(crowded);
        }
        Self {
            fences: [fence(Flags::default()), fence(Flags::default())],
            no_signal: fence(Flags::NO_SIGNAL),
            no_wait: fence(Flags::NO_WAIT),
            no_gpu: fence(Flags::NO_GPU_ACCESS),
            foreign: monitored(world.other_device, 10, Flags::default()),
            context,
            queue: kernel_queue(context),
            crowded,
        }
    }

    /// What a refused call must leave.
    pub(crate) fn seen(&self) -> Vec<u64> {
        let others = [&self.no_signal, &self.no_wait, &self.no_gpu, &self.foreign];
        let fences = self.fences.iter().chain(others).map(value);
        let progress = word(self.queue.progress_fence_cpu_virtual_address);
        fences.chain([progress]).collect()
    }
}
