//! Bad input of the calls of kernel-mode queues: creating them, and their commands.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/bad_input.rs"]
mod bad_input;

use bad_input::{c_kernel, c_walk, c_world, walk_over};
use bytemuck::Zeroable;
use c_kernel::{Kernel, command, nop, signal_of};
use c_walk::{DENIED, HANDLE, NOT_BUILT, PARAMETER, Walk, walk};
use c_world::good;
use native_fence::abi::Opcode;
use native_fence::abi::wddm::{
    CreateDoorbell, CreateHwQueue, CreateHwQueueFlags, DestroyHwQueue, KmtHandle, NtStatus,
    SubmitCommandToHwQueue,
};
use native_fence::capi::{
    HwQueueCommand, NfD3DKMTCreateDoorbell, NfD3DKMTCreateHwQueue, NfD3DKMTDestroyHwQueue,
    NfD3DKMTSubmitCommandToHwQueue,
};

fn queues(walk: &mut Walk<'_>, kernel: &Kernel) {
    type Flags = CreateHwQueueFlags;
    type Queue = CreateHwQueue;
    let mut queue = Queue::zeroed();
    queue.hw_context = kernel.context;
    walk!(walk, NfD3DKMTCreateHwQueue, queue, hw_context: "context",
        "bit 7": |a: &mut Queue| a.flags = CreateHwQueueFlags(1 << 7) => PARAMETER,
        "bit 31": |a: &mut Queue| a.flags = CreateHwQueueFlags(1 << 31) => PARAMETER,
        "user mode": |a: &mut Queue| a.flags = Flags::USER_MODE_SUBMISSION => NOT_BUILT,
        "no time-out": |a: &mut Queue| a.flags = Flags::DISABLE_GPU_TIMEOUT => NOT_BUILT,
        "no kmd": |a: &mut Queue| a.flags = Flags::NO_KMD_ACCESS => NOT_BUILT,
        "a native fence": |a: &mut Queue| a.flags = Flags::NATIVE_PROGRESS_FENCE => NOT_BUILT,
        "a test": |a: &mut Queue| a.flags = Flags::TEST_QUEUE => NOT_BUILT,
        "private data": |a: &mut Queue| a.private_driver_data_size = 64 => PARAMETER,
    );
    // A queue of one kind is not one of the other.
    let mut doorbell = CreateDoorbell::zeroed();
    doorbell.hw_queue = walk.world.quiet_queue.hw_queue;
    let other = kernel.queue.hw_queue;
    walk!(walk, NfD3DKMTCreateDoorbell, doorbell, hw_queue: "queue",
        "a kernel queue": |a: &mut CreateDoorbell| a.hw_queue = other => HANDLE,
    );
    let progress = kernel.queue.progress_fence;
    let queue = DestroyHwQueue {
        hw_queue: kernel.queue.hw_queue,
    };
    walk!(walk, NfD3DKMTDestroyHwQueue, queue, hw_queue: "queue",
        "its fence": |a: &mut DestroyHwQueue| a.hw_queue = progress => HANDLE,
    );
}

