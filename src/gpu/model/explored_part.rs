//! Explored part: memory that an engine and its host share, as loom explores them, and the queue that lies there.

use super::memory::ModelMemory;
use crate::abi::{
    HandleEntry, LOG_BUFFER_ENTRIES, PACKET_BYTES, PAGE_BYTES, QueueDescriptor, RingControl,
    WordGroup,
};
use crate::gpu::{EngineAddress, MapError};
use crate::shared::{Block, Region};
use crate::sync::Arc;

/// A region, the host's view of it, and where the engine sees it.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) host: Block,
    address: EngineAddress,
}

impl Part {
    pub(super) fn new(memory: &Arc<ModelMemory>, region: &Arc<Region>) -> Result<Self, MapError> {
        Ok(Self {
            host: region.host()?,
            address: memory.map(region)?,
        })
    }

    /// Of words of a group, as many as a leaf of handles has.
    pub(super) fn of(memory: &Arc<ModelMemory>, group: WordGroup) -> Result<Self, MapError> {
        let bytes = HandleEntry::LEAF_ENTRIES * HandleEntry::BYTES;
        Self::new(memory, &Region::for_words(group, bytes)?)
    }

    pub(super) fn va(&self) -> u64 {
        self.address.va.0
    }

    /// Of which the short part is explored.
    pub(super) fn explored(&self, offset: u64, bytes: u64) -> Block {
        self.host.part(offset, bytes)
    }
}

/// The memory of one queue, which no program knows.
#[derive(Debug)]
pub(super) struct QueueParts {
    capacity: u64,
    ring: Part,
    pub(super) progress: Part,
    pub(super) descriptor: Part,
    pub(super) log: Part,
    _states: Part,
}

impl QueueParts {
    /// Where the run list lies, behind the descriptor.
    const RUN_LIST: u64 = PAGE_BYTES / 2;

    /// A queue whose ring of so many packets and whose progress words lie in these parts, and whose process has its handles
    /// there.
    pub(super) fn new(
        memory: &Arc<ModelMemory>,
        (ring, progress): (Part, Part),
        capacity: u64,
        handle_directory_va: u64,
    ) -> Result<Self, MapError> {
        let descriptor = Part::of(memory, WordGroup::QueueDescriptor)?;
        let log = Part::of(memory, WordGroup::Log)?;
        let states = Part::of(memory, WordGroup::SaveArea)?;
        for (offset, value) in [
            (QueueDescriptor::RING_VA, ring.va() + PAGE_BYTES),
            (QueueDescriptor::RING_CONTROL_VA, ring.va()),
            (QueueDescriptor::RING_CAPACITY, capacity),
            (QueueDescriptor::WAIT_LOG_VA, log.va()),
            (QueueDescriptor::SIGNAL_LOG_VA, log.va()),
            (QueueDescriptor::WAIT_LOG_ENTRIES, LOG_BUFFER_ENTRIES),
            (QueueDescriptor::SIGNAL_LOG_ENTRIES, LOG_BUFFER_ENTRIES),
            (QueueDescriptor::HANDLE_DIRECTORY_VA, handle_directory_va),
            (QueueDescriptor::STATE_VA, states.va()),
            (QueueDescriptor::PROGRESS_VA, progress.va()),
            (Self::RUN_LIST, descriptor.va()),
        ] {
            descriptor.host.word(offset).put(value);
        }
        Ok(Self {
            capacity,
            ring,
            progress,
            descriptor,
            log,
            _states: states,
        })
    }

    /// Control and packets of its ring.
    pub(super) fn ring(&self) -> (Block, Block) {
        let packets = self.capacity * PACKET_BYTES;
        (
            self.ring.explored(0, RingControl::BYTES),
            self.ring.explored(PAGE_BYTES, packets),
        )
    }

    /// A run list of it alone.
    pub(super) fn run_list_va(&self) -> u64 {
        self.descriptor.va() + Self::RUN_LIST
    }
}
