//! InitContextResource: the paging packets that write the first state of contexts' memory, which is zero, before
//! a command of a queue that is saved there comes to the engine (PR-14).
//!
//! They go through a queue of the OS's own on the context's node, whose system device every process keeps that
//! has had a context there; so a node that nobody uses has none. Nobody waits for them: the OS tells the driver
//! when one has completed, and until then the driver keeps the queues from the GPU.
//!
//! A packet that is preempted, or that a reset of its engine finds there, is executed all the same, later. One that
//! a reset of the whole adapter takes is queued again behind that: nothing that a program had is lost by it, and
//! its device goes on (TD-20). Only where that packet itself was aborted, by a second reset that found it under
//! way, is its owner in error (TD-08). Open: where the driver refuses one, it is queued again with the next.

use super::adapter::{Adapter, OsError};
use super::adapter_state::AdapterState;
use super::context_allocations::NewAllocation;
use super::hw_context::HwContext;
use super::kernel_queue::KernelQueue;
use super::listener;
use super::save_areas::PagedPlace;
use super::software_queue::Then;
use super::system_device::SystemDevice;
use crate::abi::Packet;
use crate::kmd::{ContextAllocationId, ContextKind, EngineLost, NodeError};
use crate::sync::{Arc, Mutex, lock};
use std::collections::HashMap;
use std::sync::Weak;

/// The system device of each node that a process keeps one of.
#[derive(Debug, Default)]
pub(super) struct ContextPaging(Mutex<HashMap<u32, Weak<SystemDevice>>>);

impl ContextPaging {
    /// That of a node, opened where there is none.
    ///
    /// # Errors
    /// As [`SystemDevice::open`].
    pub(super) fn of(
        &self,
        adapter: &Arc<Adapter>,
        node_ordinal: u32,
    ) -> Result<Arc<SystemDevice>, OsError> {
        if let Some(known) = lock(&self.0).get(&node_ordinal).and_then(Weak::upgrade) {
            return Ok(known);
        }
        // Without the lock, which a waker may want that the driver has told meanwhile.
        let kind = ContextKind::Initialisation;
        let opened = Arc::new(SystemDevice::open_for(adapter, node_ordinal, kind)?);
        let mut known = lock(&self.0);
        let of_node = known.entry(node_ordinal).or_default();
        // Another thread may have been quicker; then this one goes when the lock is let go.
        let device = of_node.upgrade().unwrap_or_else(|| Arc::clone(&opened));
        *of_node = Arc::downgrade(&device);
        drop(known);
        Ok(device)
    }

    fn all(&self) -> Vec<Arc<SystemDevice>> {
        lock(&self.0).values().filter_map(Weak::upgrade).collect()
    }
}

/// An allocation that is to be initialised.
#[derive(Debug)]
struct Uninitialised {
    id: ContextAllocationId,
    bytes: u64,
    /// What the packet names.
    place: PagedPlace,
    /// Where the packet was queued.
    on: Weak<KernelQueue>,
}

/// Those of a system device.
#[derive(Debug, Default)]
pub(super) struct UninitialisedAllocations(Mutex<Vec<Uninitialised>>);

impl UninitialisedAllocations {
    /// Takes some of them, to be dropped without the lock.
    fn take(&self, is_it: impl Fn(&Uninitialised) -> bool) -> Vec<Uninitialised> {
        let mut all = lock(&self.0);
        all.extract_if(.., |of| is_it(of)).collect()
    }
}

/// The packet of an allocation has completed.
#[derive(Debug)]
struct Initialised {
    id: ContextAllocationId,
    device: Weak<SystemDevice>,
    on: Weak<KernelQueue>,
}

impl Then for Initialised {
    fn completed(self: Box<Self>) {
        let Some(device) = self.device.upgrade() else {
            return;
        };
        // Not where it was queued again meanwhile: then another packet of it is under way.
        let done = device
            .uninitialised
            .take(|of| of.id == self.id && of.on.ptr_eq(&self.on));
        if !done.is_empty() {
            let ddi = device.process().adapter().ddi();
            ddi.context_allocation_initialised(self.id);
        }
        // It is closed.
        drop(done);
    }
}

impl SystemDevice {
    /// Queues the packet for an allocation of a context.
    ///
    /// # Errors
    /// No handle left, the driver's reason; a lost engine.
    pub(super) fn init_context_resource(
        self: &Arc<Self>,
        new: NewAllocation,
        context: &HwContext,
    ) -> Result<(), OsError> {
        let owner = context.process().id();
        let NewAllocation { id, place, bytes } = new;
        let place = PagedPlace::open(self.process(), &place, bytes, owner)?;
        lock(&self.uninitialised.0).push(Uninitialised {
            id,
            bytes,
            place,
            on: Weak::new(),
        });
        let queued = self.queue_uninitialised();
        if queued
            .as_ref()
            .is_err_and(|error| !error.is_of_lost_engine())
        {
            // Its context asks for it again.
            let _closed = self.uninitialised.take(|of| of.id == id);
        }
        queued
    }

    /// Queues the packets that are on no queue that goes on: new ones, and those that were lost with theirs.
    ///
    /// # Errors
    /// There is no such queue: why. They are queued with the next ones.
    fn queue_uninitialised(self: &Arc<Self>) -> Result<(), OsError> {
        let queue = self.live_queue()?;
        let to_queue: Vec<_> = {
            let mut all = lock(&self.uninitialised.0);
            let goes_on = |on: &Weak<KernelQueue>| {
                let on = on.upgrade();
                on.is_some_and(|on| on.error().is_none())
            };
            let others = all.iter_mut().filter(|of| !goes_on(&of.on));
            let note = |of: &mut Uninitialised| {
                of.on = Arc::downgrade(&queue);
                (of.id, Packet::fill(of.place.handle(), 0, of.bytes, 0))
            };
            others.map(note).collect()
        };
        // Without the lock: one may complete within the call.
        for (id, packet) in to_queue {
            let then = Initialised {
                id,
                device: Arc::downgrade(self),
                on: Arc::downgrade(&queue),
            };
            if queue.queue_then(packet, Box::new(then)).is_err() {
                // By a reset of the adapter, after which it is queued again; or its engine is lost for good.
                return Err(OsError::Driver(NodeError::Lost(EngineLost).into()));
            }
        }
        Ok(())
    }
}

impl AdapterState {
    /// The adapter was reset, and runs again: packets that were lost are queued again.
    pub(super) fn initialise_again(&self) {
        // The watch is not to wait for what it recovers: queues go as where listeners are told.
        listener::as_told(|| {
            for device in self.context_paging.all() {
                // Where there is no other queue they come with the next ones.
                let _queued = device.queue_uninitialised();
            }
        });
    }
}
