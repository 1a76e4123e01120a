//! Calls of the C interface on a device whose queues have ended (HQ-12).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/bad_input.rs"]
mod bad_input;

use bad_input::{c_kernel, c_walk, c_world, walk_over};
use bytemuck::Zeroable;
use c_kernel::Kernel;
use c_walk::{HANDLE, Walk, walk};
use c_world::good;
use native_fence::abi::wddm::{
    ConnectDoorbell, CreateDoorbell, CreateHwQueue, CreateHwQueueForUserModeSubmission,
    DestroyDevice, NtStatus, SubmitCommandToHwQueue,
};
use native_fence::capi::{
    EndDevice, NfD3DKMTConnectDoorbell, NfD3DKMTCreateDoorbell, NfD3DKMTCreateHwQueue,
    NfD3DKMTCreateHwQueueForUserModeSubmission, NfD3DKMTDestroyDevice,
    NfD3DKMTSubmitCommandToHwQueue, NfEndDevice,
};

fn after_the_end(walk: &mut Walk<'_>, kernel: &Kernel) {
    let device = c_world::device(walk.world.adapter);
    let context = c_world::context(device);
    let [queue, quiet_queue] = [(); 2].map(|()| c_world::queue(context).hw_queue);
    let doorbell = c_world::doorbell(queue).doorbell;
    let kernel_queue = c_kernel::kernel_queue(context).hw_queue;
    let mut end = EndDevice::zeroed();
    end.device = device;
    good(c_world::call!(NfEndDevice, &mut end));

    const ENDED: NtStatus = NtStatus::DEVICE_REMOVED;
    let mut made = CreateHwQueueForUserModeSubmission::zeroed();
    made.hw_context = context;
    walk!(walk, NfD3DKMTCreateHwQueueForUserModeSubmission, made, hw_context: "context",
        "ended": |_: &mut CreateHwQueueForUserModeSubmission| {} => ENDED,
    );
    let mut made = CreateHwQueue::zeroed();
    made.hw_context = context;
    walk!(walk, NfD3DKMTCreateHwQueue, made, hw_context: "context",
        "ended": |_: &mut CreateHwQueue| {} => ENDED,
    );
    let mut made = CreateDoorbell::zeroed();
    made.hw_queue = quiet_queue;
    walk!(walk, NfD3DKMTCreateDoorbell, made, hw_queue: "queue",
        "ended, without one": |_: &mut CreateDoorbell| {} => ENDED,
        "ended, with one": |a: &mut CreateDoorbell| a.hw_queue = queue => ENDED,
        "of a kernel queue": |a: &mut CreateDoorbell| a.hw_queue = kernel.queue.hw_queue => HANDLE,
    );
    let connect = ConnectDoorbell { doorbell, flags: 0 };
    walk!(walk, NfD3DKMTConnectDoorbell, connect, doorbell: "doorbell",
        "ended": |_: &mut ConnectDoorbell| {} => ENDED,
    );
    let command = [c_kernel::nop()];
    let submit = c_kernel::submit_args(kernel_queue, 1, &command);
    walk!(walk, NfD3DKMTSubmitCommandToHwQueue, submit, hw_queue: "kernel queue",
        "ended": |_: &mut SubmitCommandToHwQueue| {} => ENDED,
    );
    let mut device = DestroyDevice { device };
    good(c_world::call!(NfD3DKMTDestroyDevice, &mut device));
}

/// HQ-12: a device whose queues have ended takes no more: no queue and no doorbell of it is made, none is
/// connected, no command is taken, and each such call changes nothing. Another device goes on.
///
/// Kills `an-ended-device-of-c-takes-queues`.
#[test]
fn hq_12_an_ended_device_takes_nothing_more() {
    walk_over(70, after_the_end, |world, kernel| {
        let (queue, progress) = (kernel.queue.hw_queue, kernel.queue.progress_fence);
        good(c_kernel::submit(queue, 1, &[c_kernel::nop()]));
        good(c_world::wait(world.device, &[progress], &[1]));
    });
}
