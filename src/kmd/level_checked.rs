//! Level-checked: a driver whose every call is looked at for its level (FQ-09), and counted while it lasts
//! (TD-18).
//!
//! Stands between the OS and any driver. A call at a wrong level is told to the OS and then made all
//! the same: it is the caller's mistake, and the callee may stand it. While the OS resets the adapter, a call
//! waits (`inside`).

use super::inside::{Entered, Inside};
use super::{
    Callbacks, ConnectDoorbell, ContextAllocation, ContextAllocationId, ContextHandle,
    CreateAllocation, CreateContext, CreateContextAllocation, CreateDoorbell, CreateHwQueue,
    CreateKernel, CreateKernelQueue, CreateNativeFence, CurrentValueUpdate, Ddi, DdiError,
    DisconnectDoorbell, DoorbellId, FeatureError, FeatureId, GpuClockCalibration, HwQueueHandle,
    HwQueueWait, Interrupt, IsFeatureEnabledResult, Level, MapMonitoredFence, MonitoredValueUpdate,
    NativeFenceCaps, NativeFenceInterface, OpenAllocation, OpenNativeFence, Place, PreemptCommand,
    PreemptionCaps, ProcessId, QueryFeatureInterface, Retirement, SaveAreaMove, SetCrossDoorbells,
    SetNativeFenceLogBuffer, SubmitCommand, SuspendContext, Suspension, SystemProcessPlace, TdrDdi,
    UpdateCurrentValuesFlags, UserModeSubmissionCaps, VidSchCaps, WrongLevel,
};
use crate::abi::wddm::FenceStorageSurfaceData;
use crate::abi::{AllocationId, DoorbellStatus, FenceId, KernelId, LocalHandle, LogType};
use crate::gpu::{EndedSlices, NodeCounters};
use crate::shared::Providers;
use crate::sync::Arc;
use std::fmt;
use std::sync::OnceLock;
use std::time::Instant;

/// See the file's head.
pub struct LevelChecked {
    ddi: Arc<dyn Ddi>,
    callbacks: OnceLock<Arc<dyn Callbacks>>,
    inside: Arc<Inside>,
}

impl fmt::Debug for LevelChecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ddi.fmt(f)
    }
}

impl LevelChecked {
    /// Over a driver that was not started.
    #[must_use]
    pub fn over(ddi: Arc<dyn Ddi>) -> Arc<Self> {
        Arc::new(Self {
            ddi,
            callbacks: OnceLock::new(),
            inside: Arc::default(),
        })
    }

    /// Which threads are in the driver.
    pub(crate) fn inside(&self) -> &Arc<Inside> {
        &self.inside
    }

    /// Comes in, unless this is an interrupt or deferred work.
    fn enter(&self, documented: Level) -> Option<Entered<'_>> {
        let is_interrupt =
            Level::of_thread() > Level::Passive || documented == Level::DeviceInterrupt;
        (!is_interrupt).then(|| self.inside.enter())
    }

    pub(super) fn call<'a, T>(
        &'a self,
        ddi: &'static str,
        documented: Level,
        call: impl FnOnce(&'a dyn Ddi) -> T,
    ) -> T {
        let _entered = self.enter(documented);
        self.interrupt_call(ddi, documented, call)
    }

    /// One that does an interrupt's work, on whatever thread.
    fn interrupt_call<'a, T>(
        &'a self,
        ddi: &'static str,
        documented: Level,
        call: impl FnOnce(&'a dyn Ddi) -> T,
    ) -> T {
        let thread = Level::of_thread();
        if thread > documented
            && let Some(callbacks) = self.callbacks.get()
        {
            callbacks.wrong_level(WrongLevel {
                ddi,
                thread,
                documented,
            });
        }
        documented.raised(|| call(self.ddi.as_ref()))
    }
}

/// The OS, at the level of an interrupt.
struct RaisedCallbacks(Arc<dyn Callbacks>);

impl Callbacks for RaisedCallbacks {
    fn notify_interrupt(&self, interrupt: Interrupt) {
        // Service routine and deferred call are one here, and what is called is called in the latter.
        Level::Dispatch.raised(|| self.0.notify_interrupt(interrupt));
    }

    fn disconnect_doorbell(&self, args: &DisconnectDoorbell) {
        self.0.disconnect_doorbell(args);
    }

    fn create_context_allocation(
        &self,
        args: &CreateContextAllocation,
    ) -> Result<ContextAllocation, DdiError> {
        self.0.create_context_allocation(args)
    }

    fn destroy_context_allocation(&self, id: ContextAllocationId) {
        self.0.destroy_context_allocation(id);
    }

