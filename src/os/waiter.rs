//! Waiter: who stands in a fence's list.

use super::wait_cell::{WaitCell, WaitError};
use crate::kmd::Ddi;
use crate::sync::Arc;

/// A waiter, as the fence has it.
#[derive(Debug)]
pub(super) enum Waiter {
    /// A thread in a CPU wait.
    Cpu(Arc<WaitCell>),
    /// A parked engine, by its node: one of its queues stands at a wait for the value.
    Engine(u32),
}

impl Waiter {
    /// The value was reached, or cannot be any more.
    pub(super) fn end(&self, outcome: Result<(), WaitError>, ddi: &dyn Ddi) {
        match self {
            Self::Cpu(cell) => cell.end(outcome),
            // Its queue finds out by itself how it stands.
            Self::Engine(node_ordinal) => ddi.resume_engine(*node_ordinal),
        }
    }
}
