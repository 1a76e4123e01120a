//! Telling words: the words of a shared fence's page by which one operating system tells another of a value
//! that the fence has reached. Of which waiters it is told stands in `reached_words`.

use crate::abi::OpenerSlot;
use crate::shared::{Block, Word};
use crate::sync::{Ordering, fence};

/// A mapping of the page.
#[derive(Clone, Debug)]
pub(super) struct TellingWords(Block);

impl TellingWords {
    /// Over a page.
    pub(super) fn new(page: Block) -> Self {
        Self(page)
    }

    fn word(&self, slot: usize, offset: u64) -> Word<'_> {
        self.0.word(slot as u64 * OpenerSlot::BYTES + offset)
    }

    fn reached(&self, slot: usize, word: usize) -> Word<'_> {
        self.0.word(OpenerSlot::reached(slot as u64, word as u64))
    }

    /// Whether a slot's owner was told of nothing in this of its reached words.
    pub(super) fn is_empty(&self, slot: usize, word: usize) -> bool {
        self.reached(slot, word).observe() == 0
    }

    /// What the owner was told in this of its reached words; 0 for nothing.
    pub(super) fn take(&self, slot: usize, word: usize) -> u64 {
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
    pub(super) fn begin(&self, from: usize, to: usize) -> Telling<'_> {
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

    /// Those of a slot that has just been taken: its owner tells nobody, and was told nothing.
    pub(super) fn clear(&self, slot: usize) {
        self.word(slot, OpenerSlot::TELLING).publish(0);
        self.set_reached_word(slot, 0);
        for word in 0..OpenerSlot::REACHED_WORDS as usize {
            let _ = self.take(slot, word);
        }
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
