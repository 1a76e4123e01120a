//! What a function of the shader library tells a kernel, of a fence that it names.
//!
//! Mirrors `shaders/abi/kernel_result.glsl`.

use super::FaultCode;

/// A result; those below 256 are what would fault a packet, by the numbers of [`FaultCode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum KernelResult {
    /// Done: the value is there, or was stored.
    Done = 0,
    /// The handle names no fence that the process has open. Nothing was done.
    NoFence = FaultCode::Handle as u32,
    /// The handle was closed. Nothing was done.
    Closed = FaultCode::StaleHandle as u32,
    /// The fence's flags forbid it (NoSignal, NoWait). Nothing was done.
    Denied = FaultCode::AccessDenied as u32,
    /// The value was not there in as many passes.
    NotReached = 256,
    /// The packet has made [`MOST_KERNEL_SIGNALS`](super::MOST_KERNEL_SIGNALS). Nothing was done.
    NoRoom = 257,
}

impl KernelResult {
    /// Every result.
    pub const ALL: [Self; 6] = [
        Self::Done,
        Self::NoFence,
        Self::Closed,
        Self::Denied,
        Self::NotReached,
        Self::NoRoom,
    ];

    /// The result of these bits, if it is one.
    #[must_use]
    pub fn from_bits(bits: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|result| *result as u32 == bits)
    }

    /// What a handle gives that is wrong in this way.
    #[must_use]
    pub(crate) fn of_handle(fault: Option<FaultCode>) -> Self {
        match fault {
            None => Self::Done,
            Some(FaultCode::StaleHandle) => Self::Closed,
            Some(_) => Self::NoFence,
        }
    }
}
