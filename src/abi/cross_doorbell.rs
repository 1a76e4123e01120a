//! Cross-adapter doorbells: a page that all adapters of a process map (XA-10).
//!
//! Each engine has a line of it, and the CPU has one: a ring of words. Whoever signals a fence with a doorbell stores
//! CurrentValue, takes the line's next number, and stores number and fence to the word of that number. So no bus between
//! two devices carries a read-modify-write, and who reads the words in the order of their numbers sees which fences were
//! signalled, and whether he has missed any.
//!
//! Mirrors `shaders/abi/cross_doorbell.glsl`.

use super::{HandleAccess, offsets};
use bytemuck::{Pod, Zeroable};

/// Where the page begins; lines follow.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CrossDoorbells {
    /// How many lines, the first ones, anybody may ring. Writer: OS.
    pub lines_in_use: u64,
    reserved: [u64; 7],
}

offsets!(CrossDoorbells, size 64, {
    LINES_IN_USE = lines_in_use @ 0,
});

/// A line. Writer: the engine that it is of, or the OS for the CPU. Readers: all engines.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CrossDoorbellLine {
    /// How many numbers were taken: the words of all of these are stored, and more may be.
    pub taken: u64,
    reserved: [u64; 7],
    /// Rings, each at its number's place.
    pub words: [u64; CrossDoorbellLine::PLACES as usize],
}

offsets!(CrossDoorbellLine, size 576, {
    TAKEN = taken @ 0,
    WORDS = words @ 64,
});

impl CrossDoorbells {
    /// Lines: the engines of all adapters with such fences, and one for the CPU.
    pub const LINES: u64 = 8;
    /// Bytes of it all.
    pub const PAGE_BYTES: u64 = Self::line(Self::LINES);

    /// Offset of a line.
    #[must_use]
    pub const fn line(line: u64) -> u64 {
        Self::BYTES + line * CrossDoorbellLine::BYTES
    }
}

impl CrossDoorbellLine {
    /// Words of a line, a power of two.
    pub const PLACES: u64 = 64;
    /// Of a ring, in the place of an index: whatever fence.
    pub const ALL: u32 = u32::MAX;

    /// Offset of the word for a number.
    #[must_use]
    pub const fn word_of(number: u32) -> u64 {
        Self::WORDS + number as u64 % Self::PLACES * 8
    }

    /// What is stored there.
    #[must_use]
    pub const fn ring(number: u32, index: CrossDoorbellIndex) -> u64 {
        (number as u64) << 32 | index.0 as u64
    }

    /// The same for whatever fence: all who wait look.
    #[must_use]
    pub const fn ring_for_all(number: u32) -> u64 {
        (number as u64) << 32 | Self::ALL as u64
    }
}

/// Which of the process's fences with a doorbell: what a ring names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CrossDoorbellIndex(pub u16);

impl CrossDoorbellIndex {
    /// The first that is none, so that one more than each fits in a handle's entry.
    pub const END: u16 = u16::MAX;
    /// Where in a word of [`HandleAccess`] one more than it stands.
    const SHIFT: u32 = 16;

    /// Of what the entry of a handle says; none where it names a fence without one.
    #[must_use]
    pub const fn of_access(access: HandleAccess) -> Option<Self> {
        Self::of_mark((access.0 >> Self::SHIFT) as u16)
    }

    /// As the entry of a handle says it, beside other bits.
    #[must_use]
    pub const fn access(self) -> HandleAccess {
        HandleAccess((Self::mark(Some(self)) as u32) << Self::SHIFT)
    }

    /// As words say it that may name none: one more, and 0.
    #[must_use]
    pub const fn mark(doorbell: Option<Self>) -> u16 {
        match doorbell {
            Some(index) => index.0 + 1,
            None => 0,
        }
    }

    /// The same back.
    #[must_use]
    pub const fn of_mark(mark: u16) -> Option<Self> {
        match mark {
            0 => None,
            more => Some(Self(more - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_stands_in_the_high_half_of_an_access_word() {
        for index in [0, 1, CrossDoorbellIndex::END - 1].map(CrossDoorbellIndex) {
            let access = HandleAccess::NO_WAIT.with(index.access());
            assert_eq!(CrossDoorbellIndex::of_access(access), Some(index));
            assert!(access.has(HandleAccess::NO_WAIT) && !access.has(HandleAccess::NO_SIGNAL));
        }
        let every_bit = HandleAccess(0xffff);
        assert_eq!(CrossDoorbellIndex::of_access(every_bit), None);
    }
}
