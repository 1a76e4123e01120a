//! Command driver: the driver of an adapter of monitored fences alone, as before WDDM 3.2.
//!
//! It offers kernel-mode queues over engines that execute command buffers, and refuses what is of
//! native fences: the OS does not call it, since the caps do not advertise them (FQ-04). On a device
//! without 64-bit atomics it sets No64BitAtomics.

use super::caps::NOT_PREEMPTED;
use super::command_node::{CommandNode, News};
use super::command_parts::CommandForm;
use super::context_calls::NO_SUCH_ENGINE;
use super::contexts::Contexts;
use super::interrupt_threads::InterruptThreads;
use super::nodes::node_of;
use super::retirement::Retirements;
use super::{
    Callbacks, ConnectDoorbell, ContextAllocationId, ContextHandle, CreateAllocation,
    CreateContext, CreateDoorbell, CreateHwQueue, CreateKernel, CreateKernelQueue,
    CreateNativeFence, CurrentValueUpdate, Ddi, DdiError, DoorbellId, DriverOptions,
    GpuClockCalibration, HwQueueHandle, HwQueueWait, Interrupt, MapMonitoredFence,
    MonitoredValueUpdate, NativeFenceCaps, OpenAllocation, OpenNativeFence, Place, PreemptCommand,
    PreemptionCaps, ProcessId, Retirement, SaveAreaMove, SetCrossDoorbells,
    SetNativeFenceLogBuffer, SubmitCommand, SuspendContext, Suspension, SystemProcessPlace, TdrDdi,
    UpdateCurrentValuesFlags, UserModeSubmissionCaps, VidSchCaps,
};
use crate::abi::wddm::FenceStorageSurfaceData;
use crate::abi::{AllocationId, DoorbellStatus, FenceId, KernelId, LocalHandle, LogType, ObjectId};
use crate::gpu::{
    Alive, CommandEngine, EndedSlices, EndsAtExit, KernelError, NodeCounters, NodeError, at_exit,
};
use crate::shared::Providers;
use crate::sync::{Arc, thread};
use bytemuck::Zeroable;
use std::sync::{OnceLock, Weak};
use std::time::{Duration, Instant};

const NO_NATIVE_FENCES: DdiError =
    DdiError::InvalidParameter("the driver has no native fences and no user-mode queues");

/// What the interrupt threads share with the driver.
#[derive(Default)]
struct Telling {
    callbacks: OnceLock<Arc<dyn Callbacks>>,
    retirements: Retirements,
}

impl Telling {
    fn tell(&self, news: News) {
        let Some(callbacks) = self.callbacks.get() else {
            return;
        };
        match news {
            News::Interrupt(interrupt) => callbacks.notify_interrupt(interrupt),
            News::Retired(object) if self.retirements.end_one(object) => {
                callbacks.notify_interrupt(Interrupt::ObjectsRetired {
                    objects: vec![object],
                });
            }
            News::Retired(_) => {}
        }
    }
}

/// See the file's head.
pub struct CommandDriver {
    nodes: Vec<Arc<CommandNode>>,
    contexts: Contexts,
    telling: Arc<Telling>,
    threads: InterruptThreads,
    providers: Arc<Providers>,
    options: DriverOptions,
    has_64_bit_atomics: bool,
    /// How long a waiter looks before it sleeps.
    wait_spin: Duration,
    /// The last to be dropped.
    _alive: Alive,
}

impl std::fmt::Debug for CommandDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandDriver")
            .field("nodes", &self.nodes.len())
            .finish_non_exhaustive()
    }
}

impl CommandDriver {
    /// Over these engines, each a node, which reach the same memory. A waiter looks for `wait_spin`
    /// before it sleeps, while something runs.
    #[must_use]
    pub fn new(
        engines: Vec<CommandEngine>,
        options: DriverOptions,
        wait_spin: Duration,
    ) -> Arc<Self> {
        let providers = engines.first().map(|one| Arc::clone(one.providers()));
        let has_64_bit_atomics = engines.iter().all(|one| one.caps().has_64_bit_atomics);
        let form = CommandForm {
            narrow: options.no_64_bit_atomics || !has_64_bit_atomics,
            basic: options.basic_monitored_fences,
            has_clock: engines.iter().all(CommandEngine::has_clock),
        };
        let nodes = engines.into_iter().zip(0..);
        let nodes = nodes.map(|(engine, at)| Arc::new(CommandNode::new(at, engine, form)));
        Arc::new_cyclic(|me: &Weak<Self>| Self {
            nodes: nodes.collect(),
            contexts: Contexts::default(),
            telling: Arc::default(),
            threads: InterruptThreads::default(),
            providers: providers.unwrap_or_default(),
            options,
            has_64_bit_atomics,
            wait_spin,
            _alive: at_exit(me.clone()),
        })
    }

    fn node(&self, ordinal: u32) -> Result<&Arc<CommandNode>, DdiError> {
        node_of(&self.nodes, ordinal)
    }

