//! Crowd: the engines of an adapter that want the device at the same time.
//!
//! An engine that polls for work keeps a core, or a context of the device, from an engine that has
//! some. Where there are fewer of them than engines at work, one that finds nothing leaves soon;
//! else it stays a while, since what comes soon is served sooner by a running engine than by one
//! that must be started (`decisions.md` 24). And an engine that sleeps for a value needs to be
//! interrupted for, where others poll.

use super::Activity;
use crate::sync::{Arc, AtomicU32, Ordering};

/// See the module's page.
#[derive(Debug)]
pub struct Crowd {
    room: u32,
    running: AtomicU32,
    /// Parked engines whose queues stand at waits.
    waiting: AtomicU32,
    activity: Arc<Activity>,
}

impl Crowd {
    /// Engines of which `room` can run at the same time.
    #[must_use]
    pub fn new(room: u32) -> Self {
        Self {
            room,
            running: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            activity: Arc::default(),
        }
    }

    /// Engines, each on a core of the host's that this process may use.
    #[must_use]
    pub fn on_cores() -> Self {
        let cores = crate::sync::cores();
        Self::new(u32::try_from(cores).unwrap_or(u32::MAX))
    }

    /// Who watches over them is told here.
    #[must_use]
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// An engine runs.
    pub(super) fn enter(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// It was let go.
    pub(super) fn leave(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// One was let go at waits: it sleeps, and an interrupt must bring it back.
    pub(super) fn begin_waiting(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
    }

    /// It runs again.
    pub(super) fn end_waiting(&self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether an engine that runs is not the only one that has something to do. A hint.
    pub(super) fn has_company(&self) -> bool {
        // One that is lost as it is taken leaves before it is said to enter.
        let running = self.running.load(Ordering::Relaxed);
        running.wrapping_add(self.waiting.load(Ordering::Relaxed)) > 1
    }

    /// Whether an engine sleeps that must be interrupted for.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Whether an engine that polls stands in another's way. A hint.
    pub(super) fn is_crowded(&self) -> bool {
        self.running.load(Ordering::Relaxed) > self.room
    }
}
