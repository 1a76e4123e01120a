//! The scenarios with monitored fences, as WDDM 2.x has them: the CPU holds the values, and the
//! operating system alone waits.
//!
//! A signal of the GPU is a store from the command stream, and an interrupt each time. A wait of the
//! GPU is a note in the operating system's list: what comes after it is not handed to the engine
//! until the CPU has seen the value. There is a small system of that kind here, and it is given
//! every advantage that it can have: a wait that is satisfied costs nothing, command buffers go to
//! the driver as many at a time as may run, a waiter looks before it sleeps, and whoever finds a wait satisfied submits himself,
//! where Windows would wake another thread.

mod cpu_signal;
mod cpu_wait;
mod engine;
mod fan;
mod fence;
mod handoff;
mod idle;
mod queue;
mod scale;
mod scheduler;
mod store;
mod storm;
mod system;
mod turns;

pub use cpu_signal::CpuSignal;
pub use cpu_wait::CpuWait;
pub use fan::Fan;
pub use fence::MonitoredFence;
pub use handoff::Handoff;
pub use idle::Idle;
pub use queue::MonitoredQueue;
pub use scale::Scale;
pub use storm::Storm;
pub use system::MonitoredSystem;
pub use turns::TurnTaker;

/// Why there is no recovery to measure.
pub(super) const NO_RESET: &str = "The comparators' monitored fences are of one device, and lost with it as timeline semaphores are.";
