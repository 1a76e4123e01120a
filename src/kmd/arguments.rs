//! Arguments: what the OS passes to the driver's DDIs, and the ids and places in it.

use super::SystemProcessPlace;
use crate::abi::wddm::{CreateHwQueueFlags, NativeFenceType, SubmitCommandFlags};
use crate::abi::{
    AllocationId, CrossDoorbellIndex, FenceId, HandleAccess, KernelId, LocalHandle, LogType,
    Opcode, Packet,
};
use crate::gpu::{ContextKind, KernelCode};
use crate::shared::{PoolPlace, Region, Word};
use crate::sync::Arc;

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

impl<'a> From<&'a PoolPlace> for Place<'a> {
    fn from(place: &'a PoolPlace) -> Self {
        Self {
            region: place.region(),
            offset: place.offset(),
        }
    }
}

/// What a fence's signals do for other adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CrossAdapterSignals {
    /// Nothing: it is no fence of several adapters.
    #[default]
    No,
    /// Each signal interrupts, since MonitoredValue is 0 for good (XA-03).
    Interrupts,
    /// The engine rings this (XA-10), by what [`SetCrossDoorbells`] said, and looks at it when it was rung. For what the CPU
    /// stores the OS rings, behind UpdateCurrentValuesFromCpu; NotificationOnly rings nothing.
    Doorbell(CrossDoorbellIndex),
}

/// Where engines ring for other adapters (XA-10; choice: nothing of it is published).
#[derive(Clone, Copy, Debug)]
pub struct SetCrossDoorbells<'a> {
    /// The page of doorbells.
    pub page: &'a Arc<Region>,
    /// By node, the line of it that is the engine's own.
    pub lines: &'a [u32],
}

/// `DXGKARG_CREATENATIVEFENCE`.
#[derive(Clone, Copy, Debug)]
pub struct CreateNativeFence<'a> {
    /// The OS's handle, which interrupts name.
    pub global: FenceId,
    /// `Type`: of INTRA_GPU the CPU never reads CurrentValue (NF-13).
    pub fence_type: NativeFenceType,
    /// Storage of CurrentValue; holds the initial value, 0 for type INTRA_GPU.
    pub current_value: Place<'a>,
    /// Storage of MonitoredValue.
    pub monitored_value: Place<'a>,
    /// `CrossAdapter`, and how other adapters hear of its signals (choice: the documents' structure does not say it).
    pub cross_adapter: CrossAdapterSignals,
    /// `CurrentValueSystemProcessGpuVa` and `MonitoredValueSystemProcessGpuVa`, of the adapter's
    /// nodes; `None`, 0 in the documents, without MapToGpuSystemProcess.
    pub system_process: Option<[&'a SystemProcessPlace; 2]>,
}

/// `DXGKARG_SETNATIVEFENCELOGBUFFER`.
#[derive(Clone, Copy, Debug)]
pub struct SetNativeFenceLogBuffer<'a> {
    /// Whose log.
    pub hw_queue: HwQueueHandle,
    /// Which; the header in the buffer says so too (choice: the documents' structure does not).
    pub log: LogType,
    /// The buffer, whose indices are 0.
    pub buffer: Place<'a>,
    /// `NumberOfEntries`.
    pub entries: u64,
    /// `LogBufferSystemProcessGpuVa`, of the adapter's nodes; `None`, 0 in the documents, without
    /// MapToGpuSystemProcess.
    pub system_process: Option<&'a SystemProcessPlace>,
}

/// `DXGKARG_OPENNATIVEFENCE`.
#[derive(Clone, Copy, Debug)]
pub struct OpenNativeFence {
    /// The fence.
    pub global: FenceId,
    /// Whose handle it is.
    pub process: ProcessId,
    /// The handle that the process's packets carry.
    pub local: LocalHandle,
    /// What the handle may do.
    pub access: HandleAccess,
}

/// `DXGKARG_CREATEALLOCATION`, of one allocation in system memory.
#[derive(Clone, Copy, Debug)]
pub struct CreateAllocation<'a> {
    /// The OS's handle.
    pub global: AllocationId,
    /// Its memory.
    pub memory: Place<'a>,
    /// Its size, a multiple of 8.
    pub bytes: u64,
}

/// `DXGKARG_OPENALLOCATION`, of one allocation.
#[derive(Clone, Copy, Debug)]
pub struct OpenAllocation {
    /// The allocation.
    pub global: AllocationId,
    /// Whose handle it is.
    pub process: ProcessId,
    /// The handle that the process's packets carry.
    pub local: LocalHandle,
}

/// A kernel of a process, for every engine (choice).
#[derive(Clone, Copy, Debug)]
pub struct CreateKernel<'a> {
    /// The OS's handle.
    pub global: KernelId,
    /// Whose handle it is.
    pub process: ProcessId,
    /// The handle that the process's packets carry.
    pub local: LocalHandle,
    /// What it runs.
    pub code: &'a Arc<KernelCode>,
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

/// A context of a node, as the driver names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextHandle {
    /// The node that its queues run on.
    pub node_ordinal: u32,
    /// Which, among those of the driver.
    pub number: u32,
}

/// `DXGKARG_CREATEHWCONTEXT`.
#[derive(Clone, Copy, Debug)]
pub struct CreateContext {
    /// Whose packets its queues execute.
    pub process: ProcessId,
    /// Node to make it on.
    pub node_ordinal: u32,
    /// One bit, 1 << EngineOrdinal.
    pub engine_affinity: u32,
    /// What it is for.
    pub kind: ContextKind,
}

