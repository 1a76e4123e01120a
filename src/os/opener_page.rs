//! Opener page: the slots by which the operating systems that have a fence open tell each other what
//! their waiters wait for (`peers` says how, and why nothing is lost).
//!
//! A slot is taken by one read-modify-write of its owner, and cleared by one after its owner's death, by
//! whoever comes first. What a dead owner left in the other words counts for nobody: the next owner
//! writes them anew, and until then the slot's words are of a free slot.

use super::process_identity::ProcessIdentity;
use crate::abi::{NO_CPU_WAITER, OpenerSlot, PAGE_BYTES, SharedFenceHeader};
use crate::shared::{Block, Word};
use crate::sync::{Ordering, fence};

/// A mapping of the page.
#[derive(Clone, Debug)]
pub(super) struct OpenerPage(Block);

impl OpenerPage {
    /// Over a page.
    pub(super) fn new(page: Block) -> Self {
        debug_assert_eq!(page.bytes() as u64, PAGE_BYTES);
        Self(page)
    }

    /// Says what the page is.
    pub(super) fn describe(&self, header: SharedFenceHeader) {
        let words: [u64; SharedFenceHeader::BYTES as usize / 8] = bytemuck::cast(header);
        self.0.put_words(SharedFenceHeader::OFFSET, &words);
    }

    /// What it says: any words.
    pub(super) fn description(&self) -> SharedFenceHeader {
        const WORDS: usize = SharedFenceHeader::BYTES as usize / 8;
        bytemuck::cast(self.0.peek_words::<WORDS>(SharedFenceHeader::OFFSET))
    }

    fn word(&self, slot: usize, offset: u64) -> Word<'_> {
        self.0.word(slot as u64 * OpenerSlot::BYTES + offset)
    }

    /// Who has a slot; 0 for nobody.
    pub(super) fn owner(&self, slot: usize) -> u64 {
        self.word(slot, OpenerSlot::OWNER).observe()
    }

    /// What the waiters of a slot's owner wait for, minus 1.
    pub(super) fn awaited(&self, slot: usize) -> u64 {
        self.word(slot, OpenerSlot::AWAITED).observe()
    }

    /// The same, by the owner.
    pub(super) fn set_awaited(&self, slot: usize, monitored_value: u64) {
        self.word(slot, OpenerSlot::AWAITED)
            .publish(monitored_value);
    }

    fn reached(&self, slot: usize, word: usize) -> Word<'_> {
        self.0.word(OpenerSlot::reached(slot as u64, word as u64))
    }

    /// Whether a slot's owner was told of nothing in this of its reached words.
    pub(super) fn is_empty(&self, slot: usize, word: usize) -> bool {
        self.reached(slot, word).observe() == 0
    }

    /// What the owner was told in this of its reached words; 0 for nothing.
    pub(super) fn take_reached(&self, slot: usize, word: usize) -> u64 {
        self.reached(slot, word).take()
    }

    /// From now on the owner is told in this of its reached words.
    pub(super) fn set_reached_word(&self, slot: usize, word: usize) {
        self.word(slot, OpenerSlot::REACHED_WORD)
            .publish(word as u64);
    }

    /// What the owner of a slot is in the midst of telling whom: any word.
    pub(super) fn telling(&self, slot: usize) -> u64 {
        self.word(slot, OpenerSlot::TELLING).observe()
    }

    /// The owner of slot `from` is about to tell that of slot `to` of a value that it reads after this.
    pub(super) fn begin_to_tell(&self, from: usize, to: usize) -> Telling<'_> {
        let word = self.word(to, OpenerSlot::REACHED_WORD).observe();
        // Any word: an index by what there is.
        let word = word % OpenerSlot::REACHED_WORDS;
        let telling = self.word(from, OpenerSlot::TELLING);
        telling.publish(OpenerSlot::telling(to as u64, word));
        // Before CurrentValue is read: pairs with that of `ReachedWords::change`.
        fence(Ordering::SeqCst);
        let reached = self.reached(to, word as usize);
        Telling { telling, reached }
    }

    /// Calls a slot's owner to look at the page. Waits for nobody.
    pub(super) fn call(&self, slot: usize) {
        self.word(slot, OpenerSlot::CALLS).call();
    }

    /// How often a slot's owner was called: any number, which changes with each call.
    pub(super) fn calls(&self, slot: usize) -> u64 {
        self.word(slot, OpenerSlot::CALLS).observe()
    }

    /// Sleeps until a slot's owner has been called more often than `seen`.
    pub(super) fn sleep_while(&self, slot: usize, seen: u64) {
        while self.calls(slot) == seen {
            self.word(slot, OpenerSlot::CALLS).sleep_while(seen);
        }
    }

    /// CurrentValue is about to be stored backwards from this CPU.
    pub(super) fn rewind(&self) {
        self.0.word(SharedFenceHeader::REWINDS).meet(1);
    }

    /// Whether CurrentValue ever was stored backwards from a CPU.
    pub(super) fn was_rewound(&self) -> bool {
        self.0.word(SharedFenceHeader::REWINDS).observe() != 0
    }

    /// Takes a free slot: which. The words in it are those of one that waits for nothing.
    pub(super) fn join(&self, own: ProcessIdentity) -> Option<usize> {
        let mut slots = 0..OpenerSlot::SLOTS as usize;
        slots.find(|slot| self.take_slot(*slot, own, NO_CPU_WAITER))
    }

    /// Takes a slot if it is free.
    pub(super) fn take_slot(&self, slot: usize, own: ProcessIdentity, awaited: u64) -> bool {
        let is_taken = self.word(slot, OpenerSlot::OWNER).exchange(0, own.word());
        if is_taken {
            // Until this is stored others may wait for what a dead owner waited for: they raise once more.
            self.set_awaited(slot, awaited);
            self.word(slot, OpenerSlot::TELLING).publish(0);
            self.set_reached_word(slot, 0);
            for word in 0..OpenerSlot::REACHED_WORDS as usize {
                let _ = self.take_reached(slot, word);
            }
        }
        is_taken
    }

    /// The owner leaves its slot.
    pub(super) fn leave(&self, slot: usize, own: ProcessIdentity) {
        // Not in a slot that is another's by now.
        if self.owner(slot) == own.word() {
            self.set_awaited(slot, NO_CPU_WAITER);
            let _ = self.word(slot, OpenerSlot::OWNER).exchange(own.word(), 0);
        }
    }

    /// Takes a slot again that was cleared although its owner lives; what the owner was told stays.
    pub(super) fn take_back(&self, slot: usize, own: ProcessIdentity) -> bool {
        self.word(slot, OpenerSlot::OWNER).exchange(0, own.word())
    }

    /// The slot's owner is dead: the slot is free. `false` if somebody has cleared it before.
    pub(super) fn clear(&self, slot: usize, dead: u64) -> bool {
        dead != 0 && self.word(slot, OpenerSlot::OWNER).exchange(dead, 0)
    }
}

/// Somebody is in the midst of telling another of a value: until this is dropped the other uses the word that
/// it is told in for nothing later.
#[derive(Debug)]
pub(super) struct Telling<'a> {
    telling: Word<'a>,
    reached: Word<'a>,
}

impl Telling<'_> {
    /// Tells it.
    pub(super) fn tell(&self, value: u64) {
        self.reached.raise(value);
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        // What was told stands before it.
        self.telling.publish(0);
    }
}
