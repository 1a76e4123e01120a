//! Driver: the DDIs, over nodes.

use super::caps::NOT_PREEMPTED;
use super::context_calls::ContextCalls;
use super::contexts::Contexts;
use super::doorbells::Doorbells;
use super::features::negotiate;
use super::fence_calls::FenceCalls;
use super::hw_queues::HwQueues;
use super::interrupt_threads::InterruptThreads;
use super::kernel_queue::KernelQueuePools;
use super::look::{look, watch};
use super::nodes::node_of;
use super::queue_calls::QueueCalls;
use super::reporter::Reporter;
use super::segments::FenceSegments;
use super::{
    Callbacks, ConnectDoorbell, ContextAllocationId, ContextHandle, CreateAllocation,
    CreateContext, CreateDoorbell, CreateHwQueue, CreateKernel, CreateKernelQueue,
    CreateNativeFence, CurrentValueUpdate, Ddi, DdiError, DoorbellId, DriverOptions,
    GpuClockCalibration, HwQueueHandle, HwQueueWait, MapMonitoredFence, MonitoredValueUpdate,
    NativeFenceCaps, NativeFenceOsCaps, NativeFenceType, OpenAllocation, OpenNativeFence, Place,
    PreemptCommand, PreemptionCaps, ProcessId, Retirement, SaveAreaMove, SetCrossDoorbells,
    SetNativeFenceLogBuffer, SubmitCommand, SuspendContext, Suspension, SystemProcessPlace, TdrDdi,
    UpdateCurrentValuesFlags, UserModeSubmissionCaps, VidSchCaps,
};
use crate::abi::wddm::{
    ComputePreemption, Enumeration, FenceStorageSurfaceData, FenceStorageValueType,
    GraphicsPreemption,
};
use crate::abi::{AllocationId, DoorbellStatus, FenceId, KernelId, LocalHandle, LogType, ObjectId};
#[cfg(not(loom))]
use crate::gpu::{Alive, at_exit};
use crate::gpu::{EndedSlices, EngineState, Node, NodeCounters, Reaper, SliceReport, SpareEngines};
use crate::shared::Providers;
use crate::sync::Arc;
use bytemuck::Zeroable;
use std::sync::{OnceLock, Weak};
use std::time::Instant;

