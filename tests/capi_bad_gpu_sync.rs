//! Bad input of the waits and signals of kernel-mode queues, named by the queue and by its context.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/bad_input.rs"]
mod bad_input;

use bad_input::{c_kernel, c_walk, c_world, walk_over};
use c_kernel::{Kernel, nop, signal_of};
use c_walk::{DENIED, HANDLE, NOT_BUILT, PARAMETER, Walk, walk};
use c_world::good;
use native_fence::abi::wddm::{
    KmtHandle, NtStatus, SignalFlags, SignalSynchronizationObjectFromGpu,
    SignalSynchronizationObjectFromGpu2, SubmitSignalSyncObjectsToHwQueue,
    SubmitWaitForSyncObjectsToHwQueue, WaitForSynchronizationObjectFromGpu,
};
use native_fence::capi::{
    NfD3DKMTSignalSynchronizationObjectFromGpu, NfD3DKMTSignalSynchronizationObjectFromGpu2,
    NfD3DKMTSubmitSignalSyncObjectsToHwQueue, NfD3DKMTSubmitWaitForSyncObjectsToHwQueue,
    NfD3DKMTWaitForSynchronizationObjectFromGpu,
};

/// Pairs of handles with what is wrong about the second, for waits or for signals.
fn pairs(
    walk: &Walk<'_>,
    kernel: &Kernel,
    signals: bool,
) -> Vec<(String, [KmtHandle; 2], NtStatus)> {
    let world = walk.world;
    let native = [&world.no_wait, &world.no_signal][usize::from(signals)].sync_object;
    let monitored = [&kernel.no_wait, &kernel.no_signal][usize::from(signals)].sync_object;
    let mut wrong = vec![
        ("foreign".to_owned(), kernel.foreign.sync_object, HANDLE),
        (
            "foreign, native".to_owned(),
            world.foreign.sync_object,
            HANDLE,
        ),
        ("forbidden".to_owned(), monitored, DENIED),
        ("forbidden, native".to_owned(), native, DENIED),
    ];
    if signals {
        wrong.push(("progress".to_owned(), kernel.queue.progress_fence, DENIED));
    }
    let no_fence = world.not("fence").into_iter();
    let wrong = no_fence
        .map(|(what, handle)| (what, handle, HANDLE))
        .chain(wrong);
    let right = kernel.fences[0].sync_object;
    wrong
        .map(|(what, handle, status)| (what, [right, handle], status))
        .collect()
}

fn waits(walk: &mut Walk<'_>, kernel: &Kernel) {
    type Wait = SubmitWaitForSyncObjectsToHwQueue;
    type OfContext = WaitForSynchronizationObjectFromGpu;
    let (queue, context) = (kernel.queue.hw_queue, kernel.context);
    let pair = kernel.fences.map(|fence| fence.sync_object);
    let (many, values) = ([pair[0]; 33], [1_000_u64; 33]);
    let wait = c_kernel::wait_args(queue, &pair, &values);
    walk!(walk, NfD3DKMTSubmitWaitForSyncObjectsToHwQueue, wait, hw_queue: "kernel queue",
        "no fence": |w: &mut Wait| w.object_count = 0 => PARAMETER,
        "33 fences": |w: &mut Wait| *w = c_kernel::wait_args(queue, &many, &values) => PARAMETER,
        "too many to count": |w: &mut Wait| w.object_count = u32::MAX => PARAMETER,
        "no handles": |w: &mut Wait| w.object_handle_array = 0 => PARAMETER,
        "no values": |w: &mut Wait| w.fence_value_array = 0 => PARAMETER,
        "handles not aligned": |w: &mut Wait| w.object_handle_array += 1 => PARAMETER,
        "values not aligned": |w: &mut Wait| w.fence_value_array += 4 => PARAMETER,
    );
    let wait = c_kernel::context_wait_args(context, &pair, &values);
    let (without, crowded) = (walk.world.context, kernel.crowded);
    walk!(walk, NfD3DKMTWaitForSynchronizationObjectFromGpu, wait, context: "context",
        "a context without one": |w: &mut OfContext| w.context = without => PARAMETER,
        "a context with two": |w: &mut OfContext| w.context = crowded => PARAMETER,
        "a kernel queue": |w: &mut OfContext| w.context = queue => HANDLE,
        "no fence": |w: &mut OfContext| w.object_count = 0 => PARAMETER,
        "33 fences": |w: &mut OfContext| {
            *w = c_kernel::context_wait_args(context, &many, &values);
        } => PARAMETER,
        "no handles": |w: &mut OfContext| w.object_handle_array = 0 => PARAMETER,
        "no values": |w: &mut OfContext| w.monitored_fence_value_array = 0 => PARAMETER,
        "too many to count": |w: &mut OfContext| w.object_count = u32::MAX => PARAMETER,
        "handles not aligned": |w: &mut OfContext| w.object_handle_array += 2 => PARAMETER,
        "values not aligned": |w: &mut OfContext| w.monitored_fence_value_array += 4 => PARAMETER,
    );
    for (what, handles, status) in pairs(walk, kernel, false) {
        let args = c_kernel::wait_args(queue, &handles, &values[..2]);
        // SAFETY: structures and arrays of this test's own.
        let call = |args: *mut _| unsafe { NfD3DKMTSubmitWaitForSyncObjectsToHwQueue(args) };
        walk.refused(&format!("wait, {what}"), args, status, call);
        let args = c_kernel::context_wait_args(context, &handles, &values[..2]);
        // SAFETY: as above.
        let call = |args: *mut _| unsafe { NfD3DKMTWaitForSynchronizationObjectFromGpu(args) };
        walk.refused(&format!("wait of a context, {what}"), args, status, call);
    }
}

