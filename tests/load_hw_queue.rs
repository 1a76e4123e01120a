//! Rules of hardware queues (HQ) that show under load. Each test loads two cores for a moment.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{Doorbell, LogType, RingControl};
use native_fence::{CommandList, HwQueueOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::bench::{Bench, Ended, LONG, until};

/// HQ-01: whoever sees packets in the ring sees that they were announced.
///
/// Mutant: `last-queued-value-one-behind`.
#[test]
fn hq_01_the_last_queued_value_is_published_before_the_ring() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let fence = bench.fence(0);
    let control = queue.raw_memory().0.clone();
    let doorbell = queue.raw_doorbell().clone();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut sights = 0;
            while !ended.load(Ordering::Acquire) {
                let written = control.word(RingControl::WRITE_INDEX).observe();
                let queued = doorbell.word(Doorbell::LAST_QUEUED_VALUE).observe();
                // Two packets a submission.
                assert!(
                    queued >= written / 2,
                    "{written} packets, {queued} announced"
                );
                sights += 1;
            }
            sights
        });
        let end = Ended(&ended);
        for value in 1..=5000 {
            queue
                .submit_blocking(CommandList::new().signal(&fence, value), LONG)
                .unwrap();
        }
        drop(end);
        println!("{} looks", watcher.join().unwrap());
    });
    queue.progress_fence().wait(5000, LONG).unwrap();
}

/// HQ-02: a storm of connects and disconnects while a producer submits and a partner queue
/// answers; each signal is executed exactly once.
///
/// Kills `ring-slot-never-wraps-on-the-engine`. Those of the tests in `doorbell` it kills by chance.
#[test]
fn hq_02_a_storm_of_connects_and_disconnects_loses_nothing() {
    let bench = Bench::new();
    // Rings that go round many times.
    let small = HwQueueOptions {
        ring_capacity: 64,
        ..HwQueueOptions::default()
    };
    let [mut queue, mut partner] =
        [0, 1].map(|_| bench.device.create_hw_queue_with(small).unwrap());
    let (there, back) = (bench.fence(0), bench.fence(0));
    let doorbell = Arc::clone(queue.os());
    let rounds = 300u64;
    std::thread::scope(|scope| {
        let storm = scope.spawn(|| {
            for time in 0..1500u32 {
                doorbell.disconnect_doorbell();
                doorbell.connect_doorbell().unwrap();
                // Long enough at times that a slice gets to run the queue.
                (0..time % 40 * 50).for_each(|_| std::hint::spin_loop());
            }
        });
        for round in 1..=rounds {
            let mut answer = CommandList::new();
            answer.wait(&there, round).signal(&back, round);
            partner.submit_blocking(&answer, LONG).unwrap();
            let mut list = CommandList::new();
            list.signal(&there, round).wait(&back, round);
            queue.submit_blocking(&list, LONG).unwrap();
            if round % 8 == 0 {
                back.wait(round, LONG).unwrap();
            }
        }
        queue.progress_fence().wait(rounds, LONG).unwrap();
        partner.progress_fence().wait(rounds, LONG).unwrap();
        storm.join().unwrap();
    });
    assert_eq!(
        (there.current_value(), back.current_value()),
        (rounds, rounds)
    );
    let signals = bench.spy.log(queue.os().handle(), LogType::Signals);
    let waits = bench.spy.log(queue.os().handle(), LogType::Waits);
    assert_eq!((signals.total(), waits.total()), (2 * rounds, rounds));
    // It follows the progress value.
    until("the packets are given back", || {
        queue.read_index() == 3 * rounds
    });
}
