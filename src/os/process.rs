//! Process: handles, and what they keep alive.
//!
//! Dropping the last reference to a fence object closes its handle and destroys the fence. Storage
//! and handle are used again when no engine refers to it any more, which the driver tells.

use super::adapter::{Adapter, OsError};
use super::fence_storage::FencePool;
use super::native_fence::{NativeFence, SignalError, Signaller};
use super::queue_storage::QueuePools;
use super::wait_cell::WaitError;
use crate::abi::{FenceHandle, HandleAccess};
use crate::kmd::{CreateNativeFence, OpenNativeFence, Place, ProcessId};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock};
use std::collections::VecDeque;

/// Slots that are left free before one is used again: a generation of 12 bits comes round after
/// some four million handles, and not after 4,095.
const REST: usize = 1024;

#[derive(Debug, Default)]
struct Handles {
    /// Generation last given out, by slot.
    generations: Vec<u32>,
    /// Oldest first, so that a generation comes round as late as it can.
    free: VecDeque<u32>,
}

impl Handles {
    fn allocate(&mut self) -> Option<FenceHandle> {
        let all_used = self.generations.len() >= FenceHandle::SLOTS as usize;
        let slot = if all_used || self.free.len() >= REST {
            self.free.pop_front()?
        } else {
            self.generations.push(0);
            self.generations.len() as u32 - 1
        };
        let generation = &mut self.generations[slot as usize];
        *generation = FenceHandle::next_generation(*generation);
        FenceHandle::new(slot, *generation).ok()
    }
}

/// A process that uses an adapter.
#[derive(Debug)]
pub struct Process {
    id: ProcessId,
    adapter: Arc<Adapter>,
    pool: Arc<FencePool>,
    queue_pools: QueuePools,
    handles: Arc<Mutex<Handles>>,
}

/// A slot of a process's handle table, free again on drop.
#[derive(Debug)]
pub(super) struct HandleSlot {
    handles: Arc<Mutex<Handles>>,
    slot: u32,
}

impl Drop for HandleSlot {
    fn drop(&mut self) {
        lock(&self.handles).free.push_back(self.slot);
    }
}

/// A native fence and the handle by which its process knows it.
#[derive(Debug)]
pub struct FenceObject {
    handle: FenceHandle,
    access: HandleAccess,
    fence: Arc<NativeFence>,
    closed: AtomicBool,
    process: Arc<Process>,
}

impl Process {
    pub(super) fn new(id: ProcessId, adapter: Arc<Adapter>) -> Arc<Self> {
        Arc::new(Self {
            id,
            adapter,
            pool: Arc::new(FencePool::default()),
            queue_pools: QueuePools::default(),
            handles: Arc::default(),
        })
    }

    /// The process, for the driver.
    #[must_use]
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// The adapter.
    #[must_use]
    pub fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    /// Memory of the process's hardware queues.
    pub(super) fn queue_pools(&self) -> &QueuePools {
        &self.queue_pools
    }

    /// `D3DKMTCreateNativeFence`, type DEFAULT, in system memory.
    ///
    /// # Errors
    /// No memory, no handle left, or the driver's reason.
    pub fn create_native_fence(self: &Arc<Self>, initial: u64) -> Result<FenceObject, OsError> {
        let signaller = Signaller::Process(self.id);
        self.create_with_access(initial, HandleAccess::FULL, signaller)
    }

    /// The progress fence of a hardware queue. Its user may wait and not signal: the value says
    /// which packets of the ring may be overwritten, so only PROGRESS packets of the queue, which
    /// the engine checks, store it.
    pub(super) fn create_progress_fence(self: &Arc<Self>) -> Result<FenceObject, OsError> {
        self.create_with_access(0, HandleAccess::NO_SIGNAL, Signaller::Queue)
    }

    fn create_with_access(
        self: &Arc<Self>,
        initial: u64,
        access: HandleAccess,
        signaller: Signaller,
    ) -> Result<FenceObject, OsError> {
        let storage = self.pool.allocate()?;
        let handle = lock(&self.handles)
            .allocate()
            .ok_or(OsError::HandlesUsedUp)?;
        let fence = self.adapter.register_fence(signaller, storage, initial);
        let object = FenceObject {
            handle,
            access,
            fence,
            closed: AtomicBool::new(false),
            process: Arc::clone(self),
        };
        let (current, monitored) = (
            object.fence.current_value_place(),
            object.fence.monitored_value_place(),
        );
        let ddi = self.adapter.ddi();
        ddi.create_native_fence(&CreateNativeFence {
            global: object.fence.id(),
            current_value: Place {
                region: current.0,
                offset: current.1,
            },
            monitored_value: Place {
                region: monitored.0,
                offset: monitored.1,
            },
        })?;
        ddi.open_native_fence(&OpenNativeFence {
            global: object.fence.id(),
            process: self.id,
            local: handle,
            access,
        })?;
        Ok(object)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Every fence and queue held a reference: none is left.
        self.adapter.ddi().destroy_process(self.id);
    }
}

impl FenceObject {
    /// The handle that the process's packets carry.
    #[must_use]
    pub fn handle(&self) -> FenceHandle {
        self.handle
    }

    /// The global object.
    #[must_use]
    pub fn fence(&self) -> &Arc<NativeFence> {
        &self.fence
    }

    /// The process whose handle it is.
    #[must_use]
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Whether the handle was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether a CPU signal may be made by this handle.
    ///
    /// # Errors
    /// [`SignalError::Closed`]; [`SignalError::AccessDenied`] for one without the right (NF-23).
    pub fn check_signal(&self) -> Result<(), SignalError> {
        if self.is_closed() {
            Err(SignalError::Closed)
        } else if self.access.has(HandleAccess::NO_SIGNAL) {
            Err(SignalError::AccessDenied)
        } else {
            Ok(())
        }
    }

    /// Closes the handle: CPU waits end with an error, packets that carry it fault. The storage
    /// goes when the object is dropped.
    pub fn close(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.fence.fail(WaitError::Closed);
            self.process
                .adapter
                .ddi()
                .close_native_fence(self.process.id, self.handle);
        }
    }
}

impl Drop for FenceObject {
    fn drop(&mut self) {
        self.close();
        let handle = HandleSlot {
            handles: Arc::clone(&self.process.handles),
            slot: self.handle.slot(),
        };
        self.process.adapter.retire_fence(&self.fence, handle);
    }
}
