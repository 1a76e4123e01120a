//! Reached words: where an operating system that has a shared fence open is told of values, and of which of
//! its waiters they are told.
//!
//! Whoever tells it of a value has read the value before, and may have been held up since: then the value is
//! older than a rewind of CurrentValue, and than the waiters that came after that. A value has no room for
//! saying so. So it is told in one of several words, and a waiter of a fence that was ever rewound comes with
//! another word than those before it: what is told in the earlier ones says nothing to it.
//!
//! A word is used again when nobody is in the midst of raising it. Each of the others says in its slot which
//! word it is about to raise, before it reads the value: a hazard pointer. Who says so after that was looked
//! for reads CurrentValue after the waiter has seen it, and may well raise the word that this one comes with.
//! Each raises one word at a time, so among as many words as there are slots and one more, of which one is the
//! one to be told in, there always is one that nobody holds.

use super::peers::Reached;
use super::telling_words::TellingWords;
use crate::abi::OpenerSlot;
use crate::sync::{Ordering, fence};

const WORDS: usize = OpenerSlot::REACHED_WORDS as usize;

/// The words of one slot, as its owner knows them. Used by one thread at a time.
#[derive(Debug)]
pub(super) struct ReachedWords {
    slot: usize,
    /// The word to be told in now.
    current: usize,
    /// Of each word, the first waiter that came when others were no more to tell in it.
    before: [u64; WORDS],
}

impl ReachedWords {
    /// Of a slot that has just been taken, whose owner has no waiters.
    pub(super) fn new(slot: usize) -> Self {
        let mut before = [0; WORDS];
        before[0] = u64::MAX;
        Self {
            slot,
            current: 0,
            before,
        }
    }

    /// What others have told since the last call.
    pub(super) fn take(&self, words: &TellingWords) -> Vec<Reached> {
        let told = |word| !words.is_empty(self.slot, word);
        let take = |word| Reached {
            value: words.take(self.slot, word),
            before: self.before[word],
        };
        (0..WORDS).filter(|word| told(*word)).map(take).collect()
    }

    /// A waiter comes, with this number in the list, which has seen CurrentValue; what was told has been taken.
    /// What others read before now says nothing to it.
    pub(super) fn change(&mut self, words: &TellingWords, number: u64) {
        // After CurrentValue was seen: pairs with that of `TellingWords::begin`. Who is not found to be
        // telling below reads CurrentValue as the waiter has seen it, or as it was later.
        fence(Ordering::SeqCst);
        let slots = 0..OpenerSlot::SLOTS as usize;
        let held: Vec<u64> = slots.map(|slot| words.telling(slot)).collect();
        let is_free = |word: &usize| {
            let telling = OpenerSlot::telling(self.slot as u64, *word as u64);
            // Empty: nor has anybody raised it and let it go since it was taken.
            *word != self.current && !held.contains(&telling) && words.is_empty(self.slot, *word)
        };
        // None only where another process writes what it likes, which may end waits as it likes.
        let Some(next) = (0..WORDS).find(is_free) else {
            return;
        };
        self.before[self.current] = number;
        self.before[next] = u64::MAX;
        self.current = next;
        words.set_reached_word(self.slot, next);
    }

    /// The slot was another's for a while.
    pub(super) fn restore(&self, words: &TellingWords) {
        words.set_reached_word(self.slot, self.current);
    }
}