    fn wrong_level(&self, wrong: WrongLevel) {
        self.0.wrong_level(wrong);
    }

    fn is_feature_enabled(&self, feature: FeatureId) -> IsFeatureEnabledResult {
        self.0.is_feature_enabled(feature)
    }

    fn query_feature_interface(
        &self,
        query: &QueryFeatureInterface,
    ) -> Result<NativeFenceInterface, FeatureError> {
        self.0.query_feature_interface(query)
    }
}

impl Ddi for LevelChecked {
    fn start(&self, callbacks: Arc<dyn Callbacks>) -> Result<(), DdiError> {
        let os = Arc::clone(self.callbacks.get_or_init(|| callbacks));
        let raised = Arc::new(RaisedCallbacks(os));
        self.call("Start", Level::Passive, |ddi| ddi.start(raised))
    }

    fn stop(&self) {
        self.call("Stop", Level::Passive, Ddi::stop);
    }

    fn stop_unawaited(&self) {
        self.call("Stop", Level::Passive, Ddi::stop_unawaited);
    }

    fn native_fence_caps(&self) -> NativeFenceCaps {
        self.call("NativeFenceCaps", Level::Passive, |ddi| {
            ddi.native_fence_caps()
        })
    }

    fn vidsch_caps(&self) -> VidSchCaps {
        self.call("VidSchCaps", Level::Passive, Ddi::vidsch_caps)
    }

    fn user_mode_submission_caps(&self) -> UserModeSubmissionCaps {
        self.call("UserModeSubmissionCaps", Level::Passive, |ddi| {
            ddi.user_mode_submission_caps()
        })
    }

    fn native_fence_gap(&self) -> Option<String> {
        self.call("NativeFenceGap", Level::Passive, Ddi::native_fence_gap)
    }

    // This and the next give what never changes, and wait for nobody.
    fn providers(&self) -> &Arc<Providers> {
        self.ddi.providers()
    }

    fn node_count(&self) -> u32 {
        self.ddi.node_count()
    }

    fn node_counters(&self, node_ordinal: u32) -> Option<NodeCounters> {
        // At any level.
        let _entered = self.enter(Level::Passive);
        self.ddi.node_counters(node_ordinal)
    }

    fn calibrate_gpu_clock(
        &self,
        node_ordinal: u32,
        engine_ordinal: u32,
    ) -> Result<GpuClockCalibration, DdiError> {
        self.call("CalibrateGpuClock", Level::Passive, |ddi| {
            ddi.calibrate_gpu_clock(node_ordinal, engine_ordinal)
        })
    }

    fn take_ended_slices(&self, node_ordinal: u32, go_on: bool) -> EndedSlices {
        self.call("TakeEndedSlices", Level::Passive, |ddi| {
            ddi.take_ended_slices(node_ordinal, go_on)
        })
    }

    fn set_cross_doorbells(&self, args: &SetCrossDoorbells<'_>) -> Result<(), DdiError> {
        self.call("SetCrossDoorbells", Level::Passive, |ddi| {
            ddi.set_cross_doorbells(args)
        })
    }

    fn create_native_fence(&self, args: &CreateNativeFence<'_>) -> Result<(), DdiError> {
        self.call("CreateNativeFence", Level::Passive, |ddi| {
            ddi.create_native_fence(args)
        })
    }

    fn open_native_fence(&self, args: &OpenNativeFence) -> Result<(), DdiError> {
        self.call("OpenNativeFence", Level::Passive, |ddi| {
            ddi.open_native_fence(args)
        })
    }

    fn close_native_fence(&self, process: ProcessId, local: LocalHandle) -> Retirement {
        self.call("CloseNativeFence", Level::Passive, |ddi| {
            ddi.close_native_fence(process, local)
        })
    }

    fn destroy_native_fence(&self, global: FenceId) -> Retirement {
        self.call("DestroyNativeFence", Level::Passive, |ddi| {
            ddi.destroy_native_fence(global)
        })
    }

    fn map_monitored_fence(&self, args: &MapMonitoredFence<'_>) -> Result<(), DdiError> {
        self.call("MapMonitoredFence", Level::Passive, |ddi| {
            ddi.map_monitored_fence(args)
        })
    }

    fn close_monitored_fence(&self, process: ProcessId, local: LocalHandle) {
        self.call("CloseMonitoredFence", Level::Passive, |ddi| {
            ddi.close_monitored_fence(process, local);
        });
    }

    fn unmap_monitored_fence(&self, global: FenceId) -> Retirement {
        self.call("UnmapMonitoredFence", Level::Passive, |ddi| {
            ddi.unmap_monitored_fence(global)
        })
    }

