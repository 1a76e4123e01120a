//! The scenarios with native fences: hardware queues, rings and doorbells, through the same API that
//! a program uses.

mod cpu_wait;
mod handoff;
mod storm;

pub use cpu_wait::{CpuWait, CpuWaitForm};
pub use handoff::Handoff;
pub use storm::{Storm, StormForm};

use super::Counts;
use crate::Adapter;

fn counts(adapter: &Adapter) -> Counts {
    Counts {
        submits: adapter.node_counters().slices,
        notifications: Some(adapter.os().interrupts().fences_named()),
    }
}
