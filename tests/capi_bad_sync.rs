//! Bad input of the calls of fences of either kind: creating monitored ones, waits and signals from the
//! CPU.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/bad_input.rs"]
mod bad_input;

use bad_input::{c_kernel, c_walk, c_world, walk_over};
use c_kernel::Kernel;
use c_walk::{DENIED, HANDLE, NOT_BUILT, PARAMETER, Walk, walk};
use c_world::{World, good, signal_args, wait_args};
use native_fence::abi::wddm::{
    CreateSynchronizationObject2, DestroySynchronizationObject, KmtHandle, NtStatus, SignalFlags,
    SynchronizationObjectFlags, SynchronizationObjectType, WaitFromCpuFlags,
};
use native_fence::capi::{
    NfD3DKMTCreateSynchronizationObject2, NfD3DKMTDestroySynchronizationObject,
    NfD3DKMTSignalSynchronizationObjectFromCpu, NfD3DKMTWaitForSynchronizationObjectFromCpu,
    NfShareObject, ShareObject,
};

/// Types and flags of a monitored fence: what is forbidden before what is not built.
fn monitored_fences(walk: &mut Walk<'_>, kernel: &Kernel) {
    type Flags = SynchronizationObjectFlags;
    type Fence = CreateSynchronizationObject2;
    type Type = SynchronizationObjectType;
    let fence = c_kernel::monitored_args(walk.world.device, 0, Flags::default());
    let shared = Flags::SHARED.with(Flags::NT_SECURITY_SHARING);
    walk!(walk, NfD3DKMTCreateSynchronizationObject2, fence, device: "device",
        "no type": |a: &mut Fence| a.info.object_type = SynchronizationObjectType(0) => PARAMETER,
        "one type too many": |a: &mut Fence| a.info.object_type = Type::TYPE_LIMIT => PARAMETER,
        "a native fence": |a: &mut Fence| a.info.object_type = Type::NATIVE_FENCE => PARAMETER,
        "a semaphore": |a: &mut Fence| a.info.object_type = Type::SEMAPHORE => NOT_BUILT,
        "a periodic fence": |a: &mut Fence| {
            a.info.object_type = Type::PERIODIC_MONITORED_FENCE;
        } => NOT_BUILT,
        "an affinity": |a: &mut Fence| a.info.engine_affinity = 2 => PARAMETER,
        "bit 9": |a: &mut Fence| a.info.flags.0 = 1 << 9 => PARAMETER,
        "bit 11": |a: &mut Fence| a.info.flags.0 = 1 << 11 => PARAMETER,
        "bit 31": |a: &mut Fence| a.info.flags.0 = 1 << 31 => PARAMETER,
        "neither signal nor wait": |a: &mut Fence| {
            a.info.flags = Flags::NO_SIGNAL.with(Flags::NO_WAIT);
        } => DENIED,
        "neither, and cross-adapter": |a: &mut Fence| {
            a.info.flags = Flags::NO_SIGNAL.with(Flags::NO_WAIT).with(Flags::CROSS_ADAPTER);
        } => DENIED,
        "nt handles of what is not shared": |a: &mut Fence| {
            a.info.flags = Flags::NT_SECURITY_SHARING;
        } => PARAMETER,
        "shared without nt handles": |a: &mut Fence| a.info.flags = Flags::SHARED => PARAMETER,
        "shared": |a: &mut Fence| a.info.flags = shared => NOT_BUILT,
        "cross-adapter": |a: &mut Fence| a.info.flags = Flags::CROSS_ADAPTER => NOT_BUILT,
        "top of pipeline": |a: &mut Fence| a.info.flags = Flags::TOP_OF_PIPELINE => NOT_BUILT,
        "by kmd": |a: &mut Fence| a.info.flags = Flags::SIGNAL_BY_KMD => NOT_BUILT,
        "unwait": |a: &mut Fence| {
            a.info.flags = Flags::UNWAIT_CPU_WAITERS_ONLY_ON_DESTROY;
        } => NOT_BUILT,
    );
    let share = ShareObject {
        sync_object: kernel.fences[0].sync_object,
        padding: 0,
        nt_handle: 0,
    };
    walk!(walk, NfShareObject, share, sync_object: "fence",
        "a monitored fence": |_: &mut ShareObject| {} => DENIED,
    );
    let progress = kernel.queue.progress_fence;
    let fence = DestroySynchronizationObject {
        sync_object: kernel.fences[0].sync_object,
    };
    walk!(walk, NfD3DKMTDestroySynchronizationObject, fence, sync_object: "fence",
        "a kernel queue": |a: &mut DestroySynchronizationObject| {
            a.sync_object = kernel.queue.hw_queue;
        } => HANDLE,
        "a progress fence of a kernel queue": |a: &mut DestroySynchronizationObject| {
            a.sync_object = progress;
        } => PARAMETER,
    );
}

