//! What an engine's control part and its host tell each other, in every order that loom finds: posts that overflow the
//! mailbox, and records that fill their ring. Slices, mailbox and reader are the real ones. As `tests/loom.rs` otherwise.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_rig;
}

use loom::thread;
use native_fence::abi::{HandleAccess, MAILBOX_CAPACITY, RECORD_RING_CAPACITY};
use native_fence::gpu::{ExploredEngine, ExploredHost};
use std::ops::RangeInclusive;
use support::loom_rig::explore;

/// What signals are compared with as long as no post is adopted: more than any that there are.
const UNTOLD: u64 = 1 << 32;

/// A slice signals 1 while `comes` has somebody come to wait for it, who is given what he saw. He saw it, or is told of it by
/// this slice or by the next; and what the engine says that it has taken it has.
fn posts_come(
    preemptions: RangeInclusive<usize>,
    comes: impl Fn(&mut ExploredHost) -> u64 + Send + Sync + 'static,
) {
    explore(preemptions, move || {
        let (engine, mut host) = ExploredEngine::new(UNTOLD, HandleAccess::FULL).unwrap();
        host.submit(1);
        loom::explore();
        let slice = thread::spawn(move || {
            engine.run().unwrap();
            engine
        });
        let seen = comes(&mut host);
        let (is_taken, shadow) = host.acknowledged().unwrap();
        assert!(!is_taken || shadow != UNTOLD, "taken before it was adopted");
        let engine = slice.join().unwrap();
        loom::stop_exploring();
        engine.run().unwrap();
        assert!(host.acknowledged().unwrap().0, "a post is left");
        let (raised, is_lost) = host.take();
        assert!(seen == 1 || raised.contains(&1), "{seen}, {raised:?}");
        assert!(!is_lost);
    });
}

/// NF-07: the mailbox is full when he comes, if the engine has taken nothing by then: it looks at every fence.
#[test]
fn loom_a_post_finds_a_full_mailbox_while_the_engine_adopts() {
    posts_come(3..=3, |host| {
        host.post_others(MAILBOX_CAPACITY);
        host.wait_for(1)
    });
}

/// He has come when the mailbox overflows: his post is not one that is written over.
#[test]
fn loom_a_mailbox_overflows_behind_a_post() {
    posts_come(2..=3, |host| {
        let seen = host.wait_for(1);
        host.post_others(MAILBOX_CAPACITY);
        seen
    });
}

/// IN-06: more is raised than the ring holds while the OS takes records. Each is taken whole, once and in its order, or the
/// OS has been told that some are lost when it takes a later one.
#[test]
fn loom_records_fill_their_ring_while_they_are_taken() {
    explore(2..=3, || {
        const BEFORE: u64 = RECORD_RING_CAPACITY - 2;
        const ALL: u64 = BEFORE + 4;
        // Each signal raises, whatever was raised before.
        let (engine, mut host) = ExploredEngine::new(0, HandleAccess::KEEPS_ARMED).unwrap();
        host.submit(BEFORE);
        engine.run().unwrap();
        host.submit(ALL - BEFORE);
        loom::explore();
        let slice = thread::spawn(move || engine.run().unwrap());
        let (mut last, mut is_told) = (0, false);
        let mut takes = || {
            let (values, is_lost) = host.take();
            is_told |= is_lost;
            for value in values {
                assert!(
                    value == last + 1 || value > last && is_told,
                    "{value} after {last}"
                );
                last = value;
            }
            (last, is_told)
        };
        takes();
        takes();
        slice.join().unwrap();
        loom::stop_exploring();
        let (last, is_told) = takes();
        assert!(last == ALL || is_told, "{last} is the last");
    });
}