    fn create_allocation(&self, args: &CreateAllocation<'_>) -> Result<(), DdiError> {
        self.call("CreateAllocation", Level::Passive, |ddi| {
            ddi.create_allocation(args)
        })
    }

    fn open_allocation(&self, args: &OpenAllocation) -> Result<(), DdiError> {
        self.call("OpenAllocation", Level::Passive, |ddi| {
            ddi.open_allocation(args)
        })
    }

    fn close_allocation(&self, process: ProcessId, local: LocalHandle) {
        self.call("CloseAllocation", Level::Passive, |ddi| {
            ddi.close_allocation(process, local);
        });
    }

    fn destroy_allocation(&self, global: AllocationId) -> Retirement {
        self.call("DestroyAllocation", Level::Passive, |ddi| {
            ddi.destroy_allocation(global)
        })
    }

    fn create_kernel(&self, args: &CreateKernel<'_>) -> Result<(), DdiError> {
        self.call("CreateKernel", Level::Passive, |ddi| {
            ddi.create_kernel(args)
        })
    }

    fn close_kernel(&self, process: ProcessId, local: LocalHandle) {
        self.call("CloseKernel", Level::Passive, |ddi| {
            ddi.close_kernel(process, local);
        });
    }

    fn destroy_kernel(&self, global: KernelId) -> Retirement {
        self.call("DestroyKernel", Level::Passive, |ddi| {
            ddi.destroy_kernel(global)
        })
    }

    fn destroy_process(&self, process: ProcessId) {
        self.call("DestroyProcess", Level::Passive, |ddi| {
            ddi.destroy_process(process);
        });
    }

