//! The user side: what a program links.
//!
//! Devices, fences, command lists and hardware queues, over the OS's objects; the names a program
//! needs are also at the crate's root.
#![forbid(unsafe_code)]

mod allocation;
mod armed_wait;
mod buffer;
mod bytes_in_words;
mod command_list;
mod device;
mod event_wait;
#[cfg(loom)]
mod explored_ring;
mod fence;
mod hw_context;
mod hw_queue;
mod kernel;
mod kernel_queue;
mod monitored_fence;
mod named_by;
mod ring;
mod shared_buffer;
mod staging;
mod submissions;
mod submit_error;
#[cfg(all(feature = "tokio", not(loom)))]
mod tokio_event;
mod wait_future;

pub use allocation::Allocation;
pub use armed_wait::ArmedWait;
pub use buffer::{Buffer, NoElements, OutOfBuffer};
pub use command_list::CommandList;
pub use device::{CreateError, Device, FenceOptions, HwQueueOptions};
pub use event_wait::EventWait;
#[cfg(loom)]
pub use explored_ring::ExploredRing;
pub use fence::{Fence, Timeout};
pub use hw_context::HwContext;
pub use hw_queue::HwQueue;
pub use kernel::{DispatchError, Groups, Kernel, Parameters};
pub use kernel_queue::KernelQueue;
pub use monitored_fence::{MonitoredFence, MonitoredFenceOptions};
pub use shared_buffer::OpenBufferError;
pub use staging::{Download, TransferError};
pub use submit_error::{RingError, SubmitError};
#[cfg(all(feature = "tokio", not(loom)))]
pub use tokio_event::TokioEvent;
pub use wait_future::WaitFuture;

pub use crate::os::KernelQueueError;
