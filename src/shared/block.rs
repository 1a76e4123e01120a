//! Block: a part of a mapping, as words.

use super::{Mapping, ReadMapping, ReadWord, Word};
use crate::sync::{Arc, Ordering, fence};

/// A range of a mapping, for reading and writing. Cloning is cheap and keeps the mapping alive.
#[derive(Clone, Debug)]
pub struct Block {
    mapping: Arc<Mapping>,
    offset: usize,
    bytes: usize,
}

/// The start of `words` words at byte `offset` of a block of `bytes` bytes, or the panic of a bug of ours:
/// offsets come from layout constants and checked indices, never from the other side.
fn check(offset: u64, words: usize, bytes: usize) -> usize {
    let start = offset as usize;
    assert!(
        start.is_multiple_of(8) && start <= bytes && words <= (bytes - start) / 8,
        "{words} words at {offset} of a block of {bytes} bytes"
    );
    start
}

impl Block {
    /// The whole of a mapping.
    #[must_use]
    pub fn whole(mapping: &Arc<Mapping>) -> Self {
        Self {
            mapping: Arc::clone(mapping),
            offset: 0,
            bytes: mapping.len(),
        }
    }

    /// `bytes` bytes from `offset` of this block, both multiples of 8.
    ///
    /// # Panics
    /// If they do not lie in it: a bug of ours.
    #[must_use]
    pub fn part(&self, offset: u64, bytes: u64) -> Self {
        let start = check(offset, bytes as usize / 8, self.bytes);
        assert!(bytes.is_multiple_of(8), "a part of {bytes} bytes");
        #[cfg(loom)]
        self.mapping.prepare(self.offset + start, bytes as usize);
        Self {
            mapping: Arc::clone(&self.mapping),
            offset: self.offset + start,
            bytes: bytes as usize,
        }
    }

    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of its first word, by which somebody else may reach all of its words, as a program in C does
    /// those of a ring. That of a word is good for the one word.
    #[cfg(not(loom))]
    #[must_use]
    pub fn address(&self) -> *const u64 {
        // Not by arithmetic on what `cell` lends, which is eight bytes.
        self.mapping
            .start()
            .as_ptr()
            .wrapping_add(self.offset)
            .cast_const()
            .cast()
    }

    /// The word at byte `offset`.
    ///
    /// # Panics
    /// If it does not lie in the block or is not aligned: a bug of ours.
    #[must_use]
    #[inline]
    pub fn word(&self, offset: u64) -> Word<'_> {
        let start = self.offset + check(offset, 1, self.bytes);
        Word {
            cell: self.mapping.cell(start),
            write_combined: self.mapping.is_write_combined(),
        }
    }

    /// Stores `words` from byte `offset` on, in order; orders nothing.
    #[inline]
    pub fn put_words(&self, offset: u64, words: &[u64]) {
        check(offset, words.len(), self.bytes);
        for (i, word) in words.iter().enumerate() {
            self.word(offset + 8 * i as u64).put(*word);
        }
    }

    /// Puts what this thread did to the memory before what it does next, where the memory is
    /// write-combined. What it stored can be seen before anything that it publishes, in whatever memory that
    /// lies; and it loads no word of this before what it has observed elsewhere. In memory that the CPU caches
    /// who publishes and who observes order that.
    pub fn keep_order(&self) {
        if self.mapping.is_write_combined() {
            fence(Ordering::SeqCst);
        }
    }

    /// Stores zero to every word; orders nothing.
    pub fn clear(&self) {
        for word in 0..self.bytes as u64 / 8 {
            self.word(8 * word).put(0);
        }
    }

    /// Reads words from byte `offset` on, each by itself; orders nothing.
    #[must_use]
    pub fn peek_words<const N: usize>(&self, offset: u64) -> [u64; N] {
        std::array::from_fn(|i| self.word(offset + 8 * i as u64).peek())
    }
}

/// What a [`ReadBlock`] is read by.
#[derive(Clone, Debug)]
enum ReadSide {
    /// The page tables let nobody write.
    Protected(Arc<ReadMapping>),
    /// There is no such mapping; what is not written through this is not written by its type alone.
    Shared(Arc<Mapping>),
}

/// A range of a mapping, for reading.
#[derive(Clone, Debug)]
pub struct ReadBlock {
    side: ReadSide,
    offset: usize,
    bytes: usize,
}

impl ReadBlock {
    /// `bytes` bytes from `offset` of a mapping.
    ///
    /// # Panics
    /// If they do not lie in it: a bug of ours.
    #[must_use]
    pub fn new(mapping: &Arc<ReadMapping>, offset: u64, bytes: u64) -> Self {
        let start = check(offset, bytes as usize / 8, mapping.len());
        Self {
            side: ReadSide::Protected(Arc::clone(mapping)),
            offset: start,
            bytes: bytes as usize,
        }
    }

    /// A block, for reading, of memory that has no mapping which cannot be written.
    #[must_use]
    pub fn unprotected(block: &Block) -> Self {
        Self {
            side: ReadSide::Shared(Arc::clone(&block.mapping)),
            offset: block.offset,
            bytes: block.bytes,
        }
    }

    /// Whether the page tables let nobody write through its mapping (NF-02).
    #[must_use]
    pub fn is_protected(&self) -> bool {
        matches!(self.side, ReadSide::Protected(_))
    }

    /// The word at byte `offset`.
    ///
    /// # Panics
    /// If it does not lie in the block or is not aligned: a bug of ours.
    #[must_use]
    #[inline]
    pub fn word(&self, offset: u64) -> ReadWord<'_> {
        let start = self.offset + check(offset, 1, self.bytes);
        ReadWord(match &self.side {
            ReadSide::Protected(mapping) => Word {
                cell: mapping.cell(start),
                write_combined: false,
            },
            ReadSide::Shared(mapping) => Word {
                cell: mapping.cell(start),
                write_combined: mapping.is_write_combined(),
            },
        })
    }
}
