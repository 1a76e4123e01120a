//! Ddi: what the OS calls. Each method is the DDI of its name and documents that DDI's contract.

use super::{
    Callbacks, ConnectDoorbell, ContextAllocationId, ContextHandle, CreateAllocation,
    CreateContext, CreateDoorbell, CreateHwQueue, CreateKernel, CreateKernelQueue,
    CreateNativeFence, CurrentValueUpdate, DoorbellId, GpuClockCalibration, HwQueueHandle,
    HwQueueWait, MapMonitoredFence, MonitoredValueUpdate, NativeFenceCaps, OpenAllocation,
    OpenNativeFence, Place, PreemptCommand, PreemptionCaps, ProcessId, SaveAreaMove,
    SetCrossDoorbells, SetNativeFenceLogBuffer, SubmitCommand, SuspendContext, Suspension,
    SystemProcessPlace, TdrDdi, UpdateCurrentValuesFlags, UserModeSubmissionCaps, VidSchCaps,
};
use crate::abi::wddm::FenceStorageSurfaceData;
use crate::abi::{AllocationId, DoorbellStatus, FenceId, KernelId, LocalHandle, LogType};
use crate::gpu::{EndedSlices, MapError, NodeCounters, NodeError, ReplaceError};
use crate::shared::{Providers, RegionError};
use crate::sync::Arc;
use std::fmt::Debug;
use std::time::Instant;

/// Whether engines refer to what was destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what slices in flight refer to is not used again yet"]
pub enum Retirement {
    /// None does.
    Done,
    /// Slices in flight may; an interrupt says when none does any more.
    Pending,
}

