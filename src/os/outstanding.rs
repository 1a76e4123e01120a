//! Outstanding: the values of a fence's GPU signals that are queued and may still be stored.
//!
//! What the word of a fence of 32 bits goes on to is one of them. `carry` says which as long as each is
//! near to the value that the OS knows, and so to each other: a signal that is not is refused (MF-06).

use super::carry::is_near;
use std::collections::BTreeMap;

/// See the file's head. Each value, with how many signals of it there are.
#[derive(Debug, Default)]
pub(super) struct Outstanding(BTreeMap<u64, u64>);

impl Outstanding {
    /// One more signal of `value`.
    pub(super) fn begin(&mut self, value: u64) {
        *self.0.entry(value).or_default() += 1;
    }

    /// One of them was made, or will not be.
    pub(super) fn end(&mut self, value: u64) {
        if let Some(count) = self.0.get_mut(&value) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&value);
            }
        }
    }

    /// Whether `value` is near to all of them, and to `known`.
    pub(super) fn are_near(&self, known: u64, value: u64) -> bool {
        let mut at_one_time = self.0.keys().chain([&known]);
        at_one_time.all(|other| is_near(*other, value))
    }
}
