//! Note: what somebody tells the recorder, as it happens, with times of CLOCK_MONOTONIC in nanoseconds.

use super::{InterruptKind, Operation, WaitEnd, WaiterKind};
use crate::abi::FenceId;

/// A queue, as the driver names it; no two of an adapter ever have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QueueId {
    /// Its node.
    pub node_ordinal: u32,
    /// Its number there.
    pub number: u32,
}

/// See the file's head. Small, since there is one for each signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// There is one more kernel-mode queue; the others are known by their logs.
    KernelQueueMade {
        /// Which.
        queue: QueueId,
        /// Whose.
        process: u64,
    },
    /// A user queued a wait or a signal of a kernel-mode queue; of the others there is a
    /// [`Submission`](super::Submission).
    Queued {
        /// To which queue.
        queue: QueueId,
        /// Which.
        operation: Operation,
        /// Handle of the fence.
        handle: u32,
        /// The value.
        value: u64,
        /// Before it was queued.
        at: u64,
    },
    /// The OS executed a wait or a signal of a kernel-mode queue (LG-09).
    Executed {
        /// Of which queue.
        queue: QueueId,
        /// Which.
        operation: Operation,
        /// Handle of the fence.
        handle: u32,
        /// The value.
        value: u64,
        /// As of a native log; 0 of a signal.
        observed: u64,
        /// As of a native log.
        end: u64,
    },
    /// The CPU stored a value.
    CpuSignal {
        /// Which fence.
        fence: FenceId,
        /// The value.
        value: u64,
        /// Before it was stored.
        at: u64,
        /// After it was.
        done: u64,
    },
    /// A MonitoredValue was posted.
    MonitoredValue {
        /// Which fence.
        fence: FenceId,
        /// The value.
        value: u64,
        /// When.
        at: u64,
    },
    /// The CPU has waited.
    CpuWait {
        /// For which fence.
        fence: FenceId,
        /// The value.
        value: u64,
        /// When it began.
        began: u64,
        /// As of a [`CpuWait`](super::CpuWait).
        woke: u64,
        /// Who waited.
        waiter: WaiterKind,
        /// How it ended.
        end: WaitEnd,
    },
    /// An interrupt was handled.
    Interrupt {
        /// The engine's node, where it is one's.
        node_ordinal: Option<u32>,
        /// Why.
        kind: InterruptKind,
        /// Fences that it named.
        fences: u32,
        /// When it came.
        at: u64,
        /// When the deferred call had ended.
        done: u64,
    },
    /// The OS asks an engine to let go of what it was handed.
    Preemption {
        /// The engine's node.
        node_ordinal: u32,
        /// When.
        at: u64,
    },
    /// A step of the recovery of an engine.
    Recovery {
        /// The engine's node.
        node_ordinal: u32,
        /// Which.
        step: &'static str,
        /// When it was begun.
        at: u64,
    },
}

const _: () = assert!(size_of::<Note>() <= 40, "one more cache line for each note");
