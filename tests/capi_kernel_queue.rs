//! Kernel-mode queues through the C interface: commands, waits and signals that the OS holds back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/c_kernel.rs"]
mod c_kernel;
#[path = "support/c_world.rs"]
mod c_world;
#[path = "support/engines.rs"]
mod engines;
#[path = "support/until.rs"]
mod until;

use c_kernel::{kernel_queue, monitored, nop, signal_of, value};
use c_world::{call, good, word};
use native_fence::abi::wddm::{
    CreateHwQueue, DestroyDevice, DestroyHwContext, DestroyHwQueue, KmtHandle, NtStatus,
    SignalFlags, SynchronizationObjectFlags,
};
use native_fence::capi::{
    EndDevice, NfD3DKMTDestroyDevice, NfD3DKMTDestroyHwContext, NfD3DKMTDestroyHwQueue,
    NfD3DKMTSignalSynchronizationObjectFromGpu, NfD3DKMTSignalSynchronizationObjectFromGpu2,
    NfD3DKMTSubmitSignalSyncObjectsToHwQueue, NfD3DKMTWaitForSynchronizationObjectFromGpu,
    NfEndDevice,
};
use std::sync::mpsc;
use std::thread;
use until::until_sleeping;

type Flags = SynchronizationObjectFlags;

const CLOSED: NtStatus = NtStatus::INVALID_HANDLE;

struct Made {
    device: KmtHandle,
    context: KmtHandle,
    queue: CreateHwQueue,
}

fn made() -> Made {
    let device = c_world::device(c_world::open());
    let context = c_world::context(device);
    Made {
        device,
        context,
        queue: kernel_queue(context),
    }
}

impl Made {
    fn fence(&self) -> KmtHandle {
        monitored(self.device, 0, Flags::default()).sync_object
    }

    fn signal(&self, fence: KmtHandle, value: u64) {
        let flags = SignalFlags::default();
        good(c_world::signal(self.device, &[fence], &[value], flags));
    }

    fn wait(&self, fence: KmtHandle, value: u64) -> NtStatus {
        c_world::wait(self.device, &[fence], &[value])
    }
}

/// HQ-10, MF-02: commands complete with the progress values that the program gave them, in their order,
/// and a program that only reads follows the progress; the engine stores what they signal.
///
/// Kills `c-commands-lose-their-values`.
#[test]
fn hq_10_commands_complete_with_the_values_that_the_program_names() {
    if engines::shader().is_none() || !engines::memory::is_usual() {
        return;
    }
    let made = made();
    let queue = made.queue.hw_queue;
    let fence = monitored(made.device, 5, Flags::default());
    let progress = || word(made.queue.progress_fence_cpu_virtual_address);
    assert_eq!(progress(), 0);
    good(c_kernel::submit(queue, 1, &[nop()]));
    good(made.wait(made.queue.progress_fence, 1));
    assert_eq!((progress(), value(&fence)), (1, 5));
    // Two signals, the second of which goes back: a store is a store (NF-21).
    let commands = [
        signal_of(fence.sync_object, 9),
        nop(),
        signal_of(fence.sync_object, 7),
    ];
    good(c_kernel::submit(queue, 4, &commands));
    good(made.wait(made.queue.progress_fence, 4));
    assert_eq!((progress(), value(&fence)), (4, 7));
    // The most that one command has.
    good(c_kernel::submit(queue, 5, &[nop(); 511]));
    good(made.wait(made.queue.progress_fence, 5));
}

/// MF-03, MF-05: what is queued behind a wait is held back until each fence of it has its value, native or
/// monitored, and the call returns at once; the OS signals fences of both kinds, those that the engine
/// cannot store among them, when all before has completed.
///
/// Kills `half-a-wait-is-held`.
#[test]
fn mf_03_what_is_queued_behind_a_wait_is_held_back() {
    if engines::shader().is_none() || !engines::memory::is_usual() {
        return;
    }
    let made = made();
    let queue = made.queue.hw_queue;
    let gate = made.fence();
    let native_gate = c_world::fence(made.device, 0, Flags::default()).sync_object;
    let no_gpu = monitored(made.device, 0, Flags::NO_GPU_ACCESS);
    let native = c_world::fence(made.device, 0, Flags::default());
    let stored = monitored(made.device, 0, Flags::default());
    good(c_kernel::wait(queue, &[gate, native_gate], &[2, 3]));
    good(c_kernel::submit(
        queue,
        2,
        &[signal_of(stored.sync_object, 1)],
    ));
    let ends = [no_gpu.sync_object, native.sync_object];
    good(c_kernel::signal(queue, &ends, &[4, 5]));
    // Another queue of the engine runs meanwhile, behind what this one would have run.
    let other = kernel_queue(made.context);
    let values = || (value(&stored), value(&no_gpu), c_world::value(&native));
    for (turn, (fence, value)) in (1..).zip([(gate, 1), (gate, 2), (native_gate, 2)]) {
        made.signal(fence, value);
        good(c_kernel::submit(other.hw_queue, turn, &[nop()]));
        good(made.wait(other.progress_fence, turn));
        assert_eq!(values(), (0, 0, 0), "the wait is not over");
    }
    made.signal(native_gate, 3);
    good(c_world::wait(made.device, &ends, &[4, 5]));
    assert_eq!(values(), (1, 4, 5));
}