/// Why the driver refused.
#[derive(Debug, thiserror::Error)]
pub enum DdiError {
    /// `STATUS_INVALID_PARAMETER`.
    #[error("{0}")]
    InvalidParameter(&'static str),
    /// `STATUS_NO_MEMORY`, or the node's own reason.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The engine could not be reset (`STATUS_UNSUCCESSFUL`): the hardware is in an invalid state.
    #[error(transparent)]
    Reset(#[from] ReplaceError),
    /// The same: there is no engine to put into its place.
    #[error("there is no other engine to go on with: {0}")]
    NoSpare(String),
    /// `STATUS_INSUFFICIENT_RESOURCES`: the system gives no thread for an engine's interrupts.
    #[error("the system has no thread for interrupts ({0}): end others, or raise the limit")]
    NoThread(#[source] std::io::Error),
}

impl From<RegionError> for DdiError {
    fn from(error: RegionError) -> Self {
        Self::Node(MapError::from(error).into())
    }
}

/// The driver. Each call says its level, which [`LevelChecked`](super::LevelChecked) looks after; one
/// that says none may be made at any.
///
/// Destroying and disconnecting queues wait for slices in flight, and these, NotifyWorkSubmission and
/// the calls of waits tell the OS on the caller's thread what slices that have ended report: the caller
/// holds no lock that the callbacks take.
///
/// Of PreemptCommand and SubmitCommandToHwQueue, and of what [`TdrDdi`] says, one thread of an adapter is inside
/// at a time (threading level one, TD-18). In ResetFromTimeout no other thread is inside at all; interrupts,
/// deferred work, and who takes interrupts himself (LookForInterrupts, WatchInterrupts) may be.
pub trait Ddi: Send + Sync + Debug {
    /// `DxgkDdiStartDevice`, PASSIVE_LEVEL. From now on `callbacks` is called: for the
    /// features that the driver will advertise, and with interrupts.
    ///
    /// # Errors
    /// No thread for the interrupts: the driver is good for [`stop`](Ddi::stop) alone, which the OS calls.
    fn start(&self, callbacks: Arc<dyn Callbacks>) -> Result<(), DdiError>;

    /// `DxgkDdiStopDevice`, PASSIVE_LEVEL. Stops the adapter: no slice runs and no interrupt comes once this returns.
    fn stop(&self);

    /// The same, PASSIVE_LEVEL, where no thread is left that may wait for those of the driver: the caller may be one
    /// of them, or within a callback that another waits for. They end when they come back, and nobody waits for
    /// that. A driver whose `stop` waits for none that may call back has nothing to add.
    fn stop_unawaited(&self) {
        self.stop();
    }

    /// `DxgkDdiQueryAdapterInfo(DXGKQAITYPE_NATIVE_FENCE_CAPS)`, PASSIVE_LEVEL.
    fn native_fence_caps(&self) -> NativeFenceCaps;

    /// `DxgkDdiQueryAdapterInfo(DXGKQAITYPE_DRIVERCAPS)`, PASSIVE_LEVEL: its `SchedulingCaps`. Asked
    /// once, when the driver has been started.
    fn vidsch_caps(&self) -> VidSchCaps;

    /// `DxgkDdiQueryAdapterInfo(DXGKQAITYPE_USERMODESUBMISSION_CAPS)`, PASSIVE_LEVEL.
    fn user_mode_submission_caps(&self) -> UserModeSubmissionCaps;

    /// Why [`VidSchCaps::NATIVE_GPU_FENCE`] is not set, as sentences for people, PASSIVE_LEVEL
    /// (choice); `None` where there is nothing more to say.
    fn native_fence_gap(&self) -> Option<String>;

    /// Who makes memory that the OS and the engines share, by segment (choice: the documents have the OS's
    /// memory manager make it, of segments that the driver describes). In which segment values of fences
    /// belong is asked by
    /// [`get_standard_allocation_driver_data`](Ddi::get_standard_allocation_driver_data).
    fn providers(&self) -> &Arc<Providers>;

    /// Nodes of the adapter.
    fn node_count(&self) -> u32;

    /// Counters of a node.
    fn node_counters(&self, node_ordinal: u32) -> Option<NodeCounters>;

    /// `DxgkDdiCalibrateGpuClock`, PASSIVE_LEVEL: an engine's clock, by which logs have their times, and the CPU's at one
    /// moment.
    ///
    /// # Errors
    /// No such engine, or one of whose clock and the CPU's nobody can read both.
    fn calibrate_gpu_clock(
        &self,
        node_ordinal: u32,
        engine_ordinal: u32,
    ) -> Result<GpuClockCalibration, DdiError>;

    /// The slices of a node that have ended since the last call, of those submitted since the first, PASSIVE_LEVEL
    /// (choice: a driver of Windows tells of such things in events of its own). `go_on` says whether there will be
    /// another call. None where engines run no slices.
    fn take_ended_slices(&self, node_ordinal: u32, go_on: bool) -> EndedSlices;

    /// Has all engines ring for other adapters and hear of them, PASSIVE_LEVEL (XA-10; nothing of it is published): before
    /// the first fence with a doorbell is created, and again before others, which changes nothing. When this returns no
    /// slice runs that does not ring.
    ///
    /// # Errors
    /// An engine that cannot, or has no memory for it; then some may.
    fn set_cross_doorbells(&self, args: &SetCrossDoorbells<'_>) -> Result<(), DdiError>;

    /// `DxgkDdiCreateNativeFence`, PASSIVE_LEVEL: makes the global object; always followed by
    /// Open for the creator.
    ///
    /// # Errors
    /// When the storage cannot be mapped for an engine; then there is no such object: it is neither opened
    /// nor destroyed.
    fn create_native_fence(&self, args: &CreateNativeFence<'_>) -> Result<(), DdiError>;

    /// `DxgkDdiOpenNativeFence`, PASSIVE_LEVEL: makes a local handle of a process.
    ///
    /// # Errors
    /// When a handle table cannot grow; then there is no such handle, and it is not closed.
    fn open_native_fence(&self, args: &OpenNativeFence) -> Result<(), DdiError>;

    /// `DxgkDdiCloseNativeFence`, PASSIVE_LEVEL: drops a local handle; packets that carry it fault.
    /// Waits for no engine: where slices in flight may still refer to it, its place in the table is used
    /// again after [`Interrupt::ObjectsRetired`](super::Interrupt::ObjectsRetired) has named it (choice).
    fn close_native_fence(&self, process: ProcessId, local: LocalHandle) -> Retirement;

    /// `DxgkDdiDestroyNativeFence`, PASSIVE_LEVEL: drops the global object. Waits for no engine
    /// (choice: the documents let the OS free the storage after it): where slices in flight may
    /// still refer to it, storage and slot are used again after
    /// [`Interrupt::ObjectsRetired`](super::Interrupt::ObjectsRetired) has named it.
    fn destroy_native_fence(&self, global: FenceId) -> Retirement;

    /// PASSIVE_LEVEL: makes a monitored fence known to the engines, whose signals of it raise no
    /// native-fence-signaled interrupt (choice).
    ///
    /// # Errors
    /// When the storage cannot be mapped for an engine, or a handle table cannot grow.
    fn map_monitored_fence(&self, args: &MapMonitoredFence<'_>) -> Result<(), DdiError>;

    /// PASSIVE_LEVEL: drops the handle of a monitored fence; packets that carry it fault (choice).
    fn close_monitored_fence(&self, process: ProcessId, local: LocalHandle);

    /// PASSIVE_LEVEL: as [`destroy_native_fence`](Ddi::destroy_native_fence) for a monitored fence
    /// (choice).
    fn unmap_monitored_fence(&self, global: FenceId) -> Retirement;

    /// `DxgkDdiCreateAllocation`, PASSIVE_LEVEL: makes memory known to the engines.
    ///
    /// # Errors
    /// When it cannot be mapped for an engine.
    fn create_allocation(&self, args: &CreateAllocation<'_>) -> Result<(), DdiError>;

    /// `DxgkDdiOpenAllocation`, PASSIVE_LEVEL: makes a local handle of a process, which its
    /// transfers may carry.
    ///
    /// # Errors
    /// When a handle table cannot grow.
    fn open_allocation(&self, args: &OpenAllocation) -> Result<(), DdiError>;

    /// `DxgkDdiCloseAllocation`, PASSIVE_LEVEL: drops a local handle; a transfer that carries it
    /// faults, in its next part at the latest.
    fn close_allocation(&self, process: ProcessId, local: LocalHandle);

    /// `DxgkDdiDestroyAllocation`, PASSIVE_LEVEL: as
    /// [`destroy_native_fence`](Ddi::destroy_native_fence) for an allocation.
    fn destroy_allocation(&self, global: AllocationId) -> Retirement;

    /// PASSIVE_LEVEL: gives every engine a kernel, and makes a local handle of a process, which its dispatches may
    /// carry (choice: the documents have no word for what a packet runs).
    ///
    /// # Errors
    /// An engine does not take it, a handle table cannot grow, or the driver's engines run none; then no engine
    /// keeps it.
    fn create_kernel(&self, args: &CreateKernel<'_>) -> Result<(), DdiError>;

    /// PASSIVE_LEVEL: drops a local handle; a dispatch that carries it faults (choice).
    fn close_kernel(&self, process: ProcessId, local: LocalHandle);

    /// PASSIVE_LEVEL: as [`destroy_native_fence`](Ddi::destroy_native_fence) for a kernel (choice).
    fn destroy_kernel(&self, global: KernelId) -> Retirement;

    /// `DxgkDdiDestroyProcess`, PASSIVE_LEVEL: drops what is kept for a process whose fences,
    /// allocations and queues are destroyed.
    fn destroy_process(&self, process: ProcessId);

    /// `DxgkDdiUpdateMonitoredValues`, at device interrupt level: stores each MonitoredValue and
    /// posts it to every engine that may signal the fence; returns in bounded time and waits for
    /// no engine (choice, NF-08). After it, every signal either has a CurrentValue that the CPU
    /// reads, or is compared with the new value or a later one, or is made by an engine that
    /// adopts the new value afterwards and reads CurrentValue then. The OS reads CurrentValue
    /// again on return.
    ///
    /// # Errors
    /// Bug check 0x119, P1 = 0x12.
    fn update_monitored_values(&self, updates: &[MonitoredValueUpdate<'_>])
    -> Result<(), DdiError>;

    /// `DxgkDdiUpdateCurrentValuesFromCpu`, DISPATCH_LEVEL: stores each value in order, then makes
    /// the GPU look again at the queues that wait, once for the batch (NF-17). The OS serialises
    /// its updates of one fence. With NotificationOnly it stores nothing: CurrentValue was updated
    /// elsewhere (NF-18). With AlwaysSignaled neither, whatever the value: from now on GPU waits on these
    /// fences pass and GPU signals leave their storage alone, by handles that are opened later too
    /// (NF-19); what a slice in flight has looked up already it may use until it ends, which it is asked
    /// to (choice). No engine parks at a wait for such a fence: one that is parked runs again, and one that has
    /// asked for it is not let go ([`park_engine`](Ddi::park_engine)), since the OS brings none back for it.
    ///
    /// # Errors
    /// A flag that is reserved, or these two at once (choice). Bug check 0x119, P1 = 0x13.
    fn update_current_values_from_cpu(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateCurrentValuesFlags,
    ) -> Result<(), DdiError>;

    /// `DxgkDdiCreateHwContext`, PASSIVE_LEVEL: what the OS suspends and resumes, and each hardware queue
    /// belongs to one. A driver that saves what it preempts to memory of the OS asks for it from here, by
    /// [`Callbacks::create_context_allocation`]: it is there before a queue of the context is (PR-13). It
    /// may ask for more when a queue is created.
    ///
    /// # Errors
    /// A node or an affinity that the adapter has not; no memory.
    fn create_context(&self, args: &CreateContext) -> Result<ContextHandle, DdiError>;

    /// `DxgkDdiDestroyHwContext`, PASSIVE_LEVEL, must succeed: its queues are destroyed before. What the driver
    /// had asked for goes back by [`Callbacks::destroy_context_allocation`].
    fn destroy_context(&self, context: ContextHandle);

    /// `DxgkDdiSuspendContext`, DISPATCH_LEVEL (choice: its page names none): the context's queues leave the
    /// GPU as soon as may be, wherever they stand. Returns at once. Doorbells stay connected, and what is
    /// queued meanwhile runs after [`resume_context`](Ddi::resume_context).
    ///
    /// [`Suspension::Done`] where it is suspended already and nothing on the GPU refers to it. Else
    /// [`Interrupt::SuspendContextCompleted`](super::Interrupt::SuspendContextCompleted) tells when
    /// nothing does, with the newest fence that it was suspended with, maybe within this call. A context that
    /// is resumed before is not told of.
    ///
    /// # Errors
    /// An unknown context, a driver whose engines cannot take anything back, an engine that is lost.
    fn suspend_context(&self, args: &SuspendContext) -> Result<Suspension, DdiError>;

    /// `DxgkDdiResumeContext`, DISPATCH_LEVEL (choice), must succeed: the context's queues go on from where
    /// they were taken out.
    fn resume_context(&self, context: ContextHandle);

    /// DISPATCH_LEVEL: the paging packet InitContextResource of memory that the driver has by
    /// [`Callbacks::create_context_allocation`] has completed (PR-14; choice: the documents have the OS's
    /// scheduler submit nothing of the context before, and no scheduler of the OS's stands before a ring). From
    /// now on the GPU may refer to queues that are saved there, and not before: their doorbells connect, and
    /// what is rung meanwhile runs then. A name that there is no more means nothing.
    fn context_allocation_initialised(&self, id: ContextAllocationId);

    /// PASSIVE_LEVEL: memory that the driver has by [`Callbacks::create_context_allocation`] lies elsewhere from
    /// now on, and has its content there (PR-14; choice: the documents change what the driver's address maps
    /// to). The context is suspended.
    ///
    /// [`SaveAreaMove::WrittenSince`] where the driver has written to it since it was copied: it lies where it
    /// was, and the OS copies it again.
    ///
    /// # Errors
    /// A name that there is not, a context that is not suspended, a lost engine, a place that cannot be mapped.
    fn move_context_allocation(
        &self,
        id: ContextAllocationId,
        to: Place<'_>,
    ) -> Result<SaveAreaMove, DdiError>;

    /// `DxgkDdiCreateHwQueue`, PASSIVE_LEVEL. It runs once its logs are set and its doorbell is created and
    /// connected.
    ///
    /// # Errors
    /// A node or an affinity that the adapter has not, flags of another kind of queue, no memory.
    fn create_hw_queue(&self, args: &CreateHwQueue<'_>) -> Result<HwQueueHandle, DdiError>;

    /// `DxgkDdiCreateHwQueue` for a queue of the other kind, PASSIVE_LEVEL: it has no ring or
    /// doorbell of the user's and no log, and takes commands at once (HQ-10).
    ///
    /// # Errors
    /// A node or an affinity that the adapter has not, flags of another kind of queue, no memory, a full
    /// run list.
    fn create_kernel_queue(&self, args: &CreateKernelQueue<'_>) -> Result<HwQueueHandle, DdiError>;

    /// `DxgkDdiSubmitCommandToHwQueue`, DISPATCH_LEVEL: the engine executes the command after those
    /// before it, and [`Interrupt::DmaCompleted`](super::Interrupt::DmaCompleted) tells that it has;
    /// each signal of a monitored fence in it is told by
    /// [`Interrupt::MonitoredFenceSignaled`](super::Interrupt::MonitoredFenceSignaled) where engines
    /// are of the advanced form. Returns at once; may call back on this thread.
    ///
    /// With ContextSwitch a command has no packets, and its progress value says nothing: the engine saves the
    /// queue's state and lets go of it, until the next command (PR-12). It completes when nothing on the GPU
    /// refers to the queue. The OS submits it before it moves or frees what the queue's commands use, with
    /// Paging too if these are paging packets; where the driver is not PreemptionAware never.
    ///
    /// # Errors
    /// A queue of user-mode submission, whose ring is its user's; one that was stopped; more than
    /// its ring has room for; a context switch with packets, or of a queue that has commands which have
    /// neither completed nor been taken back.
    fn submit_command_to_hw_queue(&self, args: &SubmitCommand<'_>) -> Result<(), DdiError>;

    /// `DxgkDdiSetContextSchedulingProperties`, DISPATCH_LEVEL (choice), of the priority alone: while a queue
    /// of a context of a higher one can go on, its node's engine leaves lower ones out, but not for ever
    /// (PR-08). It holds from the next slice on; a context starts with 0.
    ///
    /// # Errors
    /// An unknown context.
    fn set_context_scheduling_properties(
        &self,
        context: ContextHandle,
        priority: i32,
    ) -> Result<(), DdiError>;

    /// `DxgkDdiPreemptCommand`, DISPATCH_LEVEL: the node's engine lets go of what it was handed through the
    /// OS and has not completed, wherever it stands. Returns at once. The answer is
    /// [`Interrupt::DmaPreempted`](super::Interrupt::DmaPreempted), maybe within this call, after the
    /// completions that came before it (PR-04); until then the OS submits nothing to the node. Where nothing
    /// is left it comes without touching the engine (PR-07). Of a lost engine it never comes.
    ///
    /// What was taken back stays in the queues' rings as it was written, and goes on from where it was left
    /// when the OS submits it again, with the flag Resubmission and the same progress value, in each queue in
    /// the same order and before anything else of it. The engine sees nothing behind it.
    ///
    /// # Errors
    /// Bug check 0x119, P1 = 2: no such node or engine, or a request that is not answered yet.
    fn preempt_command(&self, args: &PreemptCommand) -> Result<(), DdiError>;

    /// `DxgkDdiQueryAdapterInfo(DXGKQAITYPE_DRIVERCAPS)`, PASSIVE_LEVEL: its `PreemptionCaps`, the coarsest
    /// of what the adapter's engines do (PR-03).
    fn preemption_caps(&self) -> PreemptionCaps;

    /// `DxgkDdiDestroyHwQueue`, PASSIVE_LEVEL, must succeed; its doorbell, if it still has one, goes with it.
    fn destroy_hw_queue(&self, hw_queue: HwQueueHandle);

    /// Maps a place of the OS's memory in the GPU's system process, PASSIVE_LEVEL: what the OS does by
    /// paging operations (choice). Only with MapToGpuSystemProcess.
    ///
    /// # Errors
    /// A driver without the cap; no memory or address for it.
    fn map_to_gpu_system_process(&self, place: Place<'_>) -> Result<SystemProcessPlace, DdiError>;

    /// `DxgkDdiSetNativeFenceLogBuffer`, DISPATCH_LEVEL: once for each of the two logs (LG-01), and
    /// again whenever the OS moves one, also while the queue runs (LG-07). The buffer's indices are 0.
    /// On return no entry goes to the one before, and all that were written there can be read: to
    /// that end it waits for the slices in flight (choice: the documents say that it is synchronous),
    /// so it is not called from an interrupt.
    ///
    /// # Errors
    /// An unknown queue, no memory, an engine that is lost: the log in force stays so.
    fn set_native_fence_log_buffer(
        &self,
        args: &SetNativeFenceLogBuffer<'_>,
    ) -> Result<(), DdiError>;

    /// Takes a log away whose type is on no longer, DISPATCH_LEVEL (choice, after what a NULL address
    /// means for the logs of flip queues): on return the engine writes nothing there. That such a log
    /// is set and taken away is how the driver is told that verbose tracing is on and off (LG-11).
    ///
    /// # Errors
    /// An unknown queue, a log that every queue has, an engine that is lost: the log stays.
    fn remove_native_fence_log_buffer(
        &self,
        hw_queue: HwQueueHandle,
        log: LogType,
    ) -> Result<(), DdiError>;

    /// `DxgkDdiUpdateNativeFenceLogs`, DISPATCH_LEVEL: after it, all entries that an index read
    /// before covers can be read (LG-05).
    ///
    /// # Errors
    /// An unknown queue.
    fn update_native_fence_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError>;

    /// `DxgkDdiCreateDoorbell`, PASSIVE_LEVEL: the queue gets a ring and what the user rings. The doorbell
    /// starts disconnected (HQ-02).
    ///
    /// # Errors
    /// An unknown queue, one of kernel-mode submission, one that has a doorbell, an id that another has, a
    /// ring that is none, flags that are reserved or not offered, no memory.
    fn create_doorbell(&self, args: &CreateDoorbell<'_>) -> Result<(), DdiError>;

    /// `DxgkDdiDestroyDoorbell`, PASSIVE_LEVEL, must succeed: disconnects it, as
    /// [`disconnect_doorbell`](Ddi::disconnect_doorbell) does, and lets go of its ring. The queue may get
    /// another.
    fn destroy_doorbell(&self, doorbell: DoorbellId);

    /// `DxgkDdiConnectDoorbell`, PASSIVE_LEVEL: the queue's packets are executed from now on. Gives `Status`:
    /// what the user reads now.
    ///
    /// Where the engine has no doorbell left, the driver takes away the one that has been quiet longest by
    /// [`Callbacks::disconnect_doorbell`], but none whose user may be in the midst of connecting it; where
    /// these are all, the queue runs by calls: its status stays CONNECTED_NOTIFY until a call finds one
    /// (HQ-13, choice). Packets that were rung for before a doorbell was taken away are executed all the
    /// same.
    ///
    /// # Errors
    /// A doorbell that was not created or is destroyed, flags that are not offered, logs that are not set, a
    /// stopped queue, a full run list, a lost engine.
    fn connect_doorbell(&self, args: &ConnectDoorbell) -> Result<DoorbellStatus, DdiError>;

    /// `DxgkCbDisconnectDoorbell` as the OS uses it for itself, PASSIVE_LEVEL, must succeed: no packet is
    /// executed once this returns; what is in the ring stays (HQ-02). The user reads DISCONNECTED_RETRY.
    /// Waits for the slices in flight, so it is not called from an interrupt.
    fn disconnect_doorbell(&self, doorbell: DoorbellId);

    /// The same with DISCONNECTED_ABORT, DISPATCH_LEVEL, for a queue of either kind that was stopped: its
    /// engine executes nothing of it any more, so this waits for nothing and may be called from an interrupt.
    fn abort_doorbell(&self, hw_queue: HwQueueHandle);

    /// `DxgkDdiNotifyWorkSubmission`, PASSIVE_LEVEL, must succeed: the user rang and read
    /// CONNECTED_NOTIFY.
    fn notify_work_submission(&self, doorbell: DoorbellId);

    /// `DxgkDdiGetStandardAllocationDriverData` with `D3DKMDT_STANDARDALLOCATION_FENCESTORAGE`,
    /// PASSIVE_LEVEL: in which segments the OS puts CurrentValues, or MonitoredValues, of fences of a type
    /// (NF-29). The answer is in `AllocationInfo`: PreferredSegment, SupportedWriteSegmentSet and
    /// EvictionSegmentSet, where MonitoredValues must be visible to the CPU.
    /// [`FenceSegments`](super::FenceSegments) reads and
    /// writes it.
    ///
    /// # Errors
    /// A value or a type that there is not.
    fn get_standard_allocation_driver_data(
        &self,
        data: &mut FenceStorageSurfaceData,
    ) -> Result<(), DdiError>;

    /// PASSIVE_LEVEL: the user loses the doorbell and the engine keeps the ring, for the end of a process
    /// (HQ-12; choice: the documents' disconnect moves the user's address to a dummy page and leaves
    /// what was queued to the engine; [`disconnect_doorbell`](Ddi::disconnect_doorbell) stops it). The
    /// user reads DISCONNECTED_RETRY, and what is in the ring is executed, whether or not the doorbell
    /// was connected. [`connect_doorbell`](Ddi::connect_doorbell) gives it back. Waits for nothing. Called
    /// again when the user has queued more since: a ring that was empty may not be looked at any more.
    ///
    /// # Errors
    /// As [`connect_doorbell`](Ddi::connect_doorbell).
    fn withdraw_doorbell(&self, doorbell: DoorbellId) -> Result<(), DdiError>;

    /// PASSIVE_LEVEL: the wait that a user-mode queue stands at, to be told to people (choice). Exact
    /// while its engine is parked, else as of the slice before; `None` for one that stands at none.
    fn hw_queue_wait(&self, hw_queue: HwQueueHandle) -> Option<HwQueueWait>;

    /// DISPATCH_LEVEL: the OS waits for all that attempt `attempt` of the engine to park named (choice): the
    /// engine is let go, unless something has come meanwhile. Returns at once.
    fn park_engine(&self, node_ordinal: u32, attempt: u64);

    /// DISPATCH_LEVEL: a value was reached that a parked engine waits for (choice): it runs again. Waits for
    /// nothing; the caller may hold the fence's lock. An engine that runs already looks by itself.
    fn resume_engine(&self, node_ordinal: u32);

    /// The DDIs of hang detection and recovery; `None` where a lost engine is lost for good (choice: the
    /// documents oblige every driver to some of them, TD-16).
    fn tdr(&self) -> Option<&dyn TdrDdi>;

    /// Before a wait, PASSIVE_LEVEL: looks for a short time, without sleeping, whether the slices in flight make
    /// it `done`; true if so (choice: bounded spinning). Calls back on this thread for slices that
    /// end. The caller holds no lock that the callbacks take.
    fn look_for_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) -> bool;

    /// In a wait that stands in a list, PASSIVE_LEVEL: where interrupts are polled for, watches the engines until
    /// it is `done` or the deadline is reached, and calls back on this thread. Returns at once where
    /// they interrupt. The caller holds no lock that the callbacks take.
    fn watch_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>);
}
