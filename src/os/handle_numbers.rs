//! Handle numbers: slots and generations of a handle table, given out and taken back.
//!
//! Slots rest before they are used again: a generation of 12 bits comes round after some four million
//! handles, and not after 4,095.

use crate::abi::LocalHandle;
use std::collections::VecDeque;

/// Slots that are left free before one is used again. Under loom a slot rests no longer than its handle, so that what uses
/// it next is explored.
const REST: usize = if cfg!(loom) { 1 } else { 1024 };

/// See the file's head.
#[derive(Debug)]
pub(crate) struct HandleNumbers {
    /// Generation last given out, by slot.
    generations: Vec<u32>,
    /// Oldest first, so that a generation comes round as late as it can.
    free: VecDeque<u32>,
}

impl HandleNumbers {
    /// None given out.
    pub(crate) const fn new() -> Self {
        Self {
            generations: Vec::new(),
            free: VecDeque::new(),
        }
    }

    /// A handle that names nothing else; `None` when all are given out.
    pub(crate) fn allocate(&mut self) -> Option<LocalHandle> {
        let all_used = self.generations.len() >= LocalHandle::SLOTS as usize;
        let slot = if all_used || self.free.len() >= REST {
            self.free.pop_front()?
        } else {
            self.generations.push(0);
            self.generations.len() as u32 - 1
        };
        let generation = &mut self.generations[slot as usize];
        *generation = LocalHandle::next_generation(*generation);
        LocalHandle::new(slot, *generation).ok()
    }

    /// How many are given out.
    pub(crate) fn given_out(&self) -> usize {
        self.generations.len() - self.free.len()
    }

    /// Takes the slot of a handle back.
    pub(crate) fn free(&mut self, slot: u32) {
        self.free.push_back(slot);
    }
}
