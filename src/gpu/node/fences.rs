//! Fences and handles of a node: what its engine knows, and posts of MonitoredValues.

use super::inner::{Inner, KnownFence};
use super::retirement::Kept;
use super::{Node, NodeError};
use crate::abi::{FenceHandle, FenceId, HandleAccess};
use crate::gpu::handle_table::HandleTable;
use crate::gpu::{GpuVa, MapError};
use crate::shared::Region;
use crate::sync::{Arc, MutexGuard, lock};

impl Node {
    /// Makes a fence known to the engine.
    ///
    /// # Errors
    /// When its memory cannot be mapped.
    pub fn enter_fence(
        &self,
        id: FenceId,
        current_value: (&Arc<Region>, u64),
        monitored_value: (&Arc<Region>, u64),
    ) -> Result<(), NodeError> {
        let mut inner = lock(&self.inner);
        let current = self.map_locked(&mut inner, current_value.0)?;
        let current_va = current.va.offset(current_value.1);
        let monitored = self.map_locked(&mut inner, monitored_value.0)?;
        let monitored_va = monitored.va.offset(monitored_value.1);
        let entry = inner
            .fences
            .enter(self.engine.as_ref(), id, current_va, monitored_va)?;
        let known = KnownFence {
            entry,
            current_value: (current, current_value.1),
            monitored_value: (monitored, monitored_value.1),
        };
        inner.known.insert(id.slot, known);
        Ok(())
    }

    /// The engine's addresses of a fence's CurrentValue and entry.
    #[must_use]
    pub fn fence_addresses(&self, id: FenceId) -> Option<(GpuVa, GpuVa)> {
        let inner = lock(&self.inner);
        let known = inner.known.get(&id.slot)?;
        Some((known.current_value_va(), known.entry))
    }

    /// Takes a fence out. `true` if no slice refers to it any more, so that its storage and its
    /// slot may be used again; else a report says so later.
    #[must_use]
    pub fn remove_fence(&self, id: FenceId) -> bool {
        let mut inner = lock(&self.inner);
        inner.fences.remove(id);
        let known = inner.known.remove(&id.slot);
        retire(inner, Kept::fence(id, known))
    }

    /// Opens a handle of a process on a fence that the engine knows.
    ///
    /// # Errors
    /// When the table cannot grow.
    ///
    /// # Panics
    /// If the fence was not entered: a bug of ours.
    pub fn open_handle(
        &self,
        process: u64,
        handle: FenceHandle,
        access: HandleAccess,
        fence: FenceId,
    ) -> Result<(), NodeError> {
        let mut inner = lock(&self.inner);
        let known = inner.known.get(&fence.slot).cloned();
        let Some(known) = known else {
            panic!("{fence:?} is opened before it is created")
        };
        let table = self.handle_table(&mut inner, process)?;
        table.open(
            self.engine.as_ref(),
            handle,
            access,
            fence,
            (known.current_value_va(), known.entry),
        )?;
        Ok(())
    }

    /// Closes a handle: packets fetched from now on that carry it fault.
    pub fn close_handle(&self, process: u64, handle: FenceHandle) {
        let mut inner = lock(&self.inner);
        let table = inner.handles.get_mut(&process);
        let named = table.and_then(|table| table.close(handle));
        drop(inner);
        // A queue may stand at a wait for it: the next slice finds the handle closed.
        self.signalled(named.as_slice());
    }

    /// Takes a process out, whose fences and queues were taken out: its handle table.
    pub fn remove_process(&self, process: u64) {
        let mut inner = lock(&self.inner);
        if let Some(handles) = inner.handles.remove(&process) {
            retire(inner, Kept::process(handles));
        }
    }

    fn handle_table<'a>(
        &self,
        inner: &'a mut Inner,
        process: u64,
    ) -> Result<&'a mut HandleTable, MapError> {
        use std::collections::hash_map::Entry;
        match inner.handles.entry(process) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(HandleTable::new(self.engine.as_ref())?)),
        }
    }

    /// Where the engine finds the handles of a process.
    ///
    /// # Errors
    /// When the table cannot be made.
    pub fn handle_directory(&self, process: u64) -> Result<GpuVa, NodeError> {
        Ok(self
            .handle_table(&mut lock(&self.inner), process)?
            .directory_va())
    }

    /// Runs `store`, which stores MonitoredValue words, and posts the fences, with the interrupt's
    /// service kept out (NF-08). Returns at once, whatever the engine does.
    pub fn post_monitored_values(&self, fences: &[FenceId], store: impl FnOnce()) {
        let mut guard = lock(&self.inner);
        let inner = &mut *guard;
        store();
        if inner.serviced == inner.submitted {
            for fence in fences {
                Self::adopt(inner, fence.slot);
            }
        } else {
            inner.mailbox.post(fences.iter().map(|fence| fence.slot));
        }
    }

    /// The shadows are the host's while no slice is in flight.
    pub(super) fn adopt_posts(inner: &mut Inner) {
        for slot in inner.mailbox.take_all() {
            Self::adopt(inner, slot);
        }
    }

    fn adopt(inner: &Inner, slot: u32) {
        if let Some(known) = inner.known.get(&slot) {
            let (mapping, offset) = &known.monitored_value;
            inner.fences.adopt(slot, mapping.host.word(*offset));
        }
    }
}

/// Keeps it for the slices in flight; `true` if there are none, and it was dropped.
fn retire(mut inner: MutexGuard<'_, Inner>, kept: Kept) -> bool {
    let in_flight = inner.serviced < inner.submitted;
    if in_flight {
        let last = inner.submitted;
        inner.retirement.keep(last, kept);
    } else {
        drop(inner);
        drop(kept);
    }
    !in_flight
}
