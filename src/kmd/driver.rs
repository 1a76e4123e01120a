//! Driver: the DDIs, over nodes.

use super::look::{look, watch};
use super::retirement::Retirements;
use super::{
    Callbacks, CreateHwQueue, CreateNativeFence, CurrentValueUpdate, Ddi, DdiError, HwQueueHandle,
    Interrupt, MonitoredValueUpdate, NativeFenceCaps, NativeFenceSignaled, OpenNativeFence, Place,
    ProcessId, Retirement, SignaledFence, UpdateFlags,
};
use crate::abi::{
    CURRENT_VALUE_STRIDE, DoorbellStatus, FenceHandle, FenceId, LogEntry, LogHeader, LogType,
    MONITORED_VALUE_STRIDE, PACKET_BYTES, QueueProgress, RingControl, RingIndex,
};
use crate::gpu::{
    EngineCaps, EngineState, GpuVa, LocalMemory, Node, NodeCounters, QueuePlaces, QueueSlot,
    SliceReport,
};
use crate::sync::{Arc, Mutex, Ordering, fence, lock, thread};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Instant;

/// A driver over one or more nodes.
pub struct Driver {
    nodes: Vec<Arc<Node>>,
    queues: Mutex<HashMap<HwQueueHandle, Arc<QueueSlot>>>,
    next_number: Mutex<u32>,
    callbacks: OnceLock<Arc<dyn Callbacks>>,
    retirements: Arc<Retirements>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver")
            .field("nodes", &self.nodes.len())
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// Over these nodes, whose ordinals are their places.
    #[must_use]
    pub fn new(nodes: Vec<Node>) -> Arc<Self> {
        Arc::new(Self {
            nodes: nodes.into_iter().map(Arc::new).collect(),
            queues: Mutex::new(HashMap::new()),
            next_number: Mutex::new(0),
            callbacks: OnceLock::new(),
            retirements: Arc::default(),
            threads: Mutex::new(Vec::new()),
        })
    }

    /// The state of a node's engine, a hint; for tests and reports.
    #[must_use]
    pub fn engine_state(&self, node_ordinal: u32) -> Option<EngineState> {
        let node = self.nodes.get(node_ordinal as usize)?;
        Some(node.state())
    }

    fn node(&self, ordinal: u32) -> Result<&Arc<Node>, DdiError> {
        self.nodes
            .get(ordinal as usize)
            .ok_or(DdiError::InvalidParameter(
                "the node ordinal is not below the number of nodes",
            ))
    }

    /// Tells the OS, on this thread, what slices reported that ended for it.
    fn deliver_all(&self, node: &Node, reports: impl IntoIterator<Item = SliceReport>) {
        if let Some(callbacks) = self.callbacks.get() {
            for report in reports {
                deliver(
                    callbacks.as_ref(),
                    &self.retirements,
                    node.ordinal(),
                    report,
                );
            }
        }
    }

    fn slot(&self, hw_queue: HwQueueHandle) -> Result<Arc<QueueSlot>, DdiError> {
        lock(&self.queues)
            .get(&hw_queue)
            .map(Arc::clone)
            .ok_or(DdiError::InvalidParameter("no such hardware queue"))
    }
}

/// What an adapter without nodes has.
const NO_ENGINE: EngineCaps = EngineCaps {
    addresses: (GpuVa(0), GpuVa(0)),
    has_64_bit_atomics: false,
    local_storage: LocalMemory::Unreachable,
};

/// Turns a report into interrupts, in the order in which the OS must learn of things: signals
/// first, since a queue that faulted afterwards does not undo them.
fn deliver(
    callbacks: &dyn Callbacks,
    retirements: &Retirements,
    node_ordinal: u32,
    report: SliceReport,
) {
    let hw_queue = |number| HwQueueHandle {
        node_ordinal,
        number,
    };
    if report.collapsed || !report.raised.is_empty() {
        let fences = report.raised.iter().map(|raised| SignaledFence {
            fence: raised.fence,
            value: raised.value,
            hw_queue: raised.hw_queue.map(hw_queue),
        });
        callbacks.notify_interrupt(Interrupt::NativeFenceSignaled(NativeFenceSignaled {
            node_ordinal,
            engine_ordinal: 0,
            fences: (!report.collapsed).then(|| fences.collect()),
        }));
    }
    if !report.resample.is_empty() {
        callbacks.notify_interrupt(Interrupt::ResampleFences {
            slots: report.resample,
        });
    }
    for (number, fault) in report.faulted {
        callbacks.notify_interrupt(Interrupt::HwQueueFaulted {
            hw_queue: hw_queue(number),
            fault,
        });
    }
    if report.lost {
        callbacks.notify_interrupt(Interrupt::EngineLost { node_ordinal });
    }
    let retired = report.retired.into_iter();
    let fences: Vec<_> = retired.filter(|id| retirements.end_one(*id)).collect();
    if !fences.is_empty() {
        callbacks.notify_interrupt(Interrupt::FencesRetired { fences });
    }
    if let Some(parking) = report.parking {
        callbacks.notify_interrupt(Interrupt::EngineParking {
            node_ordinal,
            parking,
        });
    }
}

