//! The operating system: Dxgkrnl and VidSch.
//!
//! Handles and lifetimes, CPU waiters, interrupts, log reading. It calls the driver through
//! [`Ddi`](crate::kmd::Ddi) and never an engine; the user side is not trusted.
//!
//! Locks, in the order in which they are taken: a process's handles, a fence's waiters (several in
//! the order of their ids), then the driver's or that of a wait's cell. Nothing is held while a
//! thread sleeps or a callback of the driver runs.
#![forbid(unsafe_code)]

mod adapter;
mod adapter_state;
mod cpu_wait;
mod fence_storage;
mod hw_queue;
mod interrupt;
mod log_buffer;
mod native_fence;
mod parked_engines;
mod process;
mod queue_record;
mod queue_storage;
mod wait_cell;
mod wait_tally;
mod waiter;
mod waiter_list;

pub use adapter::{Adapter, OsError};
pub use adapter_state::AdapterState;
pub use cpu_wait::{CpuWait, WaitManyError};
pub use hw_queue::{HwQueue, HwQueueMemory};
pub use interrupt::InterruptCounters;
pub use log_buffer::{LogRead, LogReader};
pub use native_fence::{CpuSignal, NativeFence, SignalError};
pub use process::{FenceObject, Process};
pub use wait_cell::WaitError;

pub use crate::kmd::{NodeCounters, QueueFault};
