//! Peer rewinds: a fence that several operating systems have open is stored backwards, and what is told of it
//! is of before or after that. What another is in the midst of telling is written to the page by hand here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod engines;
    pub(crate) mod passing;
}

use native_fence::abi::OpenerSlot;
use native_fence::gpu::NodePolicy;
use native_fence::shared::Block;
use native_fence::{ArmedWait, Fence};
use std::sync::atomic::{AtomicBool, Ordering};
use support::bench::{LONG, Moment, on_every_bench, until};
use support::engines::model;
use support::passing::{passed, shared};

/// NF-26 between operating systems: a wait that came after its own system had stored the fence backwards is
/// satisfied by a CPU signal of another one, although that one's rewind takes the value away before anybody
/// here can look.
///
/// Kills `what-is-told-is-older-than-a-rewind`.
#[test]
fn nf_26_a_signal_of_another_system_satisfies_who_came_after_an_own_rewind() {
    on_every_bench(NodePolicy::default(), |bench| {
        let other = model().0.create_device();
        let there = shared(&other, 3);
        let here = bench.device.open_fence(&passed(&there)).unwrap();
        for _ in 0..3 {
            there.signal(3).unwrap();
            here.rewind(0).unwrap();
            let waits = here.arm(5);
            // The lock of the fence is held here while the other signals and rewinds.
            let (signaller, is_done) = (there.clone(), AtomicBool::new(false));
            bench.spy.hook(move |moment, _| {
                let is_post = moment == Moment::BeforeUpdateOfMonitoredValues;
                if is_post && !is_done.swap(true, Ordering::AcqRel) {
                    signaller.signal(5).unwrap();
                    signaller.rewind(0).unwrap();
                }
            });
            let lower = here.arm(4);
            bench.spy.unhook();
            assert_eq!(there.current_value(), 0);
            assert_eq!(waits.wait(LONG), Ok(()));
            assert_eq!(lower.wait(LONG), Ok(()));
            let later = here.arm(5);
            assert_eq!(later.outcome(), None);
        }
    });
}

/// Two systems that have a fence open, and its page.
struct Opened {
    made: Fence,
    other: Fence,
    page: Block,
}

impl Opened {
    /// The slot of the second.
    const SLOT: u64 = 1;

    fn new() -> Self {
        let (first, second) = (model().0.create_device(), model().0.create_device());
        let made = shared(&first, 0);
        let other = second.open_fence(&passed(&made)).unwrap();
        let (region, _) = made.object().fence().monitored_value_place();
        let page = Block::whole(&region.map().unwrap());
        Self { made, other, page }
    }

    fn word(&self, slot: u64, offset: u64) -> native_fence::shared::Word<'_> {
        self.page.word(slot * OpenerSlot::BYTES + offset)
    }

    /// One more, by hand, that is about to tell the second a value which it has read; what it tells it in.
    fn begins_to_tell(&self, slot: u64) -> u64 {
        // It lives, since it is this process, and never looks.
        let own = self.word(0, OpenerSlot::OWNER).observe();
        self.word(slot, OpenerSlot::AWAITED).publish(u64::MAX);
        let word = self.word(Self::SLOT, OpenerSlot::REACHED_WORD).observe();
        let telling = OpenerSlot::telling(Self::SLOT, word);
        self.word(slot, OpenerSlot::TELLING).publish(telling);
        self.word(slot, OpenerSlot::OWNER).publish(own);
        word
    }

    /// It tells it at last.
    fn tells(&self, slot: u64, word: u64, value: u64) {
        let reached = OpenerSlot::reached(Self::SLOT, word);
        self.page.word(reached).raise(value);
        self.word(slot, OpenerSlot::TELLING).publish(0);
        self.word(Self::SLOT, OpenerSlot::CALLS).call();
    }

    /// The first waits are satisfied, and no other, when that was answered.
    fn satisfied(&self, waits: &[ArmedWait], first: usize) {
        for wait in &waits[..first] {
            assert_eq!(wait.wait(LONG), Ok(()));
        }
        // The fence's lock: the answer is given.
        let _ = self.other.object().fence().waits();
        for wait in &waits[first..] {
            assert_eq!(wait.outcome(), None);
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        for slot in 2..OpenerSlot::SLOTS {
            self.word(slot, OpenerSlot::OWNER).publish(0);
        }
    }
}

