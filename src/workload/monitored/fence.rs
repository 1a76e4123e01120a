//! Fence: one 64-bit value that the CPU holds.

use super::scheduler::Scheduler;
use super::store::Place;
use crate::sync::{Arc, thread};
use std::time::{Duration, Instant};

/// As `NodePolicy::default` has it.
const LOOK: Duration = Duration::from_micros(100);

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

    /// Waits until it has `value`: looks as long as a native waiter does, then sleeps.
    ///
    /// # Errors
    /// The time is over, or an engine is lost.
    pub fn wait(&self, value: u64, timeout: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + LOOK.min(timeout);
        while self.value() < value && Instant::now() < end {
            thread::yield_now();
        }
        self.scheduler.wait(self.place, value, timeout)
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }
}
