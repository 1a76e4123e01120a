//! Interrupt: what a driver tells the OS with `DxgkCbNotifyInterrupt`.

use super::Handle;
use super::published::{bit_field, enumeration, structure};
use bytemuck::{Pod, Zeroable};

enumeration! {
    /// `DXGK_INTERRUPT_TYPE`.
    InterruptType is "DXGK_INTERRUPT_TYPE" {
        /// A packet completed.
        DMA_COMPLETED "DXGK_INTERRUPT_DMA_COMPLETED" = 1,
        /// A preemption request was answered.
        DMA_PREEMPTED "DXGK_INTERRUPT_DMA_PREEMPTED" = 2,
        /// Vertical sync.
        CRTC_VSYNC "DXGK_INTERRUPT_CRTC_VSYNC" = 3,
        /// A packet faulted; "Reserved for system use".
        DMA_FAULTED "DXGK_INTERRUPT_DMA_FAULTED" = 4,
        /// Vertical sync of a display-only driver.
        DISPLAYONLY_VSYNC "DXGK_INTERRUPT_DISPLAYONLY_VSYNC" = 5,
        /// A display-only driver has presented.
        DISPLAYONLY_PRESENT_PROGRESS "DXGK_INTERRUPT_DISPLAYONLY_PRESENT_PROGRESS" = 6,
        /// Vertical sync with overlays.
        CRTC_VSYNC_WITH_MULTIPLANE_OVERLAY "DXGK_INTERRUPT_CRTC_VSYNC_WITH_MULTIPLANE_OVERLAY" = 7,
        /// Wireless displays.
        MICACAST_CHUNK_PROCESSING_COMPLETE "DXGK_INTERRUPT_MICACAST_CHUNK_PROCESSING_COMPLETE" = 8,
        /// A packet faulted at a page.
        DMA_PAGE_FAULTED "DXGK_INTERRUPT_DMA_PAGE_FAULTED" = 9,
        /// Vertical sync with overlays, second form.
        CRTC_VSYNC_WITH_MULTIPLANE_OVERLAY2
            "DXGK_INTERRUPT_CRTC_VSYNC_WITH_MULTIPLANE_OVERLAY2" = 10,
        /// A monitored fence was signalled.
        MONITORED_FENCE_SIGNALED "DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED" = 11,
        /// A hardware queue faulted at a page.
        HWQUEUE_PAGE_FAULTED "DXGK_INTERRUPT_HWQUEUE_PAGE_FAULTED" = 12,
        /// The run list was exchanged.
        HWCONTEXTLIST_SWITCH_COMPLETED "DXGK_INTERRUPT_HWCONTEXTLIST_SWITCH_COMPLETED" = 13,
        /// A periodic monitored fence was signalled.
        PERIODIC_MONITORED_FENCE_SIGNALED "DXGK_INTERRUPT_PERIODIC_MONITORED_FENCE_SIGNALED" = 14,
        /// A scheduling log is to be read.
        SCHEDULING_LOG_INTERRUPT "DXGK_INTERRUPT_SCHEDULING_LOG_INTERRUPT" = 15,
        /// An engine hangs.
        GPU_ENGINE_TIMEOUT "DXGK_INTERRUPT_GPU_ENGINE_TIMEOUT" = 16,
        /// A context is suspended.
        SUSPEND_CONTEXT_COMPLETED "DXGK_INTERRUPT_SUSPEND_CONTEXT_COMPLETED" = 17,
        /// Vertical sync with overlays, third form.
        CRTC_VSYNC_WITH_MULTIPLANE_OVERLAY3
            "DXGK_INTERRUPT_CRTC_VSYNC_WITH_MULTIPLANE_OVERLAY3" = 18,
        /// A native fence was signalled.
        NATIVE_FENCE_SIGNALED "DXGK_INTERRUPT_NATIVE_FENCE_SIGNALED" = 19,
        /// An engine has another state.
        GPU_ENGINE_STATE_CHANGE "DXGK_INTERRUPT_GPU_ENGINE_STATE_CHANGE" = 20,
    }
}

bit_field! {
    /// `DXGKCB_NOTIFY_INTERRUPT_DATA_FLAGS`.
    NotifyInterruptDataFlags is "DXGKCB_NOTIFY_INTERRUPT_DATA_FLAGS" {
        /// The mask of physical adapters is filled in.
        VALID_PHYSICAL_ADAPTER_MASK "ValidPhysicalAdapterMask" @ 0,
        /// A flip completed at a horizontal sync.
        HSYNC_FLIP_COMPLETION "HsyncFlipCompletion" @ 1,
        /// A NULL array stands for the waiters of monitored fences as well (IN-04).
        EVALUATE_LEGACY_MONITORED_FENCES "EvaluateLegacyMonitoredFences" @ 2,
    }
}

/// `DXGKARGCB_NOTIFY_INTERRUPT_DATA`. The published union is its 64 bytes: what stands in them says
/// the type, and the structures below lie at their begin.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct NotifyInterruptData {
    /// Which interrupt.
    pub interrupt_type: InterruptType,
    /// Padding of the published structure.
    pub padding: u32,
    /// The union (`UINT Reserved[16]`), from byte 8 on.
    pub payload: [u64; 8],
    /// Flags.
    pub flags: NotifyInterruptDataFlags,
    /// Padding of the published structure.
    pub padding1: u32,
}

structure!(NotifyInterruptData is "DXGKARGCB_NOTIFY_INTERRUPT_DATA", 80 bytes {
    interrupt_type "InterruptType" @ 0,
    payload "Reserved" @ 8,
    flags "Flags" @ 72,
});

