//! Allocation storage: memory of the allocations of one process, by kind and size.

use super::adapter::OsError;
use crate::abi::{Home, PAGE_BYTES, WordGroup};
use crate::shared::{Pool, PoolPlace, Providers};
use crate::sync::{Arc, Mutex, lock};
use std::collections::HashMap;

/// Allocations up to this share regions with others of their size, which is rounded up to a power of
/// two; a larger one has a region of its own.
const MOST_SHARED_BYTES: u64 = 64 * 1024;

/// Memory that an allocation lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum AllocationMemory {
    /// System memory, which the CPU caches: for what the program reads. What it stores there while an engine runs, the
    /// engine may see with its next slice only, if the device is such ([`Providers::host_stores_seen_in`]).
    #[default]
    System,
    /// Memory of the device's own which the host reaches: for what kernels load and store often. The CPU does
    /// not cache it: it stores there at the speed of the bus, and loads slowly.
    Local,
}

impl AllocationMemory {
    /// For what the program stores and engines read: where they see it while they run.
    #[must_use]
    pub fn for_host_stores(providers: &Providers) -> Self {
        match providers.host_stores_seen_in() {
            Home::CachedSystem => Self::System,
            Home::LocalHostVisible | Home::Local => Self::Local,
        }
    }

    fn home(self) -> Home {
        match self {
            Self::System => Home::CachedSystem,
            Self::Local => Home::LocalHostVisible,
        }
    }
}

/// The pools of a process.
#[derive(Debug)]
pub(super) struct AllocationPools {
    providers: Arc<Providers>,
    /// By memory and bytes of a place.
    pools: Mutex<HashMap<(AllocationMemory, u64), Pool>>,
}

impl AllocationPools {
    /// Of what an adapter's parties share.
    pub(super) fn new(providers: &Arc<Providers>) -> Self {
        Self {
            providers: Arc::clone(providers),
            pools: Mutex::default(),
        }
    }

    /// A place of at least `bytes` bytes, which are zero.
    ///
    /// # Errors
    /// No memory of that kind, or none left; a size that no memory has. What was asked for in one kind of
    /// memory never lies in another.
    pub(super) fn allocate(
        &self,
        memory: AllocationMemory,
        bytes: u64,
    ) -> Result<PoolPlace, OsError> {
        if bytes > MOST_SHARED_BYTES {
            let place_bytes = bytes.checked_next_multiple_of(PAGE_BYTES);
            let place_bytes = place_bytes.ok_or(OsError::AllocationSize(bytes))?;
            return Ok(self.pool(place_bytes).allocate_in(memory.home(), None)?);
        }
        let place_bytes = bytes.next_power_of_two();
        let mut pools = lock(&self.pools);
        let pool = pools
            .entry((memory, place_bytes))
            .or_insert_with(|| self.pool(place_bytes));
        Ok(pool.allocate_in(memory.home(), None)?)
    }

    /// The same in a region of its own, of which others may have all.
    ///
    /// # Errors
    /// As [`Self::allocate`].
    pub(super) fn allocate_alone(
        &self,
        memory: AllocationMemory,
        bytes: u64,
    ) -> Result<PoolPlace, OsError> {
        let place_bytes = bytes.checked_next_multiple_of(PAGE_BYTES);
        let place_bytes = place_bytes.ok_or(OsError::AllocationSize(bytes))?;
        let pool = self.pool(place_bytes).with_places(1);
        let place = pool.allocate_in(memory.home(), None)?;
        Ok(place)
    }

    fn pool(&self, place_bytes: u64) -> Pool {
        Pool::new(&self.providers, WordGroup::Allocation, place_bytes)
    }
}