/// Fences that forbid something, by their handles.
struct Others {
    no_signal: KmtHandle,
    no_wait: KmtHandle,
    foreign: KmtHandle,
    progress: KmtHandle,
}

/// Waits that would be satisfied at once, and signals that would store, each with one wrong thing.
fn waits_and_signals(walk: &mut Walk<'_>, [a, b]: [KmtHandle; 2], others: &Others) {
    let world = walk.world;
    let (values, pair) = ([20_u64; 33], [a, b]);
    // A fence that is wrong stands behind one that is right.
    let with = |wrong: KmtHandle| [a, wrong];
    let many = [a; 33];
    let progress = with(others.progress);
    let bad = bad_handles(world, a, others.foreign);
    let forbids_wait = ("no wait".to_owned(), with(others.no_wait), DENIED);
    let forbids_signal = ("no signal".to_owned(), with(others.no_signal), DENIED);
    let of_queue = ("a progress fence".to_owned(), progress, DENIED);
    let twice = ("twice".to_owned(), with(a), PARAMETER);

    let satisfied = [10_u64; 33];
    let wait = wait_args(world.device, &pair, &satisfied);
    type Wait = native_fence::abi::wddm::WaitForSynchronizationObjectFromCpu;
    walk!(walk, NfD3DKMTWaitForSynchronizationObjectFromCpu, wait, device: "device",
        "another device": |w: &mut Wait| w.device = world.other_device => HANDLE,
        "no fence": |w: &mut Wait| w.object_count = 0 => PARAMETER,
        "33 fences": |w: &mut Wait| *w = wait_args(world.device, &many, &satisfied) => PARAMETER,
        "too many to count": |w: &mut Wait| w.object_count = u32::MAX => PARAMETER,
        "no handles": |w: &mut Wait| w.object_handle_array = 0 => PARAMETER,
        "no values": |w: &mut Wait| w.fence_value_array = 0 => PARAMETER,
        "handles not aligned": |w: &mut Wait| w.object_handle_array += 1 => PARAMETER,
        "values not aligned": |w: &mut Wait| w.fence_value_array += 4 => PARAMETER,
        "an unknown flag": |w: &mut Wait| w.flags = WaitFromCpuFlags(2) => PARAMETER,
        "no event": |w: &mut Wait| w.async_event = u64::MAX => HANDLE,
        "no fence, nor handles": |w: &mut Wait| {
            (w.object_count, w.object_handle_array) = (0, 0);
        } => PARAMETER,
    );
    for (what, handles, status) in bad.iter().chain([&forbids_wait]) {
        for flags in [WaitFromCpuFlags::default(), WaitFromCpuFlags::WAIT_ANY] {
            let mut args = wait_args(world.device, handles, &satisfied);
            args.flags = flags;
            // SAFETY: structures and arrays of this test's own.
            let call = |args: *mut _| unsafe { NfD3DKMTWaitForSynchronizationObjectFromCpu(args) };
            walk.refused(&format!("wait, {what}"), args, *status, call);
        }
    }

    let signal = signal_args(world.device, &pair, &values);
    type Signal = native_fence::abi::wddm::SignalSynchronizationObjectFromCpu;
    let lower = [20_u64, 9];
    walk!(walk, NfD3DKMTSignalSynchronizationObjectFromCpu, signal, device: "device",
        "another device": |s: &mut Signal| s.device = world.other_device => HANDLE,
        "no fence": |s: &mut Signal| s.object_count = 0 => PARAMETER,
        "33 fences": |s: &mut Signal| *s = signal_args(world.device, &many, &values) => PARAMETER,
        "no handles": |s: &mut Signal| s.object_handle_array = 0 => PARAMETER,
        "no values": |s: &mut Signal| s.fence_value_array = 0 => PARAMETER,
        "handles not aligned": |s: &mut Signal| s.object_handle_array += 2 => PARAMETER,
        "values not aligned": |s: &mut Signal| s.fence_value_array += 4 => PARAMETER,
        "too many to count": |s: &mut Signal| s.object_count = u32::MAX => PARAMETER,
        "at submission": |s: &mut Signal| s.flags = SignalFlags::SIGNAL_AT_SUBMISSION => PARAMETER,
        "an event": |s: &mut Signal| s.flags = SignalFlags::ENQUEUE_CPU_EVENT => PARAMETER,
        "an unknown flag": |s: &mut Signal| s.flags = SignalFlags(8) => PARAMETER,
        "a value below": |s: &mut Signal| *s = signal_args(world.device, &pair, &lower) => PARAMETER,
    );
    let rows = bad.iter().chain([&forbids_signal, &of_queue, &twice]);
    refused_signals(walk, rows, &values);
}

