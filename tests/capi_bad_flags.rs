//! Bad flags: every bit of every word of flags of the C interface.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/bad_input.rs"]
mod bad_input;

use bad_input::{c_kernel, c_walk, c_world, walk_over};
use bytemuck::Zeroable;
use c_kernel::Kernel;
use c_walk::{NOT_BUILT, PARAMETER, Walk};
use c_world::{signal_args, wait_args};
use native_fence::abi::wddm::{
    ConnectDoorbell, CreateDevice, CreateDoorbell, CreateHwContext, CreateHwQueue,
    CreateHwQueueForUserModeSubmission, CreateNativeFence, NotifyWorkSubmission,
    OpenNativeFenceFromNtHandle, SynchronizationObjectFlags,
};
use native_fence::capi::{
    EndDevice, NfD3DKMTConnectDoorbell, NfD3DKMTCreateDevice, NfD3DKMTCreateDoorbell,
    NfD3DKMTCreateHwContext, NfD3DKMTCreateHwQueue, NfD3DKMTCreateHwQueueForUserModeSubmission,
    NfD3DKMTCreateNativeFence, NfD3DKMTCreateSynchronizationObject2, NfD3DKMTNotifyWorkSubmission,
    NfD3DKMTOpenNativeFenceFromNtHandle, NfD3DKMTSignalSynchronizationObjectFromCpu,
    NfD3DKMTSignalSynchronizationObjectFromGpu2, NfD3DKMTSubmitSignalSyncObjectsToHwQueue,
    NfD3DKMTWaitForSynchronizationObjectFromCpu, NfEndDevice,
};
use std::os::fd::AsRawFd;

/// Walks the bits of a word of flags: those in the list have another status than INVALID_PARAMETER, or
/// are taken (`None`).
macro_rules! walk_bits {
    ($walk:ident, $call:ident, $good:expr, $word:expr $(, $bits:pat => $status:expr)* $(,)?) => {{
        // SAFETY: a structure of this test's own, whose pointers are too.
        let call = |args: *mut _| unsafe { $call(args) };
        let status = |bit: u32| match bit {
            $($bits => $status,)*
            _ => Some(PARAMETER),
        };
        $walk.bits(stringify!($call), $good, $word, status, call);
    }};
}

fn creations(walk: &mut Walk<'_>) {
    let world = walk.world;
    let mut device = CreateDevice::zeroed();
    device.adapter = world.adapter;
    walk_bits!(walk, NfD3DKMTCreateDevice, device, |a| &mut a.flags);
    let mut context = CreateHwContext::zeroed();
    (context.device, context.engine_affinity) = (world.device, 1);
    walk_bits!(walk, NfD3DKMTCreateHwContext, context, |a| &mut a.flags);
    let mut queue = CreateHwQueueForUserModeSubmission::zeroed();
    queue.hw_context = world.context;
    walk_bits!(
        walk,
        NfD3DKMTCreateHwQueueForUserModeSubmission,
        queue,
        |a| &mut a.flags
    );
    let mut queue = CreateHwQueue::zeroed();
    queue.hw_context = world.context;
    // NoBroadcastSignal and NoBroadcastWait hold of every queue.
    walk_bits!(walk, NfD3DKMTCreateHwQueue, queue, |a| &mut a.flags.0,
        1 | 2 => None,
        0 | 3..=6 => Some(NOT_BUILT),
    );
}

fn fences(walk: &mut Walk<'_>) {
    let device = walk.world.device;
    let mut fence = CreateNativeFence::zeroed();
    fence.device = device;
    walk_bits!(walk, NfD3DKMTCreateNativeFence, fence, |a| &mut a.flags);
    // Shared, NoSignal, NoWait and NoSignalMaxValueOnTdr alone make fences.
    walk_bits!(walk, NfD3DKMTCreateNativeFence, fence, |a| &mut a.info.flags.0,
        0 | 4..=6 => None,
        2 | 3 | 7 | 8 | 10 => Some(NOT_BUILT),
    );
    let fence = c_kernel::monitored_args(device, 0, SynchronizationObjectFlags::default());
    // As do NoSignal, NoWait, NoSignalMaxValueOnTdr and NoGPUAccess.
    walk_bits!(walk, NfD3DKMTCreateSynchronizationObject2, fence, |a| &mut a.info.flags.0,
        4..=7 => None,
        2 | 3 | 8 | 10 => Some(NOT_BUILT),
    );
    let shared = c_world::shared(device);
    let mut open = OpenNativeFenceFromNtHandle::zeroed();
    open.device = device;
    open.nt_handle = u64::from(shared.as_raw_fd().cast_unsigned());
    walk_bits!(walk, NfD3DKMTOpenNativeFenceFromNtHandle, open, |a| &mut a
        .flags
        .0);
}

