//! Last queued value: what the OS knows of a queue before its doorbell rings.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{Doorbell, RingControl};
use native_fence::{CommandList, HwQueueOptions};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use support::bench::{Bench, Call, Ended, until, until_completed};

/// The last queued value is visible to the OS when the commands are queued and before the doorbell
/// rings, while nothing of them has been executed; and no later than the packets themselves, for
/// whoever sees those.
///
/// Kills `last-queued-value-is-one-late` and `last-queued-value-after-the-packets`.
#[test]
fn nf_24_the_last_queued_value_is_visible_before_the_doorbell_rings() {
    let bench = Bench::new();
    let mut queue = bench.then_parked(|| bench.queue());
    for value in 1..=5 {
        assert_eq!(queue.os().last_queued_value(), value - 1);
        assert_eq!(
            queue.queue_commands(CommandList::new().nop()).unwrap(),
            value
        );
        assert_eq!(queue.os().last_queued_value(), value);
        assert_eq!(queue.progress_fence().current_value(), 0);
        let rung = |call: &Call| matches!(call, Call::NotifyWorkSubmission(_));
        assert!(!bench.spy.calls().iter().any(rung), "the doorbell has rung");
    }
    queue.ring_doorbell().unwrap();
    until_completed(&queue, 5);
    assert_eq!(queue.os().last_queued_value(), 5);

    // A queue that does not run: one submission is one packet, so that both words count alike.
    let options = HwQueueOptions {
        ring_capacity: 1 << 18,
        ..HwQueueOptions::default()
    };
    let mut queue = bench.device.create_hw_queue_disconnected(options).unwrap();
    let control = queue.raw_memory().0.clone();
    let doorbell = queue.raw_doorbell().clone();
    let (over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let _over = Ended(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                let written = control.word(RingControl::WRITE_INDEX).observe();
                let queued = doorbell.word(Doorbell::LAST_QUEUED_VALUE).observe();
                assert!(
                    queued >= written,
                    "packet {written} is seen, {queued} is queued"
                );
                looks.fetch_add(1, Ordering::Release);
            }
        });
        until("the OS looks", || looks.load(Ordering::Acquire) > 0);
        let list = CommandList::new();
        while queue.queue_commands(&list).is_ok() {}
    });
    assert_eq!(queue.last_queued_value(), 1 << 18);
}
