//! Explored handles: the table of one process's handles, as loom explores it.
//!
//! How the OS writes an entry and how a lane resolves the handle of the packet at hand are the real ones; the rest of the
//! engine is left out.

use super::clock::Ticks;
use super::cut::{CutPlan, Passes};
use super::explored_engine::Space;
use super::explored_part::Part;
use super::lane::{Globals, Lane, Shared};
use super::memory::ModelMemory;
use super::violation::Checked;
use crate::abi::{FaultCode, HandleAccess, LocalHandle, ObjectId, PAGE_BYTES, Packet, WordGroup};
use crate::gpu::handle_table::HandleTable;
use crate::gpu::{GpuVa, MapError, ModelOptions, SliceWork};
use crate::shared::ExploresMore;
use crate::sync::Arc;

/// Where the numbered fences have their values, and their entries.
const PLACES: [u64; 2] = [0, PAGE_BYTES];

/// See the file's head: the OS's half.
#[derive(Debug)]
pub struct ExploredHandles {
    space: Space,
    table: HandleTable,
    fences: Arc<Part>,
}

/// The engine's half.
#[derive(Debug)]
pub struct ExploredResolving {
    memory: Arc<ModelMemory>,
    options: ModelOptions,
    directory_va: u64,
    fences: Arc<Part>,
}

/// What a handle was found to name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// This fence, by the numbers of both its places.
    Fence(u64, u64),
    /// Nothing, for this reason.
    Fault(FaultCode),
}

impl ExploredHandles {
    /// A process that has opened nothing.
    ///
    /// # Errors
    /// Never.
    pub fn new() -> Result<(Self, ExploredResolving), MapError> {
        let _more = ExploresMore::of(&[WordGroup::HandleTable]);
        let space = Space::new();
        let table = HandleTable::new(&space)?;
        let memory = Arc::clone(&space.memory);
        let fences = Arc::new(Part::of(&memory, WordGroup::Allocation)?);
        let resolving = ExploredResolving {
            memory,
            options: ModelOptions::default(),
            directory_va: table.directory_va().0,
            fences: Arc::clone(&fences),
        };
        let handles = Self {
            space,
            table,
            fences,
        };
        Ok((handles, resolving))
    }

    /// Opens a handle on a fence with this number.
    ///
    /// # Errors
    /// Never.
    pub fn open(&mut self, handle: LocalHandle, fence: u64) -> Result<(), MapError> {
        let _more = ExploresMore::of(&[WordGroup::HandleTable]);
        let object = ObjectId::Handle(0, handle);
        let [va, detail] = PLACES.map(|place| self.fences.va() + place + fence * 8);
        let places = (GpuVa(va), detail);
        self.table
            .open(&self.space, handle, HandleAccess::FULL, object, places)
    }

    /// From now on the fence of this handle is always signaled.
    pub fn always_signal(&mut self, handle: LocalHandle) {
        self.table.always_signal(ObjectId::Handle(0, handle));
    }

    /// Closes it.
    pub fn close(&mut self, handle: LocalHandle) {
        self.table.close(handle);
    }
}

impl ExploredResolving {
    /// A lane resolves the handle of a signal at the head of its queue.
    ///
    /// # Errors
    /// It touched what is nothing's.
    pub fn resolve(&self, handle: LocalHandle) -> Checked<Resolution> {
        let (passes, work) = (Passes::new(CutPlan::Never.passes(0)), SliceWork::default());
        let (memory, clock) = (&*self.memory, &*self.options.clock);
        let g = Globals::new(memory, clock, passes, 0, &self.options, work, (0, 0));
        let s = Shared::new();
        let mut lane = Lane::without_queue(&g, &s, (0, 1), Ticks(0), 0);
        lane.q.handle_directory_va = self.directory_va;
        lane.p.control = Packet::signal(handle, 1, 0).control;
        lane.p.fetched = true;
        lane.resolve_head()?;
        let number = |va: u64, place| va.wrapping_sub(self.fences.va() + place) / 8;
        Ok(match lane.p.handle_fault {
            Some(fault) => Resolution::Fault(fault),
            None => Resolution::Fence(
                number(lane.c_signal.cv, PLACES[0]),
                number(lane.c_signal.entry, PLACES[1]),
            ),
        })
    }
}
