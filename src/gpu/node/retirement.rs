//! Retirement: what was taken out and a slice in flight may still refer to.
//!
//! A slice may have resolved a handle before it was closed, and stores to the fence until it ends.
//! So what is taken out waits for the end of the last slice that was submitted before: the epoch
//! (`decisions.md` 12). Slices submitted later find no way to it. Records that name the fence are
//! read when the slice's report is taken, which is before it is told that the fence is retired.

use super::allocations::KnownAllocation;
use super::inner::{Inner, KnownFence};
use crate::abi::{AllocationId, FenceId, KernelId, LocalHandle, ObjectId};
use crate::gpu::handle_table::HandleTable;
use crate::sync::MutexGuard;
use std::collections::VecDeque;

/// What is kept for slices in flight, unmapped when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Kept {
    object: Option<ObjectId>,
    _fence: Option<KnownFence>,
    _allocation: Option<KnownAllocation>,
    _handles: Option<HandleTable>,
}

impl Kept {
    pub(super) fn fence(id: FenceId, known: Option<KnownFence>) -> Self {
        Self {
            object: Some(ObjectId::Fence(id)),
            _fence: known,
            ..Self::default()
        }
    }

    pub(super) fn allocation(id: AllocationId, known: Option<KnownAllocation>) -> Self {
        Self {
            object: Some(ObjectId::Allocation(id)),
            _allocation: known,
            ..Self::default()
        }
    }

    pub(super) fn kernel(id: KernelId) -> Self {
        Self {
            object: Some(ObjectId::Kernel(id)),
            ..Self::default()
        }
    }

    /// The place of a closed handle. A slice may have read of the entry that the handle is open, and reads
    /// the rest of it after that: the entry is no other handle's until it has ended.
    pub(super) fn handle(process: u64, handle: LocalHandle) -> Self {
        Self {
            object: Some(ObjectId::Handle(process, handle)),
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

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Retirement {
    /// Oldest first.
    waiting: VecDeque<(u64, Kept)>,
    /// What an engine that is lost may still look at: its device may go on with what it was given.
    of_a_lost_engine: Vec<Kept>,
}

impl Retirement {
    /// Keeps it until slice `last` is serviced.
    pub(super) fn keep(&mut self, last: u64, kept: Kept) {
        self.waiting.push_back((last, kept));
    }

    /// Keeps it mapped as long as the node has its engine. It is retired all the same.
    pub(super) fn keep_mapped(&mut self, kept: impl IntoIterator<Item = Kept>) {
        self.of_a_lost_engine.extend(kept);
    }

    /// Another engine has taken the place of the lost one, with which this is kept.
    #[must_use]
    pub(super) fn take_mapped(&mut self) -> Vec<Kept> {
        std::mem::take(&mut self.of_a_lost_engine)
    }

    /// Takes what no slice refers to any more. To be dropped without a lock: unmapping takes time.
    #[must_use]
    pub(super) fn take(&mut self, serviced: u64) -> Vec<Kept> {
        let done = self.waiting.partition_point(|(last, _)| *last <= serviced);
        self.waiting.drain(..done).map(|(_, kept)| kept).collect()
    }
}

/// The objects among them.
pub(super) fn objects(kept: &[Kept]) -> Vec<ObjectId> {
    kept.iter().filter_map(|kept| kept.object).collect()
}

/// Keeps it for the slices in flight; `true` if there are none, and it was dropped.
pub(super) fn retire(mut inner: MutexGuard<'_, Inner>, kept: Kept) -> bool {
    let in_flight = inner.serviced < inner.submitted;
    if in_flight {
        let last = inner.submitted;
        inner.retirement.keep(last, kept);
    } else if inner.is_lost() {
        inner.retirement.keep_mapped([kept]);
    } else {
        drop(inner);
        drop(kept);
    }
    !in_flight
}
