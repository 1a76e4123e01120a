//! Queue record: what an interrupt can do to a hardware queue.
//!
//! Interrupts hold it and never the queue itself, whose end waits for the interrupt's thread.

use super::native_fence::NativeFence;
use super::wait_cell::WaitError;
use crate::kmd::{Ddi, HwQueueHandle, ProcessId};
use crate::sync::{Arc, Mutex, lock};

/// A queue's handle, its progress fence, and why it was stopped.
#[derive(Debug)]
pub(super) struct QueueRecord {
    handle: HwQueueHandle,
    process: ProcessId,
    progress_fence: Arc<NativeFence>,
    ddi: Arc<dyn Ddi>,
    error: Mutex<Option<WaitError>>,
}

impl QueueRecord {
    pub(super) fn new(
        handle: HwQueueHandle,
        process: ProcessId,
        progress_fence: Arc<NativeFence>,
        ddi: Arc<dyn Ddi>,
    ) -> Self {
        Self {
            handle,
            process,
            progress_fence,
            ddi,
            error: Mutex::new(None),
        }
    }

    pub(super) fn handle(&self) -> HwQueueHandle {
        self.handle
    }

    pub(super) fn process(&self) -> ProcessId {
        self.process
    }

    pub(super) fn error(&self) -> Option<WaitError> {
        *lock(&self.error)
    }

    /// The queue was stopped: its doorbell is taken for good, and waits for its progress end.
    pub(super) fn fail(&self, error: WaitError) {
        lock(&self.error).get_or_insert(error);
        self.ddi.abort_doorbell(self.handle);
        self.progress_fence.fail(error);
    }
}
