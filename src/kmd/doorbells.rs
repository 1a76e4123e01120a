//! Doorbells of a driver: which queue each is of, and the physical ones of each engine.

use super::doorbell_pool::DoorbellPool;
use super::{DdiError, DoorbellId, HwQueueHandle};
use crate::sync::{Mutex, lock};
use std::collections::HashMap;
use std::num::NonZeroU32;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Doorbells {
    queues: Mutex<HashMap<DoorbellId, HwQueueHandle>>,
    /// By node.
    pools: Vec<DoorbellPool>,
}

impl Doorbells {
    /// Of so many nodes, whose engines have so many physical ones each.
    pub(super) fn new(nodes: usize, limit: Option<NonZeroU32>) -> Self {
        Self {
            queues: Mutex::default(),
            pools: (0..nodes).map(|_| DoorbellPool::new(limit)).collect(),
        }
    }

    /// A queue's doorbell.
    ///
    /// # Errors
    /// The queue has one, or another queue has one of that id.
    pub(super) fn add(
        &self,
        doorbell: DoorbellId,
        hw_queue: HwQueueHandle,
    ) -> Result<(), DdiError> {
        let mut queues = lock(&self.queues);
        if queues.contains_key(&doorbell) {
            let why = "another doorbell has that handle: handles are not used again";
            return Err(DdiError::InvalidParameter(why));
        }
        if queues.values().any(|queue| *queue == hw_queue) {
            let why = "the queue has a doorbell: destroy it first";
            return Err(DdiError::InvalidParameter(why));
        }
        queues.insert(doorbell, hw_queue);
        Ok(())
    }

    /// The queue of a doorbell.
    ///
    /// # Errors
    /// It was not created, or is destroyed.
    pub(super) fn queue_of(&self, doorbell: DoorbellId) -> Result<HwQueueHandle, DdiError> {
        let why = "no such doorbell: create it first";
        let queue = lock(&self.queues).get(&doorbell).copied();
        queue.ok_or(DdiError::InvalidParameter(why))
    }

    /// The doorbell of a queue.
    pub(super) fn of_queue(&self, hw_queue: HwQueueHandle) -> Option<DoorbellId> {
        let queues = lock(&self.queues);
        let mut queues = queues.iter();
        queues
            .find(|(_, queue)| **queue == hw_queue)
            .map(|(doorbell, _)| *doorbell)
    }

    /// It is destroyed.
    pub(super) fn remove(&self, doorbell: DoorbellId) -> Option<HwQueueHandle> {
        lock(&self.queues).remove(&doorbell)
    }

    /// The physical ones of a node's engine.
    pub(super) fn pool(&self, node_ordinal: u32) -> Option<&DoorbellPool> {
        self.pools.get(node_ordinal as usize)
    }
}
