//! What has happened to the commands when a submission fails.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/engines.rs"]
mod engines;
#[path = "support/until.rs"]
mod until;

use engines::on_every_engine;
use native_fence::abi::{MAX_HW_QUEUES, RingControl};
use native_fence::vulkan::validation;
use native_fence::{CommandList, HwQueue, HwQueueOptions, RingError, SubmitError, WaitError};
use until::LONG;

fn write_index(queue: &HwQueue) -> u64 {
    queue
        .raw_memory()
        .0
        .word(RingControl::WRITE_INDEX)
        .observe()
}

/// HQ-01, for a doorbell that does not connect: the error names the value as which the commands are
/// queued, and they run once when it connects after all.
///
/// Mutant: `not-rung-is-not-told`.
#[test]
fn hq_01_commands_that_were_not_rung_for_are_queued_and_say_so() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let options = HwQueueOptions {
            ring_capacity: 2,
            ..HwQueueOptions::default()
        };
        // The OS's own is one of them, which has initialised their save areas.
        let mut others: Vec<_> = (1..MAX_HW_QUEUES)
            .map(|_| device.create_hw_queue_with(options).unwrap())
            .collect();
        let mut queue = device
            .create_hw_queue_disconnected(HwQueueOptions::default())
            .unwrap();
        let refused = queue.submit(CommandList::new().signal(&fence, 1));
        match refused {
            Err(SubmitError::NotRung {
                value: 1,
                why: RingError::Connect(_),
            }) => {}
            other => panic!("the run list is full: {other:?}"),
        }
        assert_eq!((queue.last_queued_value(), write_index(&queue)), (1, 2));
        assert_eq!(fence.current_value(), 0);

        drop(others.pop());
        queue.ring_doorbell().unwrap();
        queue.progress_fence().wait(1, LONG).unwrap();
        assert_eq!(fence.current_value(), 1);
        let next = queue.submit(CommandList::new().signal(&fence, 2)).unwrap();
        queue.progress_fence().wait(next, LONG).unwrap();
        assert_eq!((next, fence.current_value()), (2, 2));
        assert_eq!(queue.read_signal_log().unwrap().entries.len(), 4);
    });
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// HQ-01, for a queue that was stopped: nothing of the list is taken.
///
/// Mutant: `a-stopped-queue-takes-commands`.
#[test]
fn hq_01_a_stopped_queue_takes_no_commands() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let closed = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let mut list = CommandList::new();
        list.signal(&closed, 1);
        closed.close();
        let value = queue.submit(&list).unwrap();
        let ended = queue.progress_fence().wait(value, LONG);
        assert!(
            matches!(ended, Err(WaitError::QueueFaulted(_))),
            "{ended:?}"
        );
        let before = (queue.last_queued_value(), write_index(&queue));
        for _ in 0..2 {
            let refused = queue.submit(&list);
            assert!(
                matches!(refused, Err(SubmitError::Faulted(_))),
                "{refused:?}"
            );
        }
        assert_eq!((queue.last_queued_value(), write_index(&queue)), before);
    });
    assert_eq!(validation::messages(), Vec::<String>::new());
}
