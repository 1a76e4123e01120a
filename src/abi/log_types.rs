//! Log types: how the user side is told which logs its queue has (LG-11).
//!
//! One word in the page that the OS writes and the user reads. Low half: a bit for each further type.
//! High half: how often that has changed, so that a change and its undoing are seen.

use super::LogType;

/// The word, taken apart. Waits and signals are logged at all times, and have no bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogTypes {
    /// There is a log of [`LogType::Verbose`].
    pub verbose: bool,
    /// Changes so far, modulo 2^32.
    pub generation: u32,
}

const VERBOSE: u64 = 1;

impl LogTypes {
    /// Takes the word apart.
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        Self {
            verbose: word & VERBOSE != 0,
            generation: (word >> 32) as u32,
        }
    }

    /// The word.
    #[must_use]
    pub const fn word(self) -> u64 {
        let types = if self.verbose { VERBOSE } else { 0 };
        (self.generation as u64) << 32 | types
    }

    /// After a change.
    #[must_use]
    pub const fn changed(self, verbose: bool) -> Self {
        Self {
            verbose,
            generation: self.generation.wrapping_add(1),
        }
    }

    /// Whether there is a log of this type.
    #[must_use]
    pub const fn has(self, log: LogType) -> bool {
        log.is_mandatory() || self.verbose
    }
}
