//! Bad input: every call of the C interface, with each argument wrong in turn.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/bad_input.rs"]
mod bad_input;

use bad_input::{c_kernel, c_walk, c_world, walk_over};
use bytemuck::Zeroable;
use c_kernel::Kernel;
use c_walk::{DENIED, HANDLE, NOT_BUILT, PARAMETER, Walk, walk};
use c_world::{World, good};
use native_fence::abi::wddm::{
    CloseAdapter, ConnectDoorbell, CreateDevice, CreateDoorbell, CreateDoorbellFlags,
    CreateHwContext, CreateHwQueueForUserModeSubmission, CreateNativeFence, DestroyDevice,
    DestroyDoorbell, DestroyHwContext, DestroyHwQueue, DestroySynchronizationObject,
    DeviceStateType, GetDeviceState, NativeFenceType, NotifyWorkSubmission, NtStatus,
    OpenNativeFenceFromNtHandle, QueryAdapterInfo, QueryAdapterInfoType, SignalFlags,
    SynchronizationObjectFlags,
};
use native_fence::capi::{
    EndDevice, HwQueuePrivateData, NfD3DKMTCloseAdapter, NfD3DKMTConnectDoorbell,
    NfD3DKMTCreateDevice, NfD3DKMTCreateDoorbell, NfD3DKMTCreateHwContext,
    NfD3DKMTCreateHwQueueForUserModeSubmission, NfD3DKMTCreateNativeFence, NfD3DKMTDestroyDevice,
    NfD3DKMTDestroyDoorbell, NfD3DKMTDestroyHwContext, NfD3DKMTDestroyHwQueue,
    NfD3DKMTDestroySynchronizationObject, NfD3DKMTGetDeviceState, NfD3DKMTNotifyWorkSubmission,
    NfD3DKMTOpenNativeFenceFromNtHandle, NfD3DKMTQueryAdapterInfo, NfEndDevice, NfLastErrorText,
    NfOpenAdapter, NfShareObject, OpenAdapter, ShareObject,
};
use std::os::fd::AsRawFd;

/// `value` in the private bytes of a queue.
fn ring_of(capacity: u64) -> [u8; 64] {
    let mut private = HwQueuePrivateData::zeroed();
    private.ring_capacity = capacity;
    bytemuck::cast(private)
}

