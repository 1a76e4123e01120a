//! Allocations of a node: memory of processes that transfers load and store.

use super::retirement::{Kept, retire};
use super::{Node, NodeError};
use crate::abi::{AllocationId, HandleAccess, LocalHandle, ObjectId};
use crate::gpu::{EngineMapping, GpuVa};
use crate::shared::Region;
use crate::sync::{Arc, lock};

/// What an engine knows of an allocation: needed to open handles on it.
#[derive(Clone, Debug)]
pub(super) struct KnownAllocation {
    mapping: Arc<EngineMapping>,
    offset: u64,
    bytes: u64,
}

impl KnownAllocation {
    /// Its first byte in the engine's space, and its length.
    pub(super) fn place(&self) -> (GpuVa, u64) {
        (self.mapping.va().offset(self.offset), self.bytes)
    }
}

impl Node {
    /// Makes an allocation known to the engine.
    ///
    /// # Errors
    /// When its memory cannot be mapped.
    pub fn enter_allocation(
        &self,
        id: AllocationId,
        (region, offset): (&Arc<Region>, u64),
        bytes: u64,
    ) -> Result<(), NodeError> {
        let mut inner = lock(&self.inner);
        let mapping = Self::map_locked(&mut inner, region)?;
        let known = KnownAllocation {
            mapping,
            offset,
            bytes,
        };
        inner.allocations.insert(id, known);
        Ok(())
    }

    /// Opens a handle of a process on an allocation that the engine knows.
    ///
    /// # Errors
    /// When the table cannot grow.
    ///
    /// # Panics
    /// If the allocation was not entered: a bug of ours.
    pub fn open_allocation(
        &self,
        process: u64,
        handle: LocalHandle,
        id: AllocationId,
    ) -> Result<(), NodeError> {
        let mut inner = lock(&self.inner);
        let Some(known) = inner.allocations.get(&id).cloned() else {
            panic!("{id:?} is opened before it is created")
        };
        let engine = Arc::clone(&inner.engine);
        let table = Self::handle_table(&mut inner, process)?;
        table.open(
            &**engine,
            handle,
            HandleAccess::ALLOCATION,
            ObjectId::Allocation(id),
            known.place(),
        )?;
        Ok(())
    }

    /// Takes an allocation out. `true` if no slice refers to it any more, so that its memory may be
    /// used again; else a report says so later.
    #[must_use]
    pub fn remove_allocation(&self, id: AllocationId) -> bool {
        let mut inner = lock(&self.inner);
        let known = inner.allocations.remove(&id);
        retire(inner, Kept::allocation(id, known))
    }
}
