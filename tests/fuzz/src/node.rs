//! The node of a case, all of it on one thread.
//!
//! The operating system and the driver's threads are left out: what they would tell the node, a case
//! tells it. Over the model a slice runs when the case asks for it, so one input is one course of events,
//! and the time goes into packets; the oracle of the model watches every access to memory. Over the shader a
//! slice runs while the case goes on, and the case waits for its end. There one node serves many cases, each of
//! which finds the handles as the one before found them.

use crate::memory::Allocation;
use crate::stage::PROCESS;
use native_fence::KernelCode;
use native_fence::abi::{
    AllocationId, CURRENT_VALUE_STRIDE, Doorbell, DoorbellStatus, FaultCode, FenceId, HandleAccess,
    KernelId, LOG_BUFFER_BYTES, LOG_BUFFER_ENTRIES, LocalHandle, LogEntry, LogHeader, LogIndex,
    LogType, MONITORED_VALUE_STRIDE, PACKET_BYTES, PAGE_BYTES, QueueProgress, QueueState,
    RingControl, WordGroup,
};
use native_fence::gpu::{
    AddressSpace, ContextKind, Crowd, CutPlan, Engine, EngineAddress, EngineCaps, EngineLost,
    GpuVa, KernelError, Kernels, MapError, MemoryAccess, MemoryObserver, ModelClock, ModelEngine,
    ModelMemory, ModelOptions, ModelThreads, Node, NodePolicy, Parking, QueueFault, QueuePlaces,
    QueueSlot, QueueStanding, RingPlaces, ShaderEngine, SliceInFlight, SliceReport, SliceWork,
};
use native_fence::shared::{Block, Pool, PoolPlace, Providers, Region};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A slice of a device that has not ended by then does not end: lavapipe may have no core for seconds.
const PATIENCE: Duration = Duration::from_mins(2);

/// Looks at the clock are what makes it go on, by ten microseconds each: a slice that finds nothing
/// ends after a few.
#[derive(Debug, Default)]
struct CountingClock(AtomicU64);

impl ModelClock for CountingClock {
    fn ticks(&self) -> u64 {
        10_000 * self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// A model whose cuts the node is not told of: it need not find out after how many passes they
/// come, which would take longer than most cases.
#[derive(Debug)]
struct Quiet(ModelEngine);

impl AddressSpace for Quiet {
    fn providers(&self) -> &Arc<Providers> {
        self.0.providers()
    }

    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError> {
        self.0.map(region)
    }
}

impl Engine for Quiet {
    fn caps(&self) -> EngineCaps {
        self.0.caps()
    }

    fn attach(&mut self, control: GpuVa, before: u64) -> Result<(), MapError> {
        self.0.attach(control, before)
    }

    fn prepare_doorbells(&self) -> Result<(), MapError> {
        self.0.prepare_doorbells()
    }

    fn prepare_verbose(&self) -> Result<(), MapError> {
        self.0.prepare_verbose()
    }

    fn set_kernels(&self, kernels: &Kernels) -> Result<(), KernelError> {
        self.0.set_kernels(kernels)
    }

    fn cuts_slices(&self) -> bool {
        false
    }

    fn start(&self, slice: u64, work: SliceWork) -> Result<(), EngineLost> {
        self.0.start(slice, work)
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        self.0.wait(slice, timeout)
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        self.0.has_ended(slice)
    }

    fn abandon(&self, slice: u64) {
        self.0.abandon(slice);
    }

    fn base_ticks(&self) -> u64 {
        self.0.base_ticks()
    }

    fn clock_bits(&self) -> u64 {
        self.0.clock_bits()
    }

    fn ticks_in(&self, time: Duration) -> u64 {
        self.0.ticks_in(time)
    }
}

/// How a node's slices end, and of what its engine is made.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) cut: CutPlan,
    pub(crate) lanes: u32,
    pub(crate) rounds: u32,
    pub(crate) slice_time: Duration,
    pub(crate) clock_bits: u64,
    pub(crate) observer: Option<Arc<dyn MemoryObserver>>,
}

/// Handles of a case at most.
pub(crate) const HANDLES: u32 = 4096;
/// Where those of the other process begin: what is closed there was never open here.
pub(crate) const OTHERS: u32 = HANDLES / 2;

/// Of storage that is given out in pieces of one size.
struct Pools {
    /// By capacity.
    rings: HashMap<u64, Pool>,
    doorbells: Pool,
    progress: Pool,
    /// Pairs.
    logs: Pool,
    /// By bytes.
    allocations: HashMap<u64, Pool>,
}

/// What a case has entered.
#[derive(Default)]
struct Entered {
    handles: Vec<(u64, LocalHandle)>,
    fences: Vec<FenceId>,
    allocations: Vec<AllocationId>,
    kernels: Vec<KernelId>,
}

/// See the file's head.
pub(crate) struct CaseNode {
    node: Node,
    /// Of a model.
    oracle: Option<Arc<ModelMemory>>,
    /// Of a device: called at each look at whether a slice has ended.
    observer: Option<Arc<dyn MemoryObserver>>,
    values: [Arc<Region>; 2],
    current_values: Block,
    monitored_values: Block,
    /// Slots of kernels that stay from case to case, which come first.
    kernels: Vec<LocalHandle>,
    handles: u32,
    others: u32,
    entered: Entered,
    /// Cases so far, and this one.
    cases: u32,
    /// Allocations and kernels so far.
    ids: u64,
    /// Queues given out so far.
    numbers: u32,
    /// A queue that is made anew costs no region.
    pools: Pools,
    queues: Vec<Arc<QueueSlot>>,
    providers: Arc<Providers>,
    /// Slices so far.
    slices: u64,
}

/// A fence that one process has open.
#[derive(Debug)]
pub(crate) struct Fence {
    pub(crate) handle: LocalHandle,
    pub(crate) id: FenceId,
    current: Block,
}

/// A hardware queue whose ring the case writes.
pub(crate) struct Queue {
    slot: Arc<QueueSlot>,
    pub(crate) control: Block,
    pub(crate) packets: Block,
    pub(crate) progress: Fence,
    logs: [Block; 2],
    capacity: u64,
    /// Packets put so far.
    pub(crate) written: u64,
    _storage: [PoolPlace; 4],
}

/// How a queue ended, in what does not depend on the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEnd {
    /// Packets that were executed.
    pub read_index: u64,
    /// Why it was stopped, and at which packet.
    pub fault: Option<(FaultCode, u64)>,
    /// Value of its progress fence.
    pub progress: u64,
    /// Numbers of the next wait and signal.
    pub numbers: [u64; 2],
    /// Entries that its logs of waits and signals have had.
    pub logged: [u64; 2],
    /// Those that are still there, by their places: value, handle, operation.
    pub entries: [Vec<(u64, u32, u32)>; 2],
}

