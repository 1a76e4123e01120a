//! Ddi: what the OS calls. Each method is the DDI of its name and documents that DDI's contract.

use super::{Callbacks, NativeFenceCaps};
use crate::abi::{FenceHandle, FenceId, HandleAccess, LogType};
use crate::gpu::{NodeCounters, NodeError};
use crate::shared::{Region, Word};
use crate::sync::Arc;
use std::fmt::Debug;
use std::time::Instant;

/// A process, for the driver: a number that is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u64);

/// The driver's handle of a hardware queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HwQueueHandle {
    /// Node that the queue is made on.
    pub node_ordinal: u32,
    /// The queue's number there.
    pub number: u32,
}

/// A place in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The memory.
    pub region: &'a Arc<Region>,
    /// Byte offset in it.
    pub offset: u64,
}

/// `DXGKARG_CREATENATIVEFENCE`.
#[derive(Clone, Copy, Debug)]
pub struct CreateNativeFence<'a> {
    /// The OS's handle, which interrupts name.
    pub global: FenceId,
    /// Storage of CurrentValue; holds the initial value.
    pub current_value: Place<'a>,
    /// Storage of MonitoredValue.
    pub monitored_value: Place<'a>,
}

/// `DXGKARG_OPENNATIVEFENCE`.
#[derive(Clone, Copy, Debug)]
pub struct OpenNativeFence {
    /// The fence.
    pub global: FenceId,
    /// Whose handle it is.
    pub process: ProcessId,
    /// The handle that the process's packets carry.
    pub local: FenceHandle,
    /// What the handle may do.
    pub access: HandleAccess,
}

/// One fence of `DXGKARG_UPDATEMONITOREDVALUES`.
#[derive(Clone, Copy, Debug)]
pub struct MonitoredValueUpdate<'a> {
    /// Which fence.
    pub fence: FenceId,
    /// The new MonitoredValue.
    pub value: u64,
    /// Where it is stored; valid during the call.
    pub word: Word<'a>,
}

/// One fence of `DXGKARG_UPDATECURRENTVALUESFROMCPU`.
#[derive(Clone, Copy, Debug)]
pub struct CurrentValueUpdate<'a> {
    /// Which fence.
    pub fence: FenceId,
    /// The new CurrentValue.
    pub value: u64,
    /// Where it is stored; valid during the call.
    pub word: Word<'a>,
}

/// `DXGK_UPDATECURRENTVALUESFROMCPU_FLAGS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateFlags {
    /// Store, then make the GPU look again.
    Store,
    /// Store nothing; CurrentValue was updated elsewhere. Make the GPU look again (NF-18).
    NotificationOnly,
}

/// `DXGKARG_CREATEHWQUEUE` with UserModeSubmission and NativeProgressFence.
#[derive(Clone, Copy, Debug)]
pub struct CreateHwQueue<'a> {
    /// Whose packets it executes.
    pub process: ProcessId,
    /// Node to make it on.
    pub node_ordinal: u32,
    /// One bit, 1 << EngineOrdinal.
    pub engine_affinity: u32,
    /// Ring control and ring, written by the user.
    pub ring: Place<'a>,
    /// Offset of the first packet from `ring`.
    pub ring_packets: u64,
    /// Packets of the ring, a power of two.
    pub ring_capacity: u64,
    /// Progress words, written by engine and OS.
    pub progress: Place<'a>,
    /// `hHwQueueProgressFence`: the native fence that carries the last completed submission …
    pub progress_fence: FenceId,
    /// … and the handle by which the process's packets name it.
    pub progress_handle: FenceHandle,
}

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
}

/// The driver.
///
/// Destroying and disconnecting queues wait for slices in flight, and these, NotifyWorkSubmission and
/// the calls of waits tell the OS on the caller's thread what slices that have ended report: the caller
/// holds no lock that the callbacks take.
pub trait Ddi: Send + Sync + Debug {
    /// Starts interrupts: from now on `callbacks` is called.
    fn start(&self, callbacks: Arc<dyn Callbacks>);

    /// Stops the adapter: no slice runs and no interrupt comes once this returns.
    fn stop(&self);

    /// `DxgkDdiQueryAdapterInfo(DXGKQAITYPE_NATIVE_FENCE_CAPS)`.
    fn native_fence_caps(&self) -> NativeFenceCaps;

    /// Nodes of the adapter.
    fn node_count(&self) -> u32;

    /// Counters of a node.
    fn node_counters(&self, node_ordinal: u32) -> Option<NodeCounters>;

