//! The protocols of waiters, posts, interrupts, parking and retirement, in every order that loom
//! finds: the real code from the user side down to the model engine, whose lanes are threads.
//! `scripts/loom` runs it, and its twins (`tests/mutants/loom.toml`), each of which lacks one of the
//! orderings and must be found here.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_rig;
}

use native_fence::abi::PAGE_BYTES;
use native_fence::gpu::Arrival;
use native_fence::shared::{Block, Region};
use native_fence::{CommandList, Fence, Timeout, os};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::loom_rig::{
    Rig, RigOptions, Woken, armed_waiter, block_on, explore, until_self_service, waiter,
};

/// The signal comes before the waiter, between its look and its post, before or after the adoption.
#[test]
fn loom_a_waiter_arms_while_the_engine_signals() {
    explore(3..=3, || {
        let rig = Rig::new(RigOptions::default());
        let (fence, mut queue) = (rig.fence(), rig.queue());
        rig.rest();
        loom::explore();
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        fence.wait(1, Timeout::Never).unwrap();
        loom::stop_exploring();
    });
}

/// One lane adopts, the other signals: between them only their meetings order anything. The waiter
/// is a thread of its own, so that it comes at any meeting without a preemption. With one there are 320,000 orders, which
/// take minutes; a twin is found in seconds.
#[test]
fn loom_a_waiter_arms_while_another_lane_signals() {
    explore(0..=1, || {
        let rig = Rig::new(RigOptions {
            lanes: 2,
            ..RigOptions::default()
        });
        let fence = rig.fence();
        let (_first, mut second) = (rig.queue(), rig.queue());
        rig.rest();
        second.submit(CommandList::new().signal(&fence, 1)).unwrap();
        let waits = waiter(&fence, 1);
        loom::explore();
        assert!(waits.join().unwrap().unwrap());
        loom::stop_exploring();
    });
}

/// The waiter for 1 must wake up, or 2 is never signalled; the waiter for 2 has posted before,
/// between or after.
#[test]
fn loom_two_waiters_and_the_first_wakes_the_second() {
    explore(2..=2, || {
        let rig = Rig::new(RigOptions::default());
        let (fence, mut queue) = (rig.fence(), rig.queue());
        rig.rest();
        loom::explore();
        let second = waiter(&fence, 2);
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        fence.wait(1, Timeout::Never).unwrap();
        fence.signal(2).unwrap();
        assert!(second.join().unwrap().unwrap());
        loom::stop_exploring();
    });
}

/// An armed wait that has no thread: the record's DPC ends it while its owner asks, sleeps, and gives
/// up the other, before or after that was released too.
#[test]
fn loom_an_armed_wait_ends_while_its_owner_goes_to_sleep() {
    explore(2..=2, || {
        let rig = Rig::new(RigOptions::default());
        let (fence, mut queue) = (rig.fence(), rig.queue());
        rig.rest();
        let [wait, given_up] = [1, 2].map(|value| fence.arm(value));
        loom::explore();
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        wait.wait(Timeout::Never).unwrap();
        drop(given_up);
        loom::stop_exploring();
        assert_eq!(fence.object().fence().monitored_value(), u64::MAX);
    });
}

/// A future, whose task is woken and not its thread: the record's DPC ends the wait while the task
/// comes to stand in its cell, and again while it is polled with another waker; the other future is
/// given up, before or after it was released too.
#[test]
fn loom_a_future_ends_while_its_task_is_polled() {
    explore(2..=2, || {
        let rig = Rig::new(RigOptions::default());
        let (fence, mut queue) = (rig.fence(), rig.queue());
        rig.rest();
        loom::explore();
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        let mut given_up = fence.wait_async(2);
        let _ = Woken::new().poll(&mut given_up);
        let mut wait = fence.wait_async(1);
        if Woken::new().poll(&mut wait).is_pending() {
            block_on(wait).unwrap();
        }
        drop(given_up);
        loom::stop_exploring();
        assert_eq!(fence.object().fence().monitored_value(), u64::MAX);
    });
}

