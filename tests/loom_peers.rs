//! The protocol of operating systems that have one fence open (`src/os/peers.rs`), in every order that
//! loom finds: the real page of slots, in explored memory, and the real threads that hear of others.
//! As `tests/loom.rs` otherwise.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_rig;
    pub(crate) mod loom_systems;
}

use native_fence::{CommandList, Timeout};
use support::loom_rig::{Rig, RigOptions, explore};
use support::loom_systems::{opened, rest, shared_fence, signaller, without_engines};

/// A's CPU signals while B's waiter comes: A's look finds B's word, or B's look the value.
#[test]
fn loom_a_cpu_signals_while_another_system_arms() {
    explore(2, || {
        let (a, b) = (without_engines(), without_engines());
        let made = shared_fence(&a);
        let opened = opened(&made, &b);
        rest();
        loom::explore();
        let signals = signaller(&made, 1);
        opened.wait(1, Timeout::Never).unwrap();
        signals.join().unwrap();
        loom::stop_exploring();
    });
}

/// A's engine signals while B's waiter comes: A posts what B waits for, or B's look finds the value.
#[test]
fn loom_an_engine_signals_while_another_system_arms() {
    explore(1, || {
        let rig = Rig::new(RigOptions::default());
        let b = without_engines();
        let made = shared_fence(&rig.device);
        let opened = opened(&made, &b);
        let mut queue = rig.queue();
        rig.rest();
        rest();
        loom::explore();
        queue.submit(CommandList::new().signal(&made, 1)).unwrap();
        opened.wait(1, Timeout::Never).unwrap();
        loom::stop_exploring();
    });
}
