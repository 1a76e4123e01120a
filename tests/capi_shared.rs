//! Shared fences through the C interface: a file descriptor for an NT handle.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/c_world.rs"]
mod c_world;
#[path = "support/engines.rs"]
mod engines;

use bytemuck::Zeroable;
use c_world::{call, good};
use native_fence::abi::wddm::{
    KmtHandle, NtStatus, OpenNativeFenceFromNtHandle, SignalFlags, SynchronizationObjectFlags,
};
use native_fence::capi::NfD3DKMTOpenNativeFenceFromNtHandle;
use std::os::fd::{AsRawFd, OwnedFd};

fn opened(device: KmtHandle, shared: &OwnedFd) -> OpenNativeFenceFromNtHandle {
    let mut open = OpenNativeFenceFromNtHandle::zeroed();
    open.device = device;
    open.nt_handle = u64::from(shared.as_raw_fd().cast_unsigned());
    good(call!(NfD3DKMTOpenNativeFenceFromNtHandle, &mut open));
    open
}

/// NF-15 and NF-14 through the C interface: one descriptor opens the fence on another device and on
/// another adapter, as often as is wanted; each sees the value at an address of its own, waits, signals,
/// and the fence goes with the last of them.
///
/// Kills `c-forgets-that-a-fence-is-shared`.
#[test]
fn nf_15_a_descriptor_opens_a_fence_on_other_devices_and_adapters() {
    if engines::shader().is_none() || !engines::memory::is_usual() {
        return;
    }
    let (here, there) = (c_world::open(), c_world::open());
    let makers = c_world::device(here);
    let flags = SynchronizationObjectFlags::SHARED;
    let made = c_world::fence(makers, 7, flags);
    let shared = c_world::share(made.sync_object);
    let devices = [c_world::device(here), c_world::device(there)];
    let fences = devices.map(|device| opened(device, &shared));
    let again = opened(devices[1], &shared);
    let address =
        |open: &OpenNativeFenceFromNtHandle| open.native_fence_mapping.current_value_cpu_va;
    assert_ne!(address(&fences[0]), address(&fences[1]));
    let values = || fences.map(|fence| c_world::word(address(&fence)));
    assert_eq!(values(), [7, 7]);
    let signal = |device, fence, value: u64| {
        good(c_world::signal(
            device,
            &[fence],
            &[value],
            SignalFlags::default(),
        ));
    };
    signal(makers, made.sync_object, 8);
    for (device, fence) in devices.iter().zip(&fences) {
        good(c_world::wait(*device, &[fence.sync_object], &[8]));
    }
    good(c_world::destroy(made.sync_object));
    signal(devices[1], fences[1].sync_object, 9);
    good(c_world::wait(devices[0], &[fences[0].sync_object], &[9]));
    assert_eq!(values(), [9, 9]);
    good(c_world::destroy(fences[1].sync_object));
    let closed = c_world::wait(devices[1], &[fences[1].sync_object], &[9]);
    assert_eq!(closed, NtStatus::INVALID_HANDLE);
    good(c_world::wait(devices[1], &[again.sync_object], &[9]));
}