/// After the record of 1 the shadow is disarmed: only the answer to it lets 2 raise.
#[test]
fn loom_the_answer_to_a_record_arms_again() {
    explore(1..=2, || {
        let rig = Rig::new(RigOptions::default());
        let (fence, mut queue) = (rig.fence(), rig.queue());
        let first = armed_waiter(&fence, 1);
        rig.rest();
        loom::explore();
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        queue.submit(CommandList::new().signal(&fence, 2)).unwrap();
        fence.wait(2, Timeout::Never).unwrap();
        assert!(first.join().unwrap().unwrap());
        loom::stop_exploring();
    });
}

/// CurrentValues reach the host with the end of their slice and no earlier. The slice that follows
/// may raise while the interrupt of the one before is served: its record is there then and its
/// value is not, and the record alone must release the waiter.
#[test]
fn loom_a_record_releases_its_waiter_before_the_value_arrives() {
    let early = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&early);
    explore(2..=3, move || {
        let rig = Rig::new(RigOptions {
            short_slices: true,
            current_values: Arrival::AtSliceEnd,
            ..RigOptions::default()
        });
        let (fence, mut queue) = (rig.fence(), rig.queue());
        let waits = armed_waiter(&fence, 1);
        rig.rest();
        // The first slice ends at the third packet.
        let mut list = CommandList::new();
        list.nop().nop().nop().signal(&fence, 1);
        queue.submit(&list).unwrap();
        loom::explore();
        if !waits.join().unwrap().unwrap() {
            seen.store(true, Ordering::Relaxed);
        }
        loom::stop_exploring();
    });
    assert!(
        early.load(Ordering::Relaxed),
        "no waiter was released by a record whose value was still on its way"
    );
}

/// Nothing is left to do when the second submission comes: its call finds the engine running,
/// looking for the last time, or parked.
#[test]
fn loom_a_doorbell_rings_while_the_engine_parks() {
    explore(1..=2, || {
        let rig = Rig::new(RigOptions::default());
        let (fence, mut queue) = (rig.fence(), rig.queue());
        rig.rest();
        loom::explore();
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        queue.submit(CommandList::new().signal(&fence, 2)).unwrap();
        fence.wait(2, Timeout::Never).unwrap();
        loom::stop_exploring();
    });
}

/// A doorbell that says CONNECTED is not followed by a call: the engine looks at the ring after it
/// has taken that back, or the user sees that it was.
#[test]
fn loom_a_doorbell_that_serves_itself_is_taken_back() {
    explore(2..=2, || {
        let rig = Rig::new(RigOptions {
            short_slices: true,
            ..RigOptions::default()
        });
        let (fence, mut queue) = (rig.fence(), rig.queue());
        rig.rest();
        queue
            .submit(CommandList::new().nop().nop().nop().nop().nop())
            .unwrap();
        until_self_service(&queue);
        loom::explore();
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        fence.wait(1, Timeout::Never).unwrap();
        loom::stop_exploring();
    });
}

/// A queue stands at a wait; what lets it pass finds the engine running, looking, or parked.
fn the_engine_parks_while(lets_pass: impl Fn(&Rig, &Fence) + Send + Sync + 'static) {
    explore(1..=2, move || {
        let rig = Rig::new(RigOptions::default());
        let (from, to, mut queue) = (rig.fence(), rig.fence(), rig.queue());
        rig.rest();
        loom::explore();
        queue
            .submit(CommandList::new().wait(&from, 1).signal(&to, 1))
            .unwrap();
        lets_pass(&rig, &from);
        to.wait(1, Timeout::Never).unwrap();
        loom::stop_exploring();
    });
}

/// The CPU's signal.
#[test]
fn loom_the_cpu_signals_while_the_engine_parks() {
    the_engine_parks_while(|_, from| from.signal(1).unwrap());
}

/// NF-19: the driver is told that the fence is always signaled; nobody else brings the engine back.
#[test]
fn loom_a_fence_is_always_signaled_while_the_engine_parks() {
    the_engine_parks_while(Rig::always_signal);
}