/// `DXGKARG_SUSPENDCONTEXT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspendContext {
    /// The context.
    pub context: ContextHandle,
    /// What the interrupt carries that tells of it: rises with each suspension of the context, so that an
    /// old answer is told from the newest.
    pub suspend_fence: u64,
}

/// `DXGKARG_CREATEHWQUEUE` with UserModeSubmission and NativeProgressFence. Its ring comes with its
/// doorbell ([`CreateDoorbell`](super::CreateDoorbell)).
#[derive(Clone, Copy, Debug)]
pub struct CreateHwQueue<'a> {
    /// Whose packets it executes.
    pub process: ProcessId,
    /// The context that it belongs to, on the same node.
    pub context: ContextHandle,
    /// Node to make it on.
    pub node_ordinal: u32,
    /// One bit, 1 << EngineOrdinal.
    pub engine_affinity: u32,
    /// UserModeSubmission and NativeProgressFence are set; the other bits change nothing here.
    pub flags: CreateHwQueueFlags,
    /// Progress words and the doorbell's status, written by engine and OS.
    pub progress: Place<'a>,
    /// `hHwQueueProgressFence`: the native fence that carries the last completed submission …
    pub progress_fence: FenceId,
    /// … and the handle by which the process's packets name it.
    pub progress_handle: LocalHandle,
}

/// `DXGKARG_CREATEHWQUEUE` without UserModeSubmission: a queue that the OS alone submits to.
#[derive(Clone, Copy, Debug)]
pub struct CreateKernelQueue<'a> {
    /// Whose handles its packets carry: the OS's own for a process.
    pub process: ProcessId,
    /// The context that it belongs to, on the same node.
    pub context: ContextHandle,
    /// Node to make it on.
    pub node_ordinal: u32,
    /// One bit, 1 << EngineOrdinal.
    pub engine_affinity: u32,
    /// UserModeSubmission and NativeProgressFence are clear; the other bits change nothing here.
    pub flags: CreateHwQueueFlags,
    /// `hHwQueueProgressFence`: the monitored fence that carries the last completed command, by the
    /// OS's id, which no other fence has …
    pub progress_fence: FenceId,
    /// … its storage, where the engine writes it; holds 0 …
    pub progress_value: Place<'a>,
    /// … and its handle.
    pub progress_handle: LocalHandle,
}

/// `DXGKARG_SUBMITCOMMANDTOHWQUEUE`.
#[derive(Clone, Copy, Debug)]
pub struct SubmitCommand<'a> {
    /// A queue made by [`Ddi::create_kernel_queue`](super::Ddi::create_kernel_queue).
    pub hw_queue: HwQueueHandle,
    /// Names the command when it has completed; rises with every command of the engine.
    pub submission_id: u64,
    /// The command: packets without waits, whose signals are of monitored fences (choice: the
    /// documents give the address of a buffer).
    pub packets: &'a [Packet],
    /// Paging, ContextSwitch and Resubmission may be set.
    pub flags: SubmitCommandFlags,
    /// `HwQueueProgressFenceId`: what the progress fence gets when it has completed. Each signal in
    /// the packets takes one value before it (choice), and values follow on each other.
    pub progress_value: u64,
}

/// `DXGKARG_PREEMPTCOMMAND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptCommand {
    /// Names the request in the interrupt that answers it. 64 bits here, as a submission id.
    pub preemption_id: u64,
    /// Node.
    pub node_ordinal: u32,
    /// Engine of the node; always 0 here.
    pub engine_ordinal: u32,
}

impl SubmitCommand<'_> {
    /// Packets of a kernel-mode queue's ring: what is outstanding of it has no more
    /// ([`SubmitCommand::ring_packets`]). The caller waits for completions.
    pub const MOST_RING_PACKETS: u64 = 1024;

    /// Signals among the packets of a command.
    #[must_use]
    pub fn signals(packets: &[Packet]) -> u64 {
        let is_signal = |packet: &&Packet| packet.opcode() == Some(Opcode::Signal);
        packets.iter().filter(is_signal).count() as u64
    }

    /// Packets that a command takes in the ring: its own, and one for each progress value.
    #[must_use]
    pub fn ring_packets(packets: &[Packet]) -> u64 {
        packets.len() as u64 + Self::signals(packets) + 1
    }
}

/// A monitored fence that engines store to (choice: the documents map it and packets carry its
/// address; here packets carry handles).
#[derive(Clone, Copy, Debug)]
pub struct MapMonitoredFence<'a> {
    /// The OS's id, which no native fence has.
    pub global: FenceId,
    /// Storage of its value; holds the initial one.
    pub current_value: Place<'a>,
    /// Whose queues may store to it: the OS's own for a process.
    pub process: ProcessId,
    /// The handle that their packets carry.
    pub local: LocalHandle,
}

/// A wait that a hardware queue stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HwQueueWait {
    /// The fence, by the handle that the packet carries: any word of the user's, or of the OS's.
    pub handle: u32,
    /// The value that it waits for.
    pub value: u64,
    /// When it was first seen unsatisfied: in ticks of the engine's clock, or of the OS's where the OS waits
    /// itself.
    pub observed_ticks: u64,
}
