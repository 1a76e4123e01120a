//! Kernel queues of a driver: by their handles, and by the progress fences that engines raise.

use super::kernel_book::KernelBook;
use super::kernel_queue::KernelQueue;
use super::{DdiError, HwQueueHandle};
use crate::sync::{Arc, Mutex, lock};
use std::collections::HashMap;

/// See the file's head. There are few: a list.
#[derive(Debug, Default)]
pub(super) struct KernelQueues(
    Mutex<Vec<Arc<KernelQueue>>>,
    /// Of each node.
    Mutex<HashMap<u32, Arc<KernelBook>>>,
);

impl KernelQueues {
    /// What the engine of a node was handed.
    pub(super) fn book(&self, node_ordinal: u32) -> Arc<KernelBook> {
        Arc::clone(lock(&self.1).entry(node_ordinal).or_default())
    }

    /// One more.
    pub(super) fn add(&self, queue: &Arc<KernelQueue>) {
        lock(&self.0).push(Arc::clone(queue));
    }

    /// The queue is destroyed: what it has not completed is none of the engine's any more.
    pub(super) fn remove(&self, handle: HwQueueHandle) {
        if let Some(queue) = self.of_handle(handle) {
            queue.take_back();
        }
        lock(&self.0).retain(|queue| queue.handle() != handle);
    }

    /// The one of a handle; `None` for a user-mode queue's.
    pub(super) fn of_handle(&self, handle: HwQueueHandle) -> Option<Arc<KernelQueue>> {
        let queues = lock(&self.0);
        let mut queues = queues.iter();
        queues
            .find(|queue| queue.handle() == handle)
            .map(Arc::clone)
    }

    /// Refuses a kernel-mode queue what only the other kind has.
    ///
    /// # Errors
    /// It is one.
    pub(super) fn check_user_mode(&self, handle: HwQueueHandle) -> Result<(), DdiError> {
        match self.of_handle(handle) {
            None => Ok(()),
            Some(_) => Err(DdiError::InvalidParameter(
                "a kernel-mode queue has no doorbell and no log: its commands go through the OS",
            )),
        }
    }

    /// Those of a node.
    pub(super) fn of_node(&self, node_ordinal: u32) -> Vec<Arc<KernelQueue>> {
        let queues = lock(&self.0);
        let of_node = |queue: &&Arc<KernelQueue>| queue.handle().node_ordinal == node_ordinal;
        queues.iter().filter(of_node).map(Arc::clone).collect()
    }
}