/// `NativeFenceSignaled` of `DXGKARGCB_NOTIFY_INTERRUPT_DATA`; offsets count from the union's begin,
/// here and below.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct NativeFenceSignaled {
    /// Node that raised it.
    pub node_ordinal: u32,
    /// Engine that raised it.
    pub engine_ordinal: u32,
    /// Fences that the array names.
    pub signaled_native_fence_count: u32,
    /// Padding of the published structure.
    pub padding: u32,
    /// Address of the OS's handles of those fences; 0 for all (IN-03).
    pub signaled_native_fence_array: u64,
    /// The driver's handle of the queue that ran (IN-07).
    pub hw_queue: Handle,
}

structure!(NativeFenceSignaled is "DXGKARGCB_NOTIFY_INTERRUPT_DATA.NativeFenceSignaled", 32 bytes {
    node_ordinal "NodeOrdinal" @ 0,
    engine_ordinal "EngineOrdinal" @ 4,
    signaled_native_fence_count "SignaledNativeFenceCount" @ 8,
    signaled_native_fence_array "pSignaledNativeFenceArray" @ 16,
    hw_queue "hHWQueue" @ 24,
});

/// `DmaCompleted` of `DXGKARGCB_NOTIFY_INTERRUPT_DATA`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DmaCompleted {
    /// Submission that completed.
    pub submission_fence_id: u32,
    /// Node.
    pub node_ordinal: u32,
    /// Engine.
    pub engine_ordinal: u32,
}

structure!(DmaCompleted is "DXGKARGCB_NOTIFY_INTERRUPT_DATA.DmaCompleted", 12 bytes {
    submission_fence_id "SubmissionFenceId" @ 0,
    node_ordinal "NodeOrdinal" @ 4,
    engine_ordinal "EngineOrdinal" @ 8,
});

/// `DmaPreempted` of `DXGKARGCB_NOTIFY_INTERRUPT_DATA`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DmaPreempted {
    /// Request that is answered.
    pub preemption_fence_id: u32,
    /// Last submission that completed, not preempted.
    pub last_completed_fence_id: u32,
    /// Node.
    pub node_ordinal: u32,
    /// Engine.
    pub engine_ordinal: u32,
}

structure!(DmaPreempted is "DXGKARGCB_NOTIFY_INTERRUPT_DATA.DmaPreempted", 16 bytes {
    preemption_fence_id "PreemptionFenceId" @ 0,
    last_completed_fence_id "LastCompletedFenceId" @ 4,
    node_ordinal "NodeOrdinal" @ 8,
    engine_ordinal "EngineOrdinal" @ 12,
});

/// `DmaFaulted` of `DXGKARGCB_NOTIFY_INTERRUPT_DATA`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DmaFaulted {
    /// Submission that faulted.
    pub faulted_fence_id: u32,
    /// Why, an [`NtStatus`](super::NtStatus).
    pub status: u32,
    /// Node.
    pub node_ordinal: u32,
    /// Engine.
    pub engine_ordinal: u32,
}

structure!(DmaFaulted is "DXGKARGCB_NOTIFY_INTERRUPT_DATA.DmaFaulted", 16 bytes {
    faulted_fence_id "FaultedFenceId" @ 0,
    status "Status" @ 4,
    node_ordinal "NodeOrdinal" @ 8,
    engine_ordinal "EngineOrdinal" @ 12,
});

/// `MonitoredFenceSignaled` and `GpuEngineTimeout` of `DXGKARGCB_NOTIFY_INTERRUPT_DATA`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct EngineInterrupt {
    /// Node.
    pub node_ordinal: u32,
    /// Engine.
    pub engine_ordinal: u32,
}

structure!(EngineInterrupt is "DXGKARGCB_NOTIFY_INTERRUPT_DATA.MonitoredFenceSignaled", 8 bytes {
    node_ordinal "NodeOrdinal" @ 0,
    engine_ordinal "EngineOrdinal" @ 4,
});

/// `SuspendContextCompleted` of `DXGKARGCB_NOTIFY_INTERRUPT_DATA`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SuspendContextCompleted {
    /// The driver's handle of the context.
    pub context: Handle,
    /// Newest suspend fence of that context.
    pub context_suspend_fence: u64,
}

structure!(SuspendContextCompleted is "DXGKARGCB_NOTIFY_INTERRUPT_DATA.SuspendContextCompleted", 16 bytes {
    context "hContext" @ 0,
    context_suspend_fence "ContextSuspendFence" @ 8,
});

enumeration! {
    /// `DXGK_ENGINE_STATE`.
    EngineState is "DXGK_ENGINE_STATE" {
        /// It runs.
        ACTIVE "DXGK_ENGINE_STATE_ACTIVE" = 0,
        /// It wants to sleep.
        TRANSITION_TO_F1 "DXGK_ENGINE_STATE_TRANSITION_TO_F1" = 1,
        /// It hangs.
        HUNG "DXGK_ENGINE_STATE_HUNG" = 2,
    }
}

/// `EngineStateChange` of `DXGKARGCB_NOTIFY_INTERRUPT_DATA`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct EngineStateChange {
    /// Node.
    pub node_ordinal: u32,
    /// Engine.
    pub engine_ordinal: u32,
    /// Its state now.
    pub new_state: EngineState,
}

structure!(EngineStateChange is "DXGKARGCB_NOTIFY_INTERRUPT_DATA.EngineStateChange", 12 bytes {
    node_ordinal "NodeOrdinal" @ 0,
    engine_ordinal "EngineOrdinal" @ 4,
    new_state "NewState" @ 8,
});
