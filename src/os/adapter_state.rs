//! Adapter state: the driver, and the fences and queues that its interrupts name.

use super::adapter::OsError;
use super::adapter_life::AdapterLife;
use super::bring_up::BringUp;
use super::context_allocations::ContextAllocations;
use super::cross_doorbells::AdapterDoorbells;
use super::device_state::DeviceStates;
use super::fence_segments::AnsweredSegments;
use super::fence_slots::{FenceSlots, Named};
use super::fence_storage::FenceStorage;
use super::hw_context::{ContextRecord, HwContexts};
use super::init_context_resource::ContextPaging;
use super::interrupt::InterruptCounters;
use super::kernel_queues::KernelQueues;
use super::losses::Losses;
use super::monitored_fence::MonitoredFence;
use super::monitored_fences::MonitoredFences;
use super::native_fence::{NativeFence, Terms};
use super::paged_allocations::PagedAllocations;
use super::parked_engines::ParkedEngines;
use super::passed_fences::PassedFences;
use super::process::HandleSlot;
use super::queue_record::QueueRecord;
use super::record::Record;
use super::recording::{RecordingBook, TracedFence};
use super::signal_log::AttributionBook;
use super::system_process::SystemProcess;
use super::tdr::{Tdr, TdrPolicy};
use super::tracing::TracingSwitch;
use super::verdict::Verdicts;
use super::wait_cell::WaitError;
use crate::abi::wddm::Wddm31Caps;
use crate::abi::{AllocationId, FenceId, KernelId, LocalHandle, ObjectId};
use crate::kmd::{
    ContextHandle, Ddi, DoorbellId, HwQueueHandle, Inside, LevelChecked, NativeFenceCaps,
    ProcessId, Retirement, VidSchCaps,
};
use crate::shared::PoolPlace;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{OnceLock, Weak};
use std::time::Instant;

/// The storage of a destroyed object, or the place of a closed handle, which is kept and not read.
type Kept = Box<dyn Any + Send + Sync>;

/// See the module's page. Reached through [`Adapter`](super::Adapter).
#[derive(Debug)]
pub struct AdapterState {
    ddi: Arc<dyn Ddi>,
    /// Which threads are in it.
    pub(super) inside: Arc<Inside>,
    pub(super) life: Arc<AdapterLife>,
    fences: Mutex<FenceSlots>,
    pub(super) monitored: MonitoredFences,
    pub(super) kernel_queues: KernelQueues,
    pub(super) contexts: HwContexts,
    pub(super) context_allocations: ContextAllocations,
    pub(super) context_paging: ContextPaging,
    /// Destroyed or closed, and slices in flight may still refer to them.
    retiring: Mutex<HashMap<ObjectId, Kept>>,
    allocations: AtomicU64,
    kernels: AtomicU64,
    queues: Mutex<HashMap<HwQueueHandle, Weak<QueueRecord>>>,
    /// By whose handle and which: what logs name fences by.
    handles: Mutex<HashMap<(ProcessId, u32), Weak<NativeFence>>>,
    pub(super) attributions: AttributionBook,
    pub(super) tracing: TracingSwitch,
    pub(super) recording: RecordingBook,
    came_up: OnceLock<BringUp>,
    pub(super) answered_segments: AnsweredSegments,
    processes: AtomicU64,
    doorbells: AtomicU64,
    pub(super) passed_fences: PassedFences,
    pub(super) cross_doorbells: AdapterDoorbells,
    pub(super) losses: Losses,
    pub(super) paged_allocations: PagedAllocations,
    pub(super) devices: DeviceStates,
    pub(super) verdicts: Verdicts,
    pub(super) parked_engines: ParkedEngines,
    pub(super) counters: InterruptCounters,
    pub(super) tdr: Tdr,
}

impl AdapterState {
    pub(super) fn new(ddi: Arc<LevelChecked>, tdr: TdrPolicy) -> Self {
        let recording = RecordingBook::default();
        let tdr = Tdr::new(tdr, ddi.node_count(), recording.recorder());
        let context_allocations = ContextAllocations::new(ddi.providers());
        Self {
            inside: Arc::clone(ddi.inside()),
            ddi,
            life: Arc::default(),
            fences: Mutex::new(FenceSlots::default()),
            monitored: MonitoredFences::default(),
            kernel_queues: KernelQueues::default(),
            contexts: HwContexts::default(),
            context_allocations,
            context_paging: ContextPaging::default(),
            retiring: Mutex::new(HashMap::new()),
            allocations: AtomicU64::new(0),
            kernels: AtomicU64::new(0),
            queues: Mutex::new(HashMap::new()),
            handles: Mutex::new(HashMap::new()),
            attributions: AttributionBook::default(),
            tracing: TracingSwitch::default(),
            recording,
            came_up: OnceLock::new(),
            answered_segments: AnsweredSegments::default(),
            processes: AtomicU64::new(0),
            doorbells: AtomicU64::new(0),
            passed_fences: PassedFences::default(),
            cross_doorbells: AdapterDoorbells::default(),
            losses: Losses::default(),
            paged_allocations: PagedAllocations::default(),
            devices: DeviceStates::default(),
            verdicts: Verdicts::default(),
            parked_engines: ParkedEngines::default(),
            counters: InterruptCounters::default(),
            tdr,
        }
    }

