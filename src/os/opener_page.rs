//! Opener page: the slots by which the operating systems that have a fence open tell each other what
//! their waiters wait for (`peers` says how, and why nothing is lost).
//!
//! A slot is taken by one read-modify-write of its owner, and cleared by one after its owner's death, by
//! whoever comes first. What an owner that left or died has in the other words counts for nobody: the next
//! owner writes them anew.
//!
//! One that is taken for dead and lives goes on until it finds that (`peer_link`). Of the slot of another it
//! changes nothing by leaving; what it says there in AWAITED, before it finds out, that one is called to put right.

use super::process_identity::ProcessIdentity;
use super::telling_words::TellingWords;
use crate::abi::{NO_CPU_WAITER, OpenerSlot, PAGE_BYTES, SharedFenceHeader};
use crate::shared::{Block, Word};
use crate::sync::{Ordering, fence};

/// A mapping of the page.
#[derive(Clone, Debug)]
pub(super) struct OpenerPage {
    page: Block,
    telling: TellingWords,
}

impl OpenerPage {
    /// Over a page.
    pub(super) fn new(page: Block) -> Self {
        debug_assert_eq!(page.bytes() as u64, PAGE_BYTES);
        let telling = TellingWords::new(page.clone());
        Self { page, telling }
    }

    /// Says what the page is.
    pub(super) fn describe(&self, header: SharedFenceHeader) {
        let words: [u64; SharedFenceHeader::BYTES as usize / 8] = bytemuck::cast(header);
        self.page.put_words(SharedFenceHeader::OFFSET, &words);
    }

    /// What it says: any words.
    #[cfg(not(loom))]
    pub(super) fn description(&self) -> SharedFenceHeader {
        const WORDS: usize = SharedFenceHeader::BYTES as usize / 8;
        bytemuck::cast(self.page.peek_words::<WORDS>(SharedFenceHeader::OFFSET))
    }

    fn word(&self, slot: usize, offset: u64) -> Word<'_> {
        self.page.word(slot as u64 * OpenerSlot::BYTES + offset)
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

    /// The words by which values are told.
    pub(super) fn telling(&self) -> &TellingWords {
        &self.telling
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
        self.page.word(SharedFenceHeader::REWINDS).meet(1);
    }

    /// How often CurrentValue was stored backwards from a CPU.
    pub(super) fn rewinds(&self) -> u64 {
        self.page.word(SharedFenceHeader::REWINDS).observe()
    }

    /// Whether it ever was.
    pub(super) fn was_rewound(&self) -> bool {
        self.rewinds() != 0
    }

    /// A device is lost that could signal the fence, of whatever operating system. Whether that is news.
    pub(super) fn always_signal(&self) -> bool {
        self.page
            .word(SharedFenceHeader::ALWAYS_SIGNALED)
            .exchange(0, 1)
    }

    /// Whether one is.
    pub(super) fn is_always_signaled(&self) -> bool {
        self.page.word(SharedFenceHeader::ALWAYS_SIGNALED).observe() != 0
    }

    /// Takes a free slot: which. The words in it are those of one that waits for nothing.
    pub(super) fn join(&self, own: ProcessIdentity) -> Option<usize> {
        let mut slots = 0..OpenerSlot::SLOTS as usize;
        slots.find(|slot| self.take_slot(*slot, own, NO_CPU_WAITER))
    }

    /// Takes a slot if it is free.
    pub(super) fn take_slot(&self, slot: usize, own: ProcessIdentity, awaited: u64) -> bool {
        let is_taken = self.take_back(slot, own);
        if is_taken {
            // Until this is stored others may wait for what the owner before waited for: they raise once more.
            self.set_awaited(slot, awaited);
            self.telling.clear(slot);
        }
        is_taken
    }

    /// The owner leaves its slot, and stores nothing else: it may be another's by now.
    pub(super) fn leave(&self, slot: usize, own: ProcessIdentity) {
        let _ = self.word(slot, OpenerSlot::OWNER).exchange(own.word(), 0);
    }

    /// Takes a slot again that was cleared although its owner lives; what the owner was told stays.
    pub(super) fn take_back(&self, slot: usize, own: ProcessIdentity) -> bool {
        let is_taken = self.word(slot, OpenerSlot::OWNER).exchange(0, own.word());
        // Before it is read whether the fence is always signaled: pairs with that of `PeerLink::always_signal`. And
        // before the slot's words are stored: pairs with that of an owner before that stores there, in
        // `PeerLink::say_awaited`.
        fence(Ordering::SeqCst);
        is_taken
    }

    /// The slot's owner is dead: the slot is free. `false` if somebody has cleared it before.
    pub(super) fn clear(&self, slot: usize, dead: u64) -> bool {
        dead != 0 && self.word(slot, OpenerSlot::OWNER).exchange(dead, 0)
    }
}