/// A driver over one or more nodes.
pub struct Driver {
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) contexts: Contexts,
    pub(super) queues: HwQueues,
    pub(super) doorbells: Doorbells,
    pub(super) reporter: Arc<Reporter>,
    providers: Arc<Providers>,
    pub(super) kernel_pools: KernelQueuePools,
    pub(super) options: DriverOptions,
    /// What the OS supports of native fences; nothing before it was asked, and where they are off.
    os_caps: OnceLock<NativeFenceOsCaps>,
    pub(super) threads: InterruptThreads,
    /// What takes the place of engines that are given up; without them a lost engine is lost for good.
    pub(super) spares: Option<Arc<SpareEngines>>,
    pub(super) reaper: Arc<Reaper>,
    /// The last to be dropped.
    #[cfg(not(loom))]
    _alive: Alive,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver")
            .field("nodes", &self.nodes.len())
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// Over these nodes, whose ordinals are their places, and whose engines can map the same
    /// memory.
    #[must_use]
    pub fn new(nodes: Vec<Node>) -> Arc<Self> {
        Self::with_options(nodes, DriverOptions::default())
    }

    /// The same with other caps.
    #[must_use]
    pub fn with_options(nodes: Vec<Node>, options: DriverOptions) -> Arc<Self> {
        Self::with_spares(nodes, options, None)
    }

    /// The same, whose engines are reset: these take their places. Engines are independent of each other,
    /// unless all share a device, which `options` says.
    #[must_use]
    pub fn with_spares(
        nodes: Vec<Node>,
        options: DriverOptions,
        spares: Option<Arc<SpareEngines>>,
    ) -> Arc<Self> {
        let reaper = Arc::default();
        if spares.is_some() {
            for node in &nodes {
                node.make_replaceable(&reaper);
            }
        }
        let providers = nodes.first().map(|node| Arc::clone(node.providers()));
        let providers = providers.unwrap_or_default();
        if !options.is_preemption_aware() {
            nodes.iter().for_each(Node::keep_contexts_apart);
        }
        Arc::new_cyclic(
            |#[cfg_attr(loom, allow(unused_variables))] me: &Weak<Self>| Self {
                kernel_pools: KernelQueuePools::new(&providers),
                providers,
                doorbells: Doorbells::new(nodes.len(), options.doorbells),
                contexts: Contexts::default(),
                queues: HwQueues::default(),
                reporter: Arc::new(Reporter::new(options.optimized_interrupt)),
                nodes: nodes.into_iter().map(Arc::new).collect(),
                options,
                os_caps: OnceLock::new(),
                threads: InterruptThreads::default(),
                spares,
                reaper,
                #[cfg(not(loom))]
                _alive: at_exit(me.clone()),
            },
        )
    }

    /// Whether an engine stands ready to take the place of one that is given up.
    #[must_use]
    pub fn has_spare(&self) -> bool {
        let spares = self.spares.as_ref();
        spares.is_some_and(|spares| spares.is_ready())
    }

    /// Engines that were given up and still run.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.reaper.left()
    }

    /// The state of a node's engine, a hint; for tests and reports.
    #[must_use]
    pub fn engine_state(&self, node_ordinal: u32) -> Option<EngineState> {
        let node = self.nodes.get(node_ordinal as usize)?;
        Some(node.state())
    }

    /// A node by itself; for fault injection, tests and reports.
    ///
    /// # Errors
    /// No node has this ordinal.
    pub fn node(&self, ordinal: u32) -> Result<&Arc<Node>, DdiError> {
        node_of(&self.nodes, ordinal)
    }

    /// Starts the interrupt thread of the engine that the node has now.
    pub(super) fn serve(&self, node: &Arc<Node>) -> Result<(), DdiError> {
        let (node, reporter) = (Arc::clone(node), Arc::clone(&self.reporter));
        let engine = node.engine();
        self.threads.start(node.ordinal(), move || {
            while let Some(report) = node.next_report(&engine) {
                reporter.deliver(&node, report);
            }
        })
    }

    fn stop_nodes(&self) {
        for node in &self.nodes {
            if !node.stop() {
                self.threads.let_go(node.ordinal());
            }
        }
    }

    /// Tells the OS, on this thread, what slices reported that ended for it.
    pub(super) fn deliver_all(&self, node: &Node, reports: impl IntoIterator<Item = SliceReport>) {
        for report in reports {
            self.reporter.deliver(node, report);
        }
    }

    /// Tells spares of the kernels that engines have. They are those of the first, and of each other node the same
    /// in maybe other places: none of them is compiled again.
    fn tell_spares(&self) {
        if let (Some(spares), Some(node)) = (&self.spares, self.nodes.first()) {
            spares.have_kernels(&node.kernels());
        }
    }

    /// Takes an object out of every node.
    fn retire(&self, object: ObjectId, remove: impl Fn(&Node) -> bool) -> Retirement {
        self.reporter
            .retirements()
            .retire(object, &self.nodes, remove)
    }

    pub(super) fn close_handle(&self, process: ProcessId, local: LocalHandle) {
        for node in &self.nodes {
            node.close_handle(process.0, local);
        }
    }
}

impl Ddi for Driver {
    fn start(&self, callbacks: Arc<dyn Callbacks>) -> Result<(), DdiError> {
        if self.native_fence_gap().is_none()
            && let Some(os_caps) = negotiate(callbacks.as_ref())
        {
            self.os_caps.get_or_init(|| os_caps);
        }
        self.reporter.start(callbacks);
        for node in &self.nodes {
            self.serve(node)?;
        }
        if let Some(spares) = &self.spares {
            spares.keep();
        }
        Ok(())
    }

