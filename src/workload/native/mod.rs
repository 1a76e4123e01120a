//! The scenarios with native fences: hardware queues, rings and doorbells, through the same API that
//! a program uses.

mod copy;
mod cpu_signal;
mod cpu_wait;
mod fan;
mod handoff;
mod idle;
mod reset;
mod scale;
mod storm;
mod turns;
mod work;
mod work_kernel;

pub use copy::Copy;
pub use cpu_signal::CpuSignal;
pub use cpu_wait::{CpuWait, CpuWaitForm};
pub use fan::Fan;
pub use handoff::{Handoff, HandoffEngines};
pub use idle::Idle;
pub use reset::Reset;
pub use scale::Scale;
pub use storm::{Storm, StormForm};
pub use turns::TurnTaker;
pub use work::Work;
pub use work_kernel::WorkKernel;

use super::Counts;
use crate::Adapter;

fn counts(adapter: &Adapter) -> Counts {
    let interrupts = adapter.os().interrupts();
    Counts {
        submits: adapter.node_counters().slices,
        // One that names no fence is one as well.
        notifications: Some(interrupts.fences_named() + interrupts.null_array()),
    }
}
