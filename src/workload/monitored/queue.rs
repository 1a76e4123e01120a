//! Queue: where a program records, signals and waits with monitored fences.

use super::engine::Engine;
use super::fence::MonitoredFence;
use super::scheduler::{ListId, Queued, Scheduler};
use crate::sync::Arc;

/// A kernel-mode queue of an engine. Dropping it drops what a wait still holds back.
pub struct MonitoredQueue {
    scheduler: Arc<Scheduler>,
    engine: Arc<Engine>,
    list: ListId,
    recorded: Vec<Queued>,
}

impl MonitoredQueue {
    pub(super) fn new(scheduler: &Arc<Scheduler>, engine: &Arc<Engine>) -> Self {
        Self {
            list: scheduler.add_list(engine),
            scheduler: Arc::clone(scheduler),
            engine: Arc::clone(engine),
            recorded: Vec::new(),
        }
    }

    /// Records a GPU signal (MF-02).
    ///
    /// # Errors
    /// The driver is out of memory.
    pub fn signal(&mut self, fence: &MonitoredFence, value: u64) -> anyhow::Result<()> {
        let store = self.engine.store(fence.place(), value)?;
        self.recorded.push(Queued::Commands(store));
        Ok(())
    }

    /// A GPU wait (MF-03): what was recorded is flushed, and what comes afterwards is not handed to
    /// the engine before `fence` has `value`. Returns at once.
    ///
    /// # Errors
    /// The device is lost or out of memory.
    pub fn wait(&mut self, fence: &MonitoredFence, value: u64) -> anyhow::Result<()> {
        self.recorded.push(Queued::Wait(fence.place(), value));
        self.flush()
    }

    /// Gives the OS what was recorded.
    ///
    /// # Errors
    /// The device is lost or out of memory.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.scheduler.queue(self.list, self.recorded.drain(..))
    }
}

impl Drop for MonitoredQueue {
    fn drop(&mut self) {
        self.scheduler.forget(self.list);
    }
}
