//! The driver: DDIs over the engines.
//!
//! The OS calls down through [`Ddi`], under the documents' names; the driver calls up through
//! [`Callbacks`], from its interrupt threads. It knows fences, queues and nodes by handles and
//! keeps no waiter.
#![forbid(unsafe_code)]

mod arguments;
mod callbacks;
mod caps;
mod clock_calibration;
#[cfg(not(loom))]
mod command_driver;
#[cfg(not(loom))]
mod command_node;
#[cfg(not(loom))]
mod command_objects;
#[cfg(not(loom))]
mod command_parts;
mod context_allocation;
mod context_calls;
mod contexts;
mod ddi;
mod debug_info;
mod doorbell;
mod doorbell_pool;
mod doorbells;
mod driver;
mod driver_faults;
mod engine_reset;
#[cfg(loom)]
mod explored_inside;
mod features;
mod fence_calls;
mod hw_queues;
mod inside;
mod interrupt_threads;
mod kernel_book;
mod kernel_queue;
mod kernel_queues;
mod level;
mod level_checked;
mod level_checked_tdr;
mod look;
mod nodes;
#[cfg(not(loom))]
mod process_end;
pub mod published;
mod queue_calls;
mod queue_places;
mod reporter;
mod retirement;
mod segments;
mod set_log;
mod system_process;
mod tdr_ddi;

use crate::sync::plain as guards;

pub use arguments::{
    ContextHandle, CreateAllocation, CreateContext, CreateHwQueue, CreateKernel, CreateKernelQueue,
    CreateNativeFence, CrossAdapterSignals, CurrentValueUpdate, HwQueueHandle, HwQueueWait,
    MapMonitoredFence, MonitoredValueUpdate, OpenAllocation, OpenNativeFence, Place,
    PreemptCommand, ProcessId, SetCrossDoorbells, SetNativeFenceLogBuffer, SubmitCommand,
    SuspendContext,
};
pub use callbacks::{Callbacks, Interrupt, NativeFenceSignaled, SignaledFence};
pub use caps::{DriverOptions, NativeFenceCaps};
pub use clock_calibration::GpuClockCalibration;
#[cfg(not(loom))]
pub use command_driver::CommandDriver;
pub use context_allocation::{ContextAllocation, ContextAllocationId, CreateContextAllocation};
pub use ddi::{Ddi, DdiError, Retirement};
pub use doorbell::{
    ConnectDoorbell, CreateDoorbell, DisconnectDoorbell, DisconnectReason, DoorbellId,
};
pub use driver::Driver;
#[cfg(any(test, loom))]
pub(crate) use driver::without_engines;
pub use driver_faults::{DriverFaults, ResetFault};
pub use engine_reset::{CollectDbgInfo, ResetEngine};
#[cfg(loom)]
pub use explored_inside::ExploredInside;
pub use features::{FeatureError, NativeFenceInterface, QueryFeatureInterface};
pub(crate) use inside::{Inside, StillInside};
pub use level::{Level, WrongLevel};
pub use level_checked::LevelChecked;
pub use segments::{FenceSegments, Segment};
pub use system_process::SystemProcessPlace;
pub use tdr_ddi::TdrDdi;

pub use crate::abi::wddm::{
    CreateDoorbellFlags, CreateHwQueueFlags, DriverConnectDoorbellFlags, FeatureId,
    IsFeatureEnabledResult, NativeFenceOsCaps, NativeFenceType, PreemptionCaps, SubmitCommandFlags,
    UpdateCurrentValuesFlags, UserModeSubmissionCaps, VidSchCaps,
};
#[cfg(loom)]
pub use crate::gpu::ExploredLog;
pub use crate::gpu::{
    Activity, ContextKind, EndedSlice, EndedSlices, EngineLost, EngineWait, KernelCapability,
    KernelCode, KernelError, LocalMemory, NodeCounters, NodeError, Parking, QueueFault,
    ReplaceError, SaveAreaMove, Suspension,
};
