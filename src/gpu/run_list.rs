//! Run list: the queues that the next slices execute, those whose doorbell is connected.

use super::QueueSlot;
use crate::abi::{EngineControl, MAX_HW_QUEUES, SLICE_SLOTS};
use crate::shared::Block;
use crate::sync::Arc;

/// The list, and which version of it each slice slot's copy in memory holds.
#[derive(Debug)]
pub(super) struct RunList {
    queues: Vec<Arc<QueueSlot>>,
    version: u64,
    written: [u64; SLICE_SLOTS as usize],
}

impl RunList {
    pub(super) fn new() -> Self {
        Self {
            queues: Vec::new(),
            version: 1,
            written: [0; SLICE_SLOTS as usize],
        }
    }

    /// Adds a queue, once; `false` if the list is full.
    #[must_use]
    pub(super) fn add(&mut self, queue: &Arc<QueueSlot>) -> bool {
        if self.contains(queue.number) {
            return true;
        }
        if self.queues.len() as u64 == MAX_HW_QUEUES {
            return false;
        }
        self.queues.push(Arc::clone(queue));
        self.version += 1;
        true
    }

    /// Takes a queue out; slices in flight may still run it.
    pub(super) fn remove(&mut self, number: u32) {
        self.queues.retain(|queue| queue.number != number);
        self.version += 1;
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        self.queues.iter().any(|queue| queue.number == number)
    }

    pub(super) fn queues(&self) -> &[Arc<QueueSlot>] {
        &self.queues
    }

    /// Writes the list of slice `slice`, whose slot no slice in flight reads; gives its length.
    pub(super) fn write(&mut self, control: &Block, slice: u64) -> u64 {
        let slot = (slice % SLICE_SLOTS) as usize;
        if self.written[slot] != self.version {
            self.written[slot] = self.version;
            for (place, queue) in self.queues.iter().enumerate() {
                let word = control.word(EngineControl::run_list(slice, place as u64));
                word.put(queue.descriptor_va().0);
            }
        }
        self.queues.len() as u64
    }
}
