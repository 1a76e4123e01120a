//! The functions that C calls, each a pointer checked and a safe body run: all but those of fences of
//! either kind (`sync_object_calls`) and of kernel-mode queues (`kernel_queue_calls`).
#![allow(non_snake_case, reason = "the names of the C interface")]

use super::private_data::{EndDevice, OpenAdapter, ShareObject};
use super::{adapter, caller, device, doorbell, hw_queue, last_error, native_fence};
use crate::abi::wddm::{
    CloseAdapter, ConnectDoorbell, CreateDevice, CreateDoorbell, CreateHwContext,
    CreateHwQueueForUserModeSubmission, CreateNativeFence, DestroyDevice, DestroyDoorbell,
    DestroyHwContext, DestroyHwQueue, GetDeviceState, NotifyWorkSubmission, NtStatus,
    OpenNativeFenceFromNtHandle, QueryAdapterInfo,
};

/// Opens a Vulkan device as an adapter: the best one, or the best with `DeviceName` in its name.
///
/// # Errors
/// `STATUS_NO_SUCH_DEVICE`: no driver, or no device of that name; `STATUS_INVALID_PARAMETER`: a name
/// that is empty or no UTF-8; `STATUS_NO_MEMORY`, `STATUS_INSUFFICIENT_RESOURCES`: its engine could
/// not be made; `STATUS_NOT_SUPPORTED`: what its driver says of itself cannot be. A device without
/// native fences is opened all the same: its caps say so.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfOpenAdapter(args: *mut OpenAdapter) -> NtStatus {
    let body = |args: &mut OpenAdapter| {
        // SAFETY: the caller's promise about pointers in the structure.
        let name = unsafe { caller::text(args.device_name, "DeviceName") }?;
        adapter::open(args, name)
    };
    // SAFETY: the caller's promise.
    unsafe { caller::in_out(args, body) }
}

/// Copies the sentence on this thread's last call that failed to `buffer`, cut to `bytes` bytes with
/// its final zero byte; returns its whole length without that byte. Empty if none has failed.
///
/// # Safety
/// `buffer` is NULL or has `bytes` bytes that nobody else touches during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfLastErrorText(buffer: *mut u8, bytes: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { caller::copy_text(&last_error::kept(), buffer, bytes) }
}

/// Answers a query about an adapter: of type `KMTQAITYPE_WDDM_3_1_CAPS`, by `D3DKMT_WDDM_3_1_CAPS`
/// at `pPrivateDriverData` (FQ-06).
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_NOT_SUPPORTED`: another type; `STATUS_BUFFER_TOO_SMALL`: fewer
/// than 4 bytes; `STATUS_INVALID_PARAMETER`: no address for the answer.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTQueryAdapterInfo(args: *const QueryAdapterInfo) -> NtStatus {
    let body = |args: QueryAdapterInfo| {
        let caps = adapter::query(&args)?;
        // SAFETY: the caller's promise about pointers in the structure; there is room, as checked.
        unsafe { caller::store(args.private_driver_data, caps, "pPrivateDriverData") }
    };
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, body) }
}

/// Closes an adapter, and destroys the devices that were made on it.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: `args` is NULL or not aligned, as in all
/// calls.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTCloseAdapter(args: *const CloseAdapter) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, adapter::close) }
}

/// Creates a device: `hAdapter` in, `hDevice` out; the members for command buffers are left as they
/// are.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: a flag; `STATUS_INSUFFICIENT_RESOURCES`: no
/// handle is left.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTCreateDevice(args: *mut CreateDevice) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::in_out(args, device::create) }
}

/// Ends the queues of a device in order (HQ-12): takes their doorbells, waits until each queue of either
/// kind has executed what was queued, and destroys them. From its beginning on no queue and no doorbell is
/// made and none connected; when it has succeeded, for good. All handles are there until they are destroyed,
/// and so are the fences; waits for the progress of these queues for more than they have executed end with
/// `STATUS_DEVICE_REMOVED`. A device that has ended ends again at once.
///
/// An error has destroyed nothing: the queues go on, doorbells connect when they are rung next, and it can
/// be tried again.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_IO_TIMEOUT`: the time-out came first; the sentence says which queue
/// stands at which wait; `STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE`, `STATUS_DEVICE_REMOVED`,
/// `STATUS_DRIVER_INTERNAL_ERROR`: a queue was stopped, or its engine is lost: destroy it, and try again;
/// `STATUS_INVALID_PARAMETER`: flags; a queue without a doorbell that has not executed what was queued;
/// `STATUS_DEVICE_BUSY`: another thread ends it; `STATUS_INSUFFICIENT_RESOURCES`: the engine takes no more
/// queues.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfEndDevice(args: *const EndDevice) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, device::end) }
}

