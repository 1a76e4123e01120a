//! Context allocations: memory of the OS that the driver has asked for, for contexts and devices (PR-13).
//!
//! It is the OS's own shared memory and no device's, so it stays when an engine goes; nobody but the driver is
//! told of it. That of one node's contexts shares no memory with that of another's: what an engine that was
//! given up may still store to is never another engine's.

use crate::abi::{PAGE_BYTES, WordGroup};
use crate::kmd::{
    ContextAllocation, ContextAllocationId, ContextHandle, CreateContextAllocation, DdiError,
};
use crate::shared::{Pool, PoolPlace, Providers, RegionError};
use crate::sync::{Arc, Mutex, lock};
use std::collections::{BTreeMap, HashMap};

/// What was made.
#[derive(Clone, Debug)]
struct Made {
    asked: CreateContextAllocation,
    place: Arc<PoolPlace>,
    /// The packet that initialises it was queued.
    is_begun: bool,
}

/// What is to be initialised.
#[derive(Debug)]
pub(super) struct NewAllocation {
    pub(super) id: ContextAllocationId,
    pub(super) place: Arc<PoolPlace>,
    pub(super) bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    /// Pages, by the node of the context and their size.
    pools: HashMap<(Option<u32>, u64), Arc<Pool>>,
    made: BTreeMap<ContextAllocationId, Made>,
    last: u64,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct ContextAllocations {
    memory: Arc<Providers>,
    state: Mutex<State>,
}

impl ContextAllocations {
    /// Of the memory that an adapter's parties share.
    pub(super) fn new(memory: &Arc<Providers>) -> Self {
        Self {
            memory: Arc::clone(memory),
            state: Mutex::default(),
        }
    }

    /// `DxgkCbCreateContextAllocation`.
    pub(super) fn create(
        &self,
        asked: &CreateContextAllocation,
    ) -> Result<ContextAllocation, DdiError> {
        if asked.bytes == 0 || !asked.bytes.is_multiple_of(8) {
            return Err(DdiError::InvalidParameter(
                "the size of a context allocation must be a multiple of 8, and not 0",
            ));
        }
        let place = Arc::new(self.place(asked)?);
        let mut state = lock(&self.state);
        state.last += 1;
        let id = ContextAllocationId(state.last);
        let (region, offset) = (Arc::clone(place.region()), place.offset());
        let asked = *asked;
        let made = Made {
            asked,
            place,
            is_begun: false,
        };
        state.made.insert(id, made);
        Ok(ContextAllocation { id, region, offset })
    }

    /// `DxgkCbDestroyContextAllocation`.
    pub(super) fn destroy(&self, id: ContextAllocationId) {
        let destroyed = lock(&self.state).made.remove(&id);
        // Without the lock: the memory goes back.
        drop(destroyed);
    }

    /// Those of a context that nobody was given before.
    pub(super) fn take_new(&self, context: ContextHandle) -> Vec<NewAllocation> {
        let mut state = lock(&self.state);
        let made = state.made.iter_mut();
        let is_new = |made: &Made| made.asked.context == Some(context) && !made.is_begun;
        let new = made.filter(|(_, made)| is_new(made));
        new.map(|(id, made)| {
            made.is_begun = true;
            NewAllocation {
                id: *id,
                place: Arc::clone(&made.place),
                bytes: made.asked.bytes,
            }
        })
        .collect()
    }

    /// Nobody initialises these after all: the next one is given them.
    pub(super) fn put_back(&self, ids: impl Iterator<Item = ContextAllocationId>) {
        let mut state = lock(&self.state);
        for id in ids {
            if let Some(made) = state.made.get_mut(&id) {
                made.is_begun = false;
            }
        }
    }

    /// Those of a context: the place of each, and its size.
    pub(super) fn of_context(
        &self,
        context: ContextHandle,
    ) -> Vec<(ContextAllocationId, Arc<PoolPlace>, u64)> {
        let state = lock(&self.state);
        let made = state.made.iter();
        let its = made.filter(|(_, made)| made.asked.context == Some(context));
        its.map(|(id, made)| (*id, Arc::clone(&made.place), made.asked.bytes))
            .collect()
    }

    /// Another place for it, which nobody has; `None` where it is gone.
    pub(super) fn another_place(
        &self,
        id: ContextAllocationId,
    ) -> Result<Option<Arc<PoolPlace>>, RegionError> {
        let asked = lock(&self.state).made.get(&id).map(|made| made.asked);
        asked
            .map(|asked| self.place(&asked).map(Arc::new))
            .transpose()
    }

    /// It lies there from now on; the place before is its holders'.
    pub(super) fn moved(&self, id: ContextAllocationId, to: &Arc<PoolPlace>) {
        let mut state = lock(&self.state);
        let made = state.made.get_mut(&id);
        let before = made.map(|made| std::mem::replace(&mut made.place, Arc::clone(to)));
        drop(state);
        drop(before);
    }

    fn place(&self, asked: &CreateContextAllocation) -> Result<PoolPlace, RegionError> {
        let bytes = asked.bytes.next_multiple_of(PAGE_BYTES);
        let node = asked.context.map(|context| context.node_ordinal);
        let pool = {
            let mut state = lock(&self.state);
            let pool = state.pools.entry((node, bytes));
            let new = || Arc::new(Pool::new(&self.memory, WordGroup::SaveArea, bytes));
            Arc::clone(pool.or_insert_with(new))
        };
        pool.allocate()
    }
}
