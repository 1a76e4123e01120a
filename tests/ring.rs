//! Rules of the ring (HQ-03), on the real device.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::{CommandList, HwQueue, HwQueueOptions, SubmitError};
use std::time::Duration;
use support::bench::{Bench, LONG, until};

/// A ring of eight packets, not connected.
fn small(bench: &Bench) -> HwQueue {
    let options = HwQueueOptions {
        ring_capacity: 8,
        ..HwQueueOptions::default()
    };
    bench.device.create_hw_queue_disconnected(options).unwrap()
}

/// All that a producer stores: packets, indices, last queued value.
fn memory(queue: &HwQueue) -> Vec<u64> {
    let (control, packets) = queue.raw_memory();
    [control, packets]
        .iter()
        .flat_map(|block| (0..block.bytes() as u64 / 8).map(|i| block.word(8 * i).peek()))
        .collect()
}

/// HQ-03: refuses. The refused list leaves no trace: not in the ring, and not in the numbers that
/// the next packets carry.
///
/// Mutants: `full-ring-takes-one-more`, `log-number-of-a-refused-list-is-spent`.
#[test]
fn hq_03_a_full_ring_refuses_and_nothing_is_overwritten() {
    let bench = Bench::new();
    let mut queue = small(&bench);
    let fence = bench.fence(0);
    let mut list = CommandList::new();
    list.signal(&fence, 1).wait(&fence, 1).signal(&fence, 2);
    let mut rest = CommandList::new();
    rest.signal(&fence, 3).signal(&fence, 4);
    queue.queue_commands(&list).unwrap();
    queue.queue_commands(&rest).unwrap();
    assert_eq!(queue.room(), 1);
    let full = memory(&queue);

    for _ in 0..3 {
        let error = queue.queue_commands(&list).unwrap_err();
        assert!(
            matches!(error, SubmitError::Full { needed: 4, room: 1 }),
            "{error:?}"
        );
        let one_too_many = queue.queue_commands(CommandList::new().nop()).unwrap_err();
        assert!(
            matches!(one_too_many, SubmitError::Full { needed: 2, room: 1 }),
            "{one_too_many:?}"
        );
    }
    let mut long = CommandList::new();
    (0..8).for_each(|_| {
        long.nop();
    });
    let error = queue.queue_commands(&long).unwrap_err();
    assert!(
        matches!(
            error,
            SubmitError::TooLong {
                needed: 9,
                capacity: 8
            }
        ),
        "{error:?}"
    );
    assert_eq!(memory(&queue), full, "not a word was stored");
    assert_eq!(queue.last_queued_value(), 2);

    // The last place can be used: an empty list is a progress write.
    let value = queue.queue_commands(&CommandList::new()).unwrap();
    assert_eq!((value, queue.room()), (3, 0));
    queue.connect_doorbell().unwrap();
    queue.progress_fence().wait(value, LONG).unwrap();
    let signals = queue.read_signal_log().unwrap().entries;
    let values: Vec<u64> = signals.iter().map(|entry| entry.fence_value).collect();
    assert_eq!(values, [1, 2, 1, 3, 4, 2, 3], "all of it, once, in order");

    until("the packets are given back", || queue.room() == 8);
    let value = queue.submit(&list).unwrap();
    queue.progress_fence().wait(value, LONG).unwrap();
    assert_eq!(queue.error(), None);
}

/// HQ-03: blocks. The producer stands as a waiter of the progress fence until there is room.
///
/// Mutant: `blocking-producer-waits-for-too-little`.
#[test]
fn hq_03_a_full_ring_blocks_the_producer_that_asked_for_it() {
    let bench = Bench::new();
    let mut queue = small(&bench);
    queue.connect_doorbell().unwrap();
    let (gate, fence) = (bench.fence(0), bench.fence(0));
    let mut list = CommandList::new();
    list.wait(&gate, 1).signal(&fence, 1).signal(&fence, 2);
    queue.submit(&list).unwrap();
    queue.submit(&list).unwrap();
    let full = memory(&queue);
    let soon = Duration::from_millis(10);
    let error = queue
        .submit_blocking(CommandList::new().nop(), soon)
        .unwrap_err();
    assert!(matches!(error, SubmitError::TimedOut), "{error:?}");
    assert_eq!(memory(&queue), full, "a time-out takes nothing");

    let progress = queue.progress_fence().clone();
    std::thread::scope(|scope| {
        let producer = scope.spawn(|| {
            let mut more = CommandList::new();
            more.signal(&fence, 3).signal(&fence, 4);
            queue.submit_blocking(&more, LONG).unwrap()
        });
        // Room for three packets is there when the first submission is completed.
        until("the producer stands at the progress fence", || {
            progress.object().fence().monitored_value() == 0
        });
        assert!(!producer.is_finished());
        gate.signal(1).unwrap();
        assert_eq!(producer.join().unwrap(), 3);
    });
    progress.wait(3, LONG).unwrap();
    assert_eq!(fence.current_value(), 4);
    let signals = queue.read_signal_log().unwrap().entries;
    let values: Vec<u64> = signals.iter().map(|entry| entry.fence_value).collect();
    assert_eq!(values, [1, 2, 1, 1, 2, 2, 3, 4, 3]);
}

/// HQ-03: a small ring goes round many times; every packet runs once and in order.
///
/// Mutant: `blocking-producer-waits-for-too-little`.
#[test]
fn hq_03_a_small_ring_goes_round_and_round_without_loss() {
    let bench = Bench::new();
    let mut queue = small(&bench);
    queue.connect_doorbell().unwrap();
    let fence = bench.fence(0);
    let (mut next, mut seen) = (1, vec![]);
    for submission in 1..=400u64 {
        let mut list = CommandList::new();
        for _ in 0..submission % 7 {
            list.signal(&fence, next);
            next += 1;
        }
        queue.submit_blocking(&list, LONG).unwrap();
        if submission % 8 == 0 {
            let read = queue.read_signal_log().unwrap();
            assert_eq!(read.lost, 0);
            seen.extend(read.entries);
        }
    }
    queue.progress_fence().wait(400, LONG).unwrap();
    seen.extend(queue.read_signal_log().unwrap().entries);
    let (signals, progress): (Vec<_>, Vec<_>) = seen
        .into_iter()
        .partition(|entry| entry.native_fence == fence.handle().raw());
    assert!(signals.iter().map(|entry| entry.fence_value).eq(1..next));
    assert!(progress.iter().map(|entry| entry.fence_value).eq(1..=400));
}
