//! Trace: what happened, on one clock.
//!
//! Whoever has something to tell gives the [`Recorder`] a [`Note`], which costs a load while nobody records. The
//! operating system collects the notes and what engines logged, and makes a [`Trace`] of it (`os::Recording`): commands
//! of queues from queued to done, slices, interrupts, waits and signals of the CPU, and marks where events were lost. Times of
//! engines are brought to the CPU's clock by a [`GpuClock`], which says how far it may be off.
//!
//! Traces of several adapters are brought [`Together`]: they have one clock already.
//!
//! A trace is kept in a compact format of its own ([`Trace::write`], [`Trace::read`]), and written as a file that
//! Perfetto's user interface opens ([`Trace::write_chrome`]).
#![forbid(unsafe_code)]

mod adapters;
#[cfg(not(loom))]
mod chrome;
#[cfg(not(loom))]
mod chrome_line;
mod clock;
mod cpu_wait;
mod dispatch;
mod event;
#[cfg(not(loom))]
mod file;
#[cfg(not(loom))]
mod lanes;
mod name;
mod note;
mod recorder;
mod releases;
mod submission;
#[cfg(not(loom))]
mod together;

pub use crate::abi::NO_CPU_WAITER;
pub use adapters::AdapterName;
pub use clock::{ClockSource, Exchange, GpuClock, Reading};
pub use cpu_wait::{CpuWait, WaitEnd, WaiterKind};
pub use dispatch::Dispatch;
pub use event::{Command, Event, InterruptKind, Lost, LostFrom, Operation, Slice, Trace, What};
#[cfg(not(loom))]
pub use file::{FileError, MAGIC};
pub use name::{FenceName, QueueName};
pub use note::{Note, QueueId};
pub use recorder::Recorder;
pub use releases::{Release, Releaser};
pub(crate) use submission::Numbered;
pub use submission::{QueuedCommand, QueuedKind, Submission};
#[cfg(not(loom))]
pub use together::Together;
