//! Fence entry: what one engine knows of one fence.
//!
//! Entries lie in leaves of 1,024; a directory of 1,024 leaf addresses names them, so the table
//! grows and nothing moves. The shadow is the engine's own copy of the MonitoredValue
//! (design idea 2): the engine writes it while a slice is in flight, the OS while none is.
//!
//! Mirrors `shaders/abi/fence_entry.glsl`.

use super::offsets;
use bytemuck::{Pod, Zeroable};

/// Entry of the fence table of an engine.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct FenceEntry {
    /// The engine's address of CurrentValue. Writer: OS, before the entry is named anywhere.
    pub current_value_va: u64,
    /// The engine's address of MonitoredValue; 0 for an entry that is not in use, and where it is fixed
    /// (XA-03): nobody adopts it, and a raise leaves the shadow as it is. Writer: OS.
    pub monitored_value_va: u64,
    /// Shadow MonitoredValue; `u64::MAX` while a raise is unanswered (one-shot arming).
    pub shadow: u64,
    /// [`FenceId`]: low half slot, high half generation. Writer: OS.
    pub id: u64,
}

offsets!(FenceEntry, size 32, {
    CURRENT_VALUE_VA = current_value_va @ 0,
    MONITORED_VALUE_VA = monitored_value_va @ 8,
    SHADOW = shadow @ 16,
    ID = id @ 24,
});

impl FenceEntry {
    /// Entries of a leaf.
    pub const LEAF_ENTRIES: u64 = 1024;
    /// Leaves of a directory: 2^20 fences.
    pub const LEAVES: u64 = 1024;
}

/// Which fence, system-wide: slot in the fence table and generation of the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FenceId {
    /// Slot in the fence table of every engine.
    pub slot: u32,
    /// How often the slot has been given out; zero is never valid.
    pub generation: u32,
}

impl FenceId {
    /// The id as one word.
    #[must_use]
    pub const fn word(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    /// The id of a word.
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        Self {
            slot: word as u32,
            generation: (word >> 32) as u32,
        }
    }
}