fn signals(walk: &mut Walk<'_>, kernel: &Kernel) {
    type Signal = SubmitSignalSyncObjectsToHwQueue;
    type OfContext = SignalSynchronizationObjectFromGpu;
    type OfContext2 = SignalSynchronizationObjectFromGpu2;
    let world = walk.world;
    let (queue, contexts) = ([kernel.queue.hw_queue], [kernel.context]);
    let user_queue = [world.queue.hw_queue];
    let (without, crowded) = ([world.context], [kernel.crowded]);
    let pair = kernel.fences.map(|fence| fence.sync_object);
    let (many, values) = ([pair[0]; 33], [20_u64; 33]);
    let several = [queue[0]; 65];
    let signal = c_kernel::signal_args(&queue, &pair, &values);
    let of = |queues: &[KmtHandle]| queues.as_ptr().expose_provenance() as u64;
    let call = |args: *mut Signal| {
        // SAFETY: NULL, not aligned, or a structure of this test's own, whose pointers are too.
        unsafe { NfD3DKMTSubmitSignalSyncObjectsToHwQueue(args) }
    };
    walk.pointers("signal", signal, call);
    let call2 = |args: *mut OfContext2| {
        // SAFETY: as above.
        unsafe { NfD3DKMTSignalSynchronizationObjectFromGpu2(args) }
    };
    let signal2 = c_kernel::context_signal2_args(&contexts, &pair, &values);
    walk.pointers("signal 2", signal2, call2);
    let at_submission = SignalFlags::SIGNAL_AT_SUBMISSION;
    let event_at_submission = at_submission.with(SignalFlags::ENQUEUE_CPU_EVENT);
    // What the two have at the same places of their own is set in both.
    type Change<'a> = (
        &'a str,
        &'a dyn Fn(&mut Signal),
        &'a dyn Fn(&mut OfContext2),
        NtStatus,
    );
    let changes: [Change<'_>; 20] = [
        (
            "values not aligned",
            &|s| s.fence_value_array += 4,
            &|s| s.monitored_fence_value_array += 4,
            PARAMETER,
        ),
        (
            "too many to count",
            &|s| s.object_count = u32::MAX,
            &|s| s.object_count = u32::MAX,
            PARAMETER,
        ),
        (
            "too many that signal to count",
            &|s| s.broadcast_hw_queue_count = u32::MAX,
            &|s| s.broadcast_context_count = u32::MAX,
            PARAMETER,
        ),
        (
            "no fence",
            &|s| s.object_count = 0,
            &|s| s.object_count = 0,
            PARAMETER,
        ),
        (
            "33 fences",
            &|s| *s = c_kernel::signal_args(&queue, &many, &values),
            &|s| *s = c_kernel::context_signal2_args(&contexts, &many, &values),
            PARAMETER,
        ),
        (
            "no handles",
            &|s| s.object_handle_array = 0,
            &|s| s.object_handle_array = 0,
            PARAMETER,
        ),
        (
            "no values",
            &|s| s.fence_value_array = 0,
            &|s| s.monitored_fence_value_array = 0,
            PARAMETER,
        ),
        (
            "none that signals",
            &|s| s.broadcast_hw_queue_count = 0,
            &|s| s.broadcast_context_count = 0,
            PARAMETER,
        ),
        (
            "two that signal",
            &|s| (s.broadcast_hw_queue_count, s.broadcast_hw_queue_array) = (2, of(&several)),
            &|s| (s.broadcast_context_count, s.broadcast_context_array) = (2, of(&several)),
            NOT_BUILT,
        ),
        (
            "65 that signal",
            &|s| (s.broadcast_hw_queue_count, s.broadcast_hw_queue_array) = (65, of(&several)),
            &|s| (s.broadcast_context_count, s.broadcast_context_array) = (65, of(&several)),
            PARAMETER,
        ),
        (
            "no address of who signals",
            &|s| s.broadcast_hw_queue_array = 0,
            &|s| s.broadcast_context_array = 0,
            PARAMETER,
        ),
        (
            "a crooked address of who signals",
            &|s| s.broadcast_hw_queue_array += 2,
            &|s| s.broadcast_context_array += 2,
            PARAMETER,
        ),
        (
            "nothing signals",
            &|s| s.broadcast_hw_queue_array = of(&[0]),
            &|s| s.broadcast_context_array = of(&[0]),
            HANDLE,
        ),
        (
            "a user-mode queue",
            &|s| s.broadcast_hw_queue_array = of(&user_queue),
            &|s| s.broadcast_context_array = of(&user_queue),
            HANDLE,
        ),
        (
            "each for the other",
            &|s| s.broadcast_hw_queue_array = of(&contexts),
            &|s| s.broadcast_context_array = of(&queue),
            HANDLE,
        ),
        (
            "an event at submission",
            &|s| s.flags = event_at_submission,
            &|s| s.flags = event_at_submission,
            NOT_BUILT,
        ),
        (
            "an event",
            &|s| s.flags = SignalFlags::ENQUEUE_CPU_EVENT,
            &|s| s.flags = SignalFlags::ENQUEUE_CPU_EVENT,
            NOT_BUILT,
        ),
        (
            "bit 3",
            &|s| s.flags = SignalFlags(8),
            &|s| s.flags = SignalFlags(8),
            PARAMETER,
        ),
        (
            "bit 31",
            &|s| s.flags = SignalFlags::INTERNAL0,
            &|s| s.flags = SignalFlags::INTERNAL0,
            PARAMETER,
        ),
        (
            "handles not aligned",
            &|s| s.object_handle_array += 2,
            &|s| s.object_handle_array += 2,
            PARAMETER,
        ),
    ];
    for (what, change, change2, status) in changes {
        let (mut args, mut args2) = (signal, signal2);
        change(&mut args);
        change2(&mut args2);
        walk.refused(&format!("signal, {what}"), args, status, call);
        walk.refused(&format!("signal 2, {what}"), args2, status, call2);
    }
    for contexts in [without, crowded] {
        let args = c_kernel::context_signal2_args(&contexts, &pair, &values);
        walk.refused("signal 2, not one queue", args, PARAMETER, call2);
    }
    let signal = c_kernel::context_signal_args(contexts[0], &pair, &values);
    walk!(walk, NfD3DKMTSignalSynchronizationObjectFromGpu, signal, context: "context",
        "a context without one": |s: &mut OfContext| s.context = without[0] => PARAMETER,
        "a context with two": |s: &mut OfContext| s.context = crowded[0] => PARAMETER,
        "no fence": |s: &mut OfContext| s.object_count = 0 => PARAMETER,
        "too many to count": |s: &mut OfContext| s.object_count = 33 => PARAMETER,
        "no handles": |s: &mut OfContext| s.object_handle_array = 0 => PARAMETER,
        "no values": |s: &mut OfContext| s.monitored_fence_value_array = 0 => PARAMETER,
        "no fence to count": |s: &mut OfContext| s.object_count = u32::MAX => PARAMETER,
        "handles not aligned": |s: &mut OfContext| s.object_handle_array += 1 => PARAMETER,
        "values not aligned": |s: &mut OfContext| s.monitored_fence_value_array += 2 => PARAMETER,
    );
    for (what, handles, status) in pairs(walk, kernel, true) {
        for flags in [SignalFlags::default(), at_submission] {
            let mut args = c_kernel::signal_args(&queue, &handles, &values[..2]);
            args.flags = flags;
            walk.refused(&format!("signal, {what}"), args, status, call);
            let mut args = c_kernel::context_signal2_args(&contexts, &handles, &values[..2]);
            args.flags = flags;
            walk.refused(&format!("signal 2, {what}"), args, status, call2);
        }
        let args = c_kernel::context_signal_args(contexts[0], &handles, &values[..2]);
        // SAFETY: structures and arrays of this test's own.
        let call = |args: *mut _| unsafe { NfD3DKMTSignalSynchronizationObjectFromGpu(args) };
        walk.refused(&format!("signal of a context, {what}"), args, status, call);
    }
}

/// Every wait and signal of kernel-mode queues with each argument wrong in turn: the documented status,
/// and nothing changed; afterwards the queue runs its first command at once, so no wait came to stand in
/// it, and no fence has another value, so no signal did (HQ-10, NF-23).
///
/// Kills `a-signal-is-broadcast`, `the-first-of-several-queues-is-taken`,
/// `a-queued-wait-is-not-looked-at`, `a-queued-native-signal-is-not-looked-at`.
#[test]
fn hq_10_bad_waits_and_signals_of_kernel_queues_are_refused_and_change_nothing() {
    let tables = |walk: &mut Walk<'_>, kernel: &Kernel| {
        waits(walk, kernel);
        signals(walk, kernel);
    };
    walk_over(180, tables, |world, kernel| {
        let (queue, fence) = (kernel.queue.hw_queue, kernel.fences[0].sync_object);
        good(c_kernel::submit(queue, 2, &[signal_of(fence, 11)]));
        good(c_kernel::submit(queue, 3, &[nop()]));
        let progress = kernel.queue.progress_fence;
        good(c_world::wait(world.device, &[progress, fence], &[3, 11]));
        assert_eq!(kernel.fences.map(|fence| c_kernel::value(&fence)), [11, 10]);
    });
}
