//! Native GPU fence objects, as WDDM 3.2 defines them, on any Vulkan 1.2+ device.
//!
//! Fence values lie in memory that CPU and GPU share. Compute shaders are the GPU's engines: they
//! execute the packets of hardware queues, wait, signal and log. Host threads are the operating
//! system: waiters, conditional notification, scheduling.
//!
//! Two queues with a fence between them, the CPU waiting on a second fence:
//!
//! ```
//! use native_fence::{Adapter, CommandList};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Adapter::open_best()?.create_device();
//! let (between, done) = (device.create_fence(0)?, device.create_fence(0)?);
//! let mut producer = device.create_hw_queue()?;
//! let mut consumer = device.create_hw_queue()?;
//!
//! // The consumer waits on the GPU: its queue stands still, the engine and the CPU do not.
//! consumer.submit(CommandList::new().wait(&between, 1).signal(&done, 1))?;
//! producer.submit(CommandList::new().signal(&between, 1))?;
//!
//! done.wait(1, Duration::from_secs(10))?;
//! assert_eq!(between.current_value(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! The rooms: `abi` holds the bytes that both sides agree on, `shared` the memory, `vulkan` the
//! device, `gpu` the engines, `kmd` the driver's DDIs, `os` the operating system, `umd` what a
//! program links, `trace` what was recorded of all this, `viewer` what draws that, `beside` what carries values between it and a program's own Vulkan; with the feature
//! `capi` a C program links `capi`. Under `--cfg loom` what needs a
//! Vulkan device is left out, and the rest is explored over the model engine (`tests/loom.rs`).

#[cfg(not(loom))]
mod adapter;
#[cfg(not(loom))]
mod made_driver;
#[cfg(not(loom))]
mod place;
mod supply;
mod sync;

pub mod abi;
#[cfg(not(loom))]
pub mod beside;
#[cfg(all(feature = "capi", not(loom)))]
pub mod capi;
#[cfg(not(loom))]
pub mod conform;
pub mod gpu;
pub mod kmd;
#[cfg(not(loom))]
pub mod litmus;
pub mod os;
#[cfg(not(loom))]
pub mod report;
pub mod shared;
#[cfg(not(loom))]
pub mod soak;
#[cfg(not(loom))]
pub mod sweep;
pub mod trace;
pub mod umd;
#[cfg(not(loom))]
pub mod viewer;
#[cfg(loom)]
#[path = "vulkan/explored.rs"]
pub mod vulkan;
#[cfg(not(loom))]
pub mod vulkan;
#[cfg(all(feature = "window", not(loom)))]
pub mod window;
#[cfg(not(loom))]
pub mod workload;

#[cfg(not(loom))]
#[doc(hidden)]
pub mod cli;

/// Of whose version the traits are that elements of a [`Buffer`] have.
pub use bytemuck;

pub use abi::wddm::DeviceExecutionState;
pub use abi::{Delivery, StallKind};
#[cfg(not(loom))]
pub use adapter::{Adapter, AdapterOptions, EngineKind, OpenError};
pub use os::{
    AllocationMemory, CrossAdapter, EndError, EventError, EventHandle, FenceMemory,
    KernelCapability, KernelCode, KernelError, PassFenceError, PassMemoryError, QueueStop,
    ShareError, ShareMemoryError, SharedHandle, SharedMemory, SignalError, TdrDebugMode, TdrLevel,
    TdrPolicy, TdrReport, Tracing, WaitError, WaitManyError,
};
#[cfg(not(loom))]
pub use os::{RecordError, Recording, RecordingOptions, Recordings};
#[cfg(all(feature = "tokio", not(loom)))]
pub use umd::TokioEvent;
pub use umd::{
    Allocation, ArmedWait, Buffer, CommandList, CreateError, Device, DispatchError, Download,
    EventWait, Fence, FenceOptions, Groups, HwContext, HwQueue, HwQueueOptions, Kernel,
    KernelQueue, KernelQueueError, MonitoredFence, MonitoredFenceOptions, NoElements,
    OpenBufferError, OutOfBuffer, Parameters, RingError, SubmitError, Timeout, TransferError,
    WaitFuture,
};
#[cfg(not(loom))]
pub use vulkan::{LocalProvider, MemoryOptions, MemoryPlacement, SystemMemory};
