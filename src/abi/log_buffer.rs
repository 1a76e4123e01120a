//! Native fence log buffer: what the engine writes when a wait unblocks or a signal executes.
//!
//! Each user-mode queue has two logs of 4,096 bytes, one for waits and one for signals, and a third
//! while the OS traces verbosely. The
//! packet carries the running number of its entry (LG-04); the engine turns it into the entry and
//! the index word, writes the entry, then publishes index and wrap count by one 64-bit store. The
//! GPU never waits for a reader: the reader finds out what it missed. What a kernel signals by the shader library takes
//! entries and no numbers (choice): the packets behind its dispatch got theirs before it ran.
//!
//! Mirrors `shaders/abi/log_buffer.glsl`; the public names are `DXGK_NATIVE_FENCE_LOG_HEADER` and
//! `DXGK_NATIVE_FENCE_LOG_ENTRY` (d3dukmdt.h; `layouts.md` 1.1).

use super::offsets;
use bytemuck::{Pod, Zeroable};

/// Size of a log as the OS makes it while nothing is traced.
pub const LOG_BUFFER_BYTES: u64 = 4096;
/// Entries of such a log.
pub const LOG_BUFFER_ENTRIES: u64 = (LOG_BUFFER_BYTES - LogHeader::BYTES) / LogEntry::BYTES;
const _: () = assert!(
    LOG_BUFFER_ENTRIES == 84,
    "84 entries of 48 bytes and a header of 40"
);
/// Entries that a log has at most (choice): 48 MiB.
pub const MOST_LOG_ENTRIES: u64 = 1 << 20;
/// Size of a log as the OS makes it while it traces (choice).
pub const TRACED_LOG_BYTES: u64 = 1 << 20;
/// Entries of such a log: 21,844.
pub const TRACED_LOG_ENTRIES: u64 = (TRACED_LOG_BYTES - LogHeader::BYTES) / LogEntry::BYTES;

/// `DXGK_NATIVE_FENCE_LOG_TYPE`: which of the two logs a header heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum LogType {
    /// `DXGK_NATIVE_FENCE_LOG_TYPE_WAITS`.
    Waits = 1,
    /// `DXGK_NATIVE_FENCE_LOG_TYPE_SIGNALS`.
    Signals = 2,
    /// Waits that were found unsatisfied, when they were first looked at, and dispatches that are done: a
    /// type of our own, which exists while the OS traces verbosely (LG-11; choice: no further type is
    /// published, and this number lies where none is to be expected).
    Verbose = 0x8000_0001,
}

impl LogType {
    /// All types.
    pub const ALL: [Self; 3] = [Self::Waits, Self::Signals, Self::Verbose];

    /// Its place in tables of logs.
    #[must_use]
    pub const fn place(self) -> usize {
        match self {
            Self::Waits => 0,
            Self::Signals => 1,
            Self::Verbose => 2,
        }
    }

    /// Whether a queue logs it at all times, and cannot run without.
    #[must_use]
    pub const fn is_mandatory(self) -> bool {
        !matches!(self, Self::Verbose)
    }
}

/// `DXGK_NATIVE_FENCE_LOG_OPERATION`: what an entry tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LogOperation {
    /// `DXGK_NATIVE_FENCE_LOG_OPERATION_SIGNAL_EXECUTED`.
    SignalExecuted = 0,
    /// `DXGK_NATIVE_FENCE_LOG_OPERATION_WAIT_UNBLOCKED`.
    WaitUnblocked = 1,
    /// A wait stalled its queue: our own (choice), in logs of [`LogType::Verbose`]. Observed and end
    /// are one time; the wait's own entry, with the same observed time, follows in the log of waits when
    /// it is satisfied.
    WaitQueued = 0x8000_0001,
    /// A dispatch is done: our own (choice), as above. The value is the running index of its packet, the
    /// handle its kernel's; observed is when the engine released it (its end, if nobody logged verbosely
    /// then), and the end when the engine found it done.
    DispatchDone = 0x8000_0002,
}

impl LogOperation {
    /// The operation of these bits, if it is one.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match bits {
            0 => Some(Self::SignalExecuted),
            1 => Some(Self::WaitUnblocked),
            0x8000_0001 => Some(Self::WaitQueued),
            0x8000_0002 => Some(Self::DispatchDone),
            _ => None,
        }
    }
}

/// `DXGK_NATIVE_FENCE_LOG_HEADER`, 40 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct LogHeader {
    /// `AtomicWraparoundAndEntryIndex`: low half first free entry, high half wrap count.
    pub index: u64,
    /// [`LogType`].
    pub log_type: u32,
    /// Padding of the published structure.
    pub padding: u32,
    /// Entries that follow.
    pub number_of_entries: u64,
    /// "Reserved for system use".
    pub reserved: [u64; 2],
}

offsets!(LogHeader, size 40, {
    INDEX = index @ 0,
    LOG_TYPE = log_type @ 8,
    NUMBER_OF_ENTRIES = number_of_entries @ 16,
    RESERVED = reserved @ 24,
});

