//! Forwarding: a driver that does what another does, but for one moment: a waiter of the operating
//! system's stands in its fence's list, and the case acts before the waiter sleeps.
//!
//! So a waiter and all that an engine does to it are on one thread, in one order.

use native_fence::abi::wddm::FenceStorageSurfaceData;
use native_fence::abi::{AllocationId, DoorbellStatus, KernelId, LocalHandle, LogType};
use native_fence::kmd::{
    Callbacks, ConnectDoorbell, ContextAllocationId, ContextHandle, CreateAllocation,
    CreateContext, CreateDoorbell, CreateHwQueue, CreateKernel, CreateKernelQueue,
    CreateNativeFence, CurrentValueUpdate, Ddi, DdiError, DoorbellId, Driver, EndedSlices,
    GpuClockCalibration, HwQueueHandle, HwQueueWait, MapMonitoredFence, MonitoredValueUpdate,
    NativeFenceCaps, NodeCounters, OpenAllocation, OpenNativeFence, Place, PreemptCommand,
    PreemptionCaps, ProcessId, Retirement, SaveAreaMove, SetCrossDoorbells,
    SetNativeFenceLogBuffer, SubmitCommand, SuspendContext, Suspension, SystemProcessPlace, TdrDdi,
    UpdateCurrentValuesFlags, UserModeSubmissionCaps, VidSchCaps,
};
use native_fence::shared::Providers;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

thread_local! {
    /// What happens on this thread when its next waiter stands in its list.
    static WHILE_IT_WAITS: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// See the file's head.
pub(crate) struct Forwarding(pub(crate) Arc<Driver>);

impl fmt::Debug for Forwarding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarding").finish_non_exhaustive()
    }
}

/// Has `act` called when the next waiter of this thread stands in its list.
pub(crate) fn while_it_waits(act: impl FnOnce() + 'static) {
    WHILE_IT_WAITS.set(Some(Box::new(act)));
}

/// A wait that ended before it came to stand in a list has called nobody: whether that was so.
pub(crate) fn never_waited() -> bool {
    WHILE_IT_WAITS.take().is_some()
}

impl Ddi for Forwarding {
    fn tdr(&self) -> Option<&dyn TdrDdi> {
        self.0.tdr()
    }

    fn look_for_interrupts(&self, _: &dyn Fn() -> bool, _: Option<Instant>) -> bool {
        // Nobody looks: the waiter comes to stand at once.
        false
    }

    fn watch_interrupts(&self, _: &dyn Fn() -> bool, _: Option<Instant>) {
        if let Some(act) = WHILE_IT_WAITS.take() {
            act();
        }
    }

