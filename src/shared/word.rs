//! Word: 64 bits that several parties share.
//!
//! A word has one writer, named where it is declared; the methods say what they order. On the
//! other side stands `shaders/abi/word.glsl` with the same names.

use super::Cell;
use crate::sync::Ordering;

/// A word that may be read and written.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a>(pub(super) &'a Cell);

impl Word<'_> {
    /// Reads; orders nothing.
    #[must_use]
    pub fn peek(self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Reads; all that the writer stored before it published is visible afterwards.
    #[must_use]
    pub fn observe(self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Stores; orders nothing.
    pub fn put(self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Stores; all that this thread stored before is visible to whoever observes the value.
    pub fn publish(self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    /// Adds by read-modify-write: orders both ways. Between host
    /// threads and processes only; a GPU's atomics need not be atomic to the host's.
    pub fn meet(self, add: u64) {
        self.0.fetch_add(add, Ordering::AcqRel);
    }
}

/// A word that may only be read.
#[derive(Clone, Copy, Debug)]
pub struct ReadWord<'a>(pub(super) &'a Cell);

impl ReadWord<'_> {
    /// Reads; all that the writer stored before it published is visible afterwards.
    #[must_use]
    pub fn observe(self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// The address of the word in the reader's own mapping.
    #[must_use]
    pub fn address(self) -> *const u64 {
        std::ptr::from_ref(self.0).cast()
    }
}