    fn update_monitored_values(
        &self,
        updates: &[MonitoredValueUpdate<'_>],
    ) -> Result<(), DdiError> {
        self.call("UpdateMonitoredValues", Level::DeviceInterrupt, |ddi| {
            ddi.update_monitored_values(updates)
        })
    }

    fn update_current_values_from_cpu(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateCurrentValuesFlags,
    ) -> Result<(), DdiError> {
        self.call("UpdateCurrentValuesFromCpu", Level::Dispatch, |ddi| {
            ddi.update_current_values_from_cpu(updates, flags)
        })
    }

    fn create_context(&self, args: &CreateContext) -> Result<ContextHandle, DdiError> {
        self.call("CreateHwContext", Level::Passive, |ddi| {
            ddi.create_context(args)
        })
    }

    fn destroy_context(&self, context: ContextHandle) {
        self.call("DestroyHwContext", Level::Passive, |ddi| {
            ddi.destroy_context(context);
        });
    }

    fn suspend_context(&self, args: &SuspendContext) -> Result<Suspension, DdiError> {
        self.call("SuspendContext", Level::Dispatch, |ddi| {
            ddi.suspend_context(args)
        })
    }

    fn resume_context(&self, context: ContextHandle) {
        self.call("ResumeContext", Level::Dispatch, |ddi| {
            ddi.resume_context(context);
        });
    }

    fn context_allocation_initialised(&self, id: ContextAllocationId) {
        self.call("ContextAllocationInitialised", Level::Dispatch, |ddi| {
            ddi.context_allocation_initialised(id);
        });
    }

    fn move_context_allocation(
        &self,
        id: ContextAllocationId,
        to: Place<'_>,
    ) -> Result<SaveAreaMove, DdiError> {
        self.call("MoveContextAllocation", Level::Passive, |ddi| {
            ddi.move_context_allocation(id, to)
        })
    }

    fn create_hw_queue(&self, args: &CreateHwQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        self.call("CreateHwQueue", Level::Passive, |ddi| {
            ddi.create_hw_queue(args)
        })
    }

    fn create_kernel_queue(&self, args: &CreateKernelQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        self.call("CreateHwQueue", Level::Passive, |ddi| {
            ddi.create_kernel_queue(args)
        })
    }

    fn submit_command_to_hw_queue(&self, args: &SubmitCommand<'_>) -> Result<(), DdiError> {
        self.call("SubmitCommandToHwQueue", Level::Dispatch, |ddi| {
            ddi.submit_command_to_hw_queue(args)
        })
    }

    fn preempt_command(&self, args: &PreemptCommand) -> Result<(), DdiError> {
        self.call("PreemptCommand", Level::Dispatch, |ddi| {
            ddi.preempt_command(args)
        })
    }

    fn preemption_caps(&self) -> PreemptionCaps {
        self.call("PreemptionCaps", Level::Passive, Ddi::preemption_caps)
    }

    fn set_context_scheduling_properties(
        &self,
        context: ContextHandle,
        priority: i32,
    ) -> Result<(), DdiError> {
        self.call("SetContextSchedulingProperties", Level::Dispatch, |ddi| {
            ddi.set_context_scheduling_properties(context, priority)
        })
    }

    fn destroy_hw_queue(&self, hw_queue: HwQueueHandle) {
        self.call("DestroyHwQueue", Level::Passive, |ddi| {
            ddi.destroy_hw_queue(hw_queue);
        });
    }

    fn map_to_gpu_system_process(&self, place: Place<'_>) -> Result<SystemProcessPlace, DdiError> {
        self.call("MapToGpuSystemProcess", Level::Passive, |ddi| {
            ddi.map_to_gpu_system_process(place)
        })
    }

    fn set_native_fence_log_buffer(
        &self,
        args: &SetNativeFenceLogBuffer<'_>,
    ) -> Result<(), DdiError> {
        self.call("SetNativeFenceLogBuffer", Level::Dispatch, |ddi| {
            ddi.set_native_fence_log_buffer(args)
        })
    }

    fn remove_native_fence_log_buffer(
        &self,
        hw_queue: HwQueueHandle,
        log: LogType,
    ) -> Result<(), DdiError> {
        self.call("RemoveNativeFenceLogBuffer", Level::Dispatch, |ddi| {
            ddi.remove_native_fence_log_buffer(hw_queue, log)
        })
    }

    fn update_native_fence_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError> {
        self.call("UpdateNativeFenceLogs", Level::Dispatch, |ddi| {
            ddi.update_native_fence_logs(hw_queues)
        })
    }

    fn create_doorbell(&self, args: &CreateDoorbell<'_>) -> Result<(), DdiError> {
        self.call("CreateDoorbell", Level::Passive, |ddi| {
            ddi.create_doorbell(args)
        })
    }

    fn destroy_doorbell(&self, doorbell: DoorbellId) {
        self.call("DestroyDoorbell", Level::Passive, |ddi| {
            ddi.destroy_doorbell(doorbell);
        });
    }

    fn connect_doorbell(&self, args: &ConnectDoorbell) -> Result<DoorbellStatus, DdiError> {
        self.call("ConnectDoorbell", Level::Passive, |ddi| {
            ddi.connect_doorbell(args)
        })
    }

    fn disconnect_doorbell(&self, doorbell: DoorbellId) {
        self.call("DisconnectDoorbell", Level::Passive, |ddi| {
            ddi.disconnect_doorbell(doorbell);
        });
    }

    fn abort_doorbell(&self, hw_queue: HwQueueHandle) {
        self.call("AbortDoorbell", Level::Dispatch, |ddi| {
            ddi.abort_doorbell(hw_queue);
        });
    }

    fn notify_work_submission(&self, doorbell: DoorbellId) {
        self.call("NotifyWorkSubmission", Level::Passive, |ddi| {
            ddi.notify_work_submission(doorbell);
        });
    }

    fn get_standard_allocation_driver_data(
        &self,
        data: &mut FenceStorageSurfaceData,
    ) -> Result<(), DdiError> {
        self.call("GetStandardAllocationDriverData", Level::Passive, |ddi| {
            ddi.get_standard_allocation_driver_data(data)
        })
    }

    fn withdraw_doorbell(&self, doorbell: DoorbellId) -> Result<(), DdiError> {
        self.call("WithdrawDoorbell", Level::Passive, |ddi| {
            ddi.withdraw_doorbell(doorbell)
        })
    }

    fn hw_queue_wait(&self, hw_queue: HwQueueHandle) -> Option<HwQueueWait> {
        self.call("HwQueueWait", Level::Passive, |ddi| {
            ddi.hw_queue_wait(hw_queue)
        })
    }

    fn park_engine(&self, node_ordinal: u32, attempt: u64) {
        self.call("ParkEngine", Level::Dispatch, |ddi| {
            ddi.park_engine(node_ordinal, attempt);
        });
    }

    fn resume_engine(&self, node_ordinal: u32) {
        self.call("ResumeEngine", Level::Dispatch, |ddi| {
            ddi.resume_engine(node_ordinal);
        });
    }

    fn tdr(&self) -> Option<&dyn TdrDdi> {
        self.ddi.tdr().map(|_| self as _)
    }

    fn look_for_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) -> bool {
        // The thread takes interrupts in the stead of those of the driver, here and in the next.
        self.interrupt_call("LookForInterrupts", Level::Passive, |ddi| {
            ddi.look_for_interrupts(done, deadline)
        })
    }

    fn watch_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) {
        self.interrupt_call("WatchInterrupts", Level::Passive, |ddi| {
            ddi.watch_interrupts(done, deadline);
        });
    }
}