/// Destroys a device, and what was made on it: waits for its fences end, packets of its queues are
/// executed no more. Who wants executed what was queued calls `NfEndDevice` before.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTDestroyDevice(args: *const DestroyDevice) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, device::destroy) }
}

/// Says whether a device runs, or what became of it: `ExecutionState` of type
/// `D3DKMT_DEVICESTATE_EXECUTION`. A device that is lost stays so: its other calls but those that destroy
/// return `STATUS_DEVICE_REMOVED`, and its program destroys it and makes another.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_NOT_SUPPORTED`: the states of another type.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTGetDeviceState(args: *mut GetDeviceState) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::in_out(args, device::get_state) }
}

/// Creates a native fence: `hSyncObject`, `Info.NativeFenceMapping` and
/// `PrivateDriverData` (`NF_NATIVEFENCE_PRIVATEDATA`) out.
///
/// `CurrentValueCpuVa` is read-only and good until the fence is destroyed; NULL where the memory has
/// no mapping that cannot be written, and of type INTRA_GPU. The GPU addresses are 0: each engine of an
/// adapter has a mapping of its own, so there is no one address, and packets name fences by handle. Of type
/// INTRA_GPU the CPU waits for and signals nothing: these calls return `STATUS_INVALID_PARAMETER`.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_ACCESS_DENIED`: NoSignal with NoWait; `STATUS_INVALID_PARAMETER`:
/// an unknown type or flag, CrossAdapter with INTRA_GPU, INTRA_GPU with an initial value, which a packet
/// of the creator sets, NtSecuritySharing without Shared;
/// `STATUS_NOT_SUPPORTED`: an adapter without native fences; INTRA_GPU where GetOSCaps does not report it;
/// and the flags that are not built: CrossAdapter, TopOfPipeline, NoGPUAccess, SignalByKmd,
/// UnwaitCpuWaitersOnlyOnDestroy; `STATUS_NO_MEMORY`, `STATUS_INSUFFICIENT_RESOURCES`;
/// `STATUS_DEVICE_REMOVED`: the adapter was stopped.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTCreateNativeFence(args: *mut CreateNativeFence) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::in_out(args, native_fence::create) }
}

/// Makes a handle by which other processes open a fence that was created with Shared: `hNtHandle`, a file
/// descriptor, out. It may be opened as often as is wanted, passed on as any descriptor is, and closed by
/// `close`; while it is open the fence is there. Each that is open keeps two descriptors in flight, of
/// which all programs of a user together may have as many as one may have open (`ulimit -n`).
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_ACCESS_DENIED`: a fence that was not created with Shared (NF-30);
/// `STATUS_NOT_SUPPORTED`: type INTRA_GPU, its values lie in memory of a device;
/// `STATUS_INSUFFICIENT_RESOURCES`: no descriptor or thread is left, or too many descriptors are in flight.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfShareObject(args: *mut ShareObject) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::in_out(args, native_fence::share) }
}

/// Opens a shared fence, of this process or another, on a device: `hSyncObject` and `NativeFenceMapping`
/// out; the handle that packets carry in the first four bytes of `Reserved`. `hNtHandle` stays open.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`: also a descriptor that `NfShareObject` did not make;
/// `STATUS_INVALID_PARAMETER`: a flag, an affinity; `STATUS_NOT_SUPPORTED`: an adapter without native
/// fences; `STATUS_NO_MEMORY`; `STATUS_INSUFFICIENT_RESOURCES`: also 16 processes that have it open, or
/// no descriptor is left.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; nobody closes `hNtHandle` during it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTOpenNativeFenceFromNtHandle(
    args: *mut OpenNativeFenceFromNtHandle,
) -> NtStatus {
    let body = |args: &mut OpenNativeFenceFromNtHandle| {
        // SAFETY: the caller's promise about the descriptor.
        let nt_handle = unsafe { caller::descriptor(args.nt_handle, "hNtHandle") }?;
        native_fence::open(args, nt_handle)
    };
    // SAFETY: the caller's promise.
    unsafe { caller::in_out(args, body) }
}

