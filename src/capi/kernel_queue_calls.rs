//! The functions that C calls for hardware queues of kernel-mode submission: each packet goes through
//! the OS, which holds back what waits (HQ-10).
#![allow(non_snake_case, reason = "the names of the C interface")]

use super::gpu_sync::{self, Of};
use super::{caller, kernel_queue};
use crate::abi::wddm::{
    CreateHwQueue, MAX_OBJECT_SIGNALED, MAX_OBJECT_WAITED_ON, NtStatus, SignalFlags,
    SignalSynchronizationObjectFromGpu, SignalSynchronizationObjectFromGpu2,
    SubmitCommandToHwQueue, SubmitSignalSyncObjectsToHwQueue, SubmitWaitForSyncObjectsToHwQueue,
    WaitForSynchronizationObjectFromGpu,
};

/// Creates a hardware queue of kernel-mode submission on the context's node: `hHwQueue`, and its progress
/// fence, a monitored one, out. Every adapter with engines has them, those without native fences too. It
/// is destroyed by `NfD3DKMTDestroyHwQueue`.
///
/// The address of the progress fence is good until the queue is destroyed; that for the GPU is 0, as a
/// fence's. NoBroadcastSignal and NoBroadcastWait change nothing: no call names several queues.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: an unknown flag, private data;
/// `STATUS_NOT_SUPPORTED`: UserModeSubmission, which has a call of its own, and the flags that are not
/// built: DisableGpuTimeout, NoKmdAccess, NativeProgressFence, TestQueue; `STATUS_NO_MEMORY`,
/// `STATUS_INSUFFICIENT_RESOURCES`; `STATUS_DEVICE_REMOVED`: the adapter was stopped, the engine is
/// lost, or the device ends or has ended (`NfEndDevice`; try again if that fails).
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTCreateHwQueue(args: *mut CreateHwQueue) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::in_out(args, kernel_queue::create) }
}

/// Queues a command of a kernel-mode queue and returns at once: 1 to 511 of `NF_HWQUEUE_COMMAND` at
/// `pPrivateDriverData`, which the engine executes one after the other when all that was queued before
/// is over. There are no allocations in this interface yet: `CommandBuffer` and `CommandLength` are 0.
///
/// `HwQueueProgressFenceId` is what the progress fence then has: one more than that of the command
/// before, the first being 1, and one more for each signal in it, which the engine tells of by the same
/// fence. So a command of another thread that comes before its turn is refused.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`: also a queue of user-mode submission, and a fence of another device;
/// `STATUS_INVALID_PARAMETER`: another progress value, a size that is not that of 1 to 511 commands, no
/// address, an opcode that is none or is a wait or a progress, a native fence, a value too far for a fence
/// of 32 bits (MF-06); `STATUS_ACCESS_DENIED`: a fence made with NoSignal or NoGPUAccess, a progress
/// fence; `STATUS_NOT_SUPPORTED`: a command buffer, surfaces, and opcodes that store to allocations;
/// `STATUS_DEVICE_REMOVED`, `STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE`: the queue was stopped;
/// `STATUS_DRIVER_INTERNAL_ERROR`: by its driver, which refused a command of it: make the queue anew, and the
/// adapter should that be refused too.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTSubmitCommandToHwQueue(
    args: *const SubmitCommandToHwQueue,
) -> NtStatus {
    let body = |args: SubmitCommandToHwQueue| {
        let count = kernel_queue::command_count(&args)?;
        let (address, what) = (args.private_driver_data, "pPrivateDriverData");
        // SAFETY: the caller's promise about pointers in the structure.
        let commands = unsafe { caller::array(address, count, count, what) }?;
        kernel_queue::submit(&args, &commands)
    };
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, body) }
}

/// Queues waits of a kernel-mode queue for up to 32 fences, native or monitored, all of them or none, and
/// returns at once: what is queued afterwards is held back until each has had its value or a greater one
/// (MF-03). A fence that is destroyed meanwhile stops the queue.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`: also a queue of user-mode submission, whose waits are packets, and a fence of
/// another device; `STATUS_INVALID_PARAMETER`: 0 or more than 32 fences, an array that is NULL, a value
/// too far for a fence of 32 bits (MF-06); `STATUS_ACCESS_DENIED`: a fence made with NoWait;
/// `STATUS_DEVICE_REMOVED`, `STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE`: the queue was stopped;
/// `STATUS_DRIVER_INTERNAL_ERROR`: by its driver, which refused a command of it: make the queue anew, and the
/// adapter should that be refused too.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTSubmitWaitForSyncObjectsToHwQueue(
    args: *const SubmitWaitForSyncObjectsToHwQueue,
) -> NtStatus {
    let body = |args: SubmitWaitForSyncObjectsToHwQueue| {
        let (count, most) = (args.object_count, MAX_OBJECT_WAITED_ON);
        let handles = args.object_handle_array;
        let values = (args.fence_value_array, "FenceValueArray");
        // SAFETY: the caller's promise about pointers in the structure.
        let fences = unsafe { caller::fence_values(count, most, handles, values) };
        let (handles, values) = fences?;
        gpu_sync::wait(Of::Queue(args.hw_queue), &handles, &values)
    };
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, body) }
}

