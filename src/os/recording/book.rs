//! Book: what an adapter keeps for its recording, and what finds its way there while one is on.

use super::super::adapter_state::AdapterState;
use super::super::queue_record::QueueRecord;
use super::TracedFence;
use crate::kmd::{HwQueueHandle, ProcessId};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::trace::{Note, QueueId, Recorder};
use std::collections::HashMap;

/// See the file's head.
#[derive(Debug, Default)]
pub(in crate::os) struct RecordingBook {
    recorder: Arc<Recorder>,
    /// Handles that were open when it began, or were opened since: they may be closed before anybody looks.
    names: Mutex<HashMap<(u64, u32), TracedFence>>,
    /// Queues that were made while one is on, until the collector takes them: they may be destroyed before.
    queues: Mutex<Vec<Arc<QueueRecord>>>,
    /// Somebody records.
    is_taken: Mutex<bool>,
}

impl RecordingBook {
    /// What notes are given to.
    pub(in crate::os) fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// A process has a handle of a fence, native or monitored.
    pub(in crate::os) fn named(&self, process: ProcessId, handle: u32, fence: TracedFence) {
        if self.recorder.is_on() {
            lock(&self.names).insert((process.0, handle), fence);
        }
    }

    /// A queue is made, and nothing was logged yet.
    pub(in crate::os) fn queue_made(&self, queue: &Arc<QueueRecord>) {
        if self.recorder.is_on() {
            queue.follow_from_the_first();
            lock(&self.queues).push(Arc::clone(queue));
        }
    }

    /// A kernel-mode queue is made, which has no log to be followed.
    pub(in crate::os) fn kernel_queue_made(&self, queue: HwQueueHandle, process: ProcessId) {
        self.recorder.note(|| Note::KernelQueueMade {
            queue: queue_id(queue),
            process: process.0,
        });
    }

    /// One at a time: whether it is this caller's.
    pub(super) fn take(&self) -> bool {
        !std::mem::replace(&mut *lock(&self.is_taken), true)
    }

    /// The recording is over.
    pub(super) fn give_back(&self) {
        lock(&self.names).clear();
        lock(&self.queues).clear();
        *lock(&self.is_taken) = false;
    }

    pub(super) fn take_queues(&self) -> Vec<Arc<QueueRecord>> {
        std::mem::take(&mut *lock(&self.queues))
    }

    pub(super) fn take_names(&self) -> HashMap<(u64, u32), TracedFence> {
        std::mem::take(&mut *lock(&self.names))
    }
}

/// A queue in notes.
pub(in crate::os) fn queue_id(handle: HwQueueHandle) -> QueueId {
    QueueId {
        node_ordinal: handle.node_ordinal,
        number: handle.number,
    }
}

impl AdapterState {
    /// Handles that are open now count as opened.
    pub(super) fn name_all(&self) {
        for (process, handle, fence) in self.all_handles() {
            self.recording.named(process, handle, fence);
        }
    }
}
