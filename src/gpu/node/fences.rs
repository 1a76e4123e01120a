//! Fences and handles of a node: what its engine knows, and posts of MonitoredValues.

use super::inner::{FencePlaces, Inner, KnownFence};
use super::retirement::{Kept, retire};
use super::{Node, NodeError};
use crate::abi::{FenceId, HandleAccess, Home, LocalHandle, NO_CPU_WAITER, ObjectId};
use crate::gpu::handle_table::HandleTable;
use crate::gpu::{GpuVa, MapError};
use crate::shared::Region;
use crate::sync::{Arc, lock};

/// What signals of a fence are compared with.
#[derive(Clone, Copy)]
enum Compared<'a> {
    /// It lies there, and is adopted.
    MonitoredValue((&'a Arc<Region>, u64)),
    /// A MonitoredValue that is 0 for good.
    Zero,
    /// It has none.
    Nothing,
}

impl Node {
    /// Makes a fence known to the engine: to the packets that will name it at these places, and to
    /// adoption at those of the system process, where it has any there.
    ///
    /// # Errors
    /// When its memory cannot be mapped.
    pub fn enter_fence(
        &self,
        id: FenceId,
        current_value: (&Arc<Region>, u64),
        monitored_value: (&Arc<Region>, u64),
        system_process: Option<FencePlaces>,
    ) -> Result<(), NodeError> {
        let compared = Compared::MonitoredValue(monitored_value);
        self.enter(id, current_value, compared, system_process)
    }

    /// The same for a fence whose MonitoredValue is 0 for good: each signal of it raises (XA-03).
    ///
    /// # Errors
    /// When its memory cannot be mapped.
    pub fn enter_armed_fence(
        &self,
        id: FenceId,
        current_value: (&Arc<Region>, u64),
    ) -> Result<(), NodeError> {
        self.enter(id, current_value, Compared::Zero, None)
    }

    /// The same for a fence that has no MonitoredValue: signals of it raise nothing.
    ///
    /// # Errors
    /// When its memory cannot be mapped.
    pub fn enter_silent_fence(
        &self,
        id: FenceId,
        current_value: (&Arc<Region>, u64),
    ) -> Result<(), NodeError> {
        self.enter(id, current_value, Compared::Nothing, None)
    }

    fn enter(
        &self,
        id: FenceId,
        current_value: (&Arc<Region>, u64),
        compared: Compared<'_>,
        system_process: Option<FencePlaces>,
    ) -> Result<(), NodeError> {
        let mut inner = lock(&self.inner);
        let compared = match compared {
            Compared::MonitoredValue((region, _)) if self.sees_late(region) => Compared::Zero,
            compared => compared,
        };
        let current = Self::map_locked(&mut inner, current_value.0)?;
        let (monitored, shadow) = match compared {
            Compared::MonitoredValue((region, offset)) => {
                let mapping = Self::map_locked(&mut inner, region)?;
                (Some((mapping, offset)), NO_CPU_WAITER)
            }
            Compared::Zero => (None, 0),
            Compared::Nothing => (None, NO_CPU_WAITER),
        };
        let mut known = KnownFence {
            id,
            entry: GpuVa(0),
            current_value: (current, current_value.1),
            monitored_value: monitored,
            is_intra_gpu: false,
            is_always_signaled: false,
            keeps_armed: matches!(compared, Compared::Zero),
            doorbell: None,
            system_process,
        };
        let inner = &mut *inner;
        let (current, monitored) = known.adopted_at();
        known.entry = inner
            .fences
            .enter(&**inner.engine, id, current, monitored, shadow)?;
        inner.known.insert(id.slot, known);
        Ok(())
    }

    /// Whether a running engine sees a post before it sees the MonitoredValue that it is about: the mailbox lies where it
    /// sees what the host stores, and the value does not, since other processes share it. It would adopt what stood there
    /// before. So it adopts nothing: each signal of such a fence interrupts, which is allowed (NF-06).
    fn sees_late(&self, monitored_value: &Region) -> bool {
        let is_seen = |region: &Region| region.home() != Home::CachedSystem;
        !self.providers.is_system_memory_seen()
            && is_seen(self.control.region())
            && !is_seen(monitored_value)
    }

    /// The CPU never reads the CurrentValue of this fence: the last look of an engine that parks at it is
    /// the engine's own (NF-13).
    pub fn keep_from_cpu(&self, id: FenceId) {
        if let Some(known) = lock(&self.inner).known.get_mut(&id.slot) {
            known.is_intra_gpu = true;
        }
    }

    /// From now on waits on a fence pass and signals of it leave its storage alone, by the handles that are
    /// open and by those that will be (NF-19). Waits for nothing: a slice in flight is asked to end, and may
    /// go on by what it has read of a handle until it does. Queues that stand at a wait are not told of it
    /// here ([`Node::signalled`]).
    pub fn always_signal(&self, id: FenceId) {
        let inner = &mut *lock(&self.inner);
        let known = inner.known.get_mut(&id.slot);
        let Some(known) = known.filter(|known| known.id == id) else {
            return;
        };
        known.is_always_signaled = true;
        for table in inner.handles.values_mut() {
            table.always_signal(ObjectId::Fence(id));
        }
        if inner.serviced < inner.submitted {
            self.request_end(inner);
        }
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
        handle: LocalHandle,
        access: HandleAccess,
        fence: FenceId,
    ) -> Result<(), NodeError> {
        let mut inner = lock(&self.inner);
        let known = inner.known.get(&fence.slot).cloned();
        let Some(known) = known else {
            panic!("{fence:?} is opened before it is created")
        };
        let engine = Arc::clone(&inner.engine);
        let table = Self::handle_table(&mut inner, process)?;
        let mut access = access;
        if known.is_always_signaled {
            access = access.with(HandleAccess::ALWAYS_SIGNALED);
        }
        if known.keeps_armed {
            access = access.with(HandleAccess::KEEPS_ARMED);
        }
        if let Some(doorbell) = known.doorbell {
            access = access.with(doorbell.access());
        }
        table.open(
            &**engine,
            handle,
            access,
            ObjectId::Fence(fence),
            (known.current_value_va(), known.entry.0),
        )?;
        Ok(())
    }

    /// Closes a handle: packets fetched from now on that carry it fault.
    pub fn close_handle(&self, process: u64, handle: LocalHandle) {
        let mut inner = lock(&self.inner);
        let table = inner.handles.get_mut(&process);
        let named = table.and_then(|table| table.close(handle));
        drop(inner);
        // A queue may stand at a wait for it: the next slice finds the handle closed.
        self.signalled(|fence| named == Some(ObjectId::Fence(fence)));
    }

    /// `true` if no slice refers to the entry of a handle that was closed, so that its place may be used
    /// again; else a report says so later.
    #[must_use]
    pub fn retire_handle(&self, process: u64, handle: LocalHandle) -> bool {
        retire(lock(&self.inner), Kept::handle(process, handle))
    }

    /// Takes a process out, whose fences and queues were taken out: its handle table.
    pub fn remove_process(&self, process: u64) {
        let mut inner = lock(&self.inner);
        if let Some(handles) = inner.handles.remove(&process) {
            retire(inner, Kept::process(handles));
        }
    }

    pub(super) fn handle_table(
        inner: &mut Inner,
        process: u64,
    ) -> Result<&mut HandleTable, MapError> {
        use std::collections::hash_map::Entry;
        match inner.handles.entry(process) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(HandleTable::new(&**inner.engine)?)),
        }
    }

    /// Where the engine finds the handles of a process.
    ///
    /// # Errors
    /// When the table cannot be made.
    pub fn handle_directory(&self, process: u64) -> Result<GpuVa, NodeError> {
        let inner = &mut lock(&self.inner);
        Ok(Self::handle_table(inner, process)?.directory_va())
    }

    /// Runs `store`, which stores these MonitoredValue words, and posts the fences, with the interrupt's
    /// service kept out (NF-08). Returns at once, whatever the engine does.
    pub fn post_monitored_values(&self, fences: &[(FenceId, u64)], store: impl FnOnce()) {
        let mut guard = lock(&self.inner);
        let inner = &mut *guard;
        store();
        // Its slot may be another fence's by now; and where it is fixed what signals are compared with, it stays that.
        let known = &inner.known;
        let adopts = |fence: &FenceId| {
            let known = known.get(&fence.slot);
            known.is_some_and(|known| known.id == *fence && known.monitored_value.is_some())
        };
        let adopted = fences.iter().filter(|(fence, _)| adopts(fence));
        if inner.serviced == inner.submitted {
            // The values that were stored, not read back: the words may lie in a GPU's memory.
            for (fence, value) in adopted {
                inner.fences.adopt(fence.slot, *value);
            }
        } else {
            let slots = adopted.map(|(fence, _)| fence.slot);
            inner.mailbox.post(slots);
        }
    }

    /// The shadows are the host's while no slice is in flight.
    pub(super) fn adopt_posts(inner: &mut Inner) {
        for slot in inner.mailbox.take_all() {
            Self::adopt(inner, slot);
        }
    }

    fn adopt(inner: &Inner, slot: u32) {
        if let Some(known) = inner.known.get(&slot)
            && let Some((mapping, offset)) = &known.monitored_value
        {
            let monitored_value = mapping.host().word(*offset).observe();
            inner.fences.adopt(slot, monitored_value);
        }
    }
}
