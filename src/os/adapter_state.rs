//! Adapter state: the driver, and the fences and queues that its interrupts name.

use super::fence_storage::FenceStorage;
use super::interrupt::InterruptCounters;
use super::native_fence::{NativeFence, Signaller};
use super::parked_engines::ParkedEngines;
use super::process::HandleSlot;
use super::queue_record::QueueRecord;
use crate::abi::FenceId;
use crate::kmd::{Ddi, HwQueueHandle, Retirement};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};
use std::collections::{BTreeSet, HashMap};
use std::sync::Weak;

#[derive(Debug, Default)]
struct FenceSlots {
    /// Generation last given out, and the fence, by slot.
    slots: Vec<(u32, Weak<NativeFence>)>,
    free: Vec<u32>,
}

/// See the module's page. Reached through [`Adapter`](super::Adapter).
#[derive(Debug)]
pub struct AdapterState {
    ddi: Arc<dyn Ddi>,
    fences: Mutex<FenceSlots>,
    /// Destroyed, and slices in flight may still refer to them.
    retiring: Mutex<HashMap<FenceId, (Arc<NativeFence>, HandleSlot)>>,
    queues: Mutex<HashMap<HwQueueHandle, Weak<QueueRecord>>>,
    processes: AtomicU64,
    /// Nodes whose engines execute no more.
    pub(super) lost_nodes: Mutex<BTreeSet<u32>>,
    pub(super) parked_engines: ParkedEngines,
    pub(super) counters: InterruptCounters,
}

impl AdapterState {
    pub(super) fn new(ddi: Arc<dyn Ddi>) -> Self {
        Self {
            ddi,
            fences: Mutex::new(FenceSlots::default()),
            retiring: Mutex::new(HashMap::new()),
            queues: Mutex::new(HashMap::new()),
            processes: AtomicU64::new(0),
            lost_nodes: Mutex::new(BTreeSet::new()),
            parked_engines: ParkedEngines::default(),
            counters: InterruptCounters::default(),
        }
    }

    pub(super) fn next_process(&self) -> u64 {
        self.processes.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The driver.
    #[must_use]
    pub fn ddi(&self) -> &Arc<dyn Ddi> {
        &self.ddi
    }

    /// Interrupts so far, by kind.
    #[must_use]
    pub fn interrupts(&self) -> &InterruptCounters {
        &self.counters
    }

    pub(super) fn register_fence(
        &self,
        signaller: Signaller,
        storage: FenceStorage,
        initial: u64,
    ) -> Arc<NativeFence> {
        let mut fences = lock(&self.fences);
        let slot = fences.free.pop().unwrap_or_else(|| {
            fences.slots.push((0, Weak::new()));
            fences.slots.len() as u32 - 1
        });
        let entry = &mut fences.slots[slot as usize];
        entry.0 = entry.0.wrapping_add(1).max(1);
        let id = FenceId {
            slot,
            generation: entry.0,
        };
        let fence = Arc::new(NativeFence::new(
            id,
            signaller,
            storage,
            Arc::clone(&self.ddi),
            initial,
        ));
        entry.1 = Arc::downgrade(&fence);
        fence
    }

    /// Destroys a fence. Its storage, its slot and its handle are used again when no engine refers
    /// to it any more.
    pub(super) fn retire_fence(&self, fence: &Arc<NativeFence>, handle: HandleSlot) {
        let id = fence.id();
        lock(&self.fences).slots[id.slot as usize].1 = Weak::new();
        // Before the call: the driver may tell of the end on another thread.
        let retiring = (Arc::clone(fence), handle);
        lock(&self.retiring).insert(id, retiring);
        if self.ddi.destroy_native_fence(id) == Retirement::Done {
            self.fence_retired(id);
        }
    }

    /// No engine refers to a destroyed fence any more.
    pub(super) fn fence_retired(&self, id: FenceId) {
        let retired = lock(&self.retiring).remove(&id);
        // A fence that nobody destroyed is a word of the driver's that cannot be.
        if retired.is_some() {
            drop(retired);
            lock(&self.fences).free.push(id.slot);
        }
    }

    /// The fence of an id that an interrupt named, if that generation is still there.
    pub(super) fn fence(&self, id: FenceId) -> Option<Arc<NativeFence>> {
        let fence = self.fence_in_slot(id.slot)?;
        (fence.id() == id).then_some(fence)
    }

    pub(super) fn fence_in_slot(&self, slot: u32) -> Option<Arc<NativeFence>> {
        lock(&self.fences).slots.get(slot as usize)?.1.upgrade()
    }

    pub(super) fn all_fences(&self) -> Vec<Arc<NativeFence>> {
        lock(&self.fences)
            .slots
            .iter()
            .filter_map(|(_, fence)| fence.upgrade())
            .collect()
    }

    pub(super) fn register_queue(&self, queue: &Arc<QueueRecord>) {
        lock(&self.queues).insert(queue.handle(), Arc::downgrade(queue));
    }

    pub(super) fn forget_queue(&self, handle: HwQueueHandle) {
        lock(&self.queues).remove(&handle);
    }

    pub(super) fn queue(&self, handle: HwQueueHandle) -> Option<Arc<QueueRecord>> {
        lock(&self.queues).get(&handle)?.upgrade()
    }

    pub(super) fn all_queues(&self) -> Vec<Arc<QueueRecord>> {
        lock(&self.queues)
            .values()
            .filter_map(Weak::upgrade)
            .collect()
    }
}
