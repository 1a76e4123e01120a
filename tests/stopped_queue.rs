//! What becomes of waits and doorbells when a queue was stopped or is gone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/engines.rs"]
mod engines;

use engines::on_every_engine;
use native_fence::abi::{DoorbellStatus, FaultCode, Packet, RingControl};
use native_fence::{CommandList, SubmitError, WaitError};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(20);

/// NF-22: nobody can reach the next value of a dropped queue's progress fence, so a wait for it
/// ends with an error.
///
/// Mutants: `dropped-queue-leaves-its-waiters`.
#[test]
fn nf_22_dropping_a_queue_ends_the_waits_for_its_progress() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let never = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let progress = queue.progress_fence().clone();
        let value = queue.submit(CommandList::new().wait(&never, 1)).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| progress.wait(value, LONG));
            drop(queue);
            assert_eq!(waiter.join().unwrap(), Err(WaitError::Closed));
        });
    });
    assert_eq!(
        native_fence::vulkan::validation::messages(),
        Vec::<String>::new()
    );
}

/// HQ-01: a queue that was stopped stays so: its doorbell neither connects again nor turns into one
/// that could.
///
/// Mutants: `stopped-queue-connects-again`.
#[test]
fn hq_01_a_stopped_queue_does_not_connect_again() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut queue = device.create_hw_queue().unwrap();
        let (control, packets) = queue.raw_memory();
        packets.word(Packet::CONTROL).put(0xff);
        control.word(RingControl::WRITE_INDEX).publish(1);
        // The engine may have looked before the ring; then the queue is stopped, and refuses it.
        let _ = queue.ring_doorbell();
        let ended = queue.progress_fence().wait(1, LONG);
        let Err(WaitError::QueueFaulted(fault)) = ended else {
            panic!("{ended:?}")
        };
        assert_eq!((fault.code, fault.packet), (FaultCode::Opcode, 0));

        queue.os().disconnect_doorbell();
        assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedAbort);
        assert!(queue.connect_doorbell().is_err());
        assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedAbort);
        let refused = queue.submit(&CommandList::new());
        assert!(
            matches!(refused, Err(SubmitError::Faulted(_))),
            "{refused:?}"
        );
    });
    assert_eq!(
        native_fence::vulkan::validation::messages(),
        Vec::<String>::new()
    );
}
