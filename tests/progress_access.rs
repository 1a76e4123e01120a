//! Who may signal the progress fence of a hardware queue: its own PROGRESS packets alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/engines.rs"]
mod engines;
#[path = "support/until.rs"]
mod until;

use engines::on_every_engine;
use native_fence::abi::FaultCode;
use native_fence::vulkan::validation;
use native_fence::{CommandList, Fence, HwQueueOptions, SignalError, WaitError};
use until::LONG;

/// NF-23, for the handle that the user has of a progress fence: every CPU signal is refused and
/// stores nothing, so that the producer's room, which follows this fence, stays what it is.
///
/// Open: NoSignal and NoWait as flags of fences that a program opens.
///
/// Mutant: `progress-fences-can-be-signalled`, `cpu-signals-forget-the-access`.
#[test]
fn nf_23_a_progress_fence_takes_no_signal_from_the_cpu() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let other = device.create_fence(0).unwrap();
        let gate = device.create_fence(0).unwrap();
        let options = HwQueueOptions {
            ring_capacity: 4,
            ..HwQueueOptions::default()
        };
        let mut queue = device.create_hw_queue_with(options).unwrap();
        queue
            .submit(CommandList::new().wait(&gate, 1).nop().nop())
            .unwrap();
        assert_eq!(queue.room(), 0, "the engine stands at the first packet");
        let progress = queue.progress_fence().clone();
        let denied = Err(SignalError::AccessDenied);
        assert_eq!(progress.signal(1), denied);
        assert_eq!(progress.rewind(1), denied);
        assert_eq!(Fence::signal_all(&[(&other, 1), (&progress, 1)]), denied);
        assert_eq!((progress.current_value(), other.current_value()), (0, 0));
        assert_eq!(queue.room(), 0);
        gate.signal(1).unwrap();
        progress.wait(1, LONG).unwrap();
    });
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// NF-23, for packets: a SIGNAL that names a progress fence stops the queue that it is in, also its
/// own queue; PROGRESS goes on to store it, and any queue may wait for it.
///
/// Mutant: `progress-fences-can-be-signalled`.
#[test]
fn nf_23_a_progress_fence_takes_no_signal_packet() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let done = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let mut waiter = device.create_hw_queue().unwrap();
        let mut offender = device.create_hw_queue().unwrap();
        let progress = queue.progress_fence().clone();
        offender
            .submit(CommandList::new().signal(&progress, 100))
            .unwrap();
        match offender.progress_fence().wait(1, LONG) {
            Err(WaitError::QueueFaulted(fault)) => {
                assert_eq!((fault.code, fault.packet), (FaultCode::AccessDenied, 0));
            }
            other => panic!("the queue was not stopped: {other:?}"),
        }
        assert_eq!(progress.current_value(), 0);
        waiter
            .submit(CommandList::new().wait(&progress, 1).signal(&done, 1))
            .unwrap();
        queue.submit(CommandList::new().nop()).unwrap();
        done.wait(1, LONG).unwrap();
        assert_eq!(progress.current_value(), 1);
    });
    assert_eq!(validation::messages(), Vec::<String>::new());
}
