//! Fan: the two forms that fan-out and fan-in share, and their sizes.

/// Queues that wait for the one signal.
pub(super) const QUEUES: u64 = 32;
/// Fans of a batch.
pub(super) const FANS: u64 = 8;

/// Which end of the fan the CPU is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanForm {
    /// Each queue that was released signals a fence, and the CPU waits for all of them.
    Out,
    /// One more queue waits for all of them, and signals the CPU's.
    In,
}
