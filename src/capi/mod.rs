//! The C interface: functions of the shape of D3DKMT's, over the OS that the Rust interface uses.
//!
//! Each takes the published structure ([`wddm`](crate::abi::wddm)) by pointer and returns an
//! `NTSTATUS`. They are called `NfD3DKMT…` and not `D3DKMT…`: those names are gdi32's, whose
//! functions open a Windows kernel's objects, and a program that has both (under Wine, say) must
//! not get one for the other. What has no published counterpart is called `Nf…` alone. The header is
//! `native_fence.h` beside this file, made of these sources by `scripts/capi`; how a program
//! submits packets by itself stands in `native_fence_ring.h`.
//!
//! What holds for every call: an error changes nothing, neither what the arguments point to nor any
//! object; `NfLastErrorText` has a sentence on it. Pointers that are NULL or not aligned are
//! `STATUS_INVALID_PARAMETER`, as are counts above 32 and bits of flags without a meaning; what is
//! published and not built is `STATUS_NOT_SUPPORTED`. A handle that is 0, was never given out, was
//! closed, names another kind of thing, or a fence of another device is `STATUS_INVALID_HANDLE`.
//! Pointers, and how many things an array has, are looked at first, then handles, then flags, then
//! the rest. Destroying something destroys what was made on it. No panic comes out of a call: it is
//! `STATUS_INTERNAL_ERROR`. Any thread may call.
//!
//! What a caller points to is touched in `caller` alone; all other files are safe.
#![cfg_attr(test, allow(dead_code, reason = "without `calls` nobody calls"))]

mod adapter;
mod async_waits;
mod caller;
// The program of the unit tests links this crate a second time, which its tests depend on, and the
// names of C can be there once.
#[cfg(not(test))]
mod calls;
mod device;
mod doorbell;
mod event;
mod fence_rules;
mod gpu_sync;
mod handles;
mod hw_queue;
mod kernel_queue;
#[cfg(not(test))]
mod kernel_queue_calls;
mod last_error;
mod monitored_fence;
mod native_fence;
mod object;
mod private_data;
mod refusal;
mod signal;
mod sync_object;
#[cfg(not(test))]
mod sync_object_calls;
mod wait;

pub use adapter::adapter_handle;
#[cfg(not(test))]
pub use calls::{
    NfD3DKMTCloseAdapter, NfD3DKMTConnectDoorbell, NfD3DKMTCreateDevice, NfD3DKMTCreateDoorbell,
    NfD3DKMTCreateHwContext, NfD3DKMTCreateHwQueueForUserModeSubmission, NfD3DKMTCreateNativeFence,
    NfD3DKMTDestroyDevice, NfD3DKMTDestroyDoorbell, NfD3DKMTDestroyHwContext,
    NfD3DKMTDestroyHwQueue, NfD3DKMTGetDeviceState, NfD3DKMTNotifyWorkSubmission,
    NfD3DKMTOpenNativeFenceFromNtHandle, NfD3DKMTQueryAdapterInfo, NfEndDevice, NfLastErrorText,
    NfOpenAdapter, NfShareObject,
};
pub use handles::open_handles;
#[cfg(not(test))]
pub use kernel_queue_calls::{
    NfD3DKMTCreateHwQueue, NfD3DKMTSignalSynchronizationObjectFromGpu,
    NfD3DKMTSignalSynchronizationObjectFromGpu2, NfD3DKMTSubmitCommandToHwQueue,
    NfD3DKMTSubmitSignalSyncObjectsToHwQueue, NfD3DKMTSubmitWaitForSyncObjectsToHwQueue,
    NfD3DKMTWaitForSynchronizationObjectFromGpu,
};
pub use private_data::{
    EndDevice, HwQueueCommand, HwQueuePrivateData, NativeFencePrivateData, OpenAdapter, STRUCTURES,
    ShareObject,
};
#[cfg(not(test))]
pub use sync_object_calls::{
    NfD3DKMTCreateSynchronizationObject2, NfD3DKMTDestroySynchronizationObject,
    NfD3DKMTSignalSynchronizationObjectFromCpu, NfD3DKMTWaitForSynchronizationObjectFromCpu,
};
