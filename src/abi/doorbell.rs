//! Doorbell: what the user and the OS tell each other about a ring, and no engine reads.
//!
//! The user writes the words of [`Doorbell`] and reads the status, which the OS alone writes and the
//! user's mapping does not let it write. The ring's own words are polled by an engine and may lie in
//! memory of the device; these are changed by read-modify-write and read by the CPU, so they lie in
//! system memory always: over the bus such an operation is not atomic, and a load takes microseconds.

use super::offsets;
use bytemuck::{Pod, Zeroable};

/// Words of one queue that the user writes for the OS.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Doorbell {
    /// Value of the last progress fence write that was queued (HQ-01). Writer: user. Reader: OS.
    pub last_queued_value: u64,
    pad0: [u64; 7],
    /// Rings so far. The user adds 1 by read-modify-write after the write index; the OS adds 0
    /// after it changed the status: the two are ordered by this word, so that either the OS sees
    /// the write index or the user sees the status.
    pub rings: u64,
    pad1: [u64; 7],
}

offsets!(Doorbell, size 128, {
    LAST_QUEUED_VALUE = last_queued_value @ 0,
    RINGS = rings @ 64,
});

/// `D3DDDI_DOORBELLSTATUS`, a 64-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum DoorbellStatus {
    /// The engine looks at the ring by itself: done.
    Connected = 0,
    /// The engine sleeps: the user must call the driver (`NotifyWorkSubmission`).
    ConnectedNotify = 1,
    /// Connect the doorbell and ring again.
    DisconnectedRetry = 2,
    /// The queue is lost: destroy it and make it anew.
    DisconnectedAbort = 3,
}

impl DoorbellStatus {
    /// The status of this word; what is none of the four is no doorbell that rings.
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        match word {
            0 => Self::Connected,
            1 => Self::ConnectedNotify,
            2 => Self::DisconnectedRetry,
            _ => Self::DisconnectedAbort,
        }
    }
}
