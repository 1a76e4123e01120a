//! Queued notes: what a submission of a user-mode queue tells the recorder (FENCE_WAIT_QUEUED, FENCE_SIGNAL_QUEUED).
//!
//! The time is the CPU's before the write index is published, and so before an engine can see the command: queued is not
//! later than observed (LG-10).

use crate::abi::{Opcode, Packet};
use crate::trace::{Note, Operation, QueueName, Recorder};

/// One submission's, while somebody records.
#[derive(Debug)]
pub struct QueuedNotes<'a> {
    recorder: &'a Recorder,
    queue: QueueName,
    at: u64,
}

impl<'a> QueuedNotes<'a> {
    pub(in crate::os) fn new(recorder: &'a Recorder, queue: QueueName) -> Option<Self> {
        let at = recorder.now()?;
        Some(Self {
            recorder,
            queue,
            at,
        })
    }

    /// A packet that is being written.
    pub fn add(&self, packet: &Packet) {
        let operation = match packet.opcode() {
            Some(Opcode::Wait) => Operation::Wait,
            Some(Opcode::Signal | Opcode::Progress) => Operation::Signal,
            _ => return,
        };
        self.recorder.note(|| Note::Queued {
            queue: self.queue,
            operation,
            handle: packet.handle().raw(),
            value: packet.value,
            number: Some(packet.log_number),
            at: self.at,
        });
    }
}