fn creations(walk: &mut Walk<'_>) {
    let world = walk.world;
    let mut device = CreateDevice::zeroed();
    device.adapter = world.adapter;
    walk!(walk, NfD3DKMTCreateDevice, device, adapter: "adapter",
        "a flag": |a: &mut CreateDevice| a.flags = 1 => PARAMETER,
        "half a pointer": |a: &mut CreateDevice| a.padding = 1 => PARAMETER,
    );

    let mut context = CreateHwContext::zeroed();
    (context.device, context.engine_affinity) = (world.device, 1);
    walk!(walk, NfD3DKMTCreateHwContext, context, device: "device",
        "a flag": |a: &mut CreateHwContext| a.flags = 1 => PARAMETER,
        "a node too far": |a: &mut CreateHwContext| a.node_ordinal = 1 => PARAMETER,
        "no engine": |a: &mut CreateHwContext| a.engine_affinity = 0 => PARAMETER,
        "two engines": |a: &mut CreateHwContext| a.engine_affinity = 3 => PARAMETER,
        "another engine": |a: &mut CreateHwContext| a.engine_affinity = 2 => PARAMETER,
        "the last node": |a: &mut CreateHwContext| a.node_ordinal = u32::MAX => PARAMETER,
        "all engines": |a: &mut CreateHwContext| a.engine_affinity = u32::MAX => PARAMETER,
        "private data": |a: &mut CreateHwContext| a.private_driver_data_size = 8 => PARAMETER,
    );

    type Queue = CreateHwQueueForUserModeSubmission;
    let mut queue = Queue::zeroed();
    queue.hw_context = world.context;
    walk!(walk, NfD3DKMTCreateHwQueueForUserModeSubmission, queue, hw_context: "context",
        "a flag": |a: &mut Queue| a.flags = 0x10 => PARAMETER,
        "a ring of its own": |a: &mut Queue| a.ring_buffer = 1 => NOT_BUILT,
        "a control of its own": |a: &mut Queue| a.ring_buffer_control = 1 => NOT_BUILT,
        "a ring of one": |a: &mut Queue| a.private_driver_data = ring_of(1) => PARAMETER,
        "a ring of twelve": |a: &mut Queue| a.private_driver_data = ring_of(12) => PARAMETER,
        "too large a ring": |a: &mut Queue| a.private_driver_data = ring_of(1 << 21) => PARAMETER,
        "no ring at all": |a: &mut Queue| a.private_driver_data = ring_of(u64::MAX) => PARAMETER,
    );

    let mut doorbell = CreateDoorbell::zeroed();
    doorbell.hw_queue = world.quiet_queue.hw_queue;
    let first = world.queue.hw_queue;
    walk!(walk, NfD3DKMTCreateDoorbell, doorbell, hw_queue: "queue",
        "a second doorbell": |a: &mut CreateDoorbell| a.hw_queue = first => PARAMETER,
        "a ring of its own": |a: &mut CreateDoorbell| a.ring_buffer = 1 => NOT_BUILT,
        "a control of its own": |a: &mut CreateDoorbell| a.ring_buffer_control = 1 => NOT_BUILT,
        "a second address": |a: &mut CreateDoorbell| {
            a.flags = CreateDoorbellFlags::REQUIRE_SECONDARY_CPU_VA;
        } => NOT_BUILT,
        "another size": |a: &mut CreateDoorbell| {
            a.flags = CreateDoorbellFlags::RESIZE_RING_BUFFER_OPERATION;
        } => NOT_BUILT,
        "an unknown flag": |a: &mut CreateDoorbell| a.flags.0 = 4 => PARAMETER,
        "private data": |a: &mut CreateDoorbell| a.private_driver_data_size = 8 => PARAMETER,
    );
}

/// The flags of a fence: what is forbidden before what is not built.
fn fences(walk: &mut Walk<'_>) {
    type Flags = SynchronizationObjectFlags;
    type Fence = CreateNativeFence;
    let mut fence = Fence::zeroed();
    fence.device = walk.world.device;
    walk!(walk, NfD3DKMTCreateNativeFence, fence, device: "device",
        "a flag of the call": |a: &mut Fence| a.flags = 1 => PARAMETER,
        "an affinity": |a: &mut Fence| a.info.engine_affinity = 2 => PARAMETER,
        "two engines": |a: &mut Fence| a.info.engine_affinity = 3 => PARAMETER,
        "an unknown type": |a: &mut Fence| a.info.fence_type = NativeFenceType(2) => PARAMETER,
        "intra-gpu with a value": |a: &mut Fence| {
            a.info.fence_type = NativeFenceType::INTRA_GPU;
            a.info.initial_fence_value = 1;
        } => PARAMETER,
        "bit 9": |a: &mut Fence| a.info.flags.0 = 1 << 9 => PARAMETER,
        "bit 30": |a: &mut Fence| a.info.flags.0 = 1 << 30 => PARAMETER,
        "bit 31": |a: &mut Fence| a.info.flags.0 = 1 << 31 => PARAMETER,
        "neither signal nor wait": |a: &mut Fence| {
            a.info.flags = Flags::NO_SIGNAL.with(Flags::NO_WAIT);
        } => DENIED,
        "cross-adapter and intra-gpu": |a: &mut Fence| {
            a.info.flags = Flags::CROSS_ADAPTER.with(Flags::SHARED);
            a.info.fence_type = NativeFenceType::INTRA_GPU;
        } => PARAMETER,
        "nt handles of what is not shared": |a: &mut Fence| {
            a.info.flags = Flags::NT_SECURITY_SHARING;
        } => PARAMETER,
        "cross-adapter": |a: &mut Fence| a.info.flags = Flags::CROSS_ADAPTER => NOT_BUILT,
        "top of pipeline": |a: &mut Fence| a.info.flags = Flags::TOP_OF_PIPELINE => NOT_BUILT,
        "no gpu": |a: &mut Fence| a.info.flags = Flags::NO_GPU_ACCESS => NOT_BUILT,
        "by kmd": |a: &mut Fence| a.info.flags = Flags::SIGNAL_BY_KMD => NOT_BUILT,
        "unwait": |a: &mut Fence| {
            a.info.flags = Flags::UNWAIT_CPU_WAITERS_ONLY_ON_DESTROY;
        } => NOT_BUILT,
        "an unknown type, neither signal nor wait": |a: &mut Fence| {
            a.info.fence_type = NativeFenceType(u32::MAX);
            a.info.flags = Flags::NO_SIGNAL.with(Flags::NO_WAIT);
        } => PARAMETER,
        "neither signal nor wait, shared": |a: &mut Fence| {
            a.info.flags = Flags::NO_SIGNAL.with(Flags::NO_WAIT).with(Flags::SHARED);
        } => DENIED,
        "neither signal nor wait, cross-adapter": |a: &mut Fence| {
            a.info.flags = Flags::NO_SIGNAL.with(Flags::NO_WAIT).with(Flags::CROSS_ADAPTER);
        } => DENIED,
    );
}