/// NF-26 between operating systems: what another one read before a rewind, and tells after it, satisfies the
/// waits that stood before the rewind, and none that came after it. What it reads then satisfies both.
///
/// Kills `what-is-told-is-of-all-times`, `what-is-told-late-is-told-to-nobody`.
#[test]
fn nf_26_what_was_read_before_a_rewind_satisfies_no_later_wait() {
    let fence = Opened::new();
    let mut waits = vec![fence.other.arm(7)];
    let first = fence.begins_to_tell(2);
    // As if CurrentValue had been 7 for a moment.
    fence.made.signal(6).unwrap();
    fence.other.rewind(0).unwrap();
    waits.push(fence.other.arm(7));
    fence.tells(2, first, 7);
    fence.satisfied(&waits, 1);
    // A rewind by another one is the same.
    let second = fence.begins_to_tell(2);
    fence.made.signal(6).unwrap();
    fence.made.rewind(0).unwrap();
    waits.push(fence.other.arm(7));
    fence.tells(2, second, 7);
    fence.satisfied(&waits, 2);
    let third = fence.begins_to_tell(2);
    fence.tells(2, third, 7);
    fence.satisfied(&waits, 3);
}

/// NF-26 between operating systems: the same where as many as can are held up in the midst of telling, each
/// since another rewind: what each tells satisfies those that waited when it read, and no other.
///
/// Kills `a-word-that-is-held-is-used-again`.
#[test]
fn nf_26_however_many_are_held_up_no_later_wait_is_satisfied() {
    let fence = Opened::new();
    let slots = 2..OpenerSlot::SLOTS;
    let (mut waits, mut words) = (Vec::new(), Vec::new());
    for slot in slots.clone() {
        waits.push(fence.other.arm(7));
        words.push(fence.begins_to_tell(slot));
        fence.made.signal(6).unwrap();
        fence.other.rewind(0).unwrap();
    }
    // Others come and go.
    for value in 10..50 {
        drop(fence.other.arm(value));
    }
    waits.push(fence.other.arm(7));
    for (index, (slot, word)) in slots.zip(words).enumerate() {
        fence.tells(slot, word, 7);
        fence.satisfied(&waits, index + 1);
    }
}

/// NF-26 between operating systems: who takes a slot is told nothing that its owner before it was, neither by
/// those that were in the midst of it nor by what stands in its words, whatever that is; and is told what is
/// for itself.
///
/// Kills `who-comes-is-told-what-was-told-before`.
#[test]
fn nf_26_who_takes_a_slot_is_told_what_is_for_itself() {
    let mut fence = Opened::new();
    let device = model().0.create_device();
    let handle = passed(&fence.made);
    let leave = |fence: &mut Opened| {
        fence.other = fence.made.clone();
        until("the slot is free", || {
            fence.word(Opened::SLOT, OpenerSlot::OWNER).observe() == 0
        });
    };
    leave(&mut fence);
    for word in 0..OpenerSlot::REACHED_WORDS {
        let reached = OpenerSlot::reached(Opened::SLOT, word);
        fence.page.word(reached).raise(9);
    }
    let asked_for = fence.word(Opened::SLOT, OpenerSlot::REACHED_WORD);
    asked_for.publish(5);
    fence.other = device.open_fence(&handle).unwrap();
    let waits = vec![fence.other.arm(7)];
    fence.satisfied(&waits, 0);
    let word = fence.begins_to_tell(2);
    fence.tells(2, word, 7);
    fence.satisfied(&waits, 1);

    fence.made.signal(6).unwrap();
    fence.made.rewind(0).unwrap();
    let word = fence.begins_to_tell(2);
    // A wait has the fence open as well.
    drop(waits);
    leave(&mut fence);
    fence.other = device.open_fence(&handle).unwrap();
    let waits = vec![fence.other.arm(7)];
    // It answers by a call of its own, since it waits for what it waited for.
    let calls = || fence.word(2, OpenerSlot::CALLS).observe();
    let before = calls();
    fence.tells(2, word, 8);
    until("it has answered", || calls() != before);
    fence.satisfied(&waits, 0);
    let word = fence.begins_to_tell(2);
    fence.tells(2, word, 7);
    fence.satisfied(&waits, 1);
}