impl Ddi for Driver {
    fn start(&self, callbacks: Arc<dyn Callbacks>) {
        let callbacks = self.callbacks.get_or_init(|| callbacks);
        let mut threads = lock(&self.threads);
        for node in &self.nodes {
            let node = Arc::clone(node);
            let callbacks = Arc::clone(callbacks);
            let retirements = Arc::clone(&self.retirements);
            let name = format!("nf-irq-{}", node.ordinal());
            let service = move || {
                while let Some(report) = node.next_report() {
                    deliver(callbacks.as_ref(), &retirements, node.ordinal(), report);
                }
            };
            match thread::Builder::new().name(name).spawn(service) {
                Ok(thread) => threads.push(thread),
                Err(error) => panic!("the system has no thread left for interrupts: {error}"),
            }
        }
    }

    fn stop(&self) {
        for node in &self.nodes {
            node.stop();
        }
        for thread in lock(&self.threads).drain(..) {
            if thread.join().is_err() {
                eprintln!("native-fence: an interrupt thread panicked");
            }
        }
    }

    fn native_fence_caps(&self) -> NativeFenceCaps {
        let engines = self.nodes.iter().map(|node| node.caps());
        let engine = engines.reduce(EngineCaps::and).unwrap_or(NO_ENGINE);
        NativeFenceCaps {
            monitored_value_stride: MONITORED_VALUE_STRIDE as u32,
            current_value_stride: CURRENT_VALUE_STRIDE as u32,
            // Engines reach the values by the mappings of their own that they have anyway.
            map_to_gpu_system_process: false,
            minimum_address: engine.addresses.0.0,
            maximum_address: engine.addresses.1.0,
            has_64_bit_atomics: engine.has_64_bit_atomics,
            local_storage: engine.local_storage,
        }
    }

    fn node_count(&self) -> u32 {
        self.nodes.len() as u32
    }

    fn node_counters(&self, node_ordinal: u32) -> Option<NodeCounters> {
        self.nodes
            .get(node_ordinal as usize)
            .map(|node| node.counters())
    }

    fn create_native_fence(&self, args: &CreateNativeFence<'_>) -> Result<(), DdiError> {
        for node in &self.nodes {
            node.enter_fence(
                args.global,
                (args.current_value.region, args.current_value.offset),
                (args.monitored_value.region, args.monitored_value.offset),
            )?;
        }
        Ok(())
    }

    fn open_native_fence(&self, args: &OpenNativeFence) -> Result<(), DdiError> {
        for node in &self.nodes {
            node.open_handle(args.process.0, args.local, args.access, args.global)?;
        }
        Ok(())
    }

    fn close_native_fence(&self, process: ProcessId, local: FenceHandle) {
        for node in &self.nodes {
            node.close_handle(process.0, local);
        }
    }

    fn destroy_native_fence(&self, global: FenceId) -> Retirement {
        self.retirements.begin(global, self.nodes.len());
        let mut retirement = Retirement::Pending;
        for node in &self.nodes {
            if node.remove_fence(global) && self.retirements.end_one(global) {
                retirement = Retirement::Done;
            }
        }
        retirement
    }

    fn destroy_process(&self, process: ProcessId) {
        for node in &self.nodes {
            node.remove_process(process.0);
        }
    }