/// Creates a hardware context on a node: `hHwContext` out.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: flags or private data, a node that the
/// adapter has not, an affinity that is not 1; `STATUS_DEVICE_REMOVED`: the adapter was stopped.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTCreateHwContext(args: *mut CreateHwContext) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::in_out(args, device::create_context) }
}

/// Destroys a hardware context and its queues.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTDestroyHwContext(args: *const DestroyHwContext) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, device::destroy_context) }
}

/// Creates a hardware queue for user-mode submission, with its ring, its progress fence and its two
/// logs. `PrivateDriverData` is `NF_HWQUEUE_PRIVATEDATA`: the ring's capacity in, where it lies out.
///
/// The addresses are good until the queue is destroyed. The logs' GPU addresses are 0, as a fence's. The
/// library makes the ring: there are no allocations in this interface yet, so `hRingBuffer` and
/// `hRingBufferControl` are 0.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: flags, a capacity that no ring has;
/// `STATUS_NOT_SUPPORTED`: a ring of the caller's own; `STATUS_NO_MEMORY`,
/// `STATUS_INSUFFICIENT_RESOURCES`; `STATUS_DEVICE_REMOVED`: the adapter was stopped, the engine is
/// lost, or the device ends or has ended (`NfEndDevice`; try again if that fails).
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTCreateHwQueueForUserModeSubmission(
    args: *mut CreateHwQueueForUserModeSubmission,
) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::in_out(args, hw_queue::create) }
}

/// Destroys a hardware queue of either kind, its doorbell and its progress fence; what it has not
/// executed is dropped.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTDestroyHwQueue(args: *const DestroyHwQueue) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, hw_queue::destroy) }
}

/// Creates the doorbell of a queue, disconnected: the addresses and `hDoorbell` out. It is rung as
/// `NfRingSubmit` of `native_fence_ring.h` does. No engine has the ring of a queue without a doorbell; the
/// addresses of another doorbell of the same queue are the same.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: an unknown flag, private data, a queue that
/// has a doorbell; `STATUS_NOT_SUPPORTED`: a second address, another size of the ring, a ring of
/// the caller's own; `STATUS_DEVICE_REMOVED`: the adapter was stopped, or the device ends or has ended
/// (`NfEndDevice`; try again if that fails); `STATUS_NO_MEMORY`, `STATUS_INSUFFICIENT_RESOURCES`: the driver's.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTCreateDoorbell(args: *mut CreateDoorbell) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::in_out(args, doorbell::create) }
}

/// Connects a doorbell: packets are executed from now on.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: flags;
/// `STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE`: the queue was stopped at a packet;
/// `STATUS_DEVICE_REMOVED`: the device is lost, the adapter was stopped, or the device ends or has ended
/// (`NfEndDevice`; try again if that fails);
/// `STATUS_INSUFFICIENT_RESOURCES`: the engine takes no more queues; `STATUS_NO_MEMORY`.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTConnectDoorbell(args: *const ConnectDoorbell) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, doorbell::connect) }
}

/// Disconnects and destroys a doorbell; what the engine has not executed stays in the ring, and runs when
/// another doorbell of the queue is connected.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTDestroyDoorbell(args: *const DestroyDoorbell) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, doorbell::destroy) }
}

/// Tells the driver that a doorbell was rung whose status read CONNECTED_NOTIFY_KMD.
///
/// # Errors
/// `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: flags.
///
/// # Safety
/// `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
/// call; and so do the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NfD3DKMTNotifyWorkSubmission(
    args: *const NotifyWorkSubmission,
) -> NtStatus {
    // SAFETY: the caller's promise.
    unsafe { caller::input(args, doorbell::notify) }
}