    pub(super) fn next_process(&self) -> u64 {
        self.processes.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn next_doorbell(&self) -> DoorbellId {
        DoorbellId(self.doorbells.fetch_add(1, Ordering::Relaxed) + 1)
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

    /// Records so far, oldest first.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.life.records()
    }

    /// The bug check that stopped the adapter, if one did: waits have ended, and nothing is created
    /// any more.
    #[must_use]
    pub fn stopped(&self) -> Option<&Record> {
        self.life.end()
    }

    /// Refuses what a stopped adapter cannot have.
    pub(super) fn check_up(&self) -> Result<(), OsError> {
        if let Some(record) = self.life.end() {
            return Err(OsError::Stopped(record.clone()));
        }
        let blocked = self.blocked().cloned();
        blocked.map_or(Ok(()), |record| Err(OsError::Blocked(record)))
    }

    /// Refuses fences where there are none, and where the adapter is stopped.
    pub(super) fn check_fences(&self) -> Result<(), OsError> {
        self.native_fence_caps()?;
        self.check_up()
    }

    /// Ends every queue and every wait of a stopped adapter.
    pub(super) fn end_all(&self) {
        self.fail_everything(WaitError::AdapterStopped);
        // Nobody takes an answer any more: who destroys a queue waits for none (PR-12).
        for node_ordinal in 0..self.ddi.node_count() {
            self.kernel_queues.engine(node_ordinal).lost();
        }
    }

    /// Ends every queue and every wait.
    pub(super) fn fail_everything(&self, error: WaitError) {
        for queue in self.all_queues() {
            queue.fail(error);
        }
        for context in self.contexts.all() {
            context.fail(WaitError::AdapterStopped);
        }
        for fence in self.all_fences() {
            fence.fail(error);
        }
        self.kernel_queues.fail(error);
        self.monitored.fail(error);
        // On other adapters nobody waits for what a device of this one could have signalled, whoever else could (XA-11,
        // TD-14).
        for fence in self.all_fences() {
            fence.lose_elsewhere();
        }
        for fence in self.monitored.all() {
            fence.lose_elsewhere();
        }
    }

    pub(super) fn register_fence(
        &self,
        terms: Terms,
        storage: FenceStorage,
        initial: Option<u64>,
    ) -> Result<Arc<NativeFence>, OsError> {
        let fence = lock(&self.fences).enter(|id| {
            let (ddi, life) = (Arc::clone(&self.ddi), Arc::clone(&self.life));
            let recorder = Arc::clone(self.recording.recorder());
            NativeFence::new(id, terms, storage, ddi, life, recorder, initial)
        });
        // After it can be found: who stops the adapter finds it, or the record is seen here.
        self.check_up()?;
        Ok(fence)
    }

    /// Destroys a fence. Its storage and its slot are used again when no engine refers to it any more.
    pub(super) fn retire_fence(&self, fence: &Arc<NativeFence>) {
        let id = fence.id();
        lock(&self.fences).take_out(id);
        let storage = Box::new(Arc::clone(fence));
        self.retire(ObjectId::Fence(id), storage, || {
            self.ddi.destroy_native_fence(id)
        });
    }

    /// Forgets a fence that the driver could not make. Its slot is not used again: of several engines
    /// some may have had it, and nobody tells when none of them refers to it any more.
    pub(super) fn forget_fence(&self, id: FenceId) {
        lock(&self.fences).take_out(id);
    }

    /// Closes a process's handle of a fence. Its place is not used again before no engine refers to it.
    pub(super) fn close_fence(
        &self,
        process: ProcessId,
        handle: LocalHandle,
        place: Arc<HandleSlot>,
    ) {
        let object = ObjectId::Handle(process.0, handle);
        self.retire(object, Box::new(place), || {
            self.ddi.close_native_fence(process, handle)
        });
    }

    /// An id for a monitored fence, which native ones do not have.
    pub(super) fn reserve_fence(&self) -> FenceId {
        lock(&self.fences).reserve()
    }

    /// As [`AdapterState::retire_fence`]; one that no engine was told of is gone at once.
    pub(super) fn retire_monitored_fence(
        &self,
        fence: &Arc<MonitoredFence>,
        mapped: bool,
        handle: HandleSlot,
    ) {
        let id = fence.id();
        let kept = Box::new((Arc::clone(fence), handle));
        self.retire(ObjectId::Fence(id), kept, || {
            if mapped {
                self.ddi.unmap_monitored_fence(id)
            } else {
                Retirement::Done
            }
        });
    }

    /// An id for one more allocation.
    pub(super) fn next_allocation(&self) -> AllocationId {
        AllocationId(self.allocations.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Destroys an allocation: as [`AdapterState::retire_fence`].
    pub(super) fn retire_allocation(
        &self,
        id: AllocationId,
        memory: Arc<PoolPlace>,
        handles: Vec<HandleSlot>,
    ) {
        let object = ObjectId::Allocation(id);
        let kept = Box::new((memory, handles));
        self.retire(object, kept, || self.ddi.destroy_allocation(id));
    }

    /// An id for one more kernel.
    pub(super) fn next_kernel(&self) -> KernelId {
        KernelId(self.kernels.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Takes a kernel from the engines. The place of its handle is used again when no slice refers to it.
    pub(super) fn retire_kernel(&self, id: KernelId, handle: HandleSlot) {
        let object = ObjectId::Kernel(id);
        self.retire(object, Box::new(handle), || self.ddi.destroy_kernel(id));
    }

    fn retire(&self, object: ObjectId, kept: Kept, destroy: impl FnOnce() -> Retirement) {
        // Before the call: the driver may tell of the end on another thread.
        lock(&self.retiring).insert(object, kept);
        if destroy() == Retirement::Done {
            self.object_retired(object);
        }
    }

    /// No engine refers to a destroyed object any more.
    pub(super) fn object_retired(&self, object: ObjectId) {
        let retired = lock(&self.retiring).remove(&object);
        // An object that nobody destroyed is a word of the driver's that cannot be.
        if let Some(retired) = retired {
            // A signal whose record comes after the last handle has gone names nobody here any more; on other adapters
            // somebody may wait for it. From now on no engine of this one stores.
            if let Some(fence) = retired.downcast_ref::<Arc<NativeFence>>() {
                fence.propagate_what_there_is();
            }
            drop(retired);
            if let ObjectId::Fence(id) = object {
                lock(&self.fences).retired(id);
            }
        }
    }

    /// What an id names in a record that the driver took at `taken`.
    pub(super) fn named_fence(&self, id: FenceId, taken: Instant) -> Named {
        lock(&self.fences).named(id, taken)
    }

    /// The fence of an id, if that generation is still there.
    pub(super) fn fence(&self, id: FenceId) -> Option<Arc<NativeFence>> {
        let fence = self.fence_in_slot(id.slot)?;
        (fence.id() == id).then_some(fence)
    }

    pub(super) fn fence_in_slot(&self, slot: u32) -> Option<Arc<NativeFence>> {
        lock(&self.fences).in_slot(slot)
    }

    pub(super) fn all_fences(&self) -> Vec<Arc<NativeFence>> {
        lock(&self.fences).all()
    }

    /// Those that the queues of a process can signal.
    pub(super) fn fences_of(&self, process: ProcessId) -> Vec<Arc<NativeFence>> {
        let mut fences = self.all_fences();
        fences.retain(|fence| fence.is_signalled_by(|asked| asked == process));
        fences
    }

    /// A process's handle of a fence.
    pub(super) fn handle_opened(
        &self,
        process: ProcessId,
        handle: LocalHandle,
        fence: &Arc<NativeFence>,
    ) {
        self.recording
            .named(process, handle.raw(), fence.as_ref().into());
        lock(&self.handles).insert((process, handle.raw()), Arc::downgrade(fence));
    }

    /// The fence is destroyed.
    pub(super) fn forget_handle(&self, process: ProcessId, handle: LocalHandle) {
        lock(&self.handles).remove(&(process, handle.raw()));
    }

    /// The fence that a process's handle in a log names: any word that the user wrote.
    pub(super) fn fence_of_handle(
        &self,
        process: ProcessId,
        handle: u32,
    ) -> Option<Arc<NativeFence>> {
        lock(&self.handles).get(&(process, handle))?.upgrade()
    }

    /// All handles of fences, native and monitored, and what they name.
    pub(super) fn all_handles(&self) -> Vec<(ProcessId, u32, TracedFence)> {
        let mut all = self.monitored.all_handles();
        for ((process, handle), fence) in lock(&self.handles).iter() {
            if let Some(fence) = fence.upgrade() {
                all.push((*process, *handle, fence.as_ref().into()));
            }
        }
        all
    }

    /// What the driver has told of itself.
    pub(super) fn came_up_with(&self, came_up: BringUp) {
        self.came_up.get_or_init(|| came_up);
    }

    /// `DXGK_VIDSCHCAPS`, as the driver reported them when it came up.
    #[must_use]
    pub fn vidsch_caps(&self) -> VidSchCaps {
        let came_up = self.came_up.get();
        came_up.map_or_else(VidSchCaps::default, |came_up| came_up.vidsch)
    }

    /// `DXGK_NATIVE_FENCE_CAPS`, which the OS had of the driver by `DXGKQAITYPE_NATIVE_FENCE_CAPS`
    /// when it came up (FQ-06).
    ///
    /// # Errors
    /// The adapter has no native fences: why, as sentences.
    pub fn native_fence_caps(&self) -> Result<NativeFenceCaps, OsError> {
        match self.came_up.get().map(|came_up| &came_up.native_fences) {
            Some(Ok(caps)) => Ok(*caps),
            Some(Err(gap)) => Err(OsError::NoNativeFences(gap.clone())),
            None => unreachable!("nobody has an adapter that has not come up"),
        }
    }

    /// Whether there are fences of type INTRA_GPU (NF-13).
    pub(super) fn has_intra_gpu_fences(&self) -> bool {
        let came_up = self.came_up.get();
        came_up.is_some_and(|came_up| came_up.has_intra_gpu)
    }

    /// Why there are no native fences; empty where there are.
    pub(super) fn native_fence_gap(&self) -> String {
        match self.came_up.get().map(|came_up| &came_up.native_fences) {
            Some(Err(gap)) => gap.clone(),
            Some(Ok(_)) | None => String::new(),
        }
    }

    /// The last submission id that an engine was handed, and the greatest up to which all have
    /// completed: of kernel-mode queues. 0 for none.
    #[must_use]
    pub fn submission_ids(&self, node_ordinal: u32) -> (u64, u64) {
        let engine = self.kernel_queues.engine(node_ordinal);
        let completed = engine.last_completed();
        (engine.last_submitted(), completed)
    }

    /// `D3DKMTQueryAdapterInfo(KMTQAITYPE_WDDM_3_1_CAPS)`: what user mode learns (FQ-06).
    #[must_use]
    pub fn query_wddm_3_1_caps(&self) -> Wddm31Caps {
        if self.native_fence_caps().is_ok() {
            Wddm31Caps::NATIVE_GPU_FENCE_SUPPORTED
        } else {
            Wddm31Caps::default()
        }
    }

    /// Where values and logs are mapped for the GPU's command processor (NF-16).
    pub(super) fn system_process(&self) -> SystemProcess {
        let caps = self.native_fence_caps();
        SystemProcess::new(
            &self.ddi,
            caps.is_ok_and(|caps| caps.published.map_to_gpu_system_process != 0),
        )
    }

    /// Whether interrupts name queues and not fences.
    pub(super) fn is_optimized(&self) -> bool {
        self.vidsch_caps()
            .has(VidSchCaps::OPTIMIZED_NATIVE_FENCE_SIGNALED_INTERRUPT)
    }

    pub(super) fn register_context(&self, context: &Arc<ContextRecord>) {
        self.contexts.add(context);
    }

    pub(super) fn forget_context(&self, handle: ContextHandle) {
        self.contexts.remove(handle);
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

    /// How many objects of each kind a process has here, and how many fences there are that nobody else has open.
    pub(super) fn object_counts(&self, process: ProcessId) -> [(&'static str, usize); 7] {
        let is_its = |of: ProcessId| of == process;
        // One lock after the other.
        let handles = lock(&self.handles);
        let of_process = handles.keys().filter(|(of, _)| is_its(*of)).count();
        drop(handles);
        let retiring = lock(&self.retiring).len();
        let fences = self.all_fences();
        let fences = fences
            .iter()
            .filter(|fence| fence.processes().into_iter().all(is_its));
        let (monitored, queues) = (self.monitored.all(), self.all_queues());
        let monitored = monitored.iter().filter(|fence| is_its(fence.process()));
        let queues = queues.iter().filter(|queue| is_its(queue.process()));
        let (kernel_queues, contexts) = (self.kernel_queues.all(), self.contexts.all());
        let kernel_queues = kernel_queues.iter().filter(|queue| is_its(queue.process()));
        let contexts = contexts.iter().filter(|context| is_its(context.process()));
        [
            ("native fence", fences.count()),
            ("monitored fence", monitored.count()),
            ("handle of a native fence", of_process),
            ("hardware queue", queues.count()),
            ("kernel-mode queue", kernel_queues.count()),
            ("context", contexts.count()),
            ("destroyed object", retiring),
        ]
    }
}
