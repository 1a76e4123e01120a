//! Why an engine stopped a queue: the first packet, or index, that it could not accept.

/// Code of a fault, as the engine reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u32)]
pub enum FaultCode {
    /// No opcode of this number.
    #[error("the opcode is not one")]
    Opcode = 1,
    /// Length or reserved bits of the control word are wrong.
    #[error("the length or a reserved bit of the control word is wrong")]
    Length = 2,
    /// The handle names no fence, for a transfer no allocation, or for a dispatch no kernel, that this
    /// process has open.
    #[error("the handle is not open in this process")]
    Handle = 3,
    /// The handle's slot was closed, or is used again by another fence.
    #[error("the handle was closed")]
    StaleHandle = 4,
    /// The write index is behind the read index, or more than one ring ahead of it.
    #[error("the ring's write index cannot be")]
    WriteIndex = 5,
    /// The log number is not the next one.
    #[error("the log number is not the next one")]
    LogNumber = 6,
    /// The handle's flags forbid the operation (NoSignal, NoWait).
    #[error("access denied by the fence's flags")]
    AccessDenied = 7,
    /// A progress packet that names another fence than the queue's, or whose value does not rise.
    #[error("the progress fence is not the queue's, or its value does not rise")]
    Progress = 8,
    /// Bytes of a transfer lie outside the allocation, or are not whole words.
    #[error("the transfer's bytes are not words of the allocation")]
    Range = 9,
    /// A copy whose source and destination share bytes.
    #[error("the copy's source and destination overlap")]
    Overlap = 10,
    /// A user-mode queue names a monitored fence (MF-09). No engine reports it: to the engine the
    /// handle names nothing, and the OS says what it is.
    #[error("the handle is a monitored fence's, which only kernel-mode queues take")]
    MonitoredFence = 11,
    /// A stall that the OS ended. The packet is not completed.
    #[error("the packet kept the engine and was aborted")]
    Aborted = 12,
    /// More workgroups than every device runs of one dispatch.
    #[error("the dispatch has more workgroups than it may have")]
    Groups = 13,
    /// The bytes of a dispatch's parameters are not what its kernel takes.
    #[error("the dispatch's parameters are not as long as its kernel's")]
    Parameters = 14,
}

impl FaultCode {
    /// Every code that an engine reports.
    pub const ALL: [Self; 13] = [
        Self::Opcode,
        Self::Length,
        Self::Handle,
        Self::StaleHandle,
        Self::WriteIndex,
        Self::LogNumber,
        Self::AccessDenied,
        Self::Progress,
        Self::Range,
        Self::Overlap,
        Self::Aborted,
        Self::Groups,
        Self::Parameters,
    ];

    /// The code of these bits, if it is one.
    #[must_use]
    pub fn from_bits(bits: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|code| *code as u32 == bits)
    }
}
