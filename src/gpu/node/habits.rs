//! Habits: what the slices that ended tell of the ones to come.

use crate::abi::{SliceReason, SliceResult};

/// Of one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    /// Why the last slice ended.
    pub(super) last_reason: SliceReason,
    /// It looked in vain, and then took a step.
    pub(super) answered: bool,
    /// Slices in a row that stood at a wait to their end, for an answer that did not come.
    pub(super) vain: u64,
    /// Slices in a row that would do transfers and found none.
    untransferred: u64,
    /// Slices in a row that would make dispatches and found none.
    undispatched: u64,
    /// The last slice that made dispatches made some of a kernel that schedules itself.
    schedules_itself: bool,
}

/// Slices that do transfers, or make dispatches, after the last one, since what came once comes again, and the first slice
/// that meets one ends in vain.
const STAYING: u64 = 64;

impl Default for Habits {
    fn default() -> Self {
        Self {
            last_reason: SliceReason::Budget,
            answered: false,
            vain: 0,
            untransferred: STAYING,
            undispatched: STAYING,
            schedules_itself: false,
        }
    }
}

impl Habits {
    /// A slice has ended. What it did for a paging packet comes once: it is no habit of the programs'.
    pub(super) fn learn(&mut self, reason: SliceReason, result: &SliceResult, for_paging: bool) {
        self.last_reason = reason;
        self.answered = result.answers > 0;
        if for_paging {
            return;
        }
        self.untransferred = if result.has_transfers() {
            0
        } else {
            (self.untransferred + 1).min(STAYING)
        };
        if result.has_dispatches() {
            self.schedules_itself = result.schedules_itself();
        }
        self.undispatched = if result.has_dispatches() {
            0
        } else {
            (self.undispatched + 1).min(STAYING)
        };
    }

    /// Whether the next slice makes dispatches.
    pub(super) fn dispatches(&self) -> bool {
        self.undispatched < STAYING
    }

    /// Whether kernels of the next slice may go on without the engine: one that has rounds for that is longer, and costs
    /// more where none does.
    pub(super) fn schedules_itself(&self) -> bool {
        self.dispatches() && self.schedules_itself
    }

    /// Whether the next slice does transfers.
    pub(super) fn transfers(&self) -> bool {
        self.untransferred < STAYING
    }
}
