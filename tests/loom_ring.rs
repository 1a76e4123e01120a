//! The ring of a hardware queue, in every order that loom finds: its packets, the write index, the read index, and the
//! progress fence. A user's way to submit, and an engine's to execute, are the real ones. As `tests/loom.rs` otherwise.
//!
//! What loom does not have is a load that comes later than a store behind it: that the engine's loads of a packet are over
//! before its read index can be seen is said by the barrier between them (`order_log`), and nothing fails here without it.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_rig;
}

use loom::thread;
use native_fence::abi::{Doorbell, PAGE_BYTES};
use native_fence::gpu::{ExploredQueue, ExploredStand};
use native_fence::shared::Region;
use native_fence::umd::ExploredRing;
use std::sync::Arc;
use support::loom_rig::explore;

/// Packets of the ring: the least.
const CAPACITY: u64 = 2;

/// HQ-02, HQ-03: a user submits more than the ring holds, as soon as there is room, while the engine takes the queue up,
/// executes what it finds and lets go of it, over and over. Each packet is executed once, whole and in its turn: the
/// engine stops a queue whose packets do not follow each other. And whoever sees that a value has completed sees that it was
/// queued (HQ-01, NF-24): the OS knows by that what is left to do.
#[test]
fn loom_a_ring_goes_round_while_the_engine_executes() {
    const PACKETS: u64 = CAPACITY + 1;
    explore(2..=3, || {
        let queue = Arc::new(ExploredQueue::new(CAPACITY).unwrap());
        let doorbell = Region::new("hw-queue-doorbell", PAGE_BYTES).unwrap();
        let doorbell = doorbell.host().unwrap().part(0, Doorbell::BYTES);
        let fence = (ExploredQueue::PROGRESS, queue.current_value());
        let words = (doorbell.clone(), queue.progress());
        let mut ring = ExploredRing::new(queue.ring(), words, fence).unwrap();
        loom::explore();
        let submits = thread::spawn(move || {
            for _ in 0..PACKETS {
                while !ring.submit() {
                    thread::yield_now();
                }
            }
        });
        let mut read = 0;
        while read < PACKETS {
            let stand = queue.run().unwrap();
            assert_eq!(stand.fault, None, "packet {}", stand.read);
            if stand.read == read {
                thread::yield_now();
            }
            let queued = doorbell.word(Doorbell::LAST_QUEUED_VALUE).observe();
            assert!(queued >= stand.read, "{} of {queued} is done", stand.read);
            read = stand.read;
        }
        submits.join().unwrap();
        loom::stop_exploring();
        assert!(queue.logged().into_iter().eq(1..=PACKETS));
        let rest = ExploredStand {
            read: PACKETS,
            fault: None,
        };
        assert_eq!(queue.run().unwrap(), rest);
        assert_eq!(queue.current_value().word(0).observe(), PACKETS);
    });
}