impl CaseNode {
    pub(crate) fn of_model(shape: Shape) -> Self {
        let engine = ModelEngine::new(ModelOptions {
            lanes: shape.lanes,
            rounds: shape.rounds,
            cut: shape.cut,
            clock: Arc::new(CountingClock::default()),
            clock_bits: shape.clock_bits,
            threads: ModelThreads::Callers,
            observer: shape.observer,
            ..ModelOptions::default()
        });
        let memory = Arc::clone(engine.memory());
        let slice_time = shape.slice_time;
        Self::over(Box::new(Quiet(engine)), slice_time, Some(memory))
    }

    /// Over a device's shader.
    pub(crate) fn of_device(engine: ShaderEngine, slice_time: Duration) -> Self {
        Self::over(Box::new(engine), slice_time, None)
    }

    fn over(
        engine: Box<dyn Engine>,
        slice_time: Duration,
        oracle: Option<Arc<ModelMemory>>,
    ) -> Self {
        let providers = Arc::clone(engine.providers());
        let policy = NodePolicy {
            slice_time,
            ..NodePolicy::default()
        };
        let node = Node::new(0, engine, policy, Arc::new(Crowd::new(1))).expect("a node");
        let region = |group, stride| {
            let bytes = u64::from(HANDLES) * stride;
            providers.for_words(group, bytes).expect("memory")
        };
        let values = [
            region(WordGroup::CurrentValues, CURRENT_VALUE_STRIDE),
            region(WordGroup::MonitoredValues, MONITORED_VALUE_STRIDE),
        ];
        Self {
            node,
            oracle,
            observer: None,
            current_values: values[0].host().expect("memory"),
            monitored_values: values[1].host().expect("memory"),
            values,
            kernels: Vec::new(),
            handles: 0,
            others: OTHERS,
            entered: Entered::default(),
            cases: 1,
            ids: 0,
            numbers: 0,
            pools: Pools {
                rings: HashMap::new(),
                doorbells: Pool::new(&providers, WordGroup::Doorbell, Doorbell::BYTES),
                progress: Pool::new(&providers, WordGroup::Progress, QueueProgress::BYTES),
                logs: Pool::new(&providers, WordGroup::Log, 2 * LOG_BUFFER_BYTES),
                allocations: HashMap::new(),
            },
            queues: Vec::new(),
            slices: 0,
            providers,
        }
    }

