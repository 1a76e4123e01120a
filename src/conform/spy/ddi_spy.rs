//! DDI spy: stands between the OS and the driver, writes down what either tells the other, and lets
//! a test act there.
//!
//! Hooks run on the caller's thread. The OS calls the two updates with the fence's lock held, so a
//! hook in one makes no call on that fence; it may touch the fence's memory.

use super::book::{Book, Call, Failing, MadeDoorbell, Moment, SpyCallbacks, lock};
use super::tdr_spy::TdrBook;
use crate::abi::wddm::FenceStorageSurfaceData;
use crate::abi::{AllocationId, DoorbellStatus, FenceId, KernelId, LocalHandle, LogType, Packet};
use crate::kmd::published::{HwQueueArray, ValueBatch, close_native_fence, destroy_native_fence};
use crate::kmd::{
    Callbacks, ConnectDoorbell, ContextAllocationId, ContextHandle, CreateAllocation,
    CreateContext, CreateDoorbell, CreateHwQueue, CreateKernel, CreateKernelQueue,
    CreateNativeFence, CurrentValueUpdate, Ddi, DdiError, DoorbellId, EndedSlices,
    GpuClockCalibration, HwQueueHandle, HwQueueWait, MapMonitoredFence, MonitoredValueUpdate,
    NativeFenceCaps, NodeCounters, OpenAllocation, OpenNativeFence, Place, PreemptCommand,
    PreemptionCaps, ProcessId, Retirement, SaveAreaMove, SetCrossDoorbells,
    SetNativeFenceLogBuffer, SubmitCommand, SuspendContext, Suspension, SystemProcessPlace, TdrDdi,
    UpdateCurrentValuesFlags, UserModeSubmissionCaps, VidSchCaps,
};
use crate::shared::Providers;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// See the file's head.
pub struct DdiSpy {
    pub(super) driver: Arc<dyn Ddi>,
    pub(super) book: Arc<Book>,
    pub(super) tdr: TdrBook,
    /// What the driver is made to say of its caps.
    says: fn(&mut VidSchCaps),
}

impl fmt::Debug for DdiSpy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DdiSpy").finish_non_exhaustive()
    }
}

impl DdiSpy {
    /// Over a driver.
    #[must_use]
    pub fn over(driver: Arc<dyn Ddi>) -> Arc<Self> {
        Self::saying(driver, |_| {})
    }

    /// One that advertises native fences without asking.
    pub fn advertising(driver: Arc<dyn Ddi>) -> Arc<Self> {
        Self::saying(driver, |caps| {
            *caps = caps.with(VidSchCaps::NATIVE_GPU_FENCE);
        })
    }

    /// One that says other things of its caps.
    pub fn saying(driver: Arc<dyn Ddi>, says: fn(&mut VidSchCaps)) -> Arc<Self> {
        Arc::new(Self {
            driver,
            book: Arc::default(),
            tdr: TdrBook::default(),
            says,
        })
    }

    /// What stands behind it.
    pub fn driver(&self) -> &dyn Ddi {
        self.driver.as_ref()
    }

    fn queue_of(&self, doorbell: DoorbellId) -> Option<HwQueueHandle> {
        let doorbells = lock(&self.book.doorbells);
        doorbells.get(&doorbell).map(|made| made.hw_queue)
    }
}

impl Ddi for DdiSpy {
    fn start(&self, callbacks: Arc<dyn Callbacks>) -> Result<(), DdiError> {
        self.book.failure(Failing::Start)?;
        *lock(&self.book.os) = Some(Arc::clone(&callbacks));
        self.driver.start(Arc::new(SpyCallbacks {
            os: callbacks,
            book: Arc::clone(&self.book),
        }))
    }

    fn stop(&self) {
        self.driver.stop();
        // The two would keep each other.
        *lock(&self.book.os) = None;
    }

    fn stop_unawaited(&self) {
        self.driver.stop_unawaited();
        *lock(&self.book.os) = None;
    }

    fn native_fence_caps(&self) -> NativeFenceCaps {
        self.book.write(Call::NativeFenceCaps);
        self.driver.native_fence_caps()
    }

