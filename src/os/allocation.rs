//! Allocation: memory of a process that its transfers load and store.
//!
//! It has a handle of the process's one table, as fences have; packets name it by that and an
//! offset. User and engines share it, and order what they do to it by fences.

use super::adapter::OsError;
use super::allocation_storage::AllocationMemory;
use super::process::{HandleSlot, Process};
use super::shared_memory::{ShareMemoryError, SharedMemory};
use crate::abi::{AllocationId, Home, LocalHandle};
use crate::kmd::{CreateAllocation, OpenAllocation, Place};
use crate::shared::{Block, PoolPlace, Region};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock};

/// An allocation and the handle by which its process knows it. Dropping it closes the handle and
/// destroys the allocation; its memory is used again when no engine refers to it any more.
#[derive(Debug)]
pub struct Allocation {
    id: AllocationId,
    handle: LocalHandle,
    bytes: u64,
    memory: Arc<PoolPlace>,
    /// It has its region to itself.
    is_shareable: bool,
    block: Block,
    closed: AtomicBool,
    /// Places of handles that the OS had on it, which slices may still refer to.
    places: Mutex<Vec<HandleSlot>>,
    process: Arc<Process>,
}

impl Allocation {
    /// `D3DKMTCreateAllocation2`, of one allocation that is zero.
    ///
    /// # Errors
    /// A size of 0 or that is no multiple of 8, no memory, local memory that is not offered, no handle
    /// left, or the driver's reason; a lost device.
    pub fn create(
        process: &Arc<Process>,
        memory: AllocationMemory,
        bytes: u64,
    ) -> Result<Self, OsError> {
        Self::check(process, bytes)?;
        let memory = Arc::new(process.allocation_pools().allocate(memory, bytes)?);
        Self::over(process, memory, bytes)
    }

    /// The same of one that others can open ([`Allocation::share`]).
    ///
    /// # Errors
    /// As [`Allocation::create`].
    pub fn create_shared(
        process: &Arc<Process>,
        memory: AllocationMemory,
        bytes: u64,
    ) -> Result<Self, OsError> {
        Self::check(process, bytes)?;
        let memory = process.allocation_pools().allocate_alone(memory, bytes)?;
        Self::shareable(process, Arc::new(memory), bytes)
    }

    fn check(process: &Process, bytes: u64) -> Result<(), OsError> {
        if bytes == 0 || !bytes.is_multiple_of(8) {
            return Err(OsError::AllocationSize(bytes));
        }
        process.adapter().check_up()?;
        process.state().check()?;
        Ok(())
    }

    /// What others open it by, of which the first `bytes` bytes are meant.
    ///
    /// # Errors
    /// It was not created shared; a closed handle.
    ///
    /// # Panics
    /// With more bytes than it has: a bug of ours.
    pub fn share(&self, bytes: u64) -> Result<SharedMemory, ShareMemoryError> {
        assert!(bytes <= self.bytes, "{bytes} bytes of {}", self.bytes);
        if self.closed.load(Ordering::Acquire) {
            return Err(ShareMemoryError::Closed);
        }
        if !self.is_shareable {
            return Err(ShareMemoryError::NotShared);
        }
        let adapter = self.process.adapter();
        Ok(SharedMemory::of(&self.memory, adapter, bytes))
    }

    /// The same over memory that there is.
    pub(super) fn over(
        process: &Arc<Process>,
        memory: Arc<PoolPlace>,
        bytes: u64,
    ) -> Result<Self, OsError> {
        Self::made(process, memory, bytes, false)
    }

    /// The same over memory that has its region to itself.
    pub(super) fn shareable(
        process: &Arc<Process>,
        memory: Arc<PoolPlace>,
        bytes: u64,
    ) -> Result<Self, OsError> {
        Self::made(process, memory, bytes, true)
    }

    fn made(
        process: &Arc<Process>,
        memory: Arc<PoolPlace>,
        bytes: u64,
        is_shareable: bool,
    ) -> Result<Self, OsError> {
        let handle = process.allocate_handle()?;
        let id = process.adapter().next_allocation();
        let allocation = Self {
            id,
            handle,
            bytes,
            block: memory.block().part(0, bytes),
            memory,
            is_shareable,
            closed: AtomicBool::new(false),
            places: Mutex::default(),
            process: Arc::clone(process),
        };
        let ddi = process.adapter().ddi();
        ddi.create_allocation(&CreateAllocation {
            global: id,
            memory: Place::from(&*allocation.memory),
            bytes,
        })?;
        ddi.open_allocation(&OpenAllocation {
            global: id,
            process: process.id(),
            local: handle,
        })?;
        process
            .kernel_side()
            .allocation_opened(process.adapter(), handle, id)?;
        Ok(allocation)
    }

    /// Keeps the place of a closed handle until no engine refers to the allocation.
    pub(super) fn keep_place(&self, place: HandleSlot) {
        lock(&self.places).push(place);
    }

    /// The OS's id.
    pub(super) fn id(&self) -> AllocationId {
        self.id
    }

    /// The handle that the process's packets carry.
    #[must_use]
    pub fn handle(&self) -> LocalHandle {
        self.handle
    }

    /// The process whose handle it is.
    #[must_use]
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The memory that it lies in, as its region shows it.
    #[must_use]
    pub fn home(&self) -> Home {
        self.memory.region().home()
    }

    /// The region that it lies in, and where it begins there.
    #[must_use]
    pub fn place(&self) -> (&Arc<Region>, u64) {
        (self.memory.region(), self.memory.offset())
    }

    /// What the user maps.
    #[must_use]
    pub fn memory(&self) -> &Block {
        &self.block
    }

    /// Closes the handle: transfers that carry it fault, one under way in its next part at the
    /// latest. The memory stays mapped until the object is dropped.
    pub fn close(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            let ddi = self.process.adapter().ddi();
            ddi.close_allocation(self.process.id(), self.handle);
            let kernel_side = self.process.kernel_side();
            kernel_side.allocation_closed(self.process.adapter(), self.handle);
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.close();
        let memory = Arc::clone(&self.memory);
        let mut places = std::mem::take(&mut *lock(&self.places));
        places.push(self.process.handle_slot(self.handle));
        let adapter = self.process.adapter();
        adapter.retire_allocation(self.id, memory, places);
    }
}