fn commands(walk: &mut Walk<'_>, kernel: &Kernel) {
    type Submit = SubmitCommandToHwQueue;
    let (world, queue) = (walk.world, kernel.queue.hw_queue);
    let (one, many) = ([nop()], vec![nop(); 512]);
    let good = c_kernel::submit_args(queue, 1, &one);
    walk!(walk, NfD3DKMTSubmitCommandToHwQueue, good, hw_queue: "kernel queue",
        "the value that it has": |a: &mut Submit| a.progress_fence_id = 0 => PARAMETER,
        "a value too far": |a: &mut Submit| a.progress_fence_id = 2 => PARAMETER,
        "no value": |a: &mut Submit| a.progress_fence_id = u64::MAX => PARAMETER,
        "a buffer": |a: &mut Submit| a.command_buffer = 4096 => NOT_BUILT,
        "the length of a buffer": |a: &mut Submit| a.command_length = 64 => NOT_BUILT,
        "a surface": |a: &mut Submit| a.num_primaries = 1 => NOT_BUILT,
        "surfaces": |a: &mut Submit| a.written_primaries = a.private_driver_data => NOT_BUILT,
        "nothing": |a: &mut Submit| a.private_driver_data_size = 0 => PARAMETER,
        "half of one": |a: &mut Submit| a.private_driver_data_size = 8 => PARAMETER,
        "one and a half": |a: &mut Submit| a.private_driver_data_size = 24 => PARAMETER,
        "512": |a: &mut Submit| *a = c_kernel::submit_args(queue, 1, &many) => PARAMETER,
        "too many to count": |a: &mut Submit| {
            a.private_driver_data_size = u32::MAX - 15;
        } => PARAMETER,
        "no place": |a: &mut Submit| a.private_driver_data = 0 => PARAMETER,
        "a crooked place": |a: &mut Submit| a.private_driver_data += 4 => PARAMETER,
    );
    let fence = kernel.fences[0].sync_object;
    let signals = |of: KmtHandle| signal_of(of, 20);
    let mut wrong: Vec<(String, HwQueueCommand, NtStatus)> = world
        .not("fence")
        .into_iter()
        .map(|(what, handle)| (what, signals(handle), HANDLE))
        .collect();
    let opcode = |opcode: Opcode| command(opcode as u32, fence, 20);
    wrong.extend([
        (
            "a foreign fence".into(),
            signals(kernel.foreign.sync_object),
            HANDLE,
        ),
        (
            "no signal".into(),
            signals(kernel.no_signal.sync_object),
            DENIED,
        ),
        ("no gpu".into(), signals(kernel.no_gpu.sync_object), DENIED),
        (
            "progress".into(),
            signals(kernel.queue.progress_fence),
            DENIED,
        ),
        (
            "native".into(),
            signals(world.fences[0].sync_object),
            PARAMETER,
        ),
        ("no opcode".into(), command(0, fence, 20), PARAMETER),
        ("an unknown opcode".into(), command(8, fence, 20), PARAMETER),
        ("a wide opcode".into(), command(0x103, fence, 20), PARAMETER),
        ("a wait".into(), opcode(Opcode::Wait), PARAMETER),
        ("a progress".into(), opcode(Opcode::Progress), PARAMETER),
        ("a time stamp".into(), opcode(Opcode::Timestamp), NOT_BUILT),
        ("a fill".into(), opcode(Opcode::Fill), NOT_BUILT),
        ("a copy".into(), opcode(Opcode::Copy), NOT_BUILT),
        (
            "nothing with a fence".into(),
            command(1, fence, 0),
            PARAMETER,
        ),
        ("nothing with a value".into(), command(1, 0, 20), PARAMETER),
    ]);
    for (what, wrong, status) in wrong {
        // Behind one that is right.
        let pair = [signals(fence), wrong];
        let args = c_kernel::submit_args(queue, 3, &pair);
        // SAFETY: structures and arrays of this test's own.
        let call = |args: *mut _| unsafe { NfD3DKMTSubmitCommandToHwQueue(args) };
        walk.refused(&format!("submit, {what}"), args, status, call);
    }
}

/// Kernel-mode queues and their commands with each argument wrong in turn, calls of user-mode queues
/// among them: the documented status, and nothing changed; afterwards the queue takes its first command
/// as if nothing had been (HQ-10, NF-23).
///
/// Kills `a-command-has-any-progress-value`, `c-commands-forget-no-gpu-access`, `a-wide-opcode-is-cut`,
/// `a-user-mode-queue-goes-through-the-os`.
#[test]
fn hq_10_bad_commands_of_kernel_queues_are_refused_and_change_nothing() {
    let tables = |walk: &mut Walk<'_>, kernel: &Kernel| {
        queues(walk, kernel);
        commands(walk, kernel);
    };
    walk_over(100, tables, |world, kernel| {
        let (queue, fence) = (kernel.queue.hw_queue, kernel.fences[0].sync_object);
        good(c_kernel::submit(queue, 2, &[signal_of(fence, 11)]));
        let progress = kernel.queue.progress_fence;
        good(c_world::wait(world.device, &[progress, fence], &[2, 11]));
        let mut destroy = DestroyHwQueue { hw_queue: queue };
        good(c_world::call!(NfD3DKMTDestroyHwQueue, &mut destroy));
        assert_eq!(c_kernel::submit(queue, 3, &[nop()]), HANDLE);
        assert_eq!(c_world::wait(world.device, &[progress], &[0]), HANDLE);
    });
}
