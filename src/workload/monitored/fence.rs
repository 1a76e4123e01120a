//! Fence: one 64-bit value that the CPU holds.

use super::scheduler::Scheduler;
use super::store::Place;
use crate::sync::Arc;
use std::time::Duration;

/// A monitored fence. A clone is the same fence.
#[derive(Clone)]
pub struct MonitoredFence {
    scheduler: Arc<Scheduler>,
    place: Place,
}

impl MonitoredFence {
    pub(super) fn new(scheduler: &Arc<Scheduler>, initial: u64) -> anyhow::Result<Self> {
        Ok(Self {
            place: scheduler.store.take(initial)?,
            scheduler: Arc::clone(scheduler),
        })
    }

    /// Its value, read through the user's read-only mapping: no call is made (MF-01).
    #[must_use]
    pub fn value(&self) -> u64 {
        self.scheduler.store.read_as_user(self.place)
    }

    /// Signals from the CPU: stores, wakes whom it satisfies, and hands to the engines what waited
    /// for it.
    ///
    /// # Errors
    /// The value is below the fence's.
    pub fn signal(&self, value: u64) -> anyhow::Result<()> {
        self.scheduler.signal(self.place, value)
    }

    /// Sleeps until it has `value`.
    ///
    /// # Errors
    /// The time is over, or an engine is lost.
    pub fn wait(&self, value: u64, timeout: Duration) -> anyhow::Result<()> {
        self.scheduler.wait(self.place, value, timeout)
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }
}
