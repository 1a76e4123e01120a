//! Vulkan: the only room that says `vk::`.
//!
//! A loader finds drivers, a driver offers adapters, an adapter is opened as a device with queues;
//! work is recorded into command buffers, submitted to a queue, and told finished by timelines.
//! The other rooms see none of that API: they see the nouns below, with addresses as `u64`.
//!
//! This is one of the three rooms in which `unsafe` is allowed. What holds it together:
//! - every object holds its [`Device`], and the device holds its [`Instance`], so parents go last;
//! - a [`Queue`] is not `Clone` and its methods take `&mut self`, which is Vulkan's external
//!   synchronisation written as a type;
//! - a queue keeps what it was given (command buffers with all that they name, timelines) until the
//!   submission is known to be complete, and waits for the rest when it is dropped; so dropping a
//!   handle while the GPU works is harmless; where no driver's call tells that, the device is kept for good;
//! - memory that a GPU writes is handed out as a pointer, never as a slice.
//!
//! What no type can hold: a shader that is given an address may write anywhere. Pipelines are made
//! from code that this program trusts like itself, and the addresses pushed to it are its caller's
//! promise; [`CommandRecorder::keep`] ties the memory behind them to the command buffer.

mod adapter_info;
mod at_exit;
mod barrier;
mod bring_up_error;
mod buffer;
mod choice;
mod clock;
mod command_buffer;
mod compute_pipeline;
mod device;
mod device_loss;
mod device_needs;
mod exporter;
mod extensions;
mod external_buffer;
pub mod faults;
mod fd_import;
mod features;
mod host_import;
mod idle_waits;
mod import_error;
mod in_flight;
mod instance;
mod mapped_memory;
mod memory_providers;
mod native_fence_support;
mod opening;
mod own_memory;
#[cfg(feature = "window")]
mod present;
mod program_commands;
mod program_device;
mod promises;
mod queue;
mod queue_lock;
mod refusal;
mod region_import;
pub mod shaders;
mod submission;
mod timeline;
mod timestamp_query;
mod transfers;
pub mod validation;
mod want;

pub use adapter_info::{AdapterInfo, AdapterKind, Driver, Heap, MemoryType};
pub use at_exit::{Alive, EndsAtExit, InVulkan, at_exit};
pub use barrier::{
    Accesses, Barrier, COPY_END, ENROLLED_BEGIN, ENROLLED_CONDITION_END, ENROLLED_SIGNAL_END,
    SLICE_BEGIN, SLICE_END, Stages, TRANSFER_ORDER,
};
pub use bring_up_error::BringUpError;
pub use buffer::{Buffer, BufferError, Home};
pub use choice::{ChoiceError, choose, in_order_of_preference};
pub use clock::Calibration;
pub use command_buffer::{CommandBuffer, CommandRecorder, Recorded, Reuse};
pub use compute_pipeline::{ComputePipeline, PipelineError};
pub use device::{Device, DeviceOptions};
pub use device_loss::{DeviceLoss, LossyCall};
pub use device_needs::DeviceNeeds;
pub use exporter::Exporter;
pub use fd_import::FdImport;
pub use features::{ExternalBuffers, Features, QueueFamily};
pub use host_import::{HostImport, HostPages};
pub use import_error::ImportError;
pub use instance::{Instance, InstanceOptions, MakeInstance};
pub use memory_providers::{
    LocalProvider, MemoryError, MemoryOptions, MemoryPlacement, Sharers, SystemMemory, TrialError,
    memory_providers,
};
pub use native_fence_support::{Gap, Need, gaps, has_command_engines, has_native_fences};
pub use own_memory::OwnMemory;
#[cfg(feature = "window")]
pub use present::{
    Copied, CopiedTo, PixelOrder, PresentError, Presented, Surface, Swapchain, Window,
};
pub use program_commands::{OtherDevice, ProgramCommands};
pub use program_device::{DeviceImportError, ProgramDevice, ProgramQueue};
pub use queue::Queue;
pub use queue_lock::QueueLock;
pub use refusal::{DeviceFailure, OutOfMemory, Refusal};
pub use region_import::RegionImport;
pub use submission::{Submission, SubmitError};
pub use timeline::{SignalError, Timeline, WaitOutcome};

pub use crate::shared::LocalMemory;
