//! Asynchronous waits of a device: each stands until it has ended or the device goes.
//!
//! C has no object for them that could be dropped, so the device keeps them. One that has ended holds
//! nothing but its fences' memory; those are looked for when there are twice as many as stood the last
//! time, so that waits cost the same however many there are.

use crate::os::{EventWait, WaitManyError};
use crate::sync::{Mutex, lock};

/// Waits below which no ended ones are looked for.
const FEW: usize = 32;

/// A wait that tells an event.
#[derive(Debug)]
pub(super) enum AsyncWait {
    Any(EventWait<Result<usize, WaitManyError>>),
    All(EventWait<Result<(), WaitManyError>>),
}

impl AsyncWait {
    fn has_ended(&self) -> bool {
        match self {
            Self::Any(wait) => wait.outcome().is_some(),
            Self::All(wait) => wait.outcome().is_some(),
        }
    }
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct AsyncWaits {
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    waits: Vec<AsyncWait>,
    /// So many, and ended ones are looked for.
    most: usize,
}

impl AsyncWaits {
    pub(super) fn new() -> Self {
        Self {
            kept: Mutex::new(Kept {
                waits: Vec::new(),
                most: FEW,
            }),
        }
    }

    /// Keeps a wait until it has ended.
    pub(super) fn keep(&self, wait: AsyncWait) {
        // Asked for their outcome, and dropped, with no lock held: the first may tell others of a fence,
        // and the second may be its last reference. What `end` does not find meanwhile goes with the
        // device, whose fences have ended it.
        let mut looked_at = self.take_if(|kept| kept.waits.len() >= kept.most);
        let has_looked = !looked_at.is_empty();
        looked_at.retain(|wait| !wait.has_ended());
        let mut kept = lock(&self.kept);
        if has_looked {
            kept.most = FEW.max(2 * looked_at.len());
        }
        kept.waits.append(&mut looked_at);
        kept.waits.push(wait);
    }

    fn take_if(&self, wanted: impl FnOnce(&Kept) -> bool) -> Vec<AsyncWait> {
        let mut kept = lock(&self.kept);
        if wanted(&kept) {
            std::mem::take(&mut kept.waits)
        } else {
            Vec::new()
        }
    }

    /// Ends all.
    pub(super) fn end(&self) {
        // They are dropped when the lock is not held any more.
        drop(self.take_if(|_| true));
    }
}