    fn retire(&self, object: ObjectId) -> Retirement {
        let retirements = &self.telling.retirements;
        retirements.retire(object, &self.nodes, |node| node.remove(object))
    }

    fn close_handle(&self, process: ProcessId, local: LocalHandle) {
        for node in &self.nodes {
            node.close_handle(process, local);
        }
    }

    fn stop_nodes(&self) {
        for node in &self.nodes {
            node.stop();
        }
    }

    fn tell_ended(&self) {
        for node in &self.nodes {
            node.tell_ended(&|news| self.telling.tell(news));
        }
    }
}

impl EndsAtExit for CommandDriver {
    fn end_at_exit(&self, deadline: Instant) {
        self.stop_nodes();
        self.threads.wait_for_services(deadline);
    }
}

impl Ddi for CommandDriver {
    fn start(&self, callbacks: Arc<dyn Callbacks>) -> Result<(), DdiError> {
        self.telling.callbacks.get_or_init(|| callbacks);
        for (node, ordinal) in self.nodes.iter().zip(0..) {
            let (node, telling) = (Arc::clone(node), Arc::clone(&self.telling));
            self.threads
                .start(ordinal, move || node.serve(&|news| telling.tell(news)))?;
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
        NativeFenceCaps::of(self.nodes.iter().map(|node| node.engine().caps()), false)
    }

    fn vidsch_caps(&self) -> VidSchCaps {
        let caps = VidSchCaps::MULTI_ENGINE_AWARE;
        if self.options.no_64_bit_atomics || !self.has_64_bit_atomics {
            caps.with(VidSchCaps::NO_64_BIT_ATOMICS)
        } else {
            caps
        }
    }

    fn user_mode_submission_caps(&self) -> UserModeSubmissionCaps {
        UserModeSubmissionCaps::zeroed()
    }

    fn native_fence_gap(&self) -> Option<String> {
        let gap = self.options.without_native_fences.clone();
        let chosen = || String::from("The adapter was opened for monitored fences alone.");
        Some(gap.unwrap_or_else(chosen))
    }

    fn providers(&self) -> &Arc<Providers> {
        &self.providers
    }

    fn node_count(&self) -> u32 {
        self.nodes.len() as u32
    }

    fn node_counters(&self, node_ordinal: u32) -> Option<NodeCounters> {
        Some(self.node(node_ordinal).ok()?.counters())
    }

    fn calibrate_gpu_clock(&self, _: u32, _: u32) -> Result<GpuClockCalibration, DdiError> {
        // Its engines log nothing.
        Err(GpuClockCalibration::NONE)
    }

    fn take_ended_slices(&self, _: u32, _: bool) -> EndedSlices {
        EndedSlices::default()
    }

    fn set_cross_doorbells(&self, _: &SetCrossDoorbells<'_>) -> Result<(), DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn create_native_fence(&self, _: &CreateNativeFence<'_>) -> Result<(), DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn open_native_fence(&self, _: &OpenNativeFence) -> Result<(), DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn close_native_fence(&self, _: ProcessId, _: LocalHandle) -> Retirement {
        Retirement::Done
    }

    fn destroy_native_fence(&self, _: FenceId) -> Retirement {
        Retirement::Done
    }

    fn map_monitored_fence(&self, args: &MapMonitoredFence<'_>) -> Result<(), DdiError> {
        for node in &self.nodes {
            node.enter_fence(args)?;
        }
        Ok(())
    }

    fn close_monitored_fence(&self, process: ProcessId, local: LocalHandle) {
        self.close_handle(process, local);
    }

    fn unmap_monitored_fence(&self, global: FenceId) -> Retirement {
        self.retire(ObjectId::Fence(global))
    }

    fn create_allocation(&self, args: &CreateAllocation<'_>) -> Result<(), DdiError> {
        for node in &self.nodes {
            node.enter_allocation(args)?;
        }
        Ok(())
    }

    fn open_allocation(&self, args: &OpenAllocation) -> Result<(), DdiError> {
        for node in &self.nodes {
            node.open_allocation(args);
        }
        Ok(())
    }

    fn close_allocation(&self, process: ProcessId, local: LocalHandle) {
        self.close_handle(process, local);
    }

    fn destroy_allocation(&self, global: AllocationId) -> Retirement {
        self.retire(ObjectId::Allocation(global))
    }

    fn create_kernel(&self, _: &CreateKernel<'_>) -> Result<(), DdiError> {
        let why = KernelError::Unsupported("an engine without 64-bit atomics");
        Err(DdiError::Node(NodeError::Kernel(why)))
    }

    fn close_kernel(&self, process: ProcessId, local: LocalHandle) {
        self.close_handle(process, local);
    }

    fn destroy_kernel(&self, global: KernelId) -> Retirement {
        self.retire(ObjectId::Kernel(global))
    }

    fn destroy_process(&self, process: ProcessId) {
        for node in &self.nodes {
            node.remove_process(process);
        }
    }

    fn update_monitored_values(&self, _: &[MonitoredValueUpdate<'_>]) -> Result<(), DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn update_current_values_from_cpu(
        &self,
        _: &[CurrentValueUpdate<'_>],
        _: UpdateCurrentValuesFlags,
    ) -> Result<(), DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn create_context(&self, args: &CreateContext) -> Result<ContextHandle, DdiError> {
        self.node(args.node_ordinal)?;
        self.contexts.create(args)
    }

    fn destroy_context(&self, context: ContextHandle) {
        self.contexts.remove(context);
    }

    fn suspend_context(&self, args: &SuspendContext) -> Result<Suspension, DdiError> {
        self.contexts.check(args.context)?;
        // A VkQueue gives nothing back, and a context of kernel-mode queues is preempted, not suspended.
        Err(DdiError::InvalidParameter(
            "engines that execute command buffers cannot suspend a context",
        ))
    }

    fn resume_context(&self, _: ContextHandle) {
        // None was ever suspended.
    }

    fn context_allocation_initialised(&self, _: ContextAllocationId) {
        // It asks for none.
    }

    fn move_context_allocation(
        &self,
        _: ContextAllocationId,
        _: Place<'_>,
    ) -> Result<SaveAreaMove, DdiError> {
        // What is begun is never taken back, so there is nothing to save.
        Err(DdiError::InvalidParameter(
            "engines that execute command buffers have no save areas",
        ))
    }

    fn create_hw_queue(&self, _: &CreateHwQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn create_kernel_queue(&self, args: &CreateKernelQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        self.node(args.node_ordinal)?.create_queue(args)
    }

    fn submit_command_to_hw_queue(&self, args: &SubmitCommand<'_>) -> Result<(), DdiError> {
        let node = self.node(args.hw_queue.node_ordinal)?;
        node.submit(args, &|news| self.telling.tell(news))
    }

    fn preempt_command(&self, args: &PreemptCommand) -> Result<(), DdiError> {
        if args.engine_ordinal != 0 {
            return Err(NO_SUCH_ENGINE);
        }
        let node = self.node(args.node_ordinal)?;
        node.preempt(args.preemption_id, &|news| self.telling.tell(news));
        Ok(())
    }

    fn preemption_caps(&self) -> PreemptionCaps {
        // What a VkQueue has, it ends.
        NOT_PREEMPTED
    }

    fn set_context_scheduling_properties(
        &self,
        context: ContextHandle,
        _: i32,
    ) -> Result<(), DdiError> {
        // A VkQueue executes in order; the OS hands over by priority.
        self.contexts.check(context)
    }

    fn destroy_hw_queue(&self, hw_queue: HwQueueHandle) {
        if let Ok(node) = self.node(hw_queue.node_ordinal) {
            node.destroy_queue(hw_queue, &|news| self.telling.tell(news));
        }
    }

    fn map_to_gpu_system_process(&self, _: Place<'_>) -> Result<SystemProcessPlace, DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn set_native_fence_log_buffer(&self, _: &SetNativeFenceLogBuffer<'_>) -> Result<(), DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn remove_native_fence_log_buffer(&self, _: HwQueueHandle, _: LogType) -> Result<(), DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn update_native_fence_logs(&self, _: &[HwQueueHandle]) -> Result<(), DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn create_doorbell(&self, _: &CreateDoorbell<'_>) -> Result<(), DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn destroy_doorbell(&self, _: DoorbellId) {}

    fn connect_doorbell(&self, _: &ConnectDoorbell) -> Result<DoorbellStatus, DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn disconnect_doorbell(&self, _: DoorbellId) {}

    fn abort_doorbell(&self, hw_queue: HwQueueHandle) {
        if let Ok(node) = self.node(hw_queue.node_ordinal) {
            node.stop_queue(hw_queue);
        }
    }

    fn notify_work_submission(&self, _: DoorbellId) {}

    fn get_standard_allocation_driver_data(
        &self,
        _: &mut FenceStorageSurfaceData,
    ) -> Result<(), DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn withdraw_doorbell(&self, _: DoorbellId) -> Result<(), DdiError> {
        Err(NO_NATIVE_FENCES)
    }

    fn hw_queue_wait(&self, _: HwQueueHandle) -> Option<HwQueueWait> {
        None
    }

    fn park_engine(&self, _: u32, _: u64) {}

    fn resume_engine(&self, _: u32) {}

    fn tdr(&self) -> Option<&dyn TdrDdi> {
        None
    }

    fn look_for_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) -> bool {
        let patience = Instant::now() + self.wait_spin;
        let end = deadline.map_or(patience, |deadline| deadline.min(patience));
        loop {
            if done() {
                return true;
            }
            // What nothing brings is not looked for.
            if !self.nodes.iter().any(|node| node.is_busy()) || Instant::now() >= end {
                return false;
            }
            self.tell_ended();
            // The thread that runs a command, where the device is a CPU, may need this processor.
            thread::yield_now();
        }
    }

    fn watch_interrupts(&self, _: &dyn Fn() -> bool, _: Option<Instant>) {
        // All of them interrupt.
    }
}
