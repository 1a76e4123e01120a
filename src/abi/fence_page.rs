//! Where the values of fences lie: pages of CurrentValues, and pages of MonitoredValues.
//!
//! No page holds both (NF-03): the first kind is mapped to the user for reading, the second not at
//! all. Fences of one process share a page at the strides below, a cache line each; a shareable
//! fence has pages of its own, in which its MonitoredValue page has room for one slot an opener
//! (`decisions.md` 21).

use super::offsets;
use bytemuck::{Pod, Zeroable};

/// Size of a page, the unit of mapping and of host import.
pub const PAGE_BYTES: u64 = 4096;
/// Distance of CurrentValues that share a page (choice: the caps have no such member).
pub const CURRENT_VALUE_STRIDE: u64 = 64;
/// `MonitoredValueStride` of the caps.
pub const MONITORED_VALUE_STRIDE: u64 = OpenerSlot::BYTES;
/// MonitoredValue of a fence that no CPU waiter waits for.
pub const NO_CPU_WAITER: u64 = u64::MAX;

/// What one operating system that has a fence open keeps in the fence's MonitoredValue page
/// (`decisions.md` 21). A fence that cannot be shared has one, of which the first word alone is used.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct OpenerSlot {
    /// MonitoredValue as the opener's engines adopt it: the least of what all openers wait for.
    /// Writer: the opener's OS. Reader: its engines.
    pub monitored_value: u64,
    /// The least value that the opener's own waiters wait for, minus 1; `UINT64_MAX` without one.
    /// Writer: the opener's OS. Readers: those of the others.
    pub awaited: u64,
    /// In which of its reached words the opener is to be told of values now ([`OpenerSlot::reached`]).
    /// Writer: the opener's OS. Readers: those of the others.
    pub reached_word: u64,
    /// Who has the slot: a process id in the low [`OpenerSlot::PROCESS_BITS`], the time that it started
    /// at above, which tells a reused id apart; 0 while it is free. One word, so that nobody who is
    /// killed leaves half of it.
    pub owner: u64,
    /// How often the opener was called to look; it sleeps for the low half. Writers: all, by
    /// read-modify-write.
    pub calls: u64,
    /// Whose reached word, and which, the opener is about to raise ([`OpenerSlot::telling`]); 0 for none.
    /// Writer: the opener's OS. Readers: those of the others.
    pub telling: u64,
    reserved: [u64; 2],
}

offsets!(OpenerSlot, size 64, {
    MONITORED_VALUE = monitored_value @ 0,
    AWAITED = awaited @ 8,
    REACHED_WORD = reached_word @ 16,
    OWNER = owner @ 24,
    CALLS = calls @ 32,
    TELLING = telling @ 40,
});

impl OpenerSlot {
    /// Slots of a page: operating systems that may have a fence open at a time.
    pub const SLOTS: u64 = 16;
    /// Bits of a process id in [`OpenerSlot::owner`]: Linux gives out none above 2^22.
    pub const PROCESS_BITS: u32 = 22;
    /// Reached words of an opener: one that it is told in now, one for each other opener that may be in the
    /// midst of raising an earlier one, and so always one more that is nobody's.
    pub const REACHED_WORDS: u64 = Self::SLOTS + 1;
    /// Where the reached words lie, behind the slots, those of one slot after those of the one before.
    pub const REACHED_WORDS_AT: u64 = Self::SLOTS * Self::BYTES;

    /// Where in the page a reached word of a slot lies: the greatest value that others have told its opener
    /// of in it, since the opener last looked. Writers: all, by read-modify-write.
    #[must_use]
    pub const fn reached(slot: u64, word: u64) -> u64 {
        Self::REACHED_WORDS_AT + (slot * Self::REACHED_WORDS + word) * 8
    }

    /// What an opener says while it may raise a reached word of a slot; never 0.
    #[must_use]
    pub const fn telling(slot: u64, word: u64) -> u64 {
        1 + slot * Self::REACHED_WORDS + word
    }
}

/// What the page says of itself, near its end. Written when the fence is first sent to another
/// process, never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SharedFenceHeader {
    /// [`SharedFenceHeader::MAGIC`].
    pub magic: u64,
    /// [`SharedFenceHeader::VERSION`].
    pub version: u64,
    /// What openers may do: bits of [`HandleAccess`](super::HandleAccess).
    pub access: u64,
    /// Slots of the page.
    pub slots: u64,
    /// The file of the CurrentValue page, and of this one: one fence's pages are not taken for another's.
    pub current_file: u64,
    /// See above.
    pub monitored_file: u64,
    /// The PID namespace in which the owners of slots are named, by its number.
    pub pid_namespace: u64,
    /// 1 with NoSignalMaxValueOnTdr, else 0.
    pub keeps_value_on_tdr: u64,
}

offsets!(SharedFenceHeader, size 64, {
    MAGIC_WORD = magic @ 0,
});

impl SharedFenceHeader {
    /// Where in the page it lies.
    pub const OFFSET: u64 = PAGE_BYTES - 128;
    /// "nfence" and what the page is.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"nfenceMV");
    /// Of this layout.
    pub const VERSION: u64 = 4;
    /// Where the word lies that says how often CurrentValue was stored backwards from a CPU. Writers: all
    /// openers, by read-modify-write.
    pub const REWINDS: u64 = Self::OFFSET + Self::BYTES;
    /// Where the word lies that is not 0 once the fence is always signaled, since a device is lost that could
    /// signal it (NF-19). Writers: all openers.
    pub const ALWAYS_SIGNALED: u64 = Self::REWINDS + 8;

    /// Of a fence with this access, by the files of its pages and the PID namespace of its openers.
    #[must_use]
    pub const fn new(
        access: u32,
        (current_file, monitored_file): (u64, u64),
        pid_namespace: u64,
    ) -> Self {
        Self {
            magic: Self::MAGIC,
            version: Self::VERSION,
            access: access as u64,
            slots: OpenerSlot::SLOTS,
            current_file,
            monitored_file,
            pid_namespace,
            keeps_value_on_tdr: 0,
        }
    }
}

const _: () = assert!(
    OpenerSlot::reached(OpenerSlot::SLOTS, 0) <= SharedFenceHeader::OFFSET
        && SharedFenceHeader::ALWAYS_SIGNALED + 8 <= PAGE_BYTES,
    "slots, reached words and header lie in one page and do not overlap"
);
