//! Kernel-mode queues of an adapter: by the driver's handles, and the engines that they feed.

use super::kernel_engine::{KernelEngine, Submitted};
use super::level_one::LevelOne;
use super::queue_core::QueueCore;
use super::wait_cell::WaitError;
use crate::kmd::{HwQueueHandle, StillInside};
use crate::sync::{Arc, Mutex, lock};
use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct KernelQueues {
    queues: Mutex<BTreeMap<HwQueueHandle, Weak<QueueCore>>>,
    engines: Mutex<BTreeMap<u32, Arc<KernelEngine>>>,
    level_one: Arc<LevelOne>,
}

impl KernelQueues {
    /// The engine of a node.
    pub(super) fn engine(&self, node_ordinal: u32) -> Arc<KernelEngine> {
        let mut engines = lock(&self.engines);
        let engine = engines.entry(node_ordinal);
        Arc::clone(engine.or_insert_with(|| KernelEngine::new(node_ordinal, &self.level_one)))
    }

    /// Makes one of the calls of which one thread is inside at a time (TD-18).
    ///
    /// # Errors
    /// Another thread was inside for `most`.
    pub(super) fn alone<T>(
        &self,
        most: Duration,
        call: impl FnOnce() -> T,
    ) -> Result<T, StillInside> {
        self.level_one.alone(most, call)
    }

    /// A new queue.
    pub(super) fn enter(&self, queue: &Arc<QueueCore>) {
        lock(&self.queues).insert(queue.handle(), Arc::downgrade(queue));
    }

    /// The queue is destroyed.
    pub(super) fn take_out(&self, queue: &Arc<QueueCore>) {
        let handle = queue.handle();
        lock(&self.queues).remove(&handle);
        let engine = self.engine(handle.node_ordinal);
        engine.forget(&Arc::downgrade(queue));
    }

    /// The one of a handle.
    pub(super) fn of_handle(&self, handle: HwQueueHandle) -> Option<Arc<QueueCore>> {
        lock(&self.queues).get(&handle)?.upgrade()
    }

    /// All of them, in the order of their handles.
    pub(super) fn all(&self) -> Vec<Arc<QueueCore>> {
        let queues = lock(&self.queues);
        queues.values().filter_map(Weak::upgrade).collect()
    }

    /// Stops all of them.
    pub(super) fn fail(&self, error: WaitError) {
        for queue in self.all() {
            queue.fail(error);
        }
    }

    /// What a submission id of a node names, which has completed.
    pub(super) fn completed(&self, node_ordinal: u32, submission_id: u64) -> Submitted {
        self.engine(node_ordinal).completed(submission_id)
    }
}