    /// The same with kernels of these codes, each for its process.
    pub(crate) fn with_kernels<'a>(
        mut self,
        codes: impl Iterator<Item = (u64, &'a Arc<KernelCode>)>,
    ) -> Self {
        for (process, code) in codes {
            let kernel = self.kernel(process, code);
            self.kernels.push(kernel);
        }
        // These stay.
        self.entered = Entered::default();
        self
    }

    /// The kernels that all cases have.
    pub(crate) fn kernels(&self) -> &[LocalHandle] {
        &self.kernels
    }

    /// Begins another case, on a device.
    pub(crate) fn begin(&mut self, observer: Option<Arc<dyn MemoryObserver>>) {
        self.observer = observer;
    }

    /// Takes out all that the case has entered; how many cases there were.
    pub(crate) fn end(&mut self) -> u32 {
        for queue in std::mem::take(&mut self.queues) {
            self.disconnect(&queue);
        }
        let entered = std::mem::take(&mut self.entered);
        for (process, handle) in entered.handles {
            self.close(process, handle);
        }
        self.settle(64);
        let in_flight = "a slice that refers to it is in flight";
        for id in entered.fences {
            assert!(self.node.remove_fence(id), "{id:?}: {in_flight}");
        }
        for id in entered.allocations {
            assert!(self.node.remove_allocation(id), "{id:?}: {in_flight}");
        }
        for id in entered.kernels {
            assert!(self.node.remove_kernel(id), "{id:?}: {in_flight}");
        }
        self.observer = None;
        let own = self.kernels.iter().filter(|kernel| kernel.slot() < OTHERS);
        self.handles = own.count() as u32;
        self.others = OTHERS + self.kernels.len() as u32 - self.handles;
        self.cases += 1;
        self.cases
    }

    /// Slots of the process whose packets may be malformed, given out so far.
    pub(crate) fn handles(&self) -> u32 {
        self.handles
    }

    /// Handles of one process may be those of another: slots are its own. Here they differ, so that
    /// a foreign one is no handle at all.
    fn handle(&mut self, process: u64) -> LocalHandle {
        let next = if process == PROCESS {
            &mut self.handles
        } else {
            &mut self.others
        };
        let slot = *next;
        *next += 1;
        let handle = LocalHandle::new(slot, 1).expect("a handle");
        self.entered.handles.push((process, handle));
        handle
    }

    fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(crate) fn kernel(&mut self, process: u64, code: &Arc<KernelCode>) -> LocalHandle {
        let (handle, id) = (self.handle(process), KernelId(self.id()));
        self.node
            .add_kernel(id, (process, handle), code)
            .expect("a kernel");
        self.entered.kernels.push(id);
        handle
    }

    pub(crate) fn fence(&mut self, process: u64, access: HandleAccess, initial: u64) -> Fence {
        let handle = self.handle(process);
        let id = FenceId {
            slot: handle.slot(),
            generation: self.cases,
        };
        self.entered.fences.push(id);
        let strides = [CURRENT_VALUE_STRIDE, MONITORED_VALUE_STRIDE];
        let offsets = strides.map(|stride| stride * u64::from(handle.slot()));
        let current = self.current_values.part(offsets[0], 8);
        current.word(0).publish(initial);
        // Nobody waits.
        self.monitored_values.word(offsets[1]).publish(u64::MAX);
        let [current_region, monitored_region] = &self.values;
        self.node
            .enter_fence(
                id,
                (current_region, offsets[0]),
                (monitored_region, offsets[1]),
                None,
            )
            .expect("a fence");
        self.node
            .open_handle(process, handle, access, id)
            .expect("a handle");
        Fence {
            handle,
            id,
            current,
        }
    }

    /// Those of one size lie side by side, in one region where they find room.
    pub(crate) fn allocation(&mut self, process: u64, bytes: u64) -> Allocation {
        let (handle, id) = (self.handle(process), AllocationId(self.id()));
        self.entered.allocations.push(id);
        let pool = self.pools.allocations.entry(bytes);
        let pool = pool.or_insert_with(|| Pool::new(&self.providers, WordGroup::Allocation, bytes));
        let place = pool.allocate().expect("memory");
        self.node
            .enter_allocation(id, (place.region(), place.offset()), bytes)
            .expect("an allocation");
        self.node
            .open_allocation(process, handle, id)
            .expect("a handle");
        Allocation::new(process, handle, bytes, place)
    }

