//! Doorbell status: what the user reads after it rang.
//!
//! Only the OS writes it; the user's mapping is read-only.

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