/// PR-17: a signal at submission, of fences of both kinds, by a queue and by a context, keeps its place: it is
/// made when the wait before it is over, and a queue that has nothing before it makes it in the call.
///
/// Open: that it does not wait for the end of a command. No command of this interface is long
/// (`signal_at_submission`).
///
/// Kills `a-signal-at-submission-overtakes`.
#[test]
fn pr_17_c_signals_at_submission() {
    if engines::shader().is_none() || !engines::memory::is_usual() {
        return;
    }
    let made = made();
    let queues = [made.queue.hw_queue];
    let stored = monitored(made.device, 0, Flags::default());
    let native = c_world::fence(made.device, 0, Flags::default());
    let signal = |values: &[u64]| {
        let fences = [stored.sync_object, native.sync_object];
        let mut args = c_kernel::signal_args(&queues, &fences, values);
        args.flags = SignalFlags::SIGNAL_AT_SUBMISSION;
        good(call!(NfD3DKMTSubmitSignalSyncObjectsToHwQueue, &mut args));
    };
    let values = || (value(&stored), c_world::value(&native));
    signal(&[1, 1]);
    assert_eq!(values(), (1, 1));
    let gate = made.fence();
    good(c_kernel::wait(queues[0], &[gate], &[1]));
    good(c_kernel::submit(queues[0], 1, &[nop()]));
    signal(&[2, 2]);
    let (contexts, fences, last) = ([made.context], [native.sync_object], [3]);
    let mut args = c_kernel::context_signal2_args(&contexts, &fences, &last);
    args.flags = SignalFlags::SIGNAL_AT_SUBMISSION;
    good(call!(
        NfD3DKMTSignalSynchronizationObjectFromGpu2,
        &mut args
    ));
    assert_eq!(values(), (1, 1), "the wait is not over");
    made.signal(gate, 1);
    good(c_world::wait(made.device, &fences, &last));
    assert_eq!(values(), (2, 3));
}

/// MF-03, MF-05: the calls that name a context do the same to its queue.
///
/// Kills `a-context-waits-for-nothing`.
#[test]
fn mf_03_a_context_waits_and_signals_by_its_queue() {
    if engines::shader().is_none() || !engines::memory::is_usual() {
        return;
    }
    let made = made();
    let gate = made.fence();
    let [first, second] = [(); 2].map(|()| monitored(made.device, 7, Flags::default()));
    let (gates, at) = ([gate], [1]);
    let mut wait = c_kernel::context_wait_args(made.context, &gates, &at);
    good(call!(
        NfD3DKMTWaitForSynchronizationObjectFromGpu,
        &mut wait
    ));
    let (fences, values) = ([first.sync_object], [8]);
    let mut signal = c_kernel::context_signal_args(made.context, &fences, &values);
    good(call!(
        NfD3DKMTSignalSynchronizationObjectFromGpu,
        &mut signal
    ));
    // Below its value, with the flag or without.
    let (contexts, fences, values) = ([made.context], [second.sync_object], [3]);
    let mut signal = c_kernel::context_signal2_args(&contexts, &fences, &values);
    signal.flags = SignalFlags::ALLOW_FENCE_REWIND;
    good(call!(
        NfD3DKMTSignalSynchronizationObjectFromGpu2,
        &mut signal
    ));
    good(c_kernel::submit(made.queue.hw_queue, 1, &[nop()]));
    assert_eq!((value(&first), value(&second)), (7, 7));
    made.signal(gate, 1);
    good(made.wait(made.queue.progress_fence, 1));
    assert_eq!((value(&first), value(&second)), (8, 3));
}

