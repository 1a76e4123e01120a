//! Mailbox: the host's half.

use crate::abi::{EngineControl, EngineReport, MAILBOX_CAPACITY};
use crate::shared::Block;
use std::collections::{BTreeSet, VecDeque};

/// Posts changed MonitoredValues to one engine, and knows which it has not acknowledged.
///
/// One writer: the node's lock is held. A post is never left out because an earlier one of the
/// same fence is unacknowledged: the engine may have read that one's MonitoredValue already, and
/// to learn whether it has would be store buffering across the bus.
#[derive(Debug)]
pub(super) struct Mailbox {
    control: Block,
    report: Block,
    written: u64,
    rescans: u64,
    /// Fence slots of posts not yet seen acknowledged, oldest first.
    pending: VecDeque<u32>,
    /// Fence slots that the rescan under way stands for.
    overflowed: BTreeSet<u32>,
}

impl Mailbox {
    /// Over the blocks of an engine.
    pub(super) fn new(control: &Block, report: &Block) -> Self {
        Self {
            control: control.clone(),
            report: report.clone(),
            written: 0,
            rescans: 0,
            pending: VecDeque::new(),
            overflowed: BTreeSet::new(),
        }
    }

    /// Posts fences whose MonitoredValue words are stored; one store of the index tells of all.
    pub(super) fn post(&mut self, slots: impl IntoIterator<Item = u32>) {
        self.take_acknowledgements();
        let before = self.written;
        let mut overflow = false;
        for slot in slots {
            if (self.pending.len() as u64) < MAILBOX_CAPACITY {
                let place = EngineControl::MAILBOX + self.written % MAILBOX_CAPACITY * 8;
                self.control.word(place).put(u64::from(slot));
                self.written += 1;
                self.pending.push_back(slot);
            } else {
                overflow = true;
                self.overflowed.insert(slot);
            }
        }
        if self.written != before {
            // Pairs with the engine's OBSERVE of the write index: it sees slots and values.
            self.control
                .word(EngineControl::MAILBOX_WRITE)
                .publish(self.written);
        }
        if overflow {
            self.rescans += 1;
            self.control
                .word(EngineControl::RESCAN)
                .publish(self.rescans);
        }
    }

    fn take_acknowledgements(&mut self) {
        let read = self.report.word(EngineReport::MAILBOX_READ).observe();
        let unread = self.written.wrapping_sub(read);
        // An index that cannot be acknowledges nothing: the fences are resampled, no harm done.
        if unread <= self.pending.len() as u64 {
            self.pending.drain(..self.pending.len() - unread as usize);
        }
        if self.report.word(EngineReport::RESCAN_SEEN).observe() == self.rescans {
            self.overflowed.clear();
        }
    }

    /// Slots with a post that the engine has not acknowledged.
    pub(super) fn unacknowledged(&mut self) -> Vec<u32> {
        self.take_acknowledgements();
        self.pending
            .iter()
            .chain(&self.overflowed)
            .copied()
            .collect()
    }

    /// Takes all posts for an engine that has no slice in flight; the caller adopts them.
    pub(super) fn take_all(&mut self) -> Vec<u32> {
        let slots = self.unacknowledged();
        self.pending.clear();
        self.overflowed.clear();
        self.report
            .word(EngineReport::MAILBOX_READ)
            .publish(self.written);
        self.report
            .word(EngineReport::RESCAN_SEEN)
            .publish(self.rescans);
        slots
    }
}
