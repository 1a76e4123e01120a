//! System device: the OS's own device, whose commands are paging packets (PR-05).
//!
//! A paging packet fills, copies, moves or initialises memory for the OS, of whatever process. It goes
//! through a kernel-mode queue of a process of the OS's own, which opens what it fills and copies by
//! handles of its own. Preempted it runs again with the same id and before anything else: who moves memory
//! waits for that id.
//!
//! A reset of the adapter takes what was queued: the queue is stopped, and the devices whose memory that was
//! about are in error. The system device is not: it goes on with another queue (TD-08).

use super::adapter::{Adapter, OsError};
use super::allocation::Allocation;
use super::init_context_resource::UninitialisedAllocations;
use super::kernel_queue::KernelQueue;
use super::kernel_queue_error::KernelQueueError;
use super::monitored_object::MonitoredFenceObject;
use super::process::Process;
use super::save_areas::UnfinishedCopy;
use crate::abi::wddm::DeviceExecutionState;
use crate::abi::{LocalHandle, Packet};
use crate::kmd::{ContextKind, OpenAllocation, ProcessId};
use crate::sync::{Arc, Mutex, lock};
use std::ops::Range;

/// See the file's head. On one node.
#[derive(Debug)]
pub struct SystemDevice {
    /// Before what its packets name.
    queue: Mutex<Arc<KernelQueue>>,
    pub(super) unfinished: Mutex<Vec<UnfinishedCopy>>,
    pub(super) uninitialised: UninitialisedAllocations,
    process: Arc<Process>,
    node_ordinal: u32,
}

/// An allocation of any process, as the system device has it open. To be kept until the packets that name
/// it have completed.
#[derive(Debug)]
pub struct PagedAllocation {
    local: LocalHandle,
    owner: ProcessId,
    system: Arc<Process>,
    allocation: Arc<Allocation>,
}

impl SystemDevice {
    /// Opens it for paging on a node.
    ///
    /// # Errors
    /// No such node, an adapter without engines, no memory, the driver's reason.
    pub fn open(adapter: &Arc<Adapter>, node_ordinal: u32) -> Result<Self, OsError> {
        Self::open_for(adapter, node_ordinal, ContextKind::System)
    }

    /// The same, for what its packets are about.
    ///
    /// # Errors
    /// As [`SystemDevice::open`].
    pub(super) fn open_for(
        adapter: &Arc<Adapter>,
        node_ordinal: u32,
        kind: ContextKind,
    ) -> Result<Self, OsError> {
        let process = adapter.open_system_process(kind);
        Ok(Self {
            queue: Mutex::new(Arc::new(KernelQueue::create_for_paging(
                &process,
                node_ordinal,
            )?)),
            unfinished: Mutex::default(),
            uninitialised: UninitialisedAllocations::default(),
            process,
            node_ordinal,
        })
    }

    /// The OS's own.
    pub(super) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Opens an allocation.
    ///
    /// # Errors
    /// No handle left, the driver's reason.
    pub fn open_allocation(
        &self,
        allocation: &Arc<Allocation>,
    ) -> Result<PagedAllocation, OsError> {
        let adapter = self.process.adapter();
        let local = self.process.allocate_handle()?;
        let owner = self.process.kernel_side().id(adapter);
        adapter.ddi().open_allocation(&OpenAllocation {
            global: allocation.id(),
            process: owner,
            local,
        })?;
        let of_device = allocation.process().id();
        adapter
            .paged_allocations
            .opened(self.process.id(), local, of_device);
        Ok(PagedAllocation {
            local,
            owner,
            system: Arc::clone(&self.process),
            allocation: Arc::clone(allocation),
        })
    }

    /// The queue of its packets: another one after the one before was stopped, as by a reset that took what it
    /// had, if it can be made.
    #[must_use]
    pub fn queue(&self) -> Arc<KernelQueue> {
        self.live_queue().unwrap_or_else(|_| self.queue_now())
    }

    /// The same.
    ///
    /// # Errors
    /// Another one cannot be made: the driver's reason.
    pub(super) fn live_queue(&self) -> Result<Arc<KernelQueue>, OsError> {
        let before = self.queue_now();
        if before.error().is_none() {
            return Ok(before);
        }
        let another = KernelQueue::create_for_paging(&self.process, self.node_ordinal)?;
        let mut another = Arc::new(another);
        let mut queue = lock(&self.queue);
        // Another thread may have been quicker: then its queue is the one. What is not is dropped without the
        // lock.
        if Arc::ptr_eq(&queue, &before) {
            std::mem::swap(&mut *queue, &mut another);
        }
        Ok(Arc::clone(&queue))
    }

    /// The queue that it has, stopped or not.
    pub(super) fn queue_now(&self) -> Arc<KernelQueue> {
        Arc::clone(&lock(&self.queue))
    }

    /// The fence that tells how far the packets of the queue are that it has now.
    #[must_use]
    pub fn progress_fence(&self) -> Arc<MonitoredFenceObject> {
        Arc::clone(self.queue_now().progress_fence())
    }

    /// `D3DKMT_DEVICEEXECUTION_STATE`.
    #[must_use]
    pub fn execution_state(&self) -> DeviceExecutionState {
        self.process.execution_state()
    }

    /// Fills a range of bytes, multiples of 8, with a word; gives the value that the progress fence has
    /// then.
    ///
    /// # Errors
    /// The queue was stopped.
    pub fn fill(
        &self,
        target: &PagedAllocation,
        range: Range<u64>,
        value: u64,
    ) -> Result<u64, KernelQueueError> {
        let bytes = range.end - range.start;
        let packet = Packet::fill(target.local, range.start, bytes, value);
        self.queue().queue_commands(&[packet], Vec::new())
    }

    /// Copies so many bytes, a multiple of 8, from a place to another; gives the value that the progress
    /// fence has then.
    ///
    /// # Errors
    /// The queue was stopped.
    pub fn copy(
        &self,
        to: (&PagedAllocation, u64),
        from: (&PagedAllocation, u64),
        bytes: u64,
    ) -> Result<u64, KernelQueueError> {
        let packet = Packet::copy((to.0.local, to.1), (from.0.local, from.1), bytes);
        self.queue().queue_commands(&[packet], Vec::new())
    }
}

impl PagedAllocation {
    /// The handle that paging packets carry.
    #[must_use]
    pub fn handle(&self) -> LocalHandle {
        self.local
    }

    /// What it is.
    #[must_use]
    pub fn allocation(&self) -> &Arc<Allocation> {
        &self.allocation
    }
}

impl Drop for PagedAllocation {
    fn drop(&mut self) {
        let adapter = self.system.adapter();
        adapter
            .paged_allocations
            .closed(self.system.id(), self.local);
        let ddi = adapter.ddi();
        ddi.close_allocation(self.owner, self.local);
        let place = self.system.handle_slot(self.local);
        self.allocation.keep_place(place);
    }
}