/// HQ-10, MF-03: the end of a queue, of its context and of its device drops what it holds back: a thread
/// that waits for its progress is told, and what stood behind the wait is never done.
///
/// Kills `a-destroyed-kernel-queue-runs-on`.
#[test]
fn hq_10_a_queue_that_is_destroyed_does_nothing_more() {
    if engines::shader().is_none() || !engines::memory::is_usual() {
        return;
    }
    for end in ["queue", "context", "device"] {
        let made = made();
        let queue = made.queue.hw_queue;
        let gate = made.fence();
        let done = monitored(made.device, 0, Flags::default());
        good(c_kernel::wait(queue, &[gate], &[1]));
        good(c_kernel::submit(
            queue,
            2,
            &[signal_of(done.sync_object, 1)],
        ));
        good(c_kernel::signal(queue, &[done.sync_object], &[2]));
        let (tell, told) = mpsc::channel();
        let (device, progress) = (made.device, made.queue.progress_fence);
        let waiter = thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            c_world::wait(device, &[progress], &[2])
        });
        until_sleeping(told.recv().unwrap());
        match end {
            "queue" => {
                let mut args = DestroyHwQueue { hw_queue: queue };
                good(call!(NfD3DKMTDestroyHwQueue, &mut args));
            }
            "context" => {
                let hw_context = made.context;
                let mut args = DestroyHwContext { hw_context };
                good(call!(NfD3DKMTDestroyHwContext, &mut args));
            }
            _ => {
                let mut args = DestroyDevice { device };
                good(call!(NfD3DKMTDestroyDevice, &mut args));
            }
        }
        assert_eq!(waiter.join().unwrap(), CLOSED, "{end}");
        assert_eq!(c_kernel::submit(queue, 3, &[nop()]), CLOSED, "{end}");
        if end != "device" {
            made.signal(gate, 1);
            // Another queue of the engine has run since.
            let other = kernel_queue(c_world::context(made.device));
            good(c_kernel::submit(other.hw_queue, 1, &[nop()]));
            good(made.wait(other.progress_fence, 1));
            assert_eq!(value(&done), 0, "{end}");
        }
    }
}

/// MF-03: a fence that is destroyed while a queue waits for it stops the queue, which says so: it is there
/// to be destroyed, and its handle names it still.
///
/// Kills `a-queue-goes-on-past-a-destroyed-fence`, `a-stopped-queue-is-no-queue`,
/// `a-stopped-queue-does-not-say-so`, `a-stopped-queue-of-c-has-a-closed-fence`.
#[test]
fn mf_03_a_destroyed_fence_stops_the_queue_that_waits_for_it() {
    if engines::shader().is_none() {
        return;
    }
    let made = made();
    let (queue, gate) = (made.queue.hw_queue, made.fence());
    good(c_kernel::wait(queue, &[gate], &[1]));
    good(c_kernel::submit(queue, 1, &[nop()]));
    good(c_world::destroy(gate));
    // Its own progress fence is open: what is wrong is the queue.
    let told = made.wait(made.queue.progress_fence, 1);
    let why = c_world::last_error();
    assert_eq!(told, NtStatus::DEVICE_REMOVED, "{why}");
    assert!(why.contains("that it was to wait for"), "{why}");
    let assert_stopped = |status| {
        let sentence = c_world::last_error();
        assert_eq!(status, NtStatus::DEVICE_REMOVED, "{sentence}");
        assert!(sentence.starts_with("the queue was stopped"), "{sentence}");
        assert!(sentence.contains("destroy it"), "{sentence}");
    };
    let other = made.fence();
    assert_stopped(c_kernel::submit(queue, 2, &[nop()]));
    assert_stopped(c_kernel::wait(queue, &[other], &[0]));
    assert_stopped(c_kernel::signal(queue, &[other], &[1]));
    let mut args = DestroyHwQueue { hw_queue: queue };
    good(call!(NfD3DKMTDestroyHwQueue, &mut args));
    assert_eq!(c_kernel::submit(queue, 2, &[nop()]), CLOSED);
}

/// HQ-12: a device ends when its queues have executed what was queued, and has the time that it is given: an
/// end which comes to its time-out is an error, says where a queue stands, and destroys nothing. After the
/// end a wait for more of a queue says that it has ended. A user-mode queue in which
/// nothing was queued does not hinder it.
///
/// Kills `an-end-of-c-has-all-the-time`, `an-ended-queue-of-c-has-a-closed-fence`,
/// `a-queue-of-c-comes-with-a-doorbell`.
#[test]
fn hq_12_a_device_of_c_ends_in_the_time_that_it_is_given() {
    if engines::shader().is_none() {
        return;
    }
    let made = made();
    let (queue, gate) = (made.queue.hw_queue, made.fence());
    let quiet = c_world::queue(made.context);
    // It has none yet.
    let _doorbell = c_world::doorbell(quiet.hw_queue);
    let end = |milliseconds| {
        let mut end = EndDevice {
            device: made.device,
            flags: 0,
            timeout_in_milliseconds: milliseconds,
        };
        call!(NfEndDevice, &mut end)
    };
    good(c_kernel::wait(queue, &[gate], &[1]));
    good(c_kernel::submit(queue, 1, &[nop()]));
    assert_eq!(end(0), NtStatus::IO_TIMEOUT);
    let why = c_world::last_error();
    assert!(why.contains("waits for 1"), "{why}");
    made.signal(gate, 1);
    good(end(u64::MAX));
    good(made.wait(made.queue.progress_fence, 1));
    for progress in [made.queue.progress_fence, quiet.progress_fence] {
        let ended = made.wait(progress, 9);
        let why = c_world::last_error();
        assert_eq!(ended, NtStatus::DEVICE_REMOVED, "{why}");
        assert!(why.contains("its process ends or has ended"), "{why}");
    }
    good(end(0));
}