/// `DXGK_NATIVE_FENCE_LOG_ENTRY`, 48 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct LogEntry {
    /// "newly signaled/unblocked fence value".
    pub fence_value: u64,
    /// The user's handle of the fence.
    pub native_fence: u32,
    /// [`LogOperation`].
    pub operation: u32,
    /// "Reserved for alignment".
    pub reserved0: u64,
    /// GPU time at which an unresolved wait was first seen, in engine ticks; waits only.
    pub observed_ticks: u64,
    /// "Reserved for alignment".
    pub reserved1: u64,
    /// GPU time at which the operation completed, in engine ticks.
    pub end_ticks: u64,
}

offsets!(LogEntry, size 48, {
    FENCE_VALUE = fence_value @ 0,
    NATIVE_FENCE = native_fence @ 8,
    OPERATION = operation @ 12,
    OBSERVED_TICKS = observed_ticks @ 24,
    END_TICKS = end_ticks @ 40,
});

/// The index word of a log header, taken apart: first free entry and wrap count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogIndex {
    /// First free entry.
    pub first_free_entry_index: u32,
    /// Times the log has wrapped; itself modulo 2^32.
    pub wraparound_count: u32,
}

impl LogIndex {
    /// Takes the word apart.
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        Self {
            first_free_entry_index: word as u32,
            wraparound_count: (word >> 32) as u32,
        }
    }

    /// The word that one 64-bit store publishes (LG-03).
    #[must_use]
    pub const fn word(self) -> u64 {
        (self.wraparound_count as u64) << 32 | self.first_free_entry_index as u64
    }

    /// After one more entry in a log of `entries` entries: after the last one index 0, count one more.
    #[must_use]
    pub const fn next(self, entries: u32) -> Self {
        if self.first_free_entry_index + 1 < entries {
            Self {
                first_free_entry_index: self.first_free_entry_index + 1,
                ..self
            }
        } else {
            Self {
                first_free_entry_index: 0,
                wraparound_count: self.wraparound_count.wrapping_add(1),
            }
        }
    }

    /// Entries written since the log was made, for a log of `entries` entries, as long as the wrap count has not wrapped
    /// itself.
    #[must_use]
    pub const fn total(self, entries: u32) -> u64 {
        self.wraparound_count as u64 * entries as u64 + self.first_free_entry_index as u64
    }

    /// Entries written since `earlier`, for a log of `entries` entries; `None` where the word
    /// cannot be (an index past the end: the writer is not trusted). The wrap count itself wraps,
    /// so the difference is taken modulo 2^32 of it.
    #[must_use]
    pub const fn since(self, earlier: Self, entries: u32) -> Option<u64> {
        if self.first_free_entry_index >= entries {
            return None;
        }
        let wraps = self.wraparound_count.wrapping_sub(earlier.wraparound_count) as u64;
        let ahead = wraps * entries as u64 + self.first_free_entry_index as u64;
        ahead.checked_sub(earlier.first_free_entry_index as u64)
    }

    /// Byte offset of entry `index` in a log.
    #[must_use]
    pub const fn entry_offset(index: u32) -> u64 {
        LogHeader::BYTES + LogEntry::BYTES * index as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// LG-03, LG-06: an index word is a running number, modulo 2^32 rounds of its log: as many entries ahead as were
        /// written, and told from any that cannot be.
        ///
        /// Kills `a-logs-rounds-do-not-count`.
        #[test]
        fn lg_06_an_index_is_a_running_number(
            entries in 2..200_u32,
            start: u32,
            wraps: u32,
            written in 0..1_000_u64,
            word: u64,
        ) {
            let earlier = at(start % entries, wraps);
            prop_assert_eq!(LogIndex::from_word(earlier.word()), earlier);
            let mut index = earlier;
            (0..written).for_each(|_| index = index.next(entries));
            prop_assert_eq!(index.since(earlier, entries), Some(written));
            let any = LogIndex::from_word(word);
            prop_assert_eq!(any.word(), word);
            let since = any.since(earlier, entries);
            prop_assert!(any.first_free_entry_index < entries || since.is_none());
        }
    }

    fn at(first_free_entry_index: u32, wraparound_count: u32) -> LogIndex {
        LogIndex {
            first_free_entry_index,
            wraparound_count,
        }
    }

    #[test]
    fn the_last_entry_wraps() {
        assert_eq!(at(82, 7).next(84), at(83, 7));
        assert_eq!(at(83, 7).next(84), at(0, 8));
        assert_eq!(at(83, u32::MAX).next(84), at(0, 0));
    }

    #[test]
    fn distance_counts_wraps() {
        assert_eq!(at(3, 1).since(at(80, 0), 84), Some(7));
        assert_eq!(at(0, 0).since(at(83, u32::MAX), 84), Some(1));
        assert_eq!(at(84, 0).since(at(0, 0), 84), None);
        assert_eq!(at(1, 0).since(at(2, 0), 84), None);
    }

    #[test]
    fn a_log_page_holds_84_entries() {
        assert_eq!(LogIndex::entry_offset(83) + LogEntry::BYTES, 4072);
    }
}
