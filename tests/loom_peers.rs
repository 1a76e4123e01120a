//! The protocol of operating systems that have one fence open (`src/os/peers.rs`), in every order that
//! loom finds: the real page of slots, in explored memory, and the real threads that hear of others.
//! As `tests/loom.rs` otherwise.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_rig;
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_systems;
}

use loom::thread;
use native_fence::os::ExploredOpener;
use native_fence::{CommandList, Timeout};
use std::sync::Arc;
use support::loom_rig::{Rig, RigOptions, explore};
use support::loom_systems::{opened, raise, rest, shared_fence, signaller, without_engines};

/// A's CPU signals while B's waiter comes: A's look finds B's word, or B's look the value.
#[test]
fn loom_a_cpu_signals_while_another_system_arms() {
    explore(2..=2, || {
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
    explore(1..=1, || {
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

/// B is told of one value after another: it looks again whenever it was called since it began to look.
#[test]
fn loom_a_system_is_told_while_it_looks() {
    explore(2..=2, || {
        let (a, b) = (without_engines(), without_engines());
        let made = shared_fence(&a);
        let opened = opened(&made, &b);
        let [_first, second] = [1, 2].map(|value| opened.arm(value));
        rest();
        loom::explore();
        let signals = thread::spawn(move || {
            made.signal(1).unwrap();
            made.signal(2).unwrap();
        });
        second.wait(Timeout::Never).unwrap();
        signals.join().unwrap();
        loom::stop_exploring();
    });
}

/// An engine of A has signalled 6, C's CPU takes it back, and B's waiter, which has seen that, comes; then
/// the record of 6 is answered. C has said before it stored that records are of the past.
#[test]
fn loom_a_record_of_before_a_rewind_is_not_told() {
    explore(2..=2, || {
        let [a, b, c] = std::array::from_fn(|_| without_engines());
        let made = shared_fence(&a);
        let [waits, rewinds] = [&b, &c].map(|system| opened(&made, system));
        made.signal(6).unwrap();
        rest();
        loom::explore();
        let rewind = thread::spawn(move || rewinds.rewind(0).unwrap());
        let wait = (waits.current_value() == 0).then(|| waits.arm(5));
        raise(&made, 6);
        rewind.join().unwrap();
        loom::stop_exploring();
        rest();
        if let Some(wait) = wait {
            assert_eq!(wait.outcome(), None, "5 was not signalled since");
        }
    });
}

/// NF-26: A's own waiter has seen that another system took 6 back; A's record of 6 is older than that.
#[test]
fn loom_a_record_of_before_anothers_rewind_ends_no_own_wait() {
    explore(0..=0, || {
        let (a, c) = (without_engines(), without_engines());
        let made = shared_fence(&a);
        let rewinds = opened(&made, &c);
        let earlier = made.arm(7);
        made.signal(6).unwrap();
        rewinds.rewind(0).unwrap();
        let later = made.arm(5);
        raise(&made, 7);
        rest();
        assert_eq!(
            earlier.outcome(),
            Some(Ok(())),
            "it stood when 7 was signalled"
        );
        assert_eq!(later.outcome(), None, "5 was not signalled since");
    });
}

/// The same when the answer to the record has begun before the rewind.
#[test]
fn loom_a_value_of_before_a_rewind_is_not_told() {
    explore(2..=2, || {
        let [a, b, c] = std::array::from_fn(|_| without_engines());
        let made = shared_fence(&a);
        let [waits, rewinds] = [&b, &c].map(|system| opened(&made, system));
        made.signal(6).unwrap();
        rest();
        loom::explore();
        let answers = thread::spawn({
            let made = made.clone();
            move || raise(&made, 6)
        });
        rewinds.rewind(0).unwrap();
        let wait = waits.arm(5);
        answers.join().unwrap();
        loom::stop_exploring();
        rest();
        assert_eq!(wait.outcome(), None, "5 was not signalled since");
    });
}

/// Two threads of a system open a fence that came: it is one there, with one slot of the page.
#[test]
fn loom_two_threads_open_a_fence_that_came() {
    explore(2..=2, || {
        let (a, b) = (without_engines(), without_engines());
        let made = shared_fence(&a);
        let handle = made.share().unwrap().passed().unwrap();
        rest();
        loom::explore();
        let opens = {
            let (b, handle) = (b.clone(), handle.clone());
            thread::spawn(move || b.open_fence(&handle).unwrap())
        };
        let one = b.open_fence(&handle).unwrap();
        let other = opens.join().unwrap();
        loom::stop_exploring();
        assert_eq!(one.object().fence().id(), other.object().fence().id());
    });
}

/// NF-19: a system joins while another says that a device is lost: it reads that, or is called to look.
#[test]
fn loom_a_system_joins_while_another_loses_a_device() {
    explore(3..=4, || {
        let first = Arc::new(ExploredOpener::first().unwrap());
        loom::explore();
        let loses = thread::spawn({
            let first = Arc::clone(&first);
            move || first.loses()
        });
        let joins = first.join().unwrap();
        let knows = joins.knows_of_loss();
        loses.join().unwrap();
        loom::stop_exploring();
        assert!(knows || joins.was_called(), "it would sleep on");
    });
}

/// Two openers of a fence, of which the first takes the other for ended.
fn with_one_taken_for_ended() -> (ExploredOpener, ExploredOpener) {
    let first = ExploredOpener::first().unwrap();
    let ended = first.join().unwrap();
    ended.awaits(7);
    ended.seems_ended();
    (first, ended)
}

/// The first opener clears the slot of the one that it takes for ended, and a third takes it.
fn clear_and_take(first: ExploredOpener) -> (ExploredOpener, ExploredOpener) {
    let _ = first.least_awaited();
    let third = first.join().unwrap();
    third.awaits(4);
    (first, third)
}

/// NF-06: what the third waits for is known when it has heard that it was called, if it was.
fn is_awaited((first, third): (ExploredOpener, ExploredOpener)) {
    if third.was_called() {
        assert!(third.hears(), "it is there");
    }
    assert_eq!(first.least_awaited(), Some(4), "nobody would tell it");
}

/// One that is taken for ended does something, while its slot is cleared by another and taken by a third.
fn a_slot_is_taken(does: fn(ExploredOpener) -> Option<ExploredOpener>) {
    let (first, ended) = with_one_taken_for_ended();
    loom::explore();
    let goes_on = thread::spawn(move || does(ended));
    let openers = clear_and_take(first);
    let ended = goes_on.join().unwrap();
    loom::stop_exploring();
    is_awaited(openers);
    drop(ended);
}

/// The slot is left meanwhile.
#[test]
fn loom_a_slot_is_left_while_it_is_cleared_and_taken() {
    explore(2..=4, || a_slot_is_taken(|_leaves| None));
}

/// A waiter comes to it meanwhile.
#[test]
fn loom_who_has_lost_its_slot_arms_while_it_is_taken() {
    explore(2..=3, || {
        a_slot_is_taken(|arms| {
            arms.awaits(9);
            Some(arms)
        });
    });
}

/// It hears that it was called, has the slot still, and looks what stands there.
#[test]
fn loom_who_loses_its_slot_hears_while_it_is_taken() {
    explore(2..=3, || {
        a_slot_is_taken(|hears| {
            let _ = hears.hears();
            Some(hears)
        });
    });
}

/// Its slot was cleared before. It hears that, and takes the slot again, which is cleared again. (It does so on the
/// scenario's own thread: of a word loom knows the last access alone, and would have it come too late always.)
#[test]
fn loom_who_has_lost_its_slot_takes_it_again_while_it_is_taken() {
    explore(2..=3, || {
        let (first, ended) = with_one_taken_for_ended();
        let _ = first.least_awaited();
        loom::explore();
        let takes = thread::spawn(move || clear_and_take(first));
        let _ = ended.hears();
        let openers = takes.join().unwrap();
        loom::stop_exploring();
        is_awaited(openers);
    });
}