/// Queues signals of a kernel-mode queue for up to 32 fences, native or monitored, all of them or none,
/// and returns at once: the OS stores the values when all that was queued before has completed (MF-05), or
/// with SignalAtSubmission when all commands among it were submitted to the engine: should the engine be
/// taken off them and get them again, nothing is stored again (PR-17). A queue stores any value, so AllowFenceRewind changes nothing (NF-21). `BroadcastHwQueueArray` names
/// one queue.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`: also a queue of user-mode submission, whose signals are packets, and a fence
/// of another device; `STATUS_INVALID_PARAMETER`: 0 or more than 32 fences, 0 or more than 64 queues, an
/// array that is NULL, an unknown flag, a value too far for a fence of 32 bits (MF-06);
/// `STATUS_ACCESS_DENIED`: a fence made with NoSignal, a progress fence; `STATUS_NOT_SUPPORTED`: 2 to 64
/// queues, EnqueueCpuEvent; `STATUS_DEVICE_REMOVED`,
/// `STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE`: the queue was stopped.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTSubmitSignalSyncObjectsToHwQueue(
    args: *const SubmitSignalSyncObjectsToHwQueue,
) -> NtStatus {
    let body = |args: SubmitSignalSyncObjectsToHwQueue| {
        let (count, most) = (args.object_count, MAX_OBJECT_SIGNALED);
        let handles = args.object_handle_array;
        let values = (args.fence_value_array, "FenceValueArray");
        // SAFETY: the caller's promise about pointers in the structure.
        let fences = unsafe { caller::fence_values(count, most, handles, values) };
        let (handles, values) = fences?;
        gpu_sync::check_broadcast(args.broadcast_hw_queue_count)?;
        let (queues, what) = (args.broadcast_hw_queue_array, "BroadcastHwQueueArray");
        // SAFETY: as above.
        let queues = unsafe { caller::array(queues, 1, 1, what) }?;
        gpu_sync::signal(Of::Queue(queues[0]), args.flags, &handles, &values)
    };
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, body) }
}

/// As `NfD3DKMTSubmitWaitForSyncObjectsToHwQueue`, for a context that has one kernel-mode queue (choice:
/// contexts of this interface have no packets but those of their queues).
///
/// # Errors
/// As that; `STATUS_INVALID_HANDLE`: no context; `STATUS_INVALID_PARAMETER`: also a context without a
/// kernel-mode queue, or with several.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTWaitForSynchronizationObjectFromGpu(
    args: *const WaitForSynchronizationObjectFromGpu,
) -> NtStatus {
    let body = |args: WaitForSynchronizationObjectFromGpu| {
        let (count, most) = (args.object_count, MAX_OBJECT_WAITED_ON);
        let handles = args.object_handle_array;
        let values = (args.monitored_fence_value_array, "MonitoredFenceValueArray");
        // SAFETY: the caller's promise about pointers in the structure.
        let fences = unsafe { caller::fence_values(count, most, handles, values) };
        let (handles, values) = fences?;
        gpu_sync::wait(Of::Context(args.context), &handles, &values)
    };
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, body) }
}

/// As `NfD3DKMTSubmitSignalSyncObjectsToHwQueue`, for a context that has one kernel-mode queue.
///
/// # Errors
/// As that; `STATUS_INVALID_HANDLE`: no context; `STATUS_INVALID_PARAMETER`: also a context without a
/// kernel-mode queue, or with several.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTSignalSynchronizationObjectFromGpu(
    args: *const SignalSynchronizationObjectFromGpu,
) -> NtStatus {
    let body = |args: SignalSynchronizationObjectFromGpu| {
        let (count, most) = (args.object_count, MAX_OBJECT_SIGNALED);
        let handles = args.object_handle_array;
        let values = (args.monitored_fence_value_array, "MonitoredFenceValueArray");
        // SAFETY: the caller's promise about pointers in the structure.
        let fences = unsafe { caller::fence_values(count, most, handles, values) };
        let (handles, values) = fences?;
        let context = Of::Context(args.context);
        gpu_sync::signal(context, SignalFlags::default(), &handles, &values)
    };
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, body) }
}

/// The same with flags; `BroadcastContextArray` names one context.
///
/// # Errors
/// As those two.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTSignalSynchronizationObjectFromGpu2(
    args: *const SignalSynchronizationObjectFromGpu2,
) -> NtStatus {
    let body = |args: SignalSynchronizationObjectFromGpu2| {
        let (count, most) = (args.object_count, MAX_OBJECT_SIGNALED);
        let handles = args.object_handle_array;
        let values = (args.monitored_fence_value_array, "MonitoredFenceValueArray");
        // SAFETY: the caller's promise about pointers in the structure.
        let fences = unsafe { caller::fence_values(count, most, handles, values) };
        let (handles, values) = fences?;
        gpu_sync::check_broadcast(args.broadcast_context_count)?;
        let (contexts, what) = (args.broadcast_context_array, "BroadcastContextArray");
        // SAFETY: as above.
        let contexts = unsafe { caller::array(contexts, 1, 1, what) }?;
        gpu_sync::signal(Of::Context(contexts[0]), args.flags, &handles, &values)
    };
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, body) }
}
