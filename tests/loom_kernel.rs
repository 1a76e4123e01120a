//! The protocols of what the OS holds back and hands over, in every order that loom finds: monitored
//! fences, kernel-mode queues, and doorbells of which there are few. As `tests/loom.rs` otherwise.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_rig;
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_systems;
}

use loom::thread;
use native_fence::os::QueueStop;
use native_fence::{CommandList, Timeout, WaitError};
use std::num::NonZeroU32;
use support::loom_rig::{Rig, RigOptions, explore};
use support::loom_systems::{engine_signals_monitored, without_engines};

/// The interrupt of the advanced form names no fence, so its look finds those alone that are waited for;
/// who comes to stand among them after it reads the value that was stored before it.
#[test]
fn loom_a_monitored_waiter_arms_while_an_engine_signals() {
    explore(3..=3, || {
        let device = without_engines();
        let fence = device.create_monitored_fence(0).unwrap();
        loom::explore();
        let engine = thread::spawn({
            let fence = fence.clone();
            move || engine_signals_monitored(&fence, 1)
        });
        fence.wait(1, Timeout::Never).unwrap();
        engine.join().unwrap();
        loom::stop_exploring();
    });
}

/// A queue stands at a wait, which ends while a thread that has queued more looks at it: who ends it finds
/// that thread advancing the queue, and leaves word.
#[test]
fn loom_a_kernel_queue_is_looked_at_while_its_wait_ends() {
    explore(2..=2, || {
        let rig = Rig::new(RigOptions::default());
        let fence = rig.fence();
        let mut queue = rig.device.create_kernel_queue().unwrap();
        queue.wait_native(&fence, 1).unwrap();
        rig.rest();
        loom::explore();
        let signals = thread::spawn({
            let fence = fence.clone();
            move || fence.signal(1).unwrap()
        });
        let end = queue.submit(CommandList::new().nop()).unwrap();
        queue.progress_fence().wait(end, Timeout::Never).unwrap();
        signals.join().unwrap();
        loom::stop_exploring();
    });
}

/// A queue stands at a wait for the progress of another, and a thread that has queued more looks at it, with the
/// wait in hand, while the other comes to wait for its progress: the circle is found (TD-15), since that thread
/// puts back what the verdict has not seen, and has it judged.
#[test]
fn loom_a_circle_closes_while_a_thread_looks_at_a_wait_of_it() {
    explore(1..=2, || {
        let rig = Rig::new(RigOptions::default());
        let [mut one, mut other] = [(); 2].map(|()| rig.device.create_kernel_queue().unwrap());
        let of_one = one.progress_fence().clone();
        one.wait(other.progress_fence(), 1).unwrap();
        rig.rest();
        loom::explore();
        let closes = thread::spawn(move || {
            // Whose wait is the younger, which fails: where it is found before this returns, it is refused.
            let _refused = other.wait(&of_one, 1).map(drop);
            other
        });
        let _refused = one.submit(CommandList::new().nop());
        let other = closes.join().unwrap();
        loom::stop_exploring();
        let deadlocked = WaitError::QueueStopped(QueueStop::Deadlocked);
        assert_eq!(other.error(), Some(deadlocked));
        assert!(one.error().is_some());
    });
}

/// Two queues of one engine have commands for it: the thread that finds the other one handing over leaves
/// its command to that one. Each command's completion finds its queue: one has a signal behind it.
#[test]
fn loom_two_kernel_queues_hand_over_to_one_engine() {
    explore(1..=1, || {
        let rig = Rig::new(RigOptions::default());
        let fence = rig.fence();
        let [mut one, mut other] = [(); 2].map(|()| rig.device.create_kernel_queue().unwrap());
        rig.rest();
        loom::explore();
        let others = thread::spawn(move || {
            let end = other.submit(CommandList::new().nop()).unwrap();
            (other, end)
        });
        one.submit(CommandList::new().nop()).unwrap();
        one.signal_native(&fence, 1).unwrap();
        fence.wait(1, Timeout::Never).unwrap();
        let (other, end) = others.join().unwrap();
        loom::stop_exploring();
        other.progress_fence().wait(end, Timeout::Never).unwrap();
    });
}

/// The one doorbell is taken for a queue whose user calls, while the queue that has it gives it up and
/// connects again: who comes to a doorbell that changes hands sleeps until it has.
#[test]
fn loom_a_doorbell_is_taken_while_its_queue_gives_it_up() {
    explore(1..=2, || {
        let rig = Rig::new(RigOptions {
            doorbells: NonZeroU32::new(1),
            ..RigOptions::default()
        });
        let fence = rig.fence();
        let (mut has, calls) = (rig.queue(), rig.queue());
        rig.rest();
        loom::explore();
        let taken = thread::spawn(move || {
            calls.os().notify_work_submission();
            calls
        });
        has.os().disconnect_doorbell();
        has.connect_doorbell().unwrap();
        let mut calls = taken.join().unwrap();
        loom::stop_exploring();
        // Whoever has it now, both are served.
        for (queue, value) in [(&mut has, 1), (&mut calls, 2)] {
            queue
                .submit(CommandList::new().signal(&fence, value))
                .unwrap();
            fence.wait(value, Timeout::Never).unwrap();
        }
    });
}
