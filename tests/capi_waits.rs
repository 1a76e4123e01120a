//! The C interface where threads meet, and on a device without native fences.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/c_world.rs"]
mod c_world;
#[path = "support/engines.rs"]
mod engines;
#[path = "support/respawned.rs"]
mod respawned;
#[path = "support/until.rs"]
mod until;

use bytemuck::Zeroable;
use c_world::{call, good};
use native_fence::abi::wddm::{
    CloseAdapter, CreateNativeFence, DestroyDevice, DeviceExecutionState, DeviceStateType,
    GetDeviceState, NativeFenceType, NtStatus, QueryAdapterInfo, QueryAdapterInfoType, SignalFlags,
    SynchronizationObjectFlags, Wddm31Caps,
};
use native_fence::capi::{
    NfD3DKMTCloseAdapter, NfD3DKMTCreateNativeFence, NfD3DKMTDestroyDevice, NfD3DKMTGetDeviceState,
    NfD3DKMTQueryAdapterInfo,
};
use std::sync::mpsc;
use std::thread;
use until::until_sleeping;

fn caps_of(adapter: u32) -> Wddm31Caps {
    let mut caps = Wddm31Caps(0xffff_ffff);
    let mut query = QueryAdapterInfo::zeroed();
    query.adapter = adapter;
    query.info_type = QueryAdapterInfoType::WDDM_3_1_CAPS;
    query.private_driver_data = (&raw mut caps).expose_provenance() as u64;
    query.private_driver_data_size = 4;
    good(call!(NfD3DKMTQueryAdapterInfo, &mut query));
    caps
}

/// NF-22 through the C interface: a thread that sleeps in a wait is woken by a signal, by the end of
/// its fence, and by the end of its device; the error says that the handle is no more.
///
/// Kills `a-destroyed-fence-keeps-its-waits`, `children-outlive-their-device`.
#[test]
fn nf_22_a_blocked_wait_ends_when_its_fence_or_device_does() {
    if engines::shader().is_none() {
        return;
    }
    let adapter = c_world::open();
    for (end, wanted) in [
        ("signal", NtStatus::SUCCESS),
        ("fence", NtStatus::INVALID_HANDLE),
        ("device", NtStatus::INVALID_HANDLE),
    ] {
        let device = c_world::device(adapter);
        let flags = SynchronizationObjectFlags::default();
        let fence = c_world::fence(device, 0, flags).sync_object;
        let (tell, told) = mpsc::channel();
        let waiter = thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            c_world::wait(device, &[fence], &[1])
        });
        until_sleeping(told.recv().unwrap());
        match end {
            "signal" => good(c_world::signal(
                device,
                &[fence],
                &[1],
                SignalFlags::default(),
            )),
            "fence" => good(c_world::destroy(fence)),
            _ => {
                let mut device = DestroyDevice { device };
                good(call!(NfD3DKMTDestroyDevice, &mut device));
            }
        }
        assert_eq!(waiter.join().unwrap(), wanted, "{end}");
    }
    let mut adapter = CloseAdapter { adapter };
    good(call!(NfD3DKMTCloseAdapter, &mut adapter));
}

/// NF-22 through the C interface: one of several is enough with WaitAny, and without it all must
/// come.
///
/// Kills `wait-any-waits-for-all`.
#[test]
fn nf_22_wait_any_needs_one() {
    if engines::shader().is_none() {
        return;
    }
    let device = c_world::device(c_world::open());
    let flags = SynchronizationObjectFlags::default();
    let fences: Vec<_> = (0..32)
        .map(|_| c_world::fence(device, 0, flags).sync_object)
        .collect();
    let values = [1_u64; 32];
    good(c_world::signal(
        device,
        &fences[31..],
        &[1],
        SignalFlags::default(),
    ));
    good(c_world::wait_any(device, &fences, &values));
    let all = thread::spawn({
        let fences = fences.clone();
        move || c_world::wait(device, &fences, &values)
    });
    good(c_world::signal(
        device,
        &fences,
        &values,
        SignalFlags::default(),
    ));
    good(all.join().unwrap());
}

/// FQ-06, for an adapter that came up with native fences: the bit is set, and no other.
///
/// Kills `no-adapter-has-native-fences`.
#[test]
fn fq_06_an_adapter_with_native_fences_says_so() {
    if engines::shader().is_none() {
        return;
    }
    let caps = caps_of(c_world::open());
    assert_eq!(caps, Wddm31Caps::NATIVE_GPU_FENCE_SUPPORTED);
}

