//! Callbacks: what the driver tells the OS (`DxgkCbNotifyInterrupt`; `layouts.md` 1.8).

use crate::abi::FenceId;
use crate::gpu::{Parking, QueueFault};
use crate::kmd::HwQueueHandle;

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
    pub fences: Option<Vec<SignaledFence>>,
}

/// What an interrupt is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Native fences were signalled beyond their MonitoredValue.
    NativeFenceSignaled(NativeFenceSignaled),
    /// A slice ended that had not adopted the last MonitoredValue of these fence slots: the OS
    /// reads their CurrentValue again (choice; `decisions.md` 1).
    ResampleFences {
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
    /// Fences that were destroyed and that no engine refers to any more (choice).
    FencesRetired {
        /// The handles that the OS gave in `CreateNativeFence`.
        fences: Vec<FenceId>,
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
    /// An interrupt and the deferred call that follows it, on one of the driver's interrupt
    /// threads, or on a thread in a call that comes to take the report of a slice: of waits, of
    /// submission, of disconnecting and destroying. No lock of the driver is held.
    fn notify_interrupt(&self, interrupt: Interrupt);
}
