//! Allocation storage: memory of the allocations of one process, by size.

use super::adapter::OsError;
use crate::abi::{PAGE_BYTES, WordGroup};
use crate::shared::{Pool, PoolPlace, Providers};
use crate::sync::{Arc, Mutex, lock};
use std::collections::HashMap;

/// Allocations up to this share regions with others of their size, which is rounded up to a power of
/// two; a larger one has a region of its own.
const MOST_SHARED_BYTES: u64 = 64 * 1024;

/// The pools of a process.
#[derive(Debug)]
pub(super) struct AllocationPools {
    memory: Arc<Providers>,
    /// By bytes of a place.
    pools: Mutex<HashMap<u64, Pool>>,
}

impl AllocationPools {
    /// Of what an adapter's parties share.
    pub(super) fn new(memory: &Arc<Providers>) -> Self {
        Self {
            memory: Arc::clone(memory),
            pools: Mutex::default(),
        }
    }

    /// A place of at least `bytes` bytes, which are zero.
    ///
    /// # Errors
    /// No memory; a size that no memory has.
    pub(super) fn allocate(&self, bytes: u64) -> Result<PoolPlace, OsError> {
        if bytes > MOST_SHARED_BYTES {
            let place_bytes = bytes.checked_next_multiple_of(PAGE_BYTES);
            let place_bytes = place_bytes.ok_or(OsError::AllocationSize(bytes))?;
            return Ok(self.pool(place_bytes).allocate()?);
        }
        let place_bytes = bytes.next_power_of_two();
        let mut pools = lock(&self.pools);
        let pool = pools
            .entry(place_bytes)
            .or_insert_with(|| self.pool(place_bytes));
        Ok(pool.allocate()?)
    }

    fn pool(&self, place_bytes: u64) -> Pool {
        Pool::new(&self.memory, WordGroup::Allocation, place_bytes)
    }
}
