//! Save area: memory in which the states of a context's queues lie while no engine has them (PR-13).
//!
//! What an engine has of a queue it saves when its slice ends: how far it has come with the ring and in the
//! packet at its head. That is all that a preempted packet needs to go on, and it lies here and nowhere else,
//! in two copies of which one always is whole ([`QueueState`]). The OS makes an area when the context is made, in
//! memory of its own, so it outlives the engine; and can move it while the context is suspended.
//!
//! An area is a page, which no two contexts share, and has a slot for each queue (choice). A context with more
//! queues than slots has several areas. The first state of a queue is zero, and an engine has written it there
//! for the OS before a slice refers to a queue of the area (PR-14); the host clears what another queue has left.
//!
//! The host writes here as well: a queue that is made, a log that moves, a queue that was found to stand
//! elsewhere than its engine had saved. Each does so under the area's lock, so that nobody moves the area in the
//! midst of it. Readers take the lock to find the place and not to read: what they read is as good as ever
//! (`queue_slot`), and the node's lock, under which areas are moved, is theirs where that is not enough.

use super::{ContextKind, EngineBlock, EngineMapping, GpuVa};
use crate::abi::{PAGE_BYTES, QueueState, STATE_COPIES};
use crate::shared::Block;
use crate::sync::plain::{Mutex, lock};
use crate::sync::{Arc, AtomicBool, Ordering};
use std::any::Any;

/// Bytes of the states of one queue.
const SLOT_BYTES: u64 = STATE_COPIES * QueueState::BYTES;

/// See the file's head.
#[derive(Debug)]
pub struct SaveArea {
    /// Before what keeps the memory: it is unmapped first.
    memory: Mutex<EngineBlock>,
    /// Slots that queues have, a bit each.
    taken: Mutex<u32>,
    /// Of the contexts that are saved there.
    kind: ContextKind,
    /// Slices may refer to its queues. Changed under the node's lock.
    is_initialised: AtomicBool,
    _owner: Box<dyn Any + Send + Sync>,
}

/// The place of one queue in an area, given back on drop.
#[derive(Debug)]
pub struct StateSlot {
    area: Arc<SaveArea>,
    number: u32,
}

/// What is in the new place is not what is in the area: it was written to since it was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotTheSame;

impl SaveArea {
    /// Bytes of an area.
    pub const BYTES: u64 = PAGE_BYTES;
    /// Queues whose states it holds.
    pub const SLOTS: u32 = (Self::BYTES / SLOT_BYTES) as u32;

    /// At a place in an engine's space, of [`SaveArea::BYTES`]. `owner` keeps the memory, and is dropped when
    /// nothing refers to it any more. Its queues are in no slice before
    /// [`Node::save_area_initialised`](super::Node::save_area_initialised).
    #[must_use]
    pub fn new(
        mapping: &Arc<EngineMapping>,
        offset: u64,
        owner: impl Any + Send + Sync,
    ) -> Arc<Self> {
        Self::with(mapping, offset, owner, (ContextKind::Program, false))
    }

    /// The same in memory of the node's own, which nobody has to initialise.
    pub(super) fn of_node(
        mapping: &Arc<EngineMapping>,
        offset: u64,
        owner: impl Any + Send + Sync,
        kind: ContextKind,
    ) -> Arc<Self> {
        Self::with(mapping, offset, owner, (kind, true))
    }

    fn with(
        mapping: &Arc<EngineMapping>,
        offset: u64,
        owner: impl Any + Send + Sync,
        (kind, is_initialised): (ContextKind, bool),
    ) -> Arc<Self> {
        Arc::new(Self {
            memory: Mutex::new(mapping.part(offset, Self::BYTES)),
            taken: Mutex::new(0),
            kind,
            is_initialised: AtomicBool::new(is_initialised),
            _owner: Box::new(owner),
        })
    }

    /// A slot, with the state of a queue that has executed nothing; `None` where other queues have all.
    #[must_use]
    pub fn take(self: &Arc<Self>) -> Option<StateSlot> {
        let number = {
            let mut taken = lock(&self.taken);
            let number = (0..Self::SLOTS).find(|number| *taken & (1 << number) == 0)?;
            *taken |= 1 << number;
            number
        };
        let slot = StateSlot {
            area: Arc::clone(self),
            number,
        };
        slot.write(Block::clear);
        Some(slot)
    }

    /// Whether its first state is there; exact for who holds the node's lock.
    pub(super) fn is_initialised(&self) -> bool {
        self.is_initialised.load(Ordering::Relaxed)
    }

    /// Its first state is there.
    pub(super) fn set_initialised(&self) {
        self.is_initialised.store(true, Ordering::Relaxed);
    }

    /// Lies elsewhere from now on; gives the place before, to be unmapped. No slice refers to the queues, and
    /// the caller writes to their descriptors where their states are.
    ///
    /// # Errors
    /// [`NotTheSame`].
    pub(super) fn move_to(
        &self,
        mapping: &Arc<EngineMapping>,
        offset: u64,
    ) -> Result<EngineBlock, NotTheSame> {
        let mut memory = lock(&self.memory);
        let there = mapping.part(offset, Self::BYTES);
        let mut words = (0..Self::BYTES).step_by(8);
        if !words.all(|at| memory.host.word(at).peek() == there.host.word(at).peek()) {
            return Err(NotTheSame);
        }
        Ok(std::mem::replace(&mut *memory, there))
    }
}

impl StateSlot {
    fn offset(&self) -> u64 {
        u64::from(self.number) * SLOT_BYTES
    }

    /// Whether its queue is one of the OS's device.
    pub(super) fn is_system(&self) -> bool {
        self.area.kind != ContextKind::Program
    }

    /// Whether its queue's packets initialise save areas.
    pub(super) fn is_initialising(&self) -> bool {
        self.area.kind == ContextKind::Initialisation
    }

    /// As [`SaveArea::is_initialised`].
    pub(super) fn is_initialised(&self) -> bool {
        self.area.is_initialised()
    }

    /// Whether it is one of the area's.
    pub(super) fn is_of(&self, area: &Arc<SaveArea>) -> bool {
        Arc::ptr_eq(&self.area, area)
    }

    /// Where the engine finds the copies.
    pub(super) fn va(&self) -> GpuVa {
        lock(&self.area.memory).va().offset(self.offset())
    }

    /// The copies, to be read: where they lie now.
    pub(super) fn copies(&self) -> [Block; STATE_COPIES as usize] {
        let memory = lock(&self.area.memory);
        [0, 1].map(|copy| {
            let offset = self.offset() + copy * QueueState::BYTES;
            memory.host.part(offset, QueueState::BYTES)
        })
    }

    /// Writes to the copies. No slice refers to the queue.
    pub(super) fn write(&self, write: impl FnOnce(&Block)) {
        let memory = lock(&self.area.memory);
        write(&memory.host.part(self.offset(), SLOT_BYTES));
    }
}

impl Drop for StateSlot {
    fn drop(&mut self) {
        *lock(&self.area.taken) &= !(1 << self.number);
    }
}
