//! Word: 64 bits that several parties share.
//!
//! A word has one writer, named where it is declared; the methods say what they order. On the
//! other side stands `shaders/abi/word.glsl` with the same names.
//!
//! Memory of a GPU is write-combined on the host: stores wait in buffers of the core, which are
//! sent when they are full or when something makes the core send them, in any order, and a release
//! store, on x86 a plain move, is not such a thing; loads may pass each other as well. What makes
//! the core send them, and orders all of it, is a full fence (on x86 MFENCE, or a locked
//! instruction in its place). That a fence of Rust's becomes one is practice and not promised: the
//! language knows one kind of memory.

use super::Cell;
use crate::sync::{Ordering, fence};

/// A word that may be read and written.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    pub(super) cell: &'a Cell,
    pub(super) write_combined: bool,
}

impl<'a> Word<'a> {
    /// For read-modify-write.
    fn met(self) -> &'a Cell {
        assert!(!self.write_combined, "read-modify-write of a GPU's memory");
        self.cell
    }

    /// Reads; orders nothing.
    #[must_use]
    pub fn peek(self) -> u64 {
        self.cell.load(Ordering::Relaxed)
    }

    /// Reads; all that the writer stored before it published is visible afterwards.
    #[must_use]
    pub fn observe(self) -> u64 {
        let value = self.cell.load(Ordering::Acquire);
        if self.write_combined {
            // No later load of such memory passes this one.
            fence(Ordering::SeqCst);
        }
        value
    }

    /// Stores; orders nothing.
    pub fn put(self, value: u64) {
        self.cell.store(value, Ordering::Relaxed);
    }

    /// Stores; all that this thread stored before is visible to whoever observes the value.
    pub fn publish(self, value: u64) {
        if self.write_combined {
            // What was stored before leaves the core before the value does …
            fence(Ordering::SeqCst);
            self.cell.store(value, Ordering::Release);
            // … and the value now, not when the buffer is wanted for something else: an engine
            // polls it.
            fence(Ordering::SeqCst);
        } else {
            self.cell.store(value, Ordering::Release);
        }
    }

    /// Adds by read-modify-write: orders both ways. Between host
    /// threads and processes only; a GPU's atomics need not be atomic to the host's.
    ///
    /// # Panics
    /// On write-combined memory: over the bus it would not be atomic, and costs a round trip. Words
    /// by which the host's parties meet lie in system memory: a bug of ours.
    pub fn meet(self, add: u64) {
        self.met().fetch_add(add, Ordering::AcqRel);
    }

    /// Takes the value and leaves 0; orders both ways. As [`Word::meet`] otherwise.
    ///
    /// # Panics
    /// As [`Word::meet`].
    #[must_use]
    pub fn take(self) -> u64 {
        self.met().swap(0, Ordering::AcqRel)
    }

    /// Stores `value` if it is greater; orders both ways. As [`Word::meet`] otherwise.
    ///
    /// # Panics
    /// As [`Word::meet`].
    pub fn raise(self, value: u64) {
        self.met().fetch_max(value, Ordering::AcqRel);
    }

    /// Stores `new` if it is `old`; `true` if it was. Orders both ways. As [`Word::meet`] otherwise.
    ///
    /// # Panics
    /// As [`Word::meet`].
    #[must_use]
    pub fn exchange(self, old: u64, new: u64) -> bool {
        let (yes, no) = (Ordering::AcqRel, Ordering::Acquire);
        self.met().compare_exchange(old, new, yes, no).is_ok()
    }

    /// The address of the word in the mapping that it is read and written by.
    #[must_use]
    pub fn address(self) -> *const u64 {
        std::ptr::from_ref(self.cell).cast()
    }
}

/// A word that may only be read.
#[derive(Clone, Copy, Debug)]
pub struct ReadWord<'a>(pub(super) Word<'a>);

impl ReadWord<'_> {
    /// Reads; all that the writer stored before it published is visible afterwards.
    #[must_use]
    pub fn observe(self) -> u64 {
        self.0.observe()
    }

    /// The address of the word in the mapping that it is read by.
    #[must_use]
    pub fn address(self) -> *const u64 {
        self.0.address()
    }
}
