//! The functions that C calls for fences of either kind: creating a monitored one, waiting and signalling
//! from the CPU, destroying.
#![allow(non_snake_case, reason = "the names of the C interface")]

use super::{caller, monitored_fence, signal, sync_object, wait};
use crate::abi::wddm::{
    CreateSynchronizationObject2, DestroySynchronizationObject, MAX_OBJECT_SIGNALED,
    MAX_OBJECT_WAITED_ON, NtStatus, SignalSynchronizationObjectFromCpu,
    WaitForSynchronizationObjectFromCpu,
};

/// Creates a monitored fence (MF-01): `Info.Type` is `D3DDDI_MONITORED_FENCE`; `hSyncObject` and the
/// addresses in `Info.MonitoredFence` out. Every adapter has them, those without native fences too.
///
/// `FenceValueCPUVirtualAddress` is read-only and good until the fence is destroyed; NULL where the
/// memory has no mapping that cannot be written. On a device without 64-bit atomics the low 32 bits of
/// the value stand there (MF-06), unless NoGPUAccess is set. `FenceValueGPUVirtualAddress` is 0: each
/// engine of an adapter has a mapping of its own, so there is no one address, and commands name fences
/// by handle.
///
/// Of the flags NoSignal, NoWait, NoGPUAccess and NoSignalMaxValueOnTdr are honoured.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_ACCESS_DENIED`: NoSignal with NoWait; `STATUS_INVALID_PARAMETER`: a
/// type that is none, or that of native fences, an unknown flag, NtSecuritySharing without Shared or
/// Shared without it, an affinity above 1; `STATUS_NOT_SUPPORTED`: the other types, and the flags that
/// are not built: Shared, CrossAdapter, TopOfPipeline, SignalByKmd, UnwaitCpuWaitersOnlyOnDestroy;
/// `STATUS_NO_MEMORY`, `STATUS_INSUFFICIENT_RESOURCES`; `STATUS_DEVICE_REMOVED`: the adapter was
/// stopped.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTCreateSynchronizationObject2(
    args: *mut CreateSynchronizationObject2,
) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::in_out(args, monitored_fence::create) }
}

/// Destroys a fence, native or monitored: waits for it end with `STATUS_INVALID_HANDLE`, packets that
/// name it fault their queue, and a kernel-mode queue that waits for it or comes to signal it stops.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: a progress fence, which goes with its
/// queue.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTDestroySynchronizationObject(
    args: *const DestroySynchronizationObject,
) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, sync_object::destroy) }
}

/// Blocks until all fences, native or monitored, have had their values or greater ones, or one of them
/// with WaitAny (NF-22, MF-04). The call has no time-out: a wait that has no chance ends with an error.
///
/// With `hAsyncEvent` it returns at once. That is the number of an eventfd of the program's, made with
/// `EFD_NONBLOCK`, whose counter gets 1 when the wait has ended, well or with an error (NF-25); the same
/// call without it then returns at once, and says how, unless a fence was rewound meanwhile. It is
/// duplicated: the program may close its own after the call. The wait stands until it has ended, which
/// the end of a fence or of the device does too.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`: also when a fence is destroyed during the wait, and an event that is no
/// eventfd; `STATUS_INVALID_PARAMETER`: 0 or more than 32 fences, an array that is NULL, an unknown flag,
/// an event that blocks, a value too far for a monitored fence of 32 bits (MF-06);
/// `STATUS_INSUFFICIENT_RESOURCES`: no file descriptor is left to duplicate the
/// event (EMFILE); `STATUS_NOT_SUPPORTED`: an event where no /proc is; `STATUS_ACCESS_DENIED`: a fence made with NoWait (NF-23);
/// `STATUS_DEVICE_REMOVED`, `STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE`, `STATUS_DRIVER_INTERNAL_ERROR`: who
/// would have signalled is lost or has ended, was stopped at a packet, or at a command that its driver
/// refused.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it. Nobody closes the event during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTWaitForSynchronizationObjectFromCpu(
    args: *const WaitForSynchronizationObjectFromCpu,
) -> NtStatus {
    let body = |args: WaitForSynchronizationObjectFromCpu| {
        let (count, most) = (args.object_count, MAX_OBJECT_WAITED_ON);
        let handles = args.object_handle_array;
        let values = (args.fence_value_array, "FenceValueArray");
        // SAFETY: the caller's promise about pointers in the structure.
        let fences = unsafe { caller::fence_values(count, most, handles, values) };
        let (handles, values) = fences?;
        // SAFETY: the caller's promise about the event.
        let duplicate = |number| unsafe { caller::duplicate(number) };
        wait::from_cpu(&args, &handles, &values, duplicate)
    };
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, body) }
}

/// Stores values to up to 32 fences, native or monitored, all of them or none (NF-17, NF-20, MF-04).
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: 0 or more than 32 fences, one that is named
/// twice, an array that is NULL, another flag than AllowFenceRewind, a value below CurrentValue without
/// that flag (NF-21), a value too far for a monitored fence of 32 bits (MF-06); `STATUS_ACCESS_DENIED`: a fence made with NoSignal, or a progress fence (NF-23);
/// `STATUS_DEVICE_REMOVED`: the adapter was stopped.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTSignalSynchronizationObjectFromCpu(
    args: *const SignalSynchronizationObjectFromCpu,
) -> NtStatus {
    let body = |args: SignalSynchronizationObjectFromCpu| {
        let (count, most) = (args.object_count, MAX_OBJECT_SIGNALED);
        let handles = args.object_handle_array;
        let values = (args.fence_value_array, "FenceValueArray");
        // SAFETY: the caller's promise about pointers in the structure.
        let fences = unsafe { caller::fence_values(count, most, handles, values) };
        let (handles, values) = fences?;
        signal::from_cpu(&args, &handles, &values)
    };
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, body) }
}