    /// `DxgkDdiCreateNativeFence`, PASSIVE_LEVEL: makes the global object; always followed by
    /// Open for the creator.
    ///
    /// # Errors
    /// When the storage cannot be mapped for an engine.
    fn create_native_fence(&self, args: &CreateNativeFence<'_>) -> Result<(), DdiError>;

    /// `DxgkDdiOpenNativeFence`, PASSIVE_LEVEL: makes a local handle of a process.
    ///
    /// # Errors
    /// When a handle table cannot grow.
    fn open_native_fence(&self, args: &OpenNativeFence) -> Result<(), DdiError>;

    /// `DxgkDdiCloseNativeFence`, PASSIVE_LEVEL: drops a local handle; packets that carry it fault.
    fn close_native_fence(&self, process: ProcessId, local: FenceHandle);

    /// `DxgkDdiDestroyNativeFence`, PASSIVE_LEVEL: drops the global object. Waits for no engine
    /// (choice: the documents let the OS free the storage after it): where slices in flight may
    /// still refer to it, storage, slot and local handles are used again after
    /// [`Interrupt::FencesRetired`](super::Interrupt::FencesRetired) has named it.
    fn destroy_native_fence(&self, global: FenceId) -> Retirement;

    /// `DxgkDdiDestroyProcess`, PASSIVE_LEVEL: drops what is kept for a process whose fences and
    /// queues are destroyed.
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
    /// its updates of one fence.
    ///
    /// # Errors
    /// Bug check 0x119, P1 = 0x13.
    fn update_current_values_from_cpu(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateFlags,
    ) -> Result<(), DdiError>;

    /// `DxgkDdiCreateHwQueue`. Its logs are set before its doorbell is connected.
    ///
    /// # Errors
    /// A node or an affinity that the adapter has not, a ring that is none, no memory.
    fn create_hw_queue(&self, args: &CreateHwQueue<'_>) -> Result<HwQueueHandle, DdiError>;

    /// `DxgkDdiDestroyHwQueue`; its doorbell is disconnected.
    fn destroy_hw_queue(&self, hw_queue: HwQueueHandle);

    /// `DxgkDdiSetNativeFenceLogBuffer`, DISPATCH_LEVEL: once for each of the two logs (LG-01).
    /// The header in the buffer says which it is; the type is passed as well (choice).
    ///
    /// # Errors
    /// An unknown queue, no memory.
    fn set_native_fence_log_buffer(
        &self,
        hw_queue: HwQueueHandle,
        log: LogType,
        buffer: Place<'_>,
        entries: u64,
    ) -> Result<(), DdiError>;

    /// `DxgkDdiUpdateNativeFenceLogs`, DISPATCH_LEVEL: after it, all entries that an index read
    /// before covers can be read (LG-05).
    ///
    /// # Errors
    /// An unknown queue.
    fn update_native_fence_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError>;

    /// `DxgkDdiConnectDoorbell`, PASSIVE_LEVEL: the queue's packets are executed from now on.
    ///
    /// # Errors
    /// An unknown queue, logs that are not set, a full run list, a lost engine.
    fn connect_doorbell(&self, hw_queue: HwQueueHandle) -> Result<(), DdiError>;

    /// `DxgkCbDisconnectDoorbell` as the OS uses it: no packet is executed once this returns; what
    /// is in the ring stays (HQ-02). The user reads DISCONNECTED_RETRY. Waits for the slices in
    /// flight, so it is not called from an interrupt.
    fn disconnect_doorbell(&self, hw_queue: HwQueueHandle);

    /// The same with DISCONNECTED_ABORT, for a queue that was stopped: its engine executes nothing
    /// of it any more, so this waits for nothing and may be called from an interrupt.
    fn abort_doorbell(&self, hw_queue: HwQueueHandle);

    /// `DxgkDdiNotifyWorkSubmission`, PASSIVE_LEVEL, must succeed: the user rang and read
    /// CONNECTED_NOTIFY.
    fn notify_work_submission(&self, hw_queue: HwQueueHandle);

    /// The OS waits for all that attempt `attempt` of the engine to park named (choice): the
    /// engine is let go, unless something has come meanwhile. Returns at once.
    fn park_engine(&self, node_ordinal: u32, attempt: u64);

    /// A value was reached that a parked engine waits for (choice): it runs again. Waits for
    /// nothing; the caller may hold the fence's lock. An engine that runs already looks by itself.
    fn resume_engine(&self, node_ordinal: u32);

    /// Before a wait: looks for a short time, without sleeping, whether the slices in flight make
    /// it `done`; true if so (choice: bounded spinning). Calls back on this thread for slices that
    /// end. The caller holds no lock that the callbacks take.
    fn look_for_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) -> bool;

    /// In a wait that stands in a list: where interrupts are polled for, watches the engines until
    /// it is `done` or the deadline is reached, and calls back on this thread. Returns at once where
    /// they interrupt. The caller holds no lock that the callbacks take.
    fn watch_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>);
}
