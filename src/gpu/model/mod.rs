//! The model: the instruction set of `shaders/engine.comp` in plain Rust.
//!
//! The shader is what runs; the model is what it must mean. Files and names are those of
//! `shaders/engine/`, so that the two are read side by side, line by line, and the wrapping
//! arithmetic of GLSL is spelled out. Where the shader would reach outside what the OS mapped, the
//! model records a [`Violation`] and its engine is lost: memory safety can be asserted (HQ-04).
//!
//! Lanes are stepped by turns, round by round, which is one of the orders a device may take; or
//! each is a thread, and takes any. All that they share is in words of [`lane::Shared`] and in
//! mapped memory.

mod adopt;
mod bounds;
mod clock;
mod cross_doorbell;
mod cut;
mod dispatch;
mod dispatch_table;
mod epilogue;
#[cfg(loom)]
mod explored_doorbells;
#[cfg(loom)]
mod explored_engine;
#[cfg(loom)]
mod explored_handles;
#[cfg(loom)]
mod explored_log;
#[cfg(loom)]
mod explored_part;
#[cfg(loom)]
mod explored_queue;
mod kernel;
mod kernel_signal;
mod lane;
mod leader;
mod meeting;
mod memory;
mod raise;
mod resolve;
mod slice;
mod stall;
mod step;
mod switch;
mod transfer;
mod violation;
mod write_back;

pub use clock::{ModelClock, MonotonicClock};
pub use cut::CutPlan;
pub(super) use cut::Passes;
pub(super) use dispatch_table::Job;
pub(super) use epilogue::run_epilogue;
#[cfg(loom)]
pub use explored_doorbells::ExploredDoorbells;
#[cfg(loom)]
pub use explored_engine::{ExploredEngine, ExploredHost};
#[cfg(loom)]
pub use explored_handles::{ExploredHandles, ExploredResolving, Resolution};
#[cfg(loom)]
pub use explored_log::ExploredLog;
#[cfg(loom)]
pub use explored_queue::{ExploredQueue, ExploredStand};
pub use kernel::{ModelDispatch, ModelFence, ModelKernel};
pub(super) use lane::{Globals, Shared};
pub(super) use meeting::Meeting;
pub use memory::{MemoryObserver, ModelMemory};
pub(super) use slice::{run_lane, run_slice};
pub(super) use violation::Checked;
pub use violation::{MemoryAccess, Violation};
pub use write_back::Arrival;
