//! Report: what an engine told the host, every word checked.

use super::QueueFault;
use crate::abi::{
    EngineReport, FaultCode, FenceId, InterruptRecord, ObjectId, RECORD_RING_CAPACITY, SliceReason,
    SliceResult,
};
use crate::shared::Block;
use std::time::Instant;

/// A fence that an engine raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaisedFence {
    /// Which fence.
    pub fence: FenceId,
    /// The value that was signalled: it can be greater than CurrentValue as the host reads it now.
    pub value: u64,
    /// Queue that signalled; `None` when the raise came from adopting a MonitoredValue.
    pub hw_queue: Option<u32>,
    /// Running number of the signal in its queue's log.
    pub log_number: u64,
}

/// What a queue of an engine stands at: the engine may be let go if whoever reaches the value brings
/// it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EngineWait {
    /// Which fence.
    pub fence: FenceId,
    /// CurrentValue that the queue waits for.
    pub value: u64,
}

/// Where an engine is on its way to be let go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parking {
    /// Nothing can go on. The engine is let go when somebody who knows of these waits, and of no
    /// other of this engine, has told [`Node::finish_parking`](super::Node::finish_parking).
    Asked {
        /// Number of the attempt.
        attempt: u64,
        /// None where the last queue that stood at one was taken out.
        waits: Vec<EngineWait>,
    },
    /// The engine runs on by itself: nobody needs to know of its waits any more.
    Over {
        /// Number of the last attempt.
        attempt: u64,
    },
}

/// Queues that were to leave the GPU, and that no slice refers to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Those of a context that was suspended.
    Context {
        /// Its number on the node.
        context: u32,
        /// The newest fence that it was suspended with.
        fence: u64,
    },
    /// Those whose commands were asked for back.
    Preemption {
        /// Number of the request.
        request: u64,
    },
    /// The one of a context switch.
    Switch {
        /// Its number on the node.
        queue: u32,
        /// Number of the switch.
        switch: u64,
    },
}

/// What slices reported since the last report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SliceReport {
    /// Fences that were raised, in the order of the records.
    pub raised: Vec<RaisedFence>,
    /// Records were lost: the set is no longer exactly known (IN-06, the NULL array).
    pub collapsed: bool,
    /// When the records were taken: under the lock under which a node finds that nothing refers to
    /// a fence any more, so what they name rightly is not retired by then. `None` without any.
    pub taken: Option<Instant>,
    /// Fence slots whose post no slice acknowledged: to be resampled (`decisions.md` 1).
    pub resample: Vec<u32>,
    /// Queues that were stopped, by number.
    pub faulted: Vec<(u32, QueueFault)>,
    /// The engine executes no more.
    pub lost: bool,
    /// Fences and allocations that were taken out and that no slice refers to any more.
    pub retired: Vec<ObjectId>,
    /// What has left the GPU on request.
    pub departed: Vec<Departure>,
    /// What has changed about letting the engine go.
    pub parking: Option<Parking>,
}

impl SliceReport {
    /// Nothing to tell the OS.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.raised.is_empty()
            && !self.collapsed
            && self.resample.is_empty()
            && self.faulted.is_empty()
            && !self.lost
            && self.retired.is_empty()
            && self.departed.is_empty()
            && self.parking.is_none()
    }
}

/// Reads the report block of one engine.
#[derive(Debug)]
pub(super) struct ReportReader {
    control: Block,
    report: Block,
    records_read: u64,
    collapsed_seen: u64,
    /// Words that could not be, refused.
    pub(super) refused: u64,
}

impl ReportReader {
    pub(super) fn new(control: &Block, report: &Block) -> Self {
        Self {
            control: control.clone(),
            report: report.clone(),
            records_read: 0,
            collapsed_seen: 0,
            refused: 0,
        }
    }

    /// The result of `slice`, which has ended; a reason that cannot be counts as cut.
    pub(super) fn slice_result(&mut self, slice: u64) -> (SliceReason, SliceResult) {
        let words = self
            .report
            .peek_words::<{ SliceResult::BYTES as usize / 8 }>(EngineReport::slice_result(slice));
        let result: SliceResult = bytemuck::cast(words);
        let reason = SliceReason::from_word(result.reason).unwrap_or_else(|| {
            self.refused += 1;
            SliceReason::Cut
        });
        (reason, result)
    }

    /// Forgets the result of a slice that will be submitted: cut, until a vote says otherwise.
    pub(super) fn clear_slice_result(&self, slice: u64) {
        let reason = EngineReport::slice_result(slice) + SliceResult::REASON;
        self.report.word(reason).put(SliceReason::Cut as u64);
    }

    /// Takes the records published since the last call; gives how many there were so far.
    pub(super) fn take_records(&mut self, into: &mut SliceReport) -> u64 {
        // Pairs with the PUBLISH of the write index by lane 0: the words of all records before it
        // are visible.
        let written = self.report.word(EngineReport::RECORD_WRITE).observe();
        let unread = written.wrapping_sub(self.records_read);
        if unread > RECORD_RING_CAPACITY {
            self.refused += 1;
            into.collapsed = true;
        } else {
            for index in self.records_read..written {
                let words = self
                    .report
                    .peek_words::<{ InterruptRecord::BYTES as usize / 8 }>(EngineReport::record(
                        index,
                    ));
                self.take_record(bytemuck::cast(words), into);
            }
        }
        self.records_read = written;
        self.control
            .word(crate::abi::EngineControl::RECORD_READ)
            .publish(written);

        let collapsed = self.report.word(EngineReport::COLLAPSED).observe();
        into.collapsed |= collapsed != self.collapsed_seen;
        self.collapsed_seen = collapsed;
        written
    }

    fn take_record(&mut self, record: InterruptRecord, into: &mut SliceReport) {
        let hw_queue = record.hw_queue as u32;
        if record.fence_id != InterruptRecord::FAULT {
            into.raised.push(RaisedFence {
                fence: FenceId::from_word(record.fence_id),
                value: record.value,
                hw_queue: (hw_queue != InterruptRecord::NO_QUEUE).then_some(hw_queue),
                log_number: record.log_number,
            });
        } else if let Some(code) = FaultCode::from_bits((record.hw_queue >> 32) as u32) {
            let fault = QueueFault {
                code,
                packet: record.value,
                control: record.log_number,
                value: 0,
            };
            into.faulted.push((hw_queue, fault));
        } else {
            self.refused += 1;
        }
    }
}