    fn vidsch_caps(&self) -> VidSchCaps {
        self.book.write(Call::VidSchCaps);
        let mut caps = self.driver.vidsch_caps();
        (self.says)(&mut caps);
        caps
    }

    fn user_mode_submission_caps(&self) -> UserModeSubmissionCaps {
        self.driver.user_mode_submission_caps()
    }

    fn native_fence_gap(&self) -> Option<String> {
        self.driver.native_fence_gap()
    }

    fn providers(&self) -> &Arc<Providers> {
        self.driver.providers()
    }

    fn node_count(&self) -> u32 {
        self.driver.node_count()
    }

    fn node_counters(&self, node_ordinal: u32) -> Option<NodeCounters> {
        self.driver.node_counters(node_ordinal)
    }

    fn calibrate_gpu_clock(
        &self,
        node_ordinal: u32,
        engine_ordinal: u32,
    ) -> Result<GpuClockCalibration, DdiError> {
        self.driver
            .calibrate_gpu_clock(node_ordinal, engine_ordinal)
    }

    fn take_ended_slices(&self, node_ordinal: u32, go_on: bool) -> EndedSlices {
        self.driver.take_ended_slices(node_ordinal, go_on)
    }

    fn set_cross_doorbells(&self, args: &SetCrossDoorbells<'_>) -> Result<(), DdiError> {
        self.driver.set_cross_doorbells(args)
    }

    fn create_native_fence(&self, args: &CreateNativeFence<'_>) -> Result<(), DdiError> {
        self.book.write(Call::CreateNativeFence(args.global));
        let published = args.published(0);
        self.book
            .publish("DXGKARG_CREATENATIVEFENCE", published, &[]);
        self.book.failure(Failing::CreateNativeFence)?;
        let [current, monitored] = match args.system_process {
            Some([current, monitored]) => [Some(current), Some(monitored)],
            None => [None, None],
        };
        let current = self.book.pass(args.current_value, current);
        let monitored = self.book.pass(args.monitored_value, monitored);
        self.driver.create_native_fence(&CreateNativeFence {
            system_process: current
                .as_ref()
                .zip(monitored.as_ref())
                .map(|(c, m)| [c, m]),
            ..*args
        })
    }

    fn open_native_fence(&self, args: &OpenNativeFence) -> Result<(), DdiError> {
        self.book
            .write(Call::OpenNativeFence(args.global, args.process, args.local));
        let published = args.published([0x1_0000, 0x2_0000]);
        self.book.publish("DXGKARG_OPENNATIVEFENCE", published, &[]);
        self.book.failure(Failing::OpenNativeFence)?;
        self.driver.open_native_fence(args)
    }

    fn close_native_fence(&self, process: ProcessId, local: LocalHandle) -> Retirement {
        self.book.write(Call::CloseNativeFence(process, local));
        let published = close_native_fence(process, local);
        self.book
            .publish("DXGKARG_CLOSENATIVEFENCE", published, &[]);
        self.driver.close_native_fence(process, local)
    }

    fn destroy_native_fence(&self, global: FenceId) -> Retirement {
        self.book.write(Call::DestroyNativeFence(global));
        let published = destroy_native_fence(global);
        self.book
            .publish("DXGKARG_DESTROYNATIVEFENCE", published, &[]);
        self.driver.destroy_native_fence(global)
    }

    fn map_monitored_fence(&self, args: &MapMonitoredFence<'_>) -> Result<(), DdiError> {
        self.book.write(Call::MapMonitoredFence(args.global));
        self.driver.map_monitored_fence(args)
    }

    fn close_monitored_fence(&self, process: ProcessId, local: LocalHandle) {
        self.driver.close_monitored_fence(process, local);
    }

    fn unmap_monitored_fence(&self, global: FenceId) -> Retirement {
        self.book.write(Call::UnmapMonitoredFence(global));
        self.driver.unmap_monitored_fence(global)
    }

    fn create_kernel_queue(&self, args: &CreateKernelQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        let answer = self.driver.create_kernel_queue(args);
        self.book.run(Moment::AfterCreateOfKernelQueue, &[]);
        let answer = answer?;
        let published = args.published(Some(answer), 0x2000, 0x3000);
        self.book.publish("DXGKARG_CREATEHWQUEUE", published, &[]);
        Ok(answer)
    }