    fn stop(&self) {
        self.stop_nodes();
        self.threads.join();
    }

    fn stop_unawaited(&self) {
        self.stop_nodes();
        self.threads.let_all_go();
    }

    fn native_fence_caps(&self) -> NativeFenceCaps {
        let mapped_twice = self.options.map_to_gpu_system_process;
        NativeFenceCaps::of(self.nodes.iter().map(|node| node.caps()), mapped_twice)
    }

    fn vidsch_caps(&self) -> VidSchCaps {
        let caps = self.native_fence_caps();
        let narrow = !caps.has_64_bit_atomics || self.options.no_64_bit_atomics;
        let preempts = self.options.is_preemption_aware();
        let optimized = VidSchCaps::OPTIMIZED_NATIVE_FENCE_SIGNALED_INTERRUPT;
        let bits = [
            // Queues of one process run on any node, ordered by fences alone.
            (VidSchCaps::MULTI_ENGINE_AWARE, true),
            (VidSchCaps::PREEMPTION_AWARE, preempts),
            // Packets carry handles and virtual addresses, and nothing is ever patched; but it may be said
            // by a driver alone that preempts (FQ-08).
            (VidSchCaps::NO_DMA_PATCHING, preempts),
            (VidSchCaps::NO_64_BIT_ATOMICS, narrow),
            (VidSchCaps::NATIVE_GPU_FENCE, self.os_caps.get().is_some()),
            (optimized, self.options.optimized_interrupt),
        ];
        let set = bits.iter().filter(|(_, is_set)| *is_set);
        set.fold(VidSchCaps::default(), |caps, (bit, _)| caps.with(*bit))
    }

    fn user_mode_submission_caps(&self) -> UserModeSubmissionCaps {
        UserModeSubmissionCaps {
            // The word that a user rings.
            doorbell_size_in_bytes: size_of::<u64>() as u32,
            ..UserModeSubmissionCaps::zeroed()
        }
    }

    fn native_fence_gap(&self) -> Option<String> {
        let narrow = || String::from("The driver was asked to claim No64BitAtomics.");
        let gap = self.options.without_native_fences.clone();
        gap.or_else(|| self.options.no_64_bit_atomics.then(narrow))
    }

    fn providers(&self) -> &Arc<Providers> {
        &self.providers
    }

    fn node_count(&self) -> u32 {
        self.nodes.len() as u32
    }

    fn node_counters(&self, node_ordinal: u32) -> Option<NodeCounters> {
        self.nodes
            .get(node_ordinal as usize)
            .map(|node| node.counters())
    }

    fn calibrate_gpu_clock(
        &self,
        node_ordinal: u32,
        engine_ordinal: u32,
    ) -> Result<GpuClockCalibration, DdiError> {
        let node = self.node(node_ordinal)?;
        GpuClockCalibration::of_engine(engine_ordinal, node.read_clocks())
    }

    fn take_ended_slices(&self, node_ordinal: u32, go_on: bool) -> EndedSlices {
        let node = self.node(node_ordinal);
        node.map_or_else(
            |_| EndedSlices::default(),
            |node| node.take_ended_slices(go_on),
        )
    }

    fn set_cross_doorbells(&self, args: &SetCrossDoorbells<'_>) -> Result<(), DdiError> {
        FenceCalls(self).set_cross_doorbells(args)
    }

    fn create_native_fence(&self, args: &CreateNativeFence<'_>) -> Result<(), DdiError> {
        FenceCalls(self).create_native_fence(args)
    }

    fn open_native_fence(&self, args: &OpenNativeFence) -> Result<(), DdiError> {
        FenceCalls(self).open_native_fence(args)
    }

    fn close_native_fence(&self, process: ProcessId, local: LocalHandle) -> Retirement {
        self.close_handle(process, local);
        self.retire(ObjectId::Handle(process.0, local), |node| {
            node.retire_handle(process.0, local)
        })
    }

    fn destroy_native_fence(&self, global: FenceId) -> Retirement {
        self.retire(ObjectId::Fence(global), |node| node.remove_fence(global))
    }

