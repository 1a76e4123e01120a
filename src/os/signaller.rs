//! Signaller: who can signal a fence, and so whose loss ends it.

use crate::kmd::ProcessId;

/// Who can signal a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signaller {
    /// Every process that has it open with the right to: its queues, and its CPU side. The fence's
    /// openers know them ([`openers`](super::openers)).
    Openers,
    /// One queue of a process, whose progress it carries.
    Queue(ProcessId),
}
