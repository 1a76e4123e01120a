//! Hardware queues of a driver, of both kinds, by the handles that it gave.

use super::{DdiError, HwQueueHandle};
use crate::gpu::QueueSlot;
use crate::sync::{Arc, Mutex, lock};
use std::collections::HashMap;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct HwQueues {
    slots: Mutex<HashMap<HwQueueHandle, Arc<QueueSlot>>>,
    next_number: Mutex<u32>,
}

impl HwQueues {
    /// A handle that names no other queue.
    pub(super) fn next_handle(&self, node_ordinal: u32) -> HwQueueHandle {
        let mut next = lock(&self.next_number);
        let number = *next;
        *next += 1;
        HwQueueHandle {
            node_ordinal,
            number,
        }
    }

    /// The queue of a new handle.
    pub(super) fn add(&self, handle: HwQueueHandle, slot: Arc<QueueSlot>) {
        lock(&self.slots).insert(handle, slot);
    }

    /// The queue of a handle.
    ///
    /// # Errors
    /// None has it.
    pub(super) fn slot(&self, handle: HwQueueHandle) -> Result<Arc<QueueSlot>, DdiError> {
        lock(&self.slots)
            .get(&handle)
            .map(Arc::clone)
            .ok_or(DdiError::InvalidParameter("no such hardware queue"))
    }

    /// Those of a node.
    pub(super) fn of_node(&self, node_ordinal: u32) -> Vec<Arc<QueueSlot>> {
        let slots = lock(&self.slots);
        let of_node = slots
            .iter()
            .filter(|(handle, _)| handle.node_ordinal == node_ordinal);
        of_node.map(|(_, slot)| Arc::clone(slot)).collect()
    }

    /// Takes a queue out.
    pub(super) fn remove(&self, handle: HwQueueHandle) -> Option<Arc<QueueSlot>> {
        lock(&self.slots).remove(&handle)
    }
}