    fn map_monitored_fence(&self, args: &MapMonitoredFence<'_>) -> Result<(), DdiError> {
        FenceCalls(self).map_monitored_fence(args)
    }

    fn close_monitored_fence(&self, process: ProcessId, local: LocalHandle) {
        self.close_handle(process, local);
    }

    fn unmap_monitored_fence(&self, global: FenceId) -> Retirement {
        self.retire(ObjectId::Fence(global), |node| node.remove_fence(global))
    }

    fn create_allocation(&self, args: &CreateAllocation<'_>) -> Result<(), DdiError> {
        let memory = (args.memory.region, args.memory.offset);
        for node in &self.nodes {
            node.enter_allocation(args.global, memory, args.bytes)?;
        }
        Ok(())
    }

    fn open_allocation(&self, args: &OpenAllocation) -> Result<(), DdiError> {
        for node in &self.nodes {
            node.open_allocation(args.process.0, args.local, args.global)?;
        }
        Ok(())
    }

    fn close_allocation(&self, process: ProcessId, local: LocalHandle) {
        self.close_handle(process, local);
    }

    fn destroy_allocation(&self, global: AllocationId) -> Retirement {
        let removes = |node: &Node| node.remove_allocation(global);
        self.retire(ObjectId::Allocation(global), removes)
    }

    fn create_kernel(&self, args: &CreateKernel<'_>) -> Result<(), DdiError> {
        let owner = (args.process.0, args.local);
        for node in &self.nodes {
            node.add_kernel(args.global, owner, args.code)?;
        }
        self.tell_spares();
        Ok(())
    }

    fn close_kernel(&self, process: ProcessId, local: LocalHandle) {
        self.close_handle(process, local);
    }

    fn destroy_kernel(&self, global: KernelId) -> Retirement {
        let retirement = self.retire(ObjectId::Kernel(global), |node| node.remove_kernel(global));
        self.tell_spares();
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
        FenceCalls(self).update_monitored_values(updates);
        Ok(())
    }

    fn update_current_values_from_cpu(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateCurrentValuesFlags,
    ) -> Result<(), DdiError> {
        FenceCalls(self).update_current_values(updates, flags)
    }

    fn create_context(&self, args: &CreateContext) -> Result<ContextHandle, DdiError> {
        ContextCalls(self).create(args)
    }

    fn destroy_context(&self, context: ContextHandle) {
        ContextCalls(self).destroy(context);
    }

    fn suspend_context(&self, args: &SuspendContext) -> Result<Suspension, DdiError> {
        ContextCalls(self).suspend(args)
    }

    fn resume_context(&self, context: ContextHandle) {
        ContextCalls(self).resume(context);
    }

    fn context_allocation_initialised(&self, id: ContextAllocationId) {
        ContextCalls(self).allocation_initialised(id);
    }

    fn move_context_allocation(
        &self,
        id: ContextAllocationId,
        to: Place<'_>,
    ) -> Result<SaveAreaMove, DdiError> {
        ContextCalls(self).move_allocation(id, to)
    }

    fn create_hw_queue(&self, args: &CreateHwQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        QueueCalls(self).create_hw_queue(args)
    }

    fn create_kernel_queue(&self, args: &CreateKernelQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        QueueCalls(self).create_kernel_queue(args)
    }

    fn submit_command_to_hw_queue(&self, args: &SubmitCommand<'_>) -> Result<(), DdiError> {
        QueueCalls(self).submit_command(args)
    }

    fn preempt_command(&self, args: &PreemptCommand) -> Result<(), DdiError> {
        ContextCalls(self).preempt(args)
    }

    fn preemption_caps(&self) -> PreemptionCaps {
        if !self.options.is_preemption_aware() {
            return NOT_PREEMPTED;
        }
        // The coarsest of what the engines do (PR-03): every opcode is divisible but that which runs a program's
        // kernel; no engine draws.
        let runs_kernels = self.nodes.iter().any(|node| node.runs_kernels());
        PreemptionCaps {
            graphics: GraphicsPreemption::NONE,
            compute: if runs_kernels {
                ComputePreemption::DISPATCH
            } else {
                ComputePreemption::THREAD_GROUP
            },
        }
    }

