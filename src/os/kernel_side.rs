//! Kernel side of a process: the handle table by which engines find what the OS's own queues for it
//! name.
//!
//! What a kernel-mode queue may name and a user-mode queue may not, a monitored fence, has its entry
//! here alone; the handles are those of the process. Allocations are in both tables, in this one from
//! the process's first kernel-mode queue on.

use super::adapter::{Adapter, OsError};
use crate::abi::{AllocationId, LocalHandle};
use crate::kmd::{OpenAllocation, ProcessId};
use crate::sync::{Mutex, lock};
use std::collections::HashMap;

#[derive(Debug, Default)]
struct State {
    id: Option<ProcessId>,
    /// Allocations are opened here as well.
    has_queues: bool,
    allocations: HashMap<LocalHandle, AllocationId>,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct KernelSide(Mutex<State>);

impl State {
    fn id(&mut self, adapter: &Adapter) -> ProcessId {
        *self
            .id
            .get_or_insert_with(|| ProcessId(adapter.next_process()))
    }

    fn open(
        &mut self,
        adapter: &Adapter,
        local: LocalHandle,
        global: AllocationId,
    ) -> Result<(), OsError> {
        let process = self.id(adapter);
        Ok(adapter.ddi().open_allocation(&OpenAllocation {
            global,
            process,
            local,
        })?)
    }
}

impl KernelSide {
    /// The process that the table is of, as the driver knows it.
    pub(super) fn id(&self, adapter: &Adapter) -> ProcessId {
        lock(&self.0).id(adapter)
    }

    /// The same where there is one.
    pub(super) fn id_if_used(&self) -> Option<ProcessId> {
        lock(&self.0).id
    }

    /// The process gets a kernel-mode queue: what it has is opened here.
    pub(super) fn begin_queues(&self, adapter: &Adapter) -> Result<ProcessId, OsError> {
        let mut state = lock(&self.0);
        if !state.has_queues {
            for (handle, id) in state.allocations.clone() {
                state.open(adapter, handle, id)?;
            }
            state.has_queues = true;
        }
        Ok(state.id(adapter))
    }

    /// The process has a new allocation.
    pub(super) fn allocation_opened(
        &self,
        adapter: &Adapter,
        handle: LocalHandle,
        id: AllocationId,
    ) -> Result<(), OsError> {
        let mut state = lock(&self.0);
        state.allocations.insert(handle, id);
        if state.has_queues {
            state.open(adapter, handle, id)?;
        }
        Ok(())
    }

    /// The handle is closed.
    pub(super) fn allocation_closed(&self, adapter: &Adapter, handle: LocalHandle) {
        let mut state = lock(&self.0);
        state.allocations.remove(&handle);
        if let (true, Some(process)) = (state.has_queues, state.id) {
            adapter.ddi().close_allocation(process, handle);
        }
    }
}
