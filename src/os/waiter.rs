//! Waiter: who stands in a fence's list.

use super::listener::Listeners;
use super::openers::OpenerId;
use super::wait_cell::{WaitError, WaitPart};
use crate::kmd::Ddi;

/// A waiter, as the fence has it.
#[derive(Debug)]
pub(super) enum Waiter {
    /// A CPU wait, of which the fence is a part, and by whose handle it was made.
    Cpu(WaitPart, OpenerId),
    /// A parked engine, by its node: one of its queues stands at a wait for the value.
    Engine(u32),
}

impl Waiter {
    /// The value was reached, or cannot be any more; who is `told` of it waits for the caller.
    pub(super) fn end(&self, outcome: Result<(), WaitError>, ddi: &dyn Ddi, told: &mut Listeners) {
        match self {
            Self::Cpu(part, _) => part.end(outcome, told),
            // Its queue finds out by itself how it stands.
            Self::Engine(node_ordinal) => ddi.resume_engine(*node_ordinal),
        }
    }
}
