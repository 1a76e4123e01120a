//! Retirement: what was taken out and a slice in flight may still refer to.
//!
//! A slice may have resolved a handle before it was closed, and stores to the fence until it ends.
//! So what is taken out waits for the end of the last slice that was submitted before: the epoch
//! (`decisions.md` 12). Slices submitted later find no way to it. Records that name the fence are
//! read when the slice's report is taken, which is before it is told that the fence is retired.

use super::inner::KnownFence;
use crate::abi::FenceId;
use crate::gpu::handle_table::HandleTable;
use std::collections::VecDeque;

/// What is kept for slices in flight, unmapped when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Kept {
    fence: Option<FenceId>,
    _known: Option<KnownFence>,
    _handles: Option<HandleTable>,
}

impl Kept {
    pub(super) fn fence(id: FenceId, known: Option<KnownFence>) -> Self {
        Self {
            fence: Some(id),
            _known: known,
            ..Self::default()
        }
    }

    pub(super) fn process(handles: HandleTable) -> Self {
        Self {
            _handles: Some(handles),
            ..Self::default()
        }
    }
}

/// Oldest first.
#[derive(Debug, Default)]
pub(super) struct Retirement(VecDeque<(u64, Kept)>);

impl Retirement {
    /// Keeps it until slice `last` is serviced.
    pub(super) fn keep(&mut self, last: u64, kept: Kept) {
        self.0.push_back((last, kept));
    }

    /// Takes what no slice refers to any more. To be dropped without a lock: unmapping takes time.
    #[must_use]
    pub(super) fn take(&mut self, serviced: u64) -> Vec<Kept> {
        let done = self.0.partition_point(|(last, _)| *last <= serviced);
        self.0.drain(..done).map(|(_, kept)| kept).collect()
    }
}

/// The fences among them.
pub(super) fn fences(kept: &[Kept]) -> Vec<FenceId> {
    kept.iter().filter_map(|kept| kept.fence).collect()
}
