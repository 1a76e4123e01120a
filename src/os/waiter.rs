//! Waiter: who stands in a fence's list.

use super::wait_cell::{WaitError, WaitPart};
use crate::kmd::Ddi;

/// A waiter, as the fence has it.
#[derive(Debug)]
pub(super) enum Waiter {
    /// A thread in a CPU wait, of which the fence is a part.
    Cpu(WaitPart),
    /// A parked engine, by its node: one of its queues stands at a wait for the value.
    Engine(u32),
}

impl Waiter {
    /// The value was reached, or cannot be any more.
    pub(super) fn end(&self, outcome: Result<(), WaitError>, ddi: &dyn Ddi) {
        match self {
            Self::Cpu(part) => part.end(outcome),
            // Its queue finds out by itself how it stands.
            Self::Engine(node_ordinal) => ddi.resume_engine(*node_ordinal),
        }
    }
}