/// Sharing a fence, and opening one: what was not created shared, and what is no shared handle.
fn sharing(walk: &mut Walk<'_>) {
    let world = walk.world;
    let mut share = ShareObject::zeroed();
    share.sync_object = world.fences[0].sync_object;
    walk!(walk, NfShareObject, share, sync_object: "fence",
        "not created shared": |_: &mut ShareObject| {} => DENIED,
        "a progress fence": |a: &mut ShareObject| {
            a.sync_object = world.queue.progress_fence;
        } => DENIED,
    );
    type Open = OpenNativeFenceFromNtHandle;
    let shared = c_world::shared(world.device);
    let pipe = std::io::pipe().unwrap();
    let (empty, _other_end) = std::os::unix::net::UnixStream::pair().unwrap();
    let number = |fd: i32| u64::from(fd.cast_unsigned());
    let (pipe, empty) = (number(pipe.0.as_raw_fd()), number(empty.as_raw_fd()));
    let mut open = Open::zeroed();
    (open.device, open.nt_handle) = (world.device, number(shared.as_raw_fd()));
    walk!(walk, NfD3DKMTOpenNativeFenceFromNtHandle, open, device: "device",
        "a flag": |a: &mut Open| a.flags = SynchronizationObjectFlags::NO_WAIT => PARAMETER,
        "an affinity": |a: &mut Open| a.engine_affinity = 2 => PARAMETER,
        "no descriptor": |a: &mut Open| a.nt_handle = u64::MAX => HANDLE,
        "a number too far": |a: &mut Open| a.nt_handle = 1 << 31 => HANDLE,
        "a closed one": |a: &mut Open| a.nt_handle = 1 << 20 => HANDLE,
        "a pipe": |a: &mut Open| a.nt_handle = pipe => HANDLE,
        "a socket with nothing in it": |a: &mut Open| a.nt_handle = empty => HANDLE,
        "a number with more behind it": |a: &mut Open| a.nt_handle |= 1 << 32 => HANDLE,
        "two engines": |a: &mut Open| a.engine_affinity = 3 => PARAMETER,
    );
}

