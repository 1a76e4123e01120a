//! The foreign driver itself: what it passes to its engines under their names, what it does in a way of its own.

use super::fault::{Fault, ODD_STRIDE};
use super::news::{News, Teller};
use super::numbers::Numbers;
use native_fence::abi::wddm::FenceStorageSurfaceData;
use native_fence::abi::{AllocationId, DoorbellStatus, FenceId, KernelId, LocalHandle, LogType};
use native_fence::kmd::{
    Callbacks, ConnectDoorbell, ContextAllocationId, ContextHandle, CreateAllocation,
    CreateContext, CreateDoorbell, CreateHwQueue, CreateKernel, CreateKernelQueue,
    CreateNativeFence, CurrentValueUpdate, Ddi, DdiError, DoorbellId, EndedSlices,
    GpuClockCalibration, HwQueueHandle, HwQueueWait, MapMonitoredFence, MonitoredValueUpdate,
    NativeFenceCaps, NodeCounters, OpenAllocation, OpenNativeFence, Place, PreemptCommand,
    PreemptionCaps, ProcessId, Retirement, SaveAreaMove, SetCrossDoorbells,
    SetNativeFenceLogBuffer, SubmitCommand, SuspendContext, Suspension, SystemProcessPlace, TdrDdi,
    UpdateCurrentValuesFlags, UserModeSubmissionCaps, VidSchCaps,
};
use native_fence::shared::Providers;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// See the file's head.
pub(crate) struct ForeignDriver {
    pub(super) engines: Arc<dyn Ddi>,
    pub(super) numbers: Numbers,
    pub(super) fault: Option<Fault>,
    teller: Mutex<Option<Teller>>,
}

impl fmt::Debug for ForeignDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignDriver").finish_non_exhaustive()
    }
}

impl ForeignDriver {
    /// Before such engines.
    pub(crate) fn over(engines: Arc<dyn Ddi>, fault: Option<Fault>) -> Self {
        Self {
            numbers: Numbers::of(engines.node_count()),
            engines,
            fault,
            teller: Mutex::default(),
        }
    }
}

impl Ddi for ForeignDriver {
    fn tdr(&self) -> Option<&dyn TdrDdi> {
        let has_none = self.fault == Some(Fault::RecoversNothing);
        let tdr = self.engines.tdr().filter(|_| !has_none);
        tdr.map(|_| self as _)
    }