/// What is wrong, the fences of a call, and its status.
type Wrong = (String, [KmtHandle; 2], NtStatus);

/// Handles that name no fence of the device, each behind a good one.
fn bad_handles(world: &World, good: KmtHandle, foreign: KmtHandle) -> Vec<Wrong> {
    let handles = world.not("fence").into_iter();
    let handles = handles.chain([("fence: foreign".to_owned(), foreign)]);
    handles
        .map(|(what, handle)| (what, [good, handle], HANDLE))
        .collect()
}

fn refused_signals<'r>(
    walk: &mut Walk<'_>,
    rows: impl IntoIterator<Item = &'r Wrong>,
    values: &[u64],
) {
    for (what, handles, status) in rows {
        for flags in [SignalFlags::default(), SignalFlags::ALLOW_FENCE_REWIND] {
            let mut args = signal_args(walk.world.device, handles, values);
            args.flags = flags;
            // SAFETY: structures and arrays of this test's own.
            let call = |args: *mut _| unsafe { NfD3DKMTSignalSynchronizationObjectFromCpu(args) };
            walk.refused(&format!("signal, {what}"), args, *status, call);
        }
    }
}

/// Every wait and signal from the CPU with each argument wrong in turn, of native fences, of monitored
/// ones and of both in one call, and every monitored fence that cannot be: each returns the documented
/// status, and changes nothing (NF-30, NF-23). At the end all fences are still there.
///
/// Kills `a-fence-of-any-device-is-taken`, `any-number-of-objects`,
/// `a-refused-wait-is-asked-of-none`, `no-signal-is-forgotten`, `monitored-flags-are-not-looked-at`,
/// `a-shared-monitored-fence-is-made`.
#[test]
fn nf_30_bad_waits_and_signals_are_refused_and_change_nothing() {
    walk_over(500, all_tables, all_are_there);
}

/// What names no fence is refused with a value of 0 too, which is the least that a fence can have (NF-30): of native
/// fences and of monitored ones, and behind a good one of either kind.
///
/// Kills `a-signal-of-0-names-nothing`.
#[test]
fn nf_30_signals_of_0_are_refused_for_what_is_no_fence() {
    let tables = |walk: &mut Walk<'_>, kernel: &Kernel| {
        let world = walk.world;
        let foreign = [world.foreign.sync_object, kernel.foreign.sync_object];
        for good in [world.fences[0].sync_object, kernel.fences[0].sync_object] {
            for foreign in foreign {
                refused_signals(walk, &bad_handles(world, good, foreign), &[20, 0]);
            }
        }
    };
    walk_over(40, tables, all_are_there);
}

/// All fences take a signal, and a wait for it.
fn all_are_there(world: &World, kernel: &Kernel) {
    let [a, b] = world.fences.map(|fence| fence.sync_object);
    let [c, d] = kernel.fences.map(|fence| fence.sync_object);
    let (all, values) = ([a, c, b, d], [11, 12, 13, 14]);
    good(c_world::signal(
        world.device,
        &all,
        &values,
        SignalFlags::default(),
    ));
    good(c_world::wait(world.device, &all, &values));
    assert_eq!(world.fences.map(|fence| c_world::value(&fence)), [11, 13]);
    assert_eq!(kernel.fences.map(|fence| c_kernel::value(&fence)), [12, 14]);
}

fn all_tables(walk: &mut Walk<'_>, kernel: &Kernel) {
    let world = walk.world;
    monitored_fences(walk, kernel);
    let native = Others {
        no_signal: world.no_signal.sync_object,
        no_wait: world.no_wait.sync_object,
        foreign: world.foreign.sync_object,
        progress: world.queue.progress_fence,
    };
    let monitored = Others {
        no_signal: kernel.no_signal.sync_object,
        no_wait: kernel.no_wait.sync_object,
        foreign: kernel.foreign.sync_object,
        progress: kernel.queue.progress_fence,
    };
    let [a, b] = world.fences.map(|fence| fence.sync_object);
    let [c, d] = kernel.fences.map(|fence| fence.sync_object);
    // The first of a pair stands before each fence that is wrong.
    for (pair, others) in [
        ([a, b], &native),
        ([c, d], &monitored),
        ([a, d], &monitored),
        ([c, b], &native),
    ] {
        waits_and_signals(walk, pair, others);
    }
}