fn the_rest(walk: &mut Walk<'_>) {
    let world = walk.world;
    let mut open = OpenAdapter::zeroed();
    open.adapter = 77;
    // SAFETY: NULL, not aligned, or a structure of this test's own, with a text of its own.
    let call = |args| unsafe { NfOpenAdapter(args) };
    walk.pointers("open", open, call);
    for (name, status) in [
        (c"no device of that name", NtStatus::NO_SUCH_DEVICE),
        (c"", PARAMETER),
        (c"\xff\xfe", PARAMETER),
    ] {
        open.device_name = name.as_ptr().expose_provenance() as u64;
        walk.refused(&format!("open, {name:?}"), open, status, call);
    }

    let mut answer = 0xabcd_u32;
    let place = (&raw mut answer).expose_provenance() as u64;
    type Query = QueryAdapterInfo;
    let mut query = Query::zeroed();
    query.adapter = world.adapter;
    query.info_type = QueryAdapterInfoType::WDDM_3_1_CAPS;
    (query.private_driver_data, query.private_driver_data_size) = (place, 4);
    walk!(walk, NfD3DKMTQueryAdapterInfo, query, adapter: "adapter",
        "another type": |q: &mut Query| q.info_type = QueryAdapterInfoType(79) => NOT_BUILT,
        "no room": |q: &mut Query| q.private_driver_data_size = 3 => NtStatus::BUFFER_TOO_SMALL,
        "no place": |q: &mut Query| q.private_driver_data = 0 => PARAMETER,
        "a crooked place": |q: &mut Query| q.private_driver_data += 1 => PARAMETER,
    );
    assert_eq!(answer, 0xabcd, "no answer was written");

    let doorbell = world.doorbell.doorbell;
    let connect = ConnectDoorbell { doorbell, flags: 0 };
    walk!(walk, NfD3DKMTConnectDoorbell, connect, doorbell: "doorbell",
        "a flag": |a: &mut ConnectDoorbell| a.flags = 1 => PARAMETER,
    );
    let notify = NotifyWorkSubmission { doorbell, flags: 0 };
    walk!(walk, NfD3DKMTNotifyWorkSubmission, notify, doorbell: "doorbell",
        "a flag": |a: &mut NotifyWorkSubmission| a.flags = 1 => PARAMETER,
    );

    let progress = world.queue.progress_fence;
    let fence = DestroySynchronizationObject {
        sync_object: world.fences[0].sync_object,
    };
    walk!(walk, NfD3DKMTDestroySynchronizationObject, fence, sync_object: "fence",
        "a progress fence": |a: &mut DestroySynchronizationObject| {
            a.sync_object = progress;
        } => PARAMETER,
    );
    let doorbell = DestroyDoorbell { doorbell };
    walk!(walk, NfD3DKMTDestroyDoorbell, doorbell, doorbell: "doorbell",);
    let queue = DestroyHwQueue {
        hw_queue: world.queue.hw_queue,
    };
    walk!(walk, NfD3DKMTDestroyHwQueue, queue, hw_queue: "queue",);
    let context = DestroyHwContext {
        hw_context: world.context,
    };
    walk!(walk, NfD3DKMTDestroyHwContext, context, hw_context: "context",);
    let mut state = GetDeviceState::zeroed();
    (state.device, state.state_type) = (world.device, DeviceStateType::EXECUTION);
    walk!(walk, NfD3DKMTGetDeviceState, state, device: "device",
        "no type": |a: &mut GetDeviceState| a.state_type = DeviceStateType(0) => NOT_BUILT,
        "what it presents": |a: &mut GetDeviceState| {
            a.state_type = DeviceStateType::PRESENT;
        } => NOT_BUILT,
    );
    let mut end = EndDevice::zeroed();
    end.device = world.device;
    walk!(walk, NfEndDevice, end, device: "device",
        "a flag, and all the time": |a: &mut EndDevice| {
            (a.flags, a.timeout_in_milliseconds) = (1, u64::MAX);
        } => PARAMETER,
    );
    let device = DestroyDevice {
        device: world.device,
    };
    walk!(walk, NfD3DKMTDestroyDevice, device, device: "device",);
    let adapter = CloseAdapter {
        adapter: world.adapter,
    };
    walk!(walk, NfD3DKMTCloseAdapter, adapter, adapter: "adapter",);
}

/// `NfLastErrorText` keeps to the room that it is given, none among it.
#[test]
fn the_sentence_of_an_error_keeps_to_its_room() {
    let mut wrong = DestroyDevice { device: 0 };
    assert_eq!(
        c_world::call!(NfD3DKMTDestroyDevice, &mut wrong),
        NtStatus::INVALID_HANDLE
    );
    let whole = c_world::last_error();
    assert!(whole.contains("names no device"), "{whole}");
    for room in [0, 1, 2, 8, whole.len(), whole.len() + 1] {
        let mut buffer = vec![0xa5_u8; whole.len() + 2];
        // SAFETY: a buffer of more bytes than it is said to have.
        let length = unsafe { NfLastErrorText(buffer.as_mut_ptr(), room) };
        assert_eq!(length, whole.len(), "{room}");
        let kept = room.saturating_sub(1).min(whole.len());
        assert_eq!(&buffer[..kept], &whole.as_bytes()[..kept], "{room}");
        if room > 0 {
            assert_eq!(buffer[kept], 0, "{room}");
        }
        let untouched = &buffer[room.min(kept + 1)..];
        assert!(untouched.iter().all(|byte| *byte == 0xa5), "{room}");
    }
    // SAFETY: NULL is allowed, whatever room it is said to have.
    let length = unsafe { NfLastErrorText(std::ptr::null_mut(), 64) };
    assert_eq!(length, whole.len());
}