    fn look_for_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) -> bool {
        self.engines.look_for_interrupts(done, deadline)
    }

    fn watch_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) {
        self.engines.watch_interrupts(done, deadline);
    }

    fn start(&self, callbacks: Arc<dyn Callbacks>) -> Result<(), DdiError> {
        let (news, teller) = News::of(callbacks, self.numbers, self.fault)?;
        *self.teller.lock().unwrap() = Some(teller);
        self.engines.start(news)
    }

    fn stop(&self) {
        self.engines.stop();
        let teller = self.teller.lock().unwrap().take();
        if let Some(teller) = teller {
            teller.end();
        }
    }

    fn user_mode_submission_caps(&self) -> UserModeSubmissionCaps {
        self.engines.user_mode_submission_caps()
    }

    fn vidsch_caps(&self) -> VidSchCaps {
        self.engines.vidsch_caps()
    }

    fn native_fence_gap(&self) -> Option<String> {
        self.engines.native_fence_gap()
    }

    fn providers(&self) -> &Arc<Providers> {
        self.engines.providers()
    }

    fn native_fence_caps(&self) -> NativeFenceCaps {
        let mut caps = self.engines.native_fence_caps();
        // Twice as far apart as its engines need.
        caps.published.monitored_value_stride *= 2;
        caps.current_value_stride *= 2;
        if self.fault == Some(Fault::AsksForOddStrides) {
            caps.published.monitored_value_stride = ODD_STRIDE;
        }
        caps
    }

    fn node_count(&self) -> u32 {
        self.numbers.nodes()
    }

    fn node_counters(&self, node_ordinal: u32) -> Option<NodeCounters> {
        self.engines.node_counters(self.numbers.node(node_ordinal))
    }

    fn calibrate_gpu_clock(
        &self,
        node_ordinal: u32,
        engine_ordinal: u32,
    ) -> Result<GpuClockCalibration, DdiError> {
        self.engines
            .calibrate_gpu_clock(self.numbers.node(node_ordinal), engine_ordinal)
    }

    fn take_ended_slices(&self, node_ordinal: u32, go_on: bool) -> EndedSlices {
        self.engines
            .take_ended_slices(self.numbers.node(node_ordinal), go_on)
    }

    fn set_cross_doorbells(&self, args: &SetCrossDoorbells<'_>) -> Result<(), DdiError> {
        let lines: Vec<_> = args.lines.iter().rev().copied().collect();
        self.engines.set_cross_doorbells(&SetCrossDoorbells {
            lines: &lines,
            ..*args
        })
    }

    fn create_native_fence(&self, args: &CreateNativeFence<'_>) -> Result<(), DdiError> {
        self.engines.create_native_fence(args)
    }

    fn open_native_fence(&self, args: &OpenNativeFence) -> Result<(), DdiError> {
        self.engines.open_native_fence(args)
    }

    fn close_native_fence(&self, process: ProcessId, local: LocalHandle) -> Retirement {
        self.engines.close_native_fence(process, local)
    }

    fn destroy_native_fence(&self, global: FenceId) -> Retirement {
        self.engines.destroy_native_fence(global)
    }

    fn map_monitored_fence(&self, args: &MapMonitoredFence<'_>) -> Result<(), DdiError> {
        self.engines.map_monitored_fence(args)
    }

    fn close_monitored_fence(&self, process: ProcessId, local: LocalHandle) {
        self.engines.close_monitored_fence(process, local);
    }

    fn unmap_monitored_fence(&self, global: FenceId) -> Retirement {
        self.engines.unmap_monitored_fence(global)
    }

    fn create_kernel_queue(&self, args: &CreateKernelQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        let made = self.engines.create_kernel_queue(&CreateKernelQueue {
            context: self.numbers.context(args.context),
            node_ordinal: self.numbers.node(args.node_ordinal),
            ..*args
        })?;
        Ok(self.numbers.queue(made))
    }

    fn submit_command_to_hw_queue(&self, args: &SubmitCommand<'_>) -> Result<(), DdiError> {
        self.engines.submit_command_to_hw_queue(&SubmitCommand {
            hw_queue: self.numbers.queue(args.hw_queue),
            ..*args
        })
    }

    fn create_allocation(&self, args: &CreateAllocation<'_>) -> Result<(), DdiError> {
        self.engines.create_allocation(args)
    }

    fn open_allocation(&self, args: &OpenAllocation) -> Result<(), DdiError> {
        self.engines.open_allocation(args)
    }

    fn close_allocation(&self, process: ProcessId, local: LocalHandle) {
        self.engines.close_allocation(process, local);
    }

    fn destroy_allocation(&self, global: AllocationId) -> Retirement {
        self.engines.destroy_allocation(global)
    }

    fn create_kernel(&self, args: &CreateKernel<'_>) -> Result<(), DdiError> {
        self.engines.create_kernel(args)
    }

    fn close_kernel(&self, process: ProcessId, local: LocalHandle) {
        self.engines.close_kernel(process, local);
    }

    fn destroy_kernel(&self, global: KernelId) -> Retirement {
        self.engines.destroy_kernel(global)
    }

    fn destroy_process(&self, process: ProcessId) {
        self.engines.destroy_process(process);
    }

    fn update_monitored_values(
        &self,
        updates: &[MonitoredValueUpdate<'_>],
    ) -> Result<(), DdiError> {
        if self.fault == Some(Fault::PostsNothing) {
            return Ok(());
        }
        self.engines.update_monitored_values(updates)
    }

    fn update_current_values_from_cpu(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateCurrentValuesFlags,
    ) -> Result<(), DdiError> {
        let notifies = flags == UpdateCurrentValuesFlags::NOTIFICATION_ONLY;
        if notifies && self.fault == Some(Fault::IgnoresNotifications) {
            return Ok(());
        }
        self.engines.update_current_values_from_cpu(updates, flags)
    }

    fn create_context(&self, args: &CreateContext) -> Result<ContextHandle, DdiError> {
        let made = self.engines.create_context(&CreateContext {
            node_ordinal: self.numbers.node(args.node_ordinal),
            ..*args
        })?;
        Ok(self.numbers.context(made))
    }

    fn destroy_context(&self, context: ContextHandle) {
        self.engines.destroy_context(self.numbers.context(context));
    }

    fn suspend_context(&self, args: &SuspendContext) -> Result<Suspension, DdiError> {
        if self.fault == Some(Fault::IgnoresSuspensions) {
            return Ok(Suspension::Done);
        }
        self.engines.suspend_context(&SuspendContext {
            context: self.numbers.context(args.context),
            ..*args
        })
    }

    fn resume_context(&self, context: ContextHandle) {
        self.engines.resume_context(self.numbers.context(context));
    }

    fn context_allocation_initialised(&self, id: ContextAllocationId) {
        self.engines.context_allocation_initialised(id);
    }

    fn move_context_allocation(
        &self,
        id: ContextAllocationId,
        to: Place<'_>,
    ) -> Result<SaveAreaMove, DdiError> {
        self.engines.move_context_allocation(id, to)
    }

    fn create_hw_queue(&self, args: &CreateHwQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        let made = self.engines.create_hw_queue(&CreateHwQueue {
            context: self.numbers.context(args.context),
            node_ordinal: self.numbers.node(args.node_ordinal),
            ..*args
        })?;
        Ok(self.numbers.queue(made))
    }

    fn preempt_command(&self, args: &PreemptCommand) -> Result<(), DdiError> {
        self.engines.preempt_command(&PreemptCommand {
            node_ordinal: self.numbers.node(args.node_ordinal),
            ..*args
        })
    }

    fn preemption_caps(&self) -> PreemptionCaps {
        self.engines.preemption_caps()
    }

    fn set_context_scheduling_properties(
        &self,
        context: ContextHandle,
        priority: i32,
    ) -> Result<(), DdiError> {
        let context = self.numbers.context(context);
        self.engines
            .set_context_scheduling_properties(context, priority)
    }

    fn destroy_hw_queue(&self, hw_queue: HwQueueHandle) {
        self.engines.destroy_hw_queue(self.numbers.queue(hw_queue));
    }

    fn map_to_gpu_system_process(&self, place: Place<'_>) -> Result<SystemProcessPlace, DdiError> {
        self.engines.map_to_gpu_system_process(place)
    }

    fn set_native_fence_log_buffer(
        &self,
        args: &SetNativeFenceLogBuffer<'_>,
    ) -> Result<(), DdiError> {
        self.engines
            .set_native_fence_log_buffer(&SetNativeFenceLogBuffer {
                hw_queue: self.numbers.queue(args.hw_queue),
                ..*args
            })
    }

    fn remove_native_fence_log_buffer(
        &self,
        hw_queue: HwQueueHandle,
        log: LogType,
    ) -> Result<(), DdiError> {
        let hw_queue = self.numbers.queue(hw_queue);
        self.engines.remove_native_fence_log_buffer(hw_queue, log)
    }

    fn update_native_fence_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError> {
        self.engines
            .update_native_fence_logs(&self.numbers.queues(hw_queues))
    }

    fn create_doorbell(&self, args: &CreateDoorbell<'_>) -> Result<(), DdiError> {
        self.engines.create_doorbell(&CreateDoorbell {
            hw_queue: self.numbers.queue(args.hw_queue),
            ..*args
        })
    }

    fn destroy_doorbell(&self, doorbell: DoorbellId) {
        self.engines.destroy_doorbell(doorbell);
    }

    fn connect_doorbell(&self, args: &ConnectDoorbell) -> Result<DoorbellStatus, DdiError> {
        self.engines.connect_doorbell(args)
    }

    fn disconnect_doorbell(&self, doorbell: DoorbellId) {
        self.engines.disconnect_doorbell(doorbell);
    }

    fn abort_doorbell(&self, hw_queue: HwQueueHandle) {
        self.engines.abort_doorbell(self.numbers.queue(hw_queue));
    }

    fn notify_work_submission(&self, doorbell: DoorbellId) {
        self.engines.notify_work_submission(doorbell);
    }

    fn get_standard_allocation_driver_data(
        &self,
        data: &mut FenceStorageSurfaceData,
    ) -> Result<(), DdiError> {
        self.engines.get_standard_allocation_driver_data(data)
    }

    fn withdraw_doorbell(&self, doorbell: DoorbellId) -> Result<(), DdiError> {
        self.engines.withdraw_doorbell(doorbell)
    }

    fn hw_queue_wait(&self, hw_queue: HwQueueHandle) -> Option<HwQueueWait> {
        self.engines.hw_queue_wait(self.numbers.queue(hw_queue))
    }

    fn park_engine(&self, node_ordinal: u32, attempt: u64) {
        self.engines
            .park_engine(self.numbers.node(node_ordinal), attempt);
    }

    fn resume_engine(&self, node_ordinal: u32) {
        self.engines.resume_engine(self.numbers.node(node_ordinal));
    }
}
