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
use native_fence::abi::WordGroup;
use native_fence::gpu::{ExploredQueue, ExploredStand};
use native_fence::shared::ExploresMore;
use native_fence::umd::ExploredRing;
use native_fence::{CommandList, Timeout};
use std::sync::Arc;
use support::loom_rig::{Rig, RigOptions, explore, until_self_service};

/// Packets of the ring: the least.
const CAPACITY: u64 = 2;

/// HQ-02, HQ-03: a user submits more than the ring holds, as soon as there is room, while the engine takes the queue up,
/// executes what it finds and lets go of it, over and over. Each packet is executed once, whole and in its turn: the
/// engine stops a queue whose packets do not follow each other.
#[test]
fn loom_a_ring_goes_round_while_the_engine_executes() {
    const PACKETS: u64 = CAPACITY + 1;
    explore(2..=3, || {
        let queue = Arc::new(ExploredQueue::new(CAPACITY).unwrap());
        let fence = (ExploredQueue::PROGRESS, queue.current_value());
        let mut ring = ExploredRing::new(queue.ring(), queue.progress(), fence).unwrap();
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

/// HQ-01, NF-24: a user tells the OS of a submission before the engine can see it: who sees that a value has completed sees
/// that it was queued.
#[test]
fn loom_a_value_that_has_completed_was_queued() {
    explore(1..=1, || {
        let _more = ExploresMore::of(&[WordGroup::Doorbell]);
        let rig = Rig::new(RigOptions {
            short_slices: true,
            ..RigOptions::default()
        });
        let mut queue = rig.queue();
        let os = Arc::clone(queue.os());
        let done = queue.progress_fence().arm(2);
        rig.rest();
        // The engine looks at the ring by itself.
        queue
            .submit(CommandList::new().nop().nop().nop().nop().nop())
            .unwrap();
        until_self_service(&queue);
        loom::explore();
        let submits = thread::spawn(move || {
            queue.submit(CommandList::new().nop()).unwrap();
            queue
        });
        done.wait(Timeout::Never).unwrap();
        assert!(os.last_queued_value() >= 2, "nobody has queued it");
        loom::stop_exploring();
        drop(submits.join().unwrap());
    });
}
