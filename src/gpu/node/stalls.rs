//! Stalls of a node's engine: where it is in one, and ending it.
//!
//! An engine that was made to know stalls says which queue's packet keeps it. What heeds ABORT ends by
//! that: the queue faults, and the engine goes on with the others.

use super::Node;
use crate::abi::{EngineControl, EngineReport};
use crate::sync::lock;

/// The packet that an engine is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StalledAt {
    /// The queue's number on its node.
    pub hw_queue: u32,
    /// Running index of the packet.
    pub packet: u64,
}

impl Node {
    /// The stall that the engine is in. The engine's word: it is a hint while a slice is in flight,
    /// unless the packet never ends.
    #[must_use]
    pub fn stalled_at(&self) -> Option<StalledAt> {
        let report = self.report.host();
        // Pairs with the PUBLISH before the stall: the packet's index stands.
        let queue = report.word(EngineReport::STALLED_QUEUE).observe();
        let hw_queue = u32::try_from(queue.checked_sub(1)?).ok()?;
        Some(StalledAt {
            hw_queue,
            packet: report.word(EngineReport::STALLED_PACKET).peek(),
        })
    }

    /// Another engine is in none.
    pub(super) fn forget_stall(&self) {
        let word = self.report.host().word(EngineReport::STALLED_QUEUE);
        word.publish(0);
    }

    /// Ends the stall that the engine is in, if it is of a kind that heeds this.
    pub fn abort_stall(&self) {
        let inner = &mut *lock(&self.inner);
        inner.aborts += 1;
        // It answers by that, and whose packet it was is told without.
        inner.silent_in = None;
        self.control
            .host()
            .word(EngineControl::ABORT)
            .publish(inner.aborts);
    }
}