    pub(crate) fn queue(&mut self, process: u64, capacity: u64) -> Queue {
        let progress = self.fence(process, HandleAccess::NO_SIGNAL, 0);
        let ring_bytes = PAGE_BYTES + capacity * PACKET_BYTES;
        let pools = &mut self.pools;
        let rings = pools.rings.entry(capacity);
        let rings =
            rings.or_insert_with(|| Pool::new(&self.providers, WordGroup::Ring, ring_bytes));
        let storage = [&*rings, &pools.doorbells, &pools.progress, &pools.logs];
        let storage = storage.map(|pool| pool.allocate().expect("memory"));
        let [ring, doorbell, words, log] = &storage;
        let part = |place: &PoolPlace, at, bytes| {
            let mapping = self.node.map(place.region()).expect("an address");
            mapping.part(place.offset() + at, bytes)
        };
        let (descriptor_place, descriptor) = self.node.descriptor().expect("a place");
        let area = self
            .node
            .own_save_area(ContextKind::Program)
            .expect("a place");
        let number = self.numbers;
        self.numbers += 1;
        let slot = QueueSlot::new(
            number,
            QueuePlaces {
                descriptor,
                descriptor_place,
                states: area.take().expect("a slot"),
                progress: part(words, 0, QueueProgress::BYTES),
                process,
                handle_directory: self.node.handle_directory(process).expect("handles"),
                progress_handle: progress.handle.raw(),
                progress_fence: self.node.fence_addresses(progress.id).expect("entered"),
                context: 0,
            },
        );
        slot.set_ring(RingPlaces {
            ring_control: part(ring, 0, RingControl::BYTES),
            ring: part(ring, PAGE_BYTES, capacity * PACKET_BYTES),
            ring_capacity: capacity,
            doorbell: doorbell.block().part(0, Doorbell::BYTES),
        });
        for (kind, at) in [(LogType::Waits, 0), (LogType::Signals, LOG_BUFFER_BYTES)] {
            let buffer = part(log, at, LOG_BUFFER_BYTES);
            drop(slot.set_log(kind, buffer, LOG_BUFFER_ENTRIES));
        }
        let slot = Arc::new(slot);
        self.node.connect(&slot).expect("room in the run list");
        self.queues.push(Arc::clone(&slot));
        Queue {
            slot,
            control: ring.block().part(0, RingControl::BYTES),
            packets: ring.block().part(PAGE_BYTES, capacity * PACKET_BYTES),
            progress,
            logs: [0, LOG_BUFFER_BYTES].map(|at| log.block().part(at, LOG_BUFFER_BYTES)),
            capacity,
            written: 0,
            _storage: storage,
        }
    }

    /// Takes a queue out for good: no slice refers to it any more.
    pub(crate) fn destroy(&mut self, queue: &Queue) {
        self.disconnect(&queue.slot);
        self.queues.retain(|slot| slot.number != queue.slot.number);
    }

    fn disconnect(&self, slot: &QueueSlot) {
        let aborted = DoorbellStatus::DisconnectedAbort;
        for report in self.node.disconnect(slot, aborted) {
            self.take(&report);
        }
    }

    /// Closes a handle.
    pub(crate) fn close(&self, process: u64, handle: LocalHandle) {
        self.node.close_handle(process, handle);
    }

    /// Stores a value as the CPU does.
    pub(crate) fn signal(&self, fence: &Fence, value: u64) {
        fence.current.word(0).publish(value);
        self.node.signalled(|id| id == fence.id);
    }

    /// What is rung for is looked at by some slice.
    pub(crate) fn ring(&mut self) {
        let report = self.node.work_submitted();
        if let Some(report) = report {
            self.take(&report);
        }
    }

    /// The oldest slice that was submitted runs, and its report is taken. False if there is none.
    pub(crate) fn slice(&mut self) -> bool {
        let Some(slice) = self.node.oldest_in_flight() else {
            return false;
        };
        self.slices += 1;
        let report = self.report(&slice);
        self.take(&report);
        true
    }