    fn set_context_scheduling_properties(
        &self,
        context: ContextHandle,
        priority: i32,
    ) -> Result<(), DdiError> {
        ContextCalls(self).set_priority(context, priority)
    }

    fn destroy_hw_queue(&self, hw_queue: HwQueueHandle) {
        QueueCalls(self).destroy_hw_queue(hw_queue);
    }

    fn map_to_gpu_system_process(&self, place: Place<'_>) -> Result<SystemProcessPlace, DdiError> {
        SystemProcessPlace::map(&self.nodes, place, self.options.map_to_gpu_system_process)
    }

    fn set_native_fence_log_buffer(
        &self,
        args: &SetNativeFenceLogBuffer<'_>,
    ) -> Result<(), DdiError> {
        QueueCalls(self).set_log(args)
    }

    fn remove_native_fence_log_buffer(
        &self,
        hw_queue: HwQueueHandle,
        log: LogType,
    ) -> Result<(), DdiError> {
        QueueCalls(self).remove_log(hw_queue, log)
    }

    fn update_native_fence_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError> {
        QueueCalls(self).update_logs(hw_queues)
    }

    fn create_doorbell(&self, args: &CreateDoorbell<'_>) -> Result<(), DdiError> {
        QueueCalls(self).create_doorbell(args)
    }

    fn destroy_doorbell(&self, doorbell: DoorbellId) {
        QueueCalls(self).destroy_doorbell(doorbell);
    }

    fn connect_doorbell(&self, args: &ConnectDoorbell) -> Result<DoorbellStatus, DdiError> {
        QueueCalls(self).connect_doorbell(args)
    }

    fn disconnect_doorbell(&self, doorbell: DoorbellId) {
        QueueCalls(self).disconnect_doorbell(doorbell);
    }

    fn abort_doorbell(&self, hw_queue: HwQueueHandle) {
        QueueCalls(self).abort_doorbell(hw_queue);
    }

    fn notify_work_submission(&self, doorbell: DoorbellId) {
        QueueCalls(self).notify_work_submission(doorbell);
    }

    fn get_standard_allocation_driver_data(
        &self,
        data: &mut FenceStorageSurfaceData,
    ) -> Result<(), DdiError> {
        let (values, types) = (FenceStorageValueType::VALUES, NativeFenceType::VALUES);
        let has = |all: Enumeration, number| all.values.iter().any(|(_, of)| *of == number);
        if !has(values, data.value_type.0) || !has(types, data.storage_type.0) {
            return Err(DdiError::InvalidParameter(
                "a fence has no such value, or there is no such type",
            ));
        }
        FenceSegments::of_driver(self.providers.local().is_ok()).answer(data);
        Ok(())
    }

    fn withdraw_doorbell(&self, doorbell: DoorbellId) -> Result<(), DdiError> {
        QueueCalls(self).withdraw_doorbell(doorbell)
    }

    fn hw_queue_wait(&self, hw_queue: HwQueueHandle) -> Option<HwQueueWait> {
        let slot = self.queues.slot(hw_queue).ok()?;
        let (handle, value, observed_ticks) = slot.stands_at()?;
        Some(HwQueueWait {
            handle,
            value,
            observed_ticks,
        })
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

    fn tdr(&self) -> Option<&dyn TdrDdi> {
        self.spares.is_some().then_some(self as _)
    }

    fn look_for_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) -> bool {
        look(&self.nodes, done, deadline, &self.reporter)
    }

    fn watch_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) {
        watch(&self.nodes, done, deadline, &self.reporter);
    }
}

/// One without engines, for tests of the OS alone.
#[cfg(any(test, loom))]
pub(crate) fn without_engines() -> Arc<dyn Ddi> {
    Driver::new(Vec::new())
}
