//! Witness: who sees what the OS does about a cross-adapter fence, step by step, as the tables of the article have it.
//!
//! A fence that nobody watches pays a look at one word for each step.

use super::cross_side::CrossSide;
use super::native_fence::NativeFence;
use std::fmt::Debug;

/// What the OS does, or hears, on one side of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossStep {
    /// An interrupt of its driver has named the fence with this value.
    Interrupted(u64),
    /// It called UpdateCurrentValuesFromCpu with this value and no flag.
    Stored(u64),
    /// The same with NotificationOnly.
    Notified(u64),
    /// It stored this value itself.
    StoredByOs(u64),
    /// It tells the other sides that this value was stored.
    Propagated(u64),
    /// It hears it of another.
    Heard(u64),
    /// So many waits of threads and software contexts have ended there.
    Released(usize),
}

/// See the file's head.
pub trait Witness: Debug + Send + Sync {
    /// On the side with this number ([`NativeFence::cross_side_number`]) this is done now. Called with locks held: it
    /// notes what it is told and calls nothing here.
    fn sees(&self, side: u64, step: CrossStep);
}

impl CrossSide {
    /// If somebody watches.
    pub(super) fn witness(&self, step: CrossStep) {
        self.fence().witnessed(self.number(), step);
    }
}

impl NativeFence {
    /// Which side it is, counted from 0 in the order in which they were opened; of a cross-adapter fence.
    #[must_use]
    pub fn cross_side_number(&self) -> Option<u64> {
        self.cross_side().map(CrossSide::number)
    }

    /// If it is a side, and somebody watches.
    pub(super) fn witness(&self, step: CrossStep) {
        if let Some(side) = self.cross_side() {
            side.witness(step);
        }
    }
}
