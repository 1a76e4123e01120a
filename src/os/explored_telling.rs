//! Explored telling: one operating system that tells another of what a fence has reached, as loom explores it.
//!
//! The words and what is done with them are the real ones; the rest of an operating system is left out.

use super::reached_words::ReachedWords;
use super::telling_words::TellingWords;
use crate::abi::PAGE_BYTES;
use crate::shared::{Block, Region, RegionError};

/// Slot of who tells.
const FROM: usize = 0;
/// Slot of who is told.
const TO: usize = 1;

/// The words of a page.
#[derive(Clone, Debug)]
pub struct ExploredTelling(TellingWords);

/// Who is told.
#[derive(Debug)]
pub struct ExploredTold {
    words: ExploredTelling,
    reached: ReachedWords,
}

impl ExploredTelling {
    /// A new page, with one that is told by it.
    ///
    /// # Errors
    /// Never.
    pub fn new() -> Result<(Self, ExploredTold), RegionError> {
        let page = Region::new("page", PAGE_BYTES)?.map()?;
        let words = TellingWords::new(Block::whole(&page));
        // Loom wants them made before there are several threads.
        words.clear(FROM);
        words.clear(TO);
        let words = Self(words);
        let reached = ReachedWords::new(TO);
        let told = ExploredTold {
            words: words.clone(),
            reached,
        };
        Ok((words, told))
    }

    /// Tells of what is read.
    pub fn tell(&self, read: impl FnOnce() -> u64) {
        let telling = self.0.begin(FROM, TO);
        telling.tell(read());
    }
}

impl ExploredTold {
    /// What it was told: each a value, and which waiters it satisfies, those with lesser numbers.
    #[must_use]
    pub fn take(&self) -> Vec<(u64, u64)> {
        let told = self.reached.take(&self.words.0).into_iter();
        told.map(|told| (told.value, told.before)).collect()
    }

    /// A waiter comes, with this number, which has seen the value.
    pub fn waiter_comes(&mut self, number: u64) {
        self.reached.change(&self.words.0, number);
    }
}
