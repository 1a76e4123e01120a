//! Mailbox: how the OS tells an engine that the MonitoredValue of a fence has changed.
//!
//! MV words are the truth; the mailbox carries fence slots alone. The OS stores the MV, then the
//! slot, then the write index; the engine reads the index, the slot, then the MV, so it adopts a
//! value at least as new as the post. Where the ring is full the OS counts `rescan` up and the
//! engine adopts every fence it knows.
//!
//! The ring lies at [`EngineControl::MAILBOX`](super::EngineControl::MAILBOX), one word a post;
//! the engine acknowledges by [`EngineReport::MAILBOX_READ`](super::EngineReport::MAILBOX_READ).

/// Posts that the mailbox holds. Under loom few, so that it overflows in a scenario, and not unless one has it overflow.
pub const MAILBOX_CAPACITY: u64 = if cfg!(loom) { 4 } else { 256 };