/// FQ-06 on SwiftShader, which has no native fences: the bit is clear, and no native fence is
/// made; in a process of its own, with `NFENCE_SWIFTSHADER_ICD` as its driver file.
///
/// Kills `every-adapter-has-native-fences`, where SwiftShader is there.
#[test]
fn fq_06_an_adapter_without_native_fences_says_so() {
    if let Some(environment) = respawned::on_swiftshader() {
        let wanted = "SwiftShader says it has none";
        respawned::run_well("child_opens_swiftshader_from_c", &environment, wanted);
    }
}

#[test]
#[ignore = "run by another test, with another environment"]
fn child_opens_swiftshader_from_c() {
    let adapter = c_world::open();
    assert_eq!(caps_of(adapter), Wddm31Caps(0));
    let mut fence = CreateNativeFence::zeroed();
    fence.device = c_world::device(adapter);
    let status = call!(NfD3DKMTCreateNativeFence, &mut fence);
    assert_eq!((status, fence.sync_object), (NtStatus::NOT_SUPPORTED, 0));
    let mut close = CloseAdapter { adapter };
    good(call!(NfD3DKMTCloseAdapter, &mut close));
    println!("SwiftShader says it has none");
}

/// NF-13 through the C interface: a fence of type INTRA_GPU is made, its mapping names no CPU address,
/// and the CPU's wait and signal are refused as no parameters of these calls, alone and in a batch.
///
/// Kills `the-cpu-waits-for-intra-gpu` and `the-cpu-signals-intra-gpu`.
#[test]
fn nf_13_intra_gpu_is_made_and_refused_to_the_cpu() {
    if engines::shader().is_none() {
        return;
    }
    let adapter = c_world::open();
    let device = c_world::device(adapter);
    let mut fence = CreateNativeFence::zeroed();
    fence.device = device;
    fence.info.fence_type = NativeFenceType::INTRA_GPU;
    good(call!(NfD3DKMTCreateNativeFence, &mut fence));
    assert_eq!(fence.info.native_fence_mapping.current_value_cpu_va, 0);
    let flags = SynchronizationObjectFlags::default();
    let other = c_world::fence(device, 3, flags);
    let fences = [other.sync_object, fence.sync_object];
    let refused = NtStatus::INVALID_PARAMETER;
    for value in [0, 1] {
        assert_eq!(c_world::wait(device, &fences[1..], &[value]), refused);
        assert_eq!(c_world::wait(device, &fences, &[3, value]), refused);
    }
    let flags = SignalFlags::default();
    assert_eq!(c_world::signal(device, &fences[1..], &[1], flags), refused);
    assert_eq!(c_world::signal(device, &fences, &[4, 1], flags), refused);
    assert_eq!(c_world::value(&other), 3);
    good(c_world::destroy(fence.sync_object));
    let mut close = CloseAdapter { adapter };
    good(call!(NfD3DKMTCloseAdapter, &mut close));
}

/// TD-06 through the C interface: a device says that it runs. NoSignalMaxValueOnTdr is taken.
///
/// Open: a device that is lost, which no call of C makes; what its calls return then is shown of the statuses.
///
/// Kills `a-device-of-c-has-no-state`.
#[test]
fn td_06_a_device_of_c_says_how_it_is() {
    if engines::shader().is_none() {
        return;
    }
    let adapter = c_world::open();
    let device = c_world::device(adapter);
    let mut state = GetDeviceState::zeroed();
    (state.device, state.state_type) = (device, DeviceStateType::EXECUTION);
    good(call!(NfD3DKMTGetDeviceState, &mut state));
    assert_eq!(state.execution_state, DeviceExecutionState::ACTIVE);
    let flags = SynchronizationObjectFlags::NO_SIGNAL_MAX_VALUE_ON_TDR;
    let fence = c_world::fence(device, 3, flags);
    good(c_world::wait(device, &[fence.sync_object], &[3]));
    good(call!(NfD3DKMTDestroyDevice, &mut DestroyDevice { device }));
    good(call!(NfD3DKMTCloseAdapter, &mut CloseAdapter { adapter }));
}
