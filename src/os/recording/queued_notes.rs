//! Queued notes: what a submission of a user-mode queue tells the recorder (FENCE_WAIT_QUEUED, FENCE_SIGNAL_QUEUED, and
//! dispatches).
//!
//! The time is the CPU's before the write index is published, and so before an engine can see the command: queued is not
//! later than observed (LG-10).

use crate::abi::{Dispatch, Opcode, Packet};
use crate::trace::{Operation, QueueId, QueuedCommand, QueuedKind, Recorder, Submission};

/// One submission's, while somebody records. They are told when it is dropped, before the write index is published.
#[derive(Debug)]
pub struct QueuedNotes<'a> {
    recorder: &'a Recorder,
    queue: QueueId,
    at: u64,
    /// Running index of the packet that comes next.
    packet: u64,
    /// Running numbers of the wait and of the signal that come next.
    next: [u64; 2],
    submission: Option<Submission>,
}

impl<'a> QueuedNotes<'a> {
    pub(in crate::os) fn new(
        recorder: &'a Recorder,
        queue: QueueId,
        packet: u64,
        next: [u64; 2],
    ) -> Option<Self> {
        let at = recorder.now()?;
        Some(Self {
            recorder,
            queue,
            at,
            packet,
            next,
            submission: None,
        })
    }

    /// Each packet that is written, one after the other.
    pub fn add(&mut self, packet: &Packet) {
        let (kind, value) = match packet.opcode() {
            Some(Opcode::Wait) => (Some(QueuedKind::Fence(Operation::Wait)), packet.value),
            Some(Opcode::Signal | Opcode::Progress) => {
                (Some(QueuedKind::Fence(Operation::Signal)), packet.value)
            }
            Some(Opcode::Dispatch) => {
                let groups = QueuedCommand::of_groups(Dispatch::groups(packet));
                (Some(QueuedKind::Dispatch), groups)
            }
            _ => (None, 0),
        };
        if let Some(kind) = kind {
            self.tell_of(kind, packet.handle().raw(), value);
        }
        self.packet += 1;
        if let Some(QueuedKind::Fence(operation)) = kind {
            self.next[operation as usize] += 1;
        }
    }

    fn tell_of(&mut self, kind: QueuedKind, handle: u32, value: u64) {
        let place = |submission: &Submission| u16::try_from(self.packet - submission.packet).ok();
        let has_place =
            |submission: &Submission| !submission.is_full() && place(submission).is_some();
        if !self.submission.as_ref().is_some_and(has_place) {
            self.tell();
            let (packet, next) = (self.packet, self.next);
            self.submission = self.recorder.submission(self.queue, self.at, packet, next);
        }
        match &mut self.submission {
            Some(submission) => submission.add(QueuedCommand {
                kind,
                place: (self.packet - submission.packet) as u16,
                handle,
                value,
            }),
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
