//! Fence storage: pages of CurrentValues and pages of MonitoredValues of one process.
//!
//! Fences that cannot be shared stand side by side at the strides of the caps; a CurrentValue and
//! a MonitoredValue never share a page (NF-03, NF-11).

use crate::abi::{CURRENT_VALUE_STRIDE, MONITORED_VALUE_STRIDE, OpenerSlot, WordGroup};
use crate::shared::{Block, ReadBlock, ReadMapping, Region, RegionError};
use crate::sync::{Arc, Mutex, lock};

/// Fences of one chunk of pages.
const CHUNK_FENCES: u64 = 1024;

#[derive(Debug)]
struct Chunk {
    current_values: Arc<Region>,
    monitored_values: Arc<Region>,
    current: Block,
    monitored: Block,
    user: Arc<ReadMapping>,
    free: Vec<u64>,
}

impl Chunk {
    fn new() -> Result<Self, RegionError> {
        let current_values = Region::for_words(
            WordGroup::CurrentValues,
            CHUNK_FENCES * CURRENT_VALUE_STRIDE,
        )?;
        let monitored_values = Region::for_words(
            WordGroup::MonitoredValues,
            CHUNK_FENCES * MONITORED_VALUE_STRIDE,
        )?;
        Ok(Self {
            current: Block::whole(&current_values.map()?),
            monitored: Block::whole(&monitored_values.map()?),
            user: current_values.map_read_only()?,
            current_values,
            monitored_values,
            free: (0..CHUNK_FENCES).rev().collect(),
        })
    }
}

/// The pool of a process.
#[derive(Debug, Default)]
pub(super) struct FencePool(Mutex<Vec<Chunk>>);

/// Storage of one fence, given back on drop.
#[derive(Debug)]
pub(super) struct FenceStorage {
    pool: Arc<FencePool>,
    chunk: usize,
    place: u64,
    /// Region and offset of CurrentValue.
    pub(super) current_value: (Arc<Region>, u64),
    /// Region and offset of MonitoredValue.
    pub(super) monitored_value: (Arc<Region>, u64),
    /// The OS's view of CurrentValue.
    pub(super) current: Block,
    /// The OS's view of MonitoredValue.
    pub(super) monitored: Block,
    /// The user's read-only view of CurrentValue.
    pub(super) user: ReadBlock,
}

impl FencePool {
    /// Storage for one more fence.
    pub(super) fn allocate(self: &Arc<Self>) -> Result<FenceStorage, RegionError> {
        let mut chunks = lock(&self.0);
        let free = chunks.iter().position(|chunk| !chunk.free.is_empty());
        let index = free.unwrap_or(chunks.len());
        if free.is_none() {
            chunks.push(Chunk::new()?);
        }
        let chunk = &mut chunks[index];
        let Some(place) = chunk.free.pop() else {
            unreachable!("the chunk has a free place")
        };
        let (cv, mv) = (place * CURRENT_VALUE_STRIDE, place * MONITORED_VALUE_STRIDE);
        Ok(FenceStorage {
            pool: Arc::clone(self),
            chunk: index,
            place,
            current_value: (Arc::clone(&chunk.current_values), cv),
            monitored_value: (
                Arc::clone(&chunk.monitored_values),
                mv + OpenerSlot::MONITORED_VALUE,
            ),
            current: chunk.current.part(cv, 8),
            monitored: chunk.monitored.part(mv + OpenerSlot::MONITORED_VALUE, 8),
            user: ReadBlock::new(&chunk.user, cv, 8),
        })
    }
}

impl Drop for FenceStorage {
    fn drop(&mut self) {
        lock(&self.pool.0)[self.chunk].free.push(self.place);
    }
}
