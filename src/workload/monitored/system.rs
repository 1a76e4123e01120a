//! System: engines with the operating system over them.

use super::engine::{Engine, Interrupts};
use super::fence::MonitoredFence;
use super::queue::MonitoredQueue;
use super::scheduler::Scheduler;
use super::store::Store;
use crate::sync::Arc;
use crate::vulkan::Queue;
use crate::workload::Counts;

/// Monitored fences on some engines. Dropping it waits for what runs.
pub struct MonitoredSystem {
    interrupts: Vec<Interrupts>,
    engines: Vec<Arc<Engine>>,
    scheduler: Arc<Scheduler>,
}

impl MonitoredSystem {
    /// An engine for each queue, of one device or of several.
    ///
    /// # Errors
    /// The driver takes no host memory, or there is no memory or thread left.
    pub fn new(queues: impl IntoIterator<Item = Queue>) -> anyhow::Result<Self> {
        let scheduler = Scheduler::new(Store::new()?);
        let mut system = Self {
            interrupts: Vec::new(),
            engines: Vec::new(),
            scheduler,
        };
        for queue in queues {
            let engine = Engine::new(queue, &system.scheduler.store)?;
            let scheduler = Arc::clone(&system.scheduler);
            let serve = move |lost| scheduler.interrupted(lost);
            system.interrupts.push(engine.start(serve)?);
            system.engines.push(engine);
        }
        Ok(system)
    }

    /// A fence that starts at `initial`.
    ///
    /// # Errors
    /// There is no room left.
    pub fn create_fence(&self, initial: u64) -> anyhow::Result<MonitoredFence> {
        MonitoredFence::new(&self.scheduler, initial)
    }

    /// How many engines there are.
    #[must_use]
    pub fn engine_count(&self) -> usize {
        self.engines.len()
    }

    /// A queue of the engine with this number.
    ///
    /// # Panics
    /// There is no such engine.
    #[must_use]
    pub fn create_queue(&self, engine: usize) -> MonitoredQueue {
        MonitoredQueue::new(&self.scheduler, &self.engines[engine])
    }

    /// Calls of `vkQueueSubmit`, and interrupts, of which each signal is one.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            submits: self.engines.iter().map(|engine| engine.submits()).sum(),
            notifications: Some(self.engines.iter().map(|engine| engine.interrupts()).sum()),
        }
    }
}

impl Drop for MonitoredSystem {
    fn drop(&mut self) {
        // What runs ends first; what a wait holds back never runs.
        self.interrupts.clear();
    }
}