    fn submit_command_to_hw_queue(&self, args: &SubmitCommand<'_>) -> Result<(), DdiError> {
        self.book.write(Call::SubmitCommand {
            hw_queue: args.hw_queue,
            submission_id: args.submission_id,
            flags: args.flags,
        });
        let published = args.published(0x2000, 0x3000);
        let words: Vec<u64> = args.packets.iter().flat_map(Packet::words).collect();
        let name = "DXGKARG_SUBMITCOMMANDTOHWQUEUE";
        self.book.publish(name, published, &[&words]);
        self.book.failure(Failing::SubmitCommand)?;
        self.in_level_one(|| {
            self.book.run(Moment::InSubmitCommand, &[]);
            self.driver.submit_command_to_hw_queue(args)
        })
    }

    fn create_allocation(&self, args: &CreateAllocation<'_>) -> Result<(), DdiError> {
        self.driver.create_allocation(args)
    }

    fn open_allocation(&self, args: &OpenAllocation) -> Result<(), DdiError> {
        self.driver.open_allocation(args)
    }

    fn close_allocation(&self, process: ProcessId, local: LocalHandle) {
        self.driver.close_allocation(process, local);
    }

    fn destroy_allocation(&self, global: AllocationId) -> Retirement {
        self.driver.destroy_allocation(global)
    }

    fn create_kernel(&self, args: &CreateKernel<'_>) -> Result<(), DdiError> {
        self.driver.create_kernel(args)
    }

    fn close_kernel(&self, process: ProcessId, local: LocalHandle) {
        self.driver.close_kernel(process, local);
    }

    fn destroy_kernel(&self, global: KernelId) -> Retirement {
        self.driver.destroy_kernel(global)
    }

    fn destroy_process(&self, process: ProcessId) {
        self.driver.destroy_process(process);
    }