/// As of the CPU, of a signal of another engine: its interrupt is the only one that can bring the engine
/// back, and finds it running, on its way to park, or parked.
#[test]
fn loom_another_engine_signals_while_the_engine_parks() {
    explore(1..=1, || {
        let rig = Rig::new(RigOptions {
            nodes: 2,
            ..RigOptions::default()
        });
        let fence = rig.fence();
        let (mut consumer, mut producer) = (rig.queue_on(0), rig.queue_on(1));
        rig.rest();
        let end = consumer.submit(CommandList::new().wait(&fence, 1)).unwrap();
        // Its slice has found nothing, and nobody knows yet.
        rig.until_slice_ends(0);
        loom::explore();
        producer
            .submit(CommandList::new().signal(&fence, 1))
            .unwrap();
        consumer.progress_fence().wait(end, Timeout::Never).unwrap();
        loom::stop_exploring();
    });
}

/// A signal is on its way when its fence goes: the fence that has its slot and its storage next
/// keeps its value.
#[test]
fn loom_a_late_signal_does_not_touch_the_next_fence() {
    explore(2..=3, || {
        let rig = Rig::new(RigOptions::default());
        let (old, mut queue) = (rig.fence(), rig.queue());
        rig.rest();
        loom::explore();
        queue.submit(CommandList::new().signal(&old, 7)).unwrap();
        drop(old);
        let new = rig.fence();
        new.signal(1).unwrap();
        loom::stop_exploring();
        // No slice runs any more.
        queue.os().disconnect_doorbell();
        assert_eq!(new.current_value(), 1);
    });
}

/// An interrupt that names a fence is on its way when that goes: the fence that has its slot next
/// keeps its waiter.
#[test]
fn loom_a_late_record_does_not_release_the_next_fences_waiter() {
    explore(1..=1, || {
        let rig = Rig::new(RigOptions::default());
        let (old, mut queue) = (rig.fence(), rig.queue());
        let waits = armed_waiter(&old, 1);
        rig.rest();
        queue.submit(CommandList::new().signal(&old, 1)).unwrap();
        loom::explore();
        // The engine's turn and the interrupt's, without a preemption.
        loom::thread::yield_now();
        old.close();
        drop(old);
        // Released or closed; and with it goes the last reference.
        let _ = waits.join().unwrap();
        let new = rig.fence();
        let signals = {
            let new = new.clone();
            loom::thread::spawn(move || new.signal(1).unwrap())
        };
        new.wait(1, Timeout::Never).unwrap();
        assert_eq!(new.current_value(), 1, "woken for nothing");
        signals.join().unwrap();
        loom::stop_exploring();
    });
}

/// NF-26 between operating systems: one tells another of what it reads, while the other stores the fence
/// backwards and two waiters come to it, the second with the word that was the first to be told in, if nobody
/// tells in it. Who came after the lower value satisfies no wait by the greater one.
#[test]
fn loom_what_was_read_before_a_rewind_is_told_to_no_later_waiter() {
    explore(3..=3, || {
        let (telling, mut told) = os::ExploredTelling::new().unwrap();
        let current = Region::new("current value", PAGE_BYTES).unwrap();
        let current = Arc::new(Block::whole(&current.map().unwrap()));
        current.word(0).publish(7);
        loom::explore();
        let read = Arc::clone(&current);
        let tells = loom::thread::spawn(move || telling.tell(|| read.word(0).observe()));
        current.word(0).publish(1);
        // With a waiter that has come by then, and is older than the first that is told nothing.
        let satisfies_one = |told: &os::ExploredTold, come: u64| {
            let told = told.take();
            told.iter()
                .any(|(value, before)| *value == 7 && (*before).min(come) > 0)
        };
        for number in 0..2 {
            assert_eq!(current.word(0).observe(), 1);
            assert!(!satisfies_one(&told, number));
            told.waiter_comes(number);
        }
        loom::stop_exploring();
        tells.join().unwrap();
        assert!(!satisfies_one(&told, 2));
    });
}
