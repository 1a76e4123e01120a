//! Callbacks: what the driver tells the OS (`DxgkCbNotifyInterrupt`; `layouts.md` 1.8).

use crate::abi::{FenceId, ObjectId};
use crate::gpu::{Parking, QueueFault};
use crate::kmd::{
    ContextAllocation, ContextAllocationId, ContextHandle, CreateContextAllocation, DdiError,
    DisconnectDoorbell, FeatureError, FeatureId, HwQueueHandle, IsFeatureEnabledResult,
    NativeFenceInterface, QueryFeatureInterface, WrongLevel,
};
use std::time::Instant;

/// A fence of a [`NativeFenceSignaled`] payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignaledFence {
    /// The handle that the OS gave in `CreateNativeFence`.
    pub fence: FenceId,
    /// The value that was signalled (choice: the published payload has handles alone). The record
    /// can reach the CPU before CurrentValue does (`decisions.md` 4).
    pub value: u64,
    /// The queue that signalled, if one did.
    pub hw_queue: Option<HwQueueHandle>,
}

/// `DXGK_INTERRUPT_NATIVE_FENCE_SIGNALED`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeFenceSignaled {
    /// Node that raised.
    pub node_ordinal: u32,
    /// Engine of the node; always 0 here.
    pub engine_ordinal: u32,
    /// Fences that were signalled; `None`, the NULL array, where the set is not exactly known.
    /// Not looked at with the cap OptimizedNativeFenceSignaledInterrupt.
    pub fences: Option<Vec<SignaledFence>>,
    /// `hHWQueue`: the queue that signalled, whose log says what; `None`, NULL, where it may have
    /// been any of the engine's. Looked at with that cap alone.
    pub hw_queue: Option<HwQueueHandle>,
    /// `EvaluateLegacyMonitoredFences`: a NULL array stands for the waiters of monitored fences as
    /// well (IN-04).
    pub evaluate_legacy_monitored_fences: bool,
    /// When the driver took the records that this is made of, not earlier than the last of them was
    /// written and not later than it found that nothing refers to a fence that they name (choice):
    /// by it the OS tells a name that comes late from one that cannot be (IN-05).
    pub taken: Instant,
}

/// What an interrupt is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Native fences were signalled beyond their MonitoredValue.
    NativeFenceSignaled(NativeFenceSignaled),
    /// `DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED`: an engine has signalled a monitored fence, which
    /// the payload does not name.
    MonitoredFenceSignaled {
        /// Its node.
        node_ordinal: u32,
        /// Engine of the node; always 0 here.
        engine_ordinal: u32,
    },
    /// `DXGK_INTERRUPT_DMA_COMPLETED`: a command of a kernel-mode queue has completed.
    DmaCompleted {
        /// The id that the OS gave it. 64 bits here (choice): a published id has 32, and wraps.
        submission_id: u64,
        /// Node that ran it.
        node_ordinal: u32,
        /// Engine of the node; always 0 here.
        engine_ordinal: u32,
    },
    /// `DXGK_INTERRUPT_DMA_PREEMPTED`: an engine has let go of what it was handed through the OS. What was
    /// submitted after the last completed id, up to the request, and was not told to have completed before,
    /// is preempted.
    DmaPreempted {
        /// The request that is answered.
        preemption_id: u64,
        /// The last completed id, not a preempted one.
        last_completed_id: u64,
        /// Node that was preempted.
        node_ordinal: u32,
        /// Engine of the node; always 0 here.
        engine_ordinal: u32,
    },
    /// `DXGK_INTERRUPT_SUSPEND_CONTEXT_COMPLETED`: nothing on the GPU refers to a context any more.
    SuspendContextCompleted {
        /// Which.
        context: ContextHandle,
        /// The newest fence that it was suspended with.
        suspend_fence: u64,
    },
    /// A slice ended that had not adopted the last MonitoredValue of these fence slots: the OS
    /// reads their CurrentValue again (choice; `decisions.md` 1).
    ResampleFences {
        /// The engine's node.
        node_ordinal: u32,
        /// Slots of the fence table.
        slots: Vec<u32>,
    },
    /// A queue was stopped at a packet (`DXGK_INTERRUPT_DMA_FAULTED` of the documents).
    HwQueueFaulted {
        /// Which queue.
        hw_queue: HwQueueHandle,
        /// Why and where.
        fault: QueueFault,
    },
    /// Fences and allocations that were destroyed and that no engine refers to any more (choice).
    ObjectsRetired {
        /// The handles that the OS gave when it created them.
        objects: Vec<ObjectId>,
    },
    /// An engine asks to be let go while its queues stand at waits, or runs on (choice; design idea
    /// 4). The OS waits in its stead: it adds a waiter to each of the fences, then calls
    /// [`Ddi::park_engine`](super::Ddi::park_engine), and when a value is reached
    /// [`Ddi::resume_engine`](super::Ddi::resume_engine). An attempt that is older than one that
    /// was told says nothing.
    EngineParking {
        /// Its node.
        node_ordinal: u32,
        /// Which.
        parking: Parking,
    },
    /// An engine executes no more.
    EngineLost {
        /// Its node.
        node_ordinal: u32,
    },
}

/// The OS's side.
pub trait Callbacks: Send + Sync {
    /// `IsFeatureEnabled`, PASSIVE_LEVEL: asked before a feature is advertised (FQ-01).
    fn is_feature_enabled(&self, feature: FeatureId) -> IsFeatureEnabledResult;

    /// `QueryFeatureInterface`, PASSIVE_LEVEL: the interface of native fences, the only one there is.
    ///
    /// # Errors
    /// An unknown feature, one that is off, another version, a wrong size.
    fn query_feature_interface(
        &self,
        query: &QueryFeatureInterface,
    ) -> Result<NativeFenceInterface, FeatureError>;

    /// An interrupt and the deferred call that follows it, on one of the driver's interrupt
    /// threads, or on a thread in a call that comes to take the report of a slice: of waits, of
    /// submission, of disconnecting and destroying. No lock of the driver is held.
    fn notify_interrupt(&self, interrupt: Interrupt);

    /// `DxgkCbDisconnectDoorbell`, PASSIVE_LEVEL: the driver takes a doorbell away. When this returns the
    /// user reads the reason in the status word; then the driver disconnects. Called from within a
    /// call of the doorbell that takes its place, with no lock of the driver held; it makes no call
    /// of a doorbell itself.
    fn disconnect_doorbell(&self, args: &DisconnectDoorbell);

    /// `DxgkCbCreateContextAllocation`, PASSIVE_LEVEL: memory for a context that is being made, or that gets one
    /// more queue (choice), or for a device as a whole (PR-13). Called from within that call, with no lock of
    /// the driver held. Not for a system context.
    ///
    /// # Errors
    /// No memory; a size of 0, or that is no multiple of 8.
    fn create_context_allocation(
        &self,
        args: &CreateContextAllocation,
    ) -> Result<ContextAllocation, DdiError>;

    /// `DxgkCbDestroyContextAllocation`, any level (choice: who lets go of the last of a context's queues may be
    /// an interrupt thread, or hold a lock of the driver's): neither the driver nor an engine refers to it any
    /// more. What is still mapped of its region is mapped for others' sake.
    fn destroy_context_allocation(&self, id: ContextAllocationId);

    /// The OS made a call at a wrong level (choice; FQ-09): from within that call, under whatever
    /// locks its caller holds.
    fn wrong_level(&self, wrong: WrongLevel);
}
