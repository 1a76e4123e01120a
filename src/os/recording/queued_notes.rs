//! Queued notes: what a submission of a user-mode queue tells the recorder (FENCE_WAIT_QUEUED, FENCE_SIGNAL_QUEUED).
//!
//! The time is the CPU's before the write index is published, and so before an engine can see the command: queued is not
//! later than observed (LG-10).

use crate::abi::{Opcode, Packet};
use crate::trace::{Operation, QueueId, QueuedCommand, Recorder, Submission};

/// One submission's, while somebody records. They are told when it is dropped, before the write index is published.
#[derive(Debug)]
pub struct QueuedNotes<'a> {
    recorder: &'a Recorder,
    queue: QueueId,
    at: u64,
    submission: Option<Submission>,
}

impl<'a> QueuedNotes<'a> {
    pub(in crate::os) fn new(recorder: &'a Recorder, queue: QueueId) -> Option<Self> {
        let at = recorder.now()?;
        Some(Self {
            recorder,
            queue,
            at,
            submission: None,
        })
    }

    /// A packet that is being written.
    pub fn add(&mut self, packet: &Packet) {
        let operation = match packet.opcode() {
            Some(Opcode::Wait) => Operation::Wait,
            Some(Opcode::Signal | Opcode::Progress) => Operation::Signal,
            _ => return,
        };
        if self.submission.as_ref().is_none_or(Submission::is_full) {
            self.tell();
            self.submission = self.recorder.submission(self.queue, self.at);
        }
        match &mut self.submission {
            Some(submission) => submission.add(
                packet.log_number,
                QueuedCommand {
                    operation,
                    handle: packet.handle().raw(),
                    value: packet.value,
                },
            ),
            None => self.recorder.lose(1),
        }
    }

    fn tell(&mut self) {
        if let Some(submission) = self.submission.take() {
            self.recorder.submit(submission);
        }
    }
}

impl Drop for QueuedNotes<'_> {
    fn drop(&mut self) {
        self.tell();
    }
}
