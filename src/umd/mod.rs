//! The user side: what a program links.
//!
//! Devices, fences, command lists and hardware queues, over the OS's objects; the names a program
//! needs are also at the crate's root.
#![forbid(unsafe_code)]

mod command_list;
mod device;
mod fence;
mod hw_queue;
mod submit_error;

pub use command_list::CommandList;
pub use device::{CreateError, Device, HwQueueOptions};
pub use fence::{Fence, Timeout};
pub use hw_queue::HwQueue;
pub use submit_error::{RingError, SubmitError};