fn doorbells_and_ends(walk: &mut Walk<'_>) {
    let world = walk.world;
    let mut created = CreateDoorbell::zeroed();
    created.hw_queue = world.quiet_queue.hw_queue;
    walk_bits!(walk, NfD3DKMTCreateDoorbell, created, |a| &mut a.flags.0,
        0 | 1 => Some(NOT_BUILT),
    );
    let doorbell = world.doorbell.doorbell;
    let connect = ConnectDoorbell { doorbell, flags: 0 };
    walk_bits!(walk, NfD3DKMTConnectDoorbell, connect, |a| &mut a.flags);
    let notify = NotifyWorkSubmission { doorbell, flags: 0 };
    walk_bits!(walk, NfD3DKMTNotifyWorkSubmission, notify, |a| &mut a.flags);
    let mut end = EndDevice::zeroed();
    end.device = world.device;
    walk_bits!(walk, NfEndDevice, end, |a| &mut a.flags);
}

fn waits_and_signals(walk: &mut Walk<'_>, kernel: &Kernel) {
    let device = walk.world.device;
    let fences = walk.world.fences.map(|fence| fence.sync_object);
    let (reached, values) = ([10, 10], [20, 20]);
    let wait = wait_args(device, &fences, &reached);
    walk_bits!(walk, NfD3DKMTWaitForSynchronizationObjectFromCpu, wait, |w| &mut w.flags.0,
        0 => None,
    );
    let signal = signal_args(device, &fences, &values);
    walk_bits!(walk, NfD3DKMTSignalSynchronizationObjectFromCpu, signal, |s| &mut s.flags.0,
        2 => None,
    );
    let (queues, contexts) = ([kernel.queue.hw_queue], [kernel.context]);
    let signal = c_kernel::signal_args(&queues, &fences, &values);
    walk_bits!(walk, NfD3DKMTSubmitSignalSyncObjectsToHwQueue, signal, |s| &mut s.flags.0,
        1 => Some(NOT_BUILT),
        0 | 2 => None,
    );
    let signal = c_kernel::context_signal2_args(&contexts, &fences, &values);
    walk_bits!(walk, NfD3DKMTSignalSynchronizationObjectFromGpu2, signal, |s| &mut s.flags.0,
        1 => Some(NOT_BUILT),
        0 | 2 => None,
    );
}

/// Every bit of every word of flags, each alone: one that has no meaning is STATUS_INVALID_PARAMETER, one
/// that is published and not built is STATUS_NOT_SUPPORTED, and nothing changes (NF-30).
///
/// Kills `a-reserved-bit-of-a-doorbell-is-taken`, `a-reserved-bit-of-a-wait-is-taken`,
/// `a-reserved-bit-of-an-end-is-taken`.
#[test]
fn nf_30_no_bit_without_a_meaning_is_taken() {
    let tables = |walk: &mut Walk<'_>, kernel: &Kernel| {
        creations(walk);
        fences(walk);
        doorbells_and_ends(walk);
        waits_and_signals(walk, kernel);
    };
    walk_over(450, tables, |world, kernel| {
        let fences = world.fences.map(|fence| c_world::value(&fence));
        assert_eq!(fences, [10, 10]);
        let (queue, progress) = (kernel.queue.hw_queue, kernel.queue.progress_fence);
        c_world::good(c_kernel::submit(queue, 1, &[c_kernel::nop()]));
        c_world::good(c_world::wait(world.device, &[progress], &[1]));
        let fences = world.fences.map(|fence| c_world::value(&fence));
        assert_eq!(fences, [10, 10], "no signal stood before the command");
    });
}