/// Each function of the C interface that takes a structure stands in one of the tables of wrong calls.
#[test]
fn every_call_stands_in_a_table() {
    let calls = [
        include_str!("../src/capi/calls.rs"),
        include_str!("../src/capi/kernel_queue_calls.rs"),
        include_str!("../src/capi/sync_object_calls.rs"),
    ];
    let tables = [
        include_str!("capi_bad_input.rs"),
        include_str!("capi_bad_sync.rs"),
        include_str!("capi_bad_gpu_sync.rs"),
        include_str!("capi_bad_kernel_queue.rs"),
    ];
    let named = calls
        .iter()
        .flat_map(|text| text.split("extern \"C\" fn ").skip(1));
    let names: Vec<_> = named.filter_map(|rest| rest.split('(').next()).collect();
    assert!(names.len() > 25, "{names:?}");
    for name in names.into_iter().filter(|name| *name != "NfLastErrorText") {
        let walked = |table: &str| {
            table.contains(&format!("walk!(walk, {name},"))
                || table.contains(&format!("unsafe {{ {name}("))
        };
        assert!(tables.iter().any(|table| walked(table)), "{name}");
    }
}

/// Every call of the C interface but those of waits and signals (`capi_bad_sync`) and of kernel-mode
/// queues (`capi_bad_kernel_queue`), with each argument wrong in turn: NULL, not aligned, no handle,
/// closed, of another kind, both NoSignal and NoWait, cross-adapter with INTRA_GPU (NF-30). Each returns the documented status, leaves its arguments, every value and
/// every doorbell, and no handle behind. At the end all things are still there, once.
///
/// Kills `generations-are-not-compared`, `nt-sharing-needs-no-sharing`, `intra-gpu-crosses-adapters`,
/// `flags-that-are-not-built-are-taken`, `no-room-for-the-answer`, `null-is-read`,
/// `progress-fences-can-be-destroyed`, `children-outlive-their-device`.
#[test]
fn nf_30_bad_input_is_refused_and_changes_nothing() {
    let tables = |walk: &mut Walk<'_>, _: &Kernel| {
        creations(walk);
        fences(walk);
        sharing(walk);
        the_rest(walk);
    };
    walk_over(250, tables, |world, _| all_is_there(world));
}

fn all_is_there(world: &World) {
    let fences = world.fences.map(|fence| fence.sync_object);
    good(c_world::signal(
        world.device,
        &fences,
        &[11, 12],
        SignalFlags::default(),
    ));
    assert_eq!(world.fences.map(|fence| c_world::value(&fence)), [11, 12]);
    good(c_world::wait(world.device, &fences, &[11, 12]));
    let mut connect = ConnectDoorbell {
        doorbell: world.doorbell.doorbell,
        flags: 0,
    };
    good(c_world::call!(NfD3DKMTConnectDoorbell, &mut connect));
    for status in [NtStatus::SUCCESS, HANDLE] {
        let mut queue = DestroyHwQueue {
            hw_queue: world.queue.hw_queue,
        };
        assert_eq!(c_world::call!(NfD3DKMTDestroyHwQueue, &mut queue), status);
        let mut adapter = CloseAdapter {
            adapter: world.adapter,
        };
        if status == HANDLE {
            // With it goes all that was made on it.
            good(c_world::call!(NfD3DKMTCloseAdapter, &mut adapter));
            assert_eq!(c_world::destroy(fences[0]), HANDLE);
            assert_eq!(c_world::wait(world.device, &fences, &[0, 0]), HANDLE);
        }
    }
}