    fn start(&self, callbacks: Arc<dyn Callbacks>) -> Result<(), DdiError> {
        self.0.start(callbacks)
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn stop_unawaited(&self) {
        self.0.stop_unawaited();
    }

    fn user_mode_submission_caps(&self) -> UserModeSubmissionCaps {
        self.0.user_mode_submission_caps()
    }

    fn vidsch_caps(&self) -> VidSchCaps {
        self.0.vidsch_caps()
    }

    fn native_fence_gap(&self) -> Option<String> {
        self.0.native_fence_gap()
    }

    fn providers(&self) -> &Arc<Providers> {
        self.0.providers()
    }

    fn native_fence_caps(&self) -> NativeFenceCaps {
        self.0.native_fence_caps()
    }

    fn node_count(&self) -> u32 {
        self.0.node_count()
    }

    fn node_counters(&self, node_ordinal: u32) -> Option<NodeCounters> {
        self.0.node_counters(node_ordinal)
    }

    fn calibrate_gpu_clock(
        &self,
        node_ordinal: u32,
        engine_ordinal: u32,
    ) -> Result<GpuClockCalibration, DdiError> {
        self.0.calibrate_gpu_clock(node_ordinal, engine_ordinal)
    }

    fn take_ended_slices(&self, node_ordinal: u32, go_on: bool) -> EndedSlices {
        self.0.take_ended_slices(node_ordinal, go_on)
    }

    fn set_cross_doorbells(&self, args: &SetCrossDoorbells<'_>) -> Result<(), DdiError> {
        self.0.set_cross_doorbells(args)
    }

    fn create_native_fence(&self, args: &CreateNativeFence<'_>) -> Result<(), DdiError> {
        self.0.create_native_fence(args)
    }

    fn open_native_fence(&self, args: &OpenNativeFence) -> Result<(), DdiError> {
        self.0.open_native_fence(args)
    }

    fn close_native_fence(&self, process: ProcessId, local: LocalHandle) -> Retirement {
        self.0.close_native_fence(process, local)
    }

    fn destroy_native_fence(&self, global: native_fence::abi::FenceId) -> Retirement {
        self.0.destroy_native_fence(global)
    }

    fn map_monitored_fence(&self, args: &MapMonitoredFence<'_>) -> Result<(), DdiError> {
        self.0.map_monitored_fence(args)
    }

    fn close_monitored_fence(&self, process: ProcessId, local: LocalHandle) {
        self.0.close_monitored_fence(process, local);
    }

    fn unmap_monitored_fence(&self, global: native_fence::abi::FenceId) -> Retirement {
        self.0.unmap_monitored_fence(global)
    }

    fn create_kernel_queue(&self, args: &CreateKernelQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        self.0.create_kernel_queue(args)
    }

    fn submit_command_to_hw_queue(&self, args: &SubmitCommand<'_>) -> Result<(), DdiError> {
        self.0.submit_command_to_hw_queue(args)
    }

    fn create_allocation(&self, args: &CreateAllocation<'_>) -> Result<(), DdiError> {
        self.0.create_allocation(args)
    }

    fn open_allocation(&self, args: &OpenAllocation) -> Result<(), DdiError> {
        self.0.open_allocation(args)
    }

    fn close_allocation(&self, process: ProcessId, local: LocalHandle) {
        self.0.close_allocation(process, local);
    }

    fn destroy_allocation(&self, global: AllocationId) -> Retirement {
        self.0.destroy_allocation(global)
    }

    fn create_kernel(&self, args: &CreateKernel<'_>) -> Result<(), DdiError> {
        self.0.create_kernel(args)
    }

    fn close_kernel(&self, process: ProcessId, local: LocalHandle) {
        self.0.close_kernel(process, local);
    }

    fn destroy_kernel(&self, global: KernelId) -> Retirement {
        self.0.destroy_kernel(global)
    }

    fn destroy_process(&self, process: ProcessId) {
        self.0.destroy_process(process);
    }

    fn update_monitored_values(
        &self,
        updates: &[MonitoredValueUpdate<'_>],
    ) -> Result<(), DdiError> {
        self.0.update_monitored_values(updates)
    }

    fn update_current_values_from_cpu(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateCurrentValuesFlags,
    ) -> Result<(), DdiError> {
        self.0.update_current_values_from_cpu(updates, flags)
    }

    fn create_context(&self, args: &CreateContext) -> Result<ContextHandle, DdiError> {
        self.0.create_context(args)
    }

    fn destroy_context(&self, context: ContextHandle) {
        self.0.destroy_context(context);
    }

    fn suspend_context(&self, args: &SuspendContext) -> Result<Suspension, DdiError> {
        self.0.suspend_context(args)
    }

    fn resume_context(&self, context: ContextHandle) {
        self.0.resume_context(context);
    }

    fn context_allocation_initialised(&self, id: ContextAllocationId) {
        self.0.context_allocation_initialised(id);
    }

    fn move_context_allocation(
        &self,
        id: ContextAllocationId,
        to: Place<'_>,
    ) -> Result<SaveAreaMove, DdiError> {
        self.0.move_context_allocation(id, to)
    }

    fn create_hw_queue(&self, args: &CreateHwQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        self.0.create_hw_queue(args)
    }

    fn preempt_command(&self, args: &PreemptCommand) -> Result<(), DdiError> {
        self.0.preempt_command(args)
    }

    fn preemption_caps(&self) -> PreemptionCaps {
        self.0.preemption_caps()
    }

    fn set_context_scheduling_properties(
        &self,
        context: ContextHandle,
        priority: i32,
    ) -> Result<(), DdiError> {
        self.0.set_context_scheduling_properties(context, priority)
    }

    fn destroy_hw_queue(&self, hw_queue: HwQueueHandle) {
        self.0.destroy_hw_queue(hw_queue);
    }

    fn map_to_gpu_system_process(&self, place: Place<'_>) -> Result<SystemProcessPlace, DdiError> {
        self.0.map_to_gpu_system_process(place)
    }

    fn set_native_fence_log_buffer(
        &self,
        args: &SetNativeFenceLogBuffer<'_>,
    ) -> Result<(), DdiError> {
        self.0.set_native_fence_log_buffer(args)
    }

    fn remove_native_fence_log_buffer(
        &self,
        hw_queue: HwQueueHandle,
        log: LogType,
    ) -> Result<(), DdiError> {
        self.0.remove_native_fence_log_buffer(hw_queue, log)
    }

    fn update_native_fence_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError> {
        self.0.update_native_fence_logs(hw_queues)
    }

    fn create_doorbell(&self, args: &CreateDoorbell<'_>) -> Result<(), DdiError> {
        self.0.create_doorbell(args)
    }

    fn destroy_doorbell(&self, doorbell: DoorbellId) {
        self.0.destroy_doorbell(doorbell);
    }

    fn connect_doorbell(&self, args: &ConnectDoorbell) -> Result<DoorbellStatus, DdiError> {
        self.0.connect_doorbell(args)
    }

    fn disconnect_doorbell(&self, doorbell: DoorbellId) {
        self.0.disconnect_doorbell(doorbell);
    }

    fn abort_doorbell(&self, hw_queue: HwQueueHandle) {
        self.0.abort_doorbell(hw_queue);
    }

    fn notify_work_submission(&self, doorbell: DoorbellId) {
        self.0.notify_work_submission(doorbell);
    }

    fn get_standard_allocation_driver_data(
        &self,
        data: &mut FenceStorageSurfaceData,
    ) -> Result<(), DdiError> {
        self.0.get_standard_allocation_driver_data(data)
    }

    fn withdraw_doorbell(&self, doorbell: DoorbellId) -> Result<(), DdiError> {
        self.0.withdraw_doorbell(doorbell)
    }

    fn hw_queue_wait(&self, hw_queue: HwQueueHandle) -> Option<HwQueueWait> {
        self.0.hw_queue_wait(hw_queue)
    }

    fn park_engine(&self, node_ordinal: u32, attempt: u64) {
        self.0.park_engine(node_ordinal, attempt);
    }

    fn resume_engine(&self, node_ordinal: u32) {
        self.0.resume_engine(node_ordinal);
    }
}