    /// The report of a slice that runs here, or on a device meanwhile.
    fn report(&self, slice: &SliceInFlight) -> SliceReport {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(report) = self.node.try_service(slice) {
                return report;
            }
            assert!(Instant::now() < deadline, "a slice does not end");
            match &self.observer {
                Some(observer) => observer.touched(MemoryAccess::Load, "a look", 0),
                None => std::thread::yield_now(),
            }
        }
    }

    /// As the operating system: it waits in the queues' stead, and lets the engine go.
    fn take(&self, report: &SliceReport) {
        assert!(
            !report.lost,
            "the engine is lost: {:?}, {:?}",
            self.oracle.as_ref().map(|oracle| oracle.violations()),
            self.node.failure()
        );
        if let Some(Parking::Asked { attempt, .. }) = &report.parking {
            let _ = self.node.finish_parking(*attempt);
        }
    }

    /// Slices run until no queue can go on: the engine is parked; or, since one whose slices are all
    /// cut never is, no queue has gone on in so many slices that each was looked at.
    ///
    /// # Panics
    /// If more than `most` are needed: that is a hang.
    pub(crate) fn settle(&mut self, most: u64) {
        const LOOKS: u64 = 32;
        let limit = self.slices + most;
        let (mut last, mut moved) = (Vec::new(), self.slices);
        while self.slice() {
            let states = self.queues.iter().map(|queue| queue.state());
            let now: Vec<_> = states.map(|s| (s.read_index, s.status, s.fault)).collect();
            if now != last {
                (last, moved) = (now, self.slices);
            }
            let waits = |queue: &Arc<QueueSlot>| {
                let standing = QueueStanding::of(&queue.state(), || queue.write_index());
                standing != QueueStanding::Runnable
            };
            if self.slices - moved >= LOOKS && self.queues.iter().all(waits) {
                break;
            }
            assert!(self.slices < limit, "{most} slices, and queues still run");
        }
    }

    /// # Panics
    /// If the engine touched what it may not.
    pub(crate) fn check(&self) {
        if let Some(oracle) = &self.oracle {
            assert_eq!(oracle.violations(), []);
        }
        assert_eq!(
            self.node.counters().refused_words,
            0,
            "words that cannot be"
        );
    }
}

impl Fence {
    pub(crate) fn value(&self) -> u64 {
        self.current.word(0).observe()
    }
}

impl Queue {
    /// Puts the words of a packet where the next one belongs.
    pub(crate) fn put(&mut self, words: &[u64; 8]) {
        let at = self.written % self.capacity * PACKET_BYTES;
        self.packets.put_words(at, words);
        self.written += 1;
    }

    pub(crate) fn publish(&self, write_index: u64) {
        self.control
            .word(RingControl::WRITE_INDEX)
            .publish(write_index);
    }

    /// Places that the engine has left.
    pub(crate) fn room(&self) -> u64 {
        self.capacity
            .saturating_sub(self.written - self.read_index().min(self.written))
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn read_index(&self) -> u64 {
        self.slot.read_index()
    }

    pub(crate) fn state(&self) -> QueueState {
        self.slot.state()
    }

    pub(crate) fn write_index(&self) -> u64 {
        self.slot.write_index()
    }

    pub(crate) fn fault(&self) -> Option<QueueFault> {
        self.slot.fault()
    }

    pub(crate) fn end(&self) -> QueueEnd {
        let state = self.state();
        let logged = self.logged();
        let entries = [0, 1].map(|log: usize| {
            let there = logged[log].min(LOG_BUFFER_ENTRIES) as u32;
            let entry = |index| {
                let (block, at) = (&self.logs[log], LogIndex::entry_offset(index));
                let word = |offset| block.word(at + offset).peek();
                let named = word(LogEntry::NATIVE_FENCE);
                (
                    word(LogEntry::FENCE_VALUE),
                    named as u32,
                    (named >> 32) as u32,
                )
            };
            (0..there).map(entry).collect()
        });
        QueueEnd {
            read_index: self.read_index(),
            fault: self.fault().map(|fault| (fault.code, fault.packet)),
            progress: self.progress.value(),
            numbers: [state.wait_number, state.signal_number],
            logged,
            entries,
        }
    }

    /// Entries that were ever written to the logs of waits and of signals.
    pub(crate) fn logged(&self) -> [u64; 2] {
        [0, 1].map(|log| {
            let index = LogIndex::from_word(self.logs[log].word(LogHeader::INDEX).observe());
            u64::from(index.wraparound_count) * LOG_BUFFER_ENTRIES
                + u64::from(index.first_free_entry_index)
        })
    }
}

impl Drop for CaseNode {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.node.stop();
        }
    }
}
