//! Write-back: when the host sees what an engine stored to CurrentValues.
//!
//! Vulkan promises the host nothing of a slice in flight, and CurrentValues may lie in another
//! memory than the interrupt records: a record can reach the CPU before the CurrentValue that was
//! stored first (`decisions.md` 4). The two ends of what may be are modelled. The words of one
//! engine are coherent to its lanes in either.

use crate::sync::plain::{Mutex, lock};
use std::collections::BTreeMap;

/// When a CurrentValue that an engine stored reaches the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    /// At once, as where the device is a CPU.
    #[default]
    AtOnce,
    /// When its slice ends and not before: the latest that a device may.
    AtSliceEnd,
}

/// A word, by whichever address it is reached: the place of its region in the host's memory, while the
/// region is mapped, and the byte in it.
pub(super) type Location = (usize, u64);

/// CurrentValues that the engine has to itself yet, each with an address of it.
#[derive(Debug, Default)]
pub(super) struct WriteBack {
    pub(super) arrival: Arrival,
    kept: Mutex<BTreeMap<Location, (u64, u64)>>,
}

impl WriteBack {
    pub(super) fn new(arrival: Arrival) -> Self {
        Self {
            arrival,
            kept: Mutex::default(),
        }
    }

    /// Whether the engine keeps what it stores to a region of this name.
    pub(super) fn keeps(&self, region: &str) -> bool {
        self.arrival == Arrival::AtSliceEnd && region == "fence-cv"
    }

    pub(super) fn keep(&self, at: Location, va: u64, value: u64) {
        lock(&self.kept).insert(at, (va, value));
    }

    /// What the engine itself sees there, if the host does not see it yet.
    pub(super) fn kept(&self, at: Location) -> Option<u64> {
        // Every load asks; where nothing is ever kept it costs no lock.
        if self.arrival == Arrival::AtOnce {
            return None;
        }
        lock(&self.kept).get(&at).map(|(_, value)| *value)
    }

    /// All that was kept, when a slice ends.
    pub(super) fn take(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut *lock(&self.kept))
            .into_values()
            .collect()
    }
}
