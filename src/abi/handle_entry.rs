//! Handle entry: what one handle of one process means to one engine.
//!
//! The table is two-level like that of the fences. The OS alone writes it: a handle that a process
//! has not opened has no entry, so a packet cannot name a fence or an allocation of another process
//! (HQ-05). Fences, allocations and kernels have handles of one table, as D3DKMT_HANDLEs do.
//!
//! Mirrors `shaders/abi/handle_entry.glsl`.

use super::offsets;
use bytemuck::{Pod, Zeroable};

/// Entry of the handle table of a (process, engine).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct HandleEntry {
    /// The engine's address of a fence's CurrentValue, or of an allocation's first byte; of a kernel 0.
    pub va: u64,
    /// The engine's address of the fence's [`FenceEntry`](super::FenceEntry), the allocation's size in
    /// bytes, or where the engine has the kernel ([`Dispatch::kernel_detail`](super::Dispatch::kernel_detail)).
    pub detail: u64,
    /// Low half generation (0: never opened), high half [`HandleAccess`]. Published last.
    pub meta: u64,
    reserved: u64,
}

offsets!(HandleEntry, size 32, {
    VA = va @ 0,
    DETAIL = detail @ 8,
    META = meta @ 16,
});

impl HandleEntry {
    /// Entries of a leaf.
    pub const LEAF_ENTRIES: u64 = 1024;
    /// Leaves of a directory.
    pub const LEAVES: u64 = 1024;

    /// The meta word of a handle.
    #[must_use]
    pub const fn meta(generation: u32, access: HandleAccess) -> u64 {
        (access.0 as u64) << 32 | generation as u64
    }
}

/// What a handle may do; bits of the entry, written by the OS only (`decisions.md` 20). The upper 16 of them name the
/// fence's cross-adapter doorbell ([`CrossDoorbellIndex`](super::CrossDoorbellIndex)), and are the driver's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandleAccess(pub u32);

impl HandleAccess {
    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// What kind of object it names: of its bits, those of [`HandleAccess::KIND`].
    #[must_use]
    pub const fn kind(self) -> Self {
        Self(self.0 & Self::KIND.0)
    }

    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Wait and signal.
    pub const FULL: Self = Self(0);
    /// GPU waits pass at once and signals leave the storage alone (NF-19).
    pub const ALWAYS_SIGNALED: Self = Self(1);
    /// A signal is refused (NF-23).
    pub const NO_SIGNAL: Self = Self(2);
    /// A wait is refused (NF-23).
    pub const NO_WAIT: Self = Self(4);
    /// The handle was closed; the entry keeps its generation, so that an old packet can be told so.
    pub const CLOSED: Self = Self(8);
    /// It names an allocation.
    pub const ALLOCATION: Self = Self(16);
    /// It names a kernel; a fence where it names neither.
    pub const KERNEL: Self = Self(32);
    /// What tells the kind of what is named.
    pub const KIND: Self = Self::ALLOCATION.with(Self::KERNEL);
    /// Its MonitoredValue is 0 for good, so every signal raises: a raise leaves it armed (XA-03). The driver's own.
    pub const KEEPS_ARMED: Self = Self(64);
}