    fn update_monitored_values(
        &self,
        updates: &[MonitoredValueUpdate<'_>],
    ) -> Result<(), DdiError> {
        let fences: Vec<FenceId> = updates.iter().map(|update| update.fence).collect();
        for node in &self.nodes {
            // Every node's turn stores the words again: the same values, before its own posts.
            node.post_monitored_values(&fences, || {
                for update in updates {
                    update.word.publish(update.value);
                }
            });
        }
        Ok(())
    }

    fn update_current_values_from_cpu(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateFlags,
    ) -> Result<(), DdiError> {
        let fences: Vec<FenceId> = updates.iter().map(|update| update.fence).collect();
        if flags == UpdateFlags::Store {
            for update in updates {
                update.word.publish(update.value);
            }
        }
        for node in &self.nodes {
            node.signalled(&fences);
        }
        Ok(())
    }

    fn create_hw_queue(&self, args: &CreateHwQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        let node = self.node(args.node_ordinal)?;
        if args.engine_affinity != 1 {
            return Err(DdiError::InvalidParameter(
                "the engine affinity must be exactly bit 0: every node has one engine",
            ));
        }
        if RingIndex::new(args.ring_capacity).is_none() {
            return Err(DdiError::InvalidParameter(
                "the ring's capacity must be a power of two of 2 to 1,048,576 packets",
            ));
        }
        let (page_place, page) = node.queue_page()?;
        let ring = node.map(args.ring.region)?;
        let progress = node.map(args.progress.region)?;
        let places = QueuePlaces {
            page,
            page_place,
            ring_control: ring.part(args.ring.offset, RingControl::BYTES),
            ring: ring.part(
                args.ring.offset + args.ring_packets,
                args.ring_capacity * PACKET_BYTES,
            ),
            ring_capacity: args.ring_capacity,
            progress: progress.part(args.progress.offset, QueueProgress::BYTES),
            process: args.process.0,
            handle_directory: node.handle_directory(args.process.0)?,
            progress_handle: args.progress_handle.raw(),
            progress_fence: node.fence_addresses(args.progress_fence).ok_or(
                DdiError::InvalidParameter("the progress fence was not created"),
            )?,
        };
        let mut next = lock(&self.next_number);
        let number = *next;
        *next += 1;
        let handle = HwQueueHandle {
            node_ordinal: args.node_ordinal,
            number,
        };
        let slot = Arc::new(QueueSlot::new(number, places));
        lock(&self.queues).insert(handle, slot);
        Ok(handle)
    }

    fn destroy_hw_queue(&self, hw_queue: HwQueueHandle) {
        let Some(slot) = lock(&self.queues).remove(&hw_queue) else {
            return;
        };
        if let Ok(node) = self.node(hw_queue.node_ordinal) {
            self.deliver_all(
                node,
                node.disconnect(&slot, DoorbellStatus::DisconnectedAbort),
            );
        }
    }

    fn set_native_fence_log_buffer(
        &self,
        hw_queue: HwQueueHandle,
        log: LogType,
        buffer: Place<'_>,
        entries: u64,
    ) -> Result<(), DdiError> {
        let slot = self.slot(hw_queue)?;
        let mapping = self.node(hw_queue.node_ordinal)?.map(buffer.region)?;
        let bytes = LogHeader::BYTES + entries * LogEntry::BYTES;
        slot.set_log(log, mapping.part(buffer.offset, bytes), entries);
        Ok(())
    }

    fn update_native_fence_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError> {
        for hw_queue in hw_queues {
            self.slot(*hw_queue)?;
            // The engine published the index after the entries; the OS read the index before this.
            // On coherent memory this is all there is to flush.
            fence(Ordering::Acquire);
        }
        Ok(())
    }

    fn connect_doorbell(&self, hw_queue: HwQueueHandle) -> Result<(), DdiError> {
        let slot = self.slot(hw_queue)?;
        if !slot.has_logs() {
            return Err(DdiError::InvalidParameter(
                "a queue needs both logs before it can run",
            ));
        }
        self.node(hw_queue.node_ordinal)?.connect(&slot)?;
        Ok(())
    }

    fn disconnect_doorbell(&self, hw_queue: HwQueueHandle) {
        if let (Ok(slot), Ok(node)) = (self.slot(hw_queue), self.node(hw_queue.node_ordinal)) {
            self.deliver_all(
                node,
                node.disconnect(&slot, DoorbellStatus::DisconnectedRetry),
            );
        }
    }

    fn abort_doorbell(&self, hw_queue: HwQueueHandle) {
        if let (Ok(slot), Ok(node)) = (self.slot(hw_queue), self.node(hw_queue.node_ordinal)) {
            node.abort(&slot);
        }
    }

    fn notify_work_submission(&self, hw_queue: HwQueueHandle) {
        if let Ok(node) = self.node(hw_queue.node_ordinal) {
            self.deliver_all(node, node.work_submitted());
        }
    }

    fn park_engine(&self, node_ordinal: u32, attempt: u64) {
        let parks = |node: &Arc<Node>| node.finish_parking(attempt);
        if self.node(node_ordinal).is_ok_and(parks) {
            let others = self.nodes.iter().filter(|n| n.ordinal() != node_ordinal);
            others.for_each(|node| node.interrupt_from_now());
        }
    }

    fn resume_engine(&self, node_ordinal: u32) {
        if let Ok(node) = self.node(node_ordinal) {
            node.resume();
        }
    }

    fn look_for_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) -> bool {
        let deliver = |node: &Node, report| self.deliver_all(node, [report]);
        look(&self.nodes, done, deadline, &deliver)
    }

    fn watch_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) {
        let deliver = |node: &Node, report| self.deliver_all(node, [report]);
        watch(&self.nodes, done, deadline, &deliver);
    }
}
