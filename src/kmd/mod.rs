//! The driver: DDIs over the engines.
//!
//! The OS calls down through [`Ddi`], under the documents' names; the driver calls up through
//! [`Callbacks`], from its interrupt threads. It knows fences, queues and nodes by handles and
//! keeps no waiter.
#![forbid(unsafe_code)]

mod callbacks;
mod caps;
mod ddi;
mod driver;
mod look;
mod retirement;

pub use callbacks::{Callbacks, Interrupt, NativeFenceSignaled, SignaledFence};
pub use caps::NativeFenceCaps;
pub use ddi::{
    CreateHwQueue, CreateNativeFence, CurrentValueUpdate, Ddi, DdiError, HwQueueHandle,
    MonitoredValueUpdate, OpenNativeFence, Place, ProcessId, Retirement, UpdateFlags,
};
pub use driver::Driver;

pub use crate::gpu::{EngineWait, LocalMemory, NodeCounters, Parking, QueueFault};