    fn update_monitored_values(
        &self,
        updates: &[MonitoredValueUpdate<'_>],
    ) -> Result<(), DdiError> {
        let values: Vec<_> = updates.iter().map(|u| (u.fence, u.value)).collect();
        let (before, after) = (
            Moment::BeforeUpdateOfMonitoredValues,
            Moment::AfterUpdateOfMonitoredValues,
        );
        let batch = ValueBatch::from(updates);
        let structure = batch.update_monitored_values();
        let name = "DXGKARG_UPDATEMONITOREDVALUES";
        self.book.publish(name, structure, &batch.arrays());
        self.book.run(before, &values);
        self.book.failure(Failing::UpdateMonitoredValues)?;
        let result = self.driver.update_monitored_values(updates);
        self.book.write(Call::UpdateMonitoredValues(values.clone()));
        self.book.run(after, &values);
        result
    }

    fn update_current_values_from_cpu(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateCurrentValuesFlags,
    ) -> Result<(), DdiError> {
        let values: Vec<_> = updates.iter().map(|u| (u.fence, u.value)).collect();
        self.book
            .write(Call::UpdateCurrentValuesFromCpu(values.clone(), flags));
        self.book.run(Moment::BeforeUpdateOfCurrentValues, &values);
        let batch = ValueBatch::from(updates);
        let structure = batch.update_current_values(flags);
        let name = "DXGKARG_UPDATECURRENTVALUESFROMCPU";
        self.book.publish(name, structure, &batch.arrays());
        self.book.failure(Failing::UpdateCurrentValuesFromCpu)?;
        self.driver.update_current_values_from_cpu(updates, flags)
    }

    fn create_context(&self, args: &CreateContext) -> Result<ContextHandle, DdiError> {
        let context = self.driver.create_context(args)?;
        self.book.write(Call::CreateContext(context));
        Ok(context)
    }

    fn destroy_context(&self, context: ContextHandle) {
        self.book.write(Call::DestroyContext(context));
        self.driver.destroy_context(context);
    }

    fn suspend_context(&self, args: &SuspendContext) -> Result<Suspension, DdiError> {
        self.book.write(Call::SuspendContext(*args));
        self.book
            .publish("DXGKARG_SUSPENDCONTEXT", args.published(), &[]);
        self.driver.suspend_context(args)
    }

    fn resume_context(&self, context: ContextHandle) {
        self.book.write(Call::ResumeContext(context));
        self.driver.resume_context(context);
    }

    fn context_allocation_initialised(&self, id: ContextAllocationId) {
        self.driver.context_allocation_initialised(id);
        // The engine runs again by now, if it does for that.
        self.book.write(Call::ContextAllocationInitialised(id));
    }

    fn move_context_allocation(
        &self,
        id: ContextAllocationId,
        to: Place<'_>,
    ) -> Result<SaveAreaMove, DdiError> {
        self.book.write(Call::MoveContextAllocation(id));
        self.book.run(Moment::BeforeMoveOfAllocation, &[]);
        let moved = self.driver.move_context_allocation(id, to)?;
        if let (SaveAreaMove::Done, Some(area)) = (moved, lock(&self.book.save_areas).get_mut(&id))
        {
            area.region = Arc::clone(to.region);
            area.offset = to.offset;
        }
        Ok(moved)
    }

    fn create_hw_queue(&self, args: &CreateHwQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        self.book.write(Call::CreateHwQueue {
            progress_fence: args.progress_fence,
        });
        let answer = self.driver.create_hw_queue(args)?;
        let name = "DXGKARG_CREATEHWQUEUE";
        self.book.publish(name, args.published(None), &[]);
        self.book.publish(name, args.published(Some(answer)), &[]);
        Ok(answer)
    }

    fn preempt_command(&self, args: &PreemptCommand) -> Result<(), DdiError> {
        self.book.write(Call::PreemptCommand(*args));
        self.book
            .publish("DXGKARG_PREEMPTCOMMAND", args.published(), &[]);
        self.book.failure(Failing::PreemptCommand)?;
        self.in_level_one(|| self.driver.preempt_command(args))
    }

    fn preemption_caps(&self) -> PreemptionCaps {
        self.driver.preemption_caps()
    }

    fn set_context_scheduling_properties(
        &self,
        context: ContextHandle,
        priority: i32,
    ) -> Result<(), DdiError> {
        self.driver
            .set_context_scheduling_properties(context, priority)
    }

    fn destroy_hw_queue(&self, hw_queue: HwQueueHandle) {
        self.book.write(Call::DestroyHwQueue(hw_queue));
        self.driver.destroy_hw_queue(hw_queue);
    }

    fn map_to_gpu_system_process(&self, place: Place<'_>) -> Result<SystemProcessPlace, DdiError> {
        self.driver.map_to_gpu_system_process(place)
    }

    fn set_native_fence_log_buffer(
        &self,
        args: &SetNativeFenceLogBuffer<'_>,
    ) -> Result<(), DdiError> {
        self.book.failure(Failing::SetNativeFenceLogBuffer)?;
        let place = (Arc::clone(args.buffer.region), args.buffer.offset);
        let set = (args.hw_queue, args.log, place, args.entries);
        lock(&self.book.logs).push(set);
        let name = "DXGKARG_SETNATIVEFENCELOGBUFFER";
        self.book.publish(name, args.published(0x4000, 0x5000), &[]);
        let instead = self.book.pass(args.buffer, args.system_process);
        self.driver
            .set_native_fence_log_buffer(&SetNativeFenceLogBuffer {
                system_process: instead.as_ref(),
                ..*args
            })?;
        self.book.run(Moment::AfterSetOfLog, &[]);
        Ok(())
    }

    fn remove_native_fence_log_buffer(
        &self,
        hw_queue: HwQueueHandle,
        log: LogType,
    ) -> Result<(), DdiError> {
        self.book.run(Moment::BeforeRemovalOfLog, &[]);
        self.driver.remove_native_fence_log_buffer(hw_queue, log)
    }

    fn update_native_fence_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError> {
        self.book
            .write(Call::UpdateNativeFenceLogs(hw_queues.to_vec()));
        let array = HwQueueArray::from(hw_queues);
        let structure = array.update_native_fence_logs();
        let name = "DXGKARG_UPDATENATIVEFENCELOGS";
        self.book.publish(name, structure, &[array.handles()]);
        self.book.run(Moment::InUpdateOfLogs, &[]);
        self.driver.update_native_fence_logs(hw_queues)
    }

    fn create_doorbell(&self, args: &CreateDoorbell<'_>) -> Result<(), DdiError> {
        self.book
            .write(Call::CreateDoorbell(args.hw_queue, args.doorbell));
        let made = MadeDoorbell {
            hw_queue: args.hw_queue,
            region: Arc::clone(args.ring.region),
            offset: args.ring.offset,
            ring_packets: args.ring_packets,
            ring_capacity: args.ring_capacity,
            words: args.words.clone(),
        };
        lock(&self.book.doorbells).insert(args.doorbell, made);
        self.book
            .publish("DXGKARG_CREATEDOORBELL", args.published(), &[]);
        self.book.failure(Failing::CreateDoorbell)?;
        self.driver.create_doorbell(args)
    }

    fn destroy_doorbell(&self, doorbell: DoorbellId) {
        self.book.write(Call::DestroyDoorbell(doorbell));
        self.driver.destroy_doorbell(doorbell);
    }

    fn connect_doorbell(&self, args: &ConnectDoorbell) -> Result<DoorbellStatus, DdiError> {
        if let Some(hw_queue) = self.queue_of(args.doorbell) {
            self.book.write(Call::ConnectDoorbell(hw_queue));
        }
        let name = "DXGKARG_CONNECTDOORBELL";
        self.book.publish(name, args.published(), &[]);
        self.book.failure(Failing::ConnectDoorbell)?;
        let status = self.driver.connect_doorbell(args)?;
        let answered = args.answered(status, 0x6000);
        self.book.publish(name, answered, &[]);
        Ok(status)
    }

    fn disconnect_doorbell(&self, doorbell: DoorbellId) {
        if let Some(hw_queue) = self.queue_of(doorbell) {
            self.book.write(Call::DisconnectDoorbell(hw_queue));
        }
        self.book.run(Moment::InDisconnect, &[]);
        self.driver.disconnect_doorbell(doorbell);
    }

    fn abort_doorbell(&self, hw_queue: HwQueueHandle) {
        self.book.write(Call::DisconnectDoorbell(hw_queue));
        self.driver.abort_doorbell(hw_queue);
    }

    fn notify_work_submission(&self, doorbell: DoorbellId) {
        if let Some(hw_queue) = self.queue_of(doorbell) {
            self.book.write(Call::NotifyWorkSubmission(hw_queue));
        }
        self.book.run(Moment::InNotify, &[]);
        self.driver.notify_work_submission(doorbell);
    }

    fn get_standard_allocation_driver_data(
        &self,
        data: &mut FenceStorageSurfaceData,
    ) -> Result<(), DdiError> {
        let asked = (data.value_type, data.storage_type);
        self.book.write(Call::FenceStorage(asked.0, asked.1));
        self.driver.get_standard_allocation_driver_data(data)?;
        if let Some(answer) = lock(&self.book.segments).as_ref() {
            answer(data);
        }
        Ok(())
    }

    fn withdraw_doorbell(&self, doorbell: DoorbellId) -> Result<(), DdiError> {
        if let Some(hw_queue) = self.queue_of(doorbell) {
            self.book.write(Call::WithdrawDoorbell(hw_queue));
        }
        self.driver.withdraw_doorbell(doorbell)
    }

    fn hw_queue_wait(&self, hw_queue: HwQueueHandle) -> Option<HwQueueWait> {
        self.driver.hw_queue_wait(hw_queue)
    }

    fn park_engine(&self, node_ordinal: u32, attempt: u64) {
        self.book.run(Moment::BeforeParking, &[]);
        self.driver.park_engine(node_ordinal, attempt);
    }

    fn resume_engine(&self, node_ordinal: u32) {
        self.book.run(Moment::BeforeResume, &[]);
        self.driver.resume_engine(node_ordinal);
    }

    fn tdr(&self) -> Option<&dyn TdrDdi> {
        self.driver.tdr().map(|_| self as _)
    }

    fn look_for_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) -> bool {
        self.driver.look_for_interrupts(done, deadline)
    }

    fn watch_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) {
        self.driver.watch_interrupts(done, deadline);
    }
}
