//! Abnormal end of a process, with work queued: the second of the two ends that the documents have (HQ-12).
//!
//! The device is marked in error, so that it gets no queue and no doorbell any more. Its contexts are
//! suspended, all of them before any answer is waited for, and for good. Then nothing on the GPU refers to
//! them, and each queue's doorbell is disconnected and all of it destroyed, as it is.
//!
//! A context whose engine is lost is not waited for: nothing of it runs, or what runs is cut off by who
//! recovers the engine. One that the driver cannot suspend, since it hands whole command buffers to the
//! device, is waited for when its queue is destroyed.

use super::process::Process;
use super::process_end::Stage;
use crate::sync::lock;

impl Process {
    /// Ends the process at once, whatever it has queued (HQ-12). When this returns, no engine touches
    /// anything of it any more, and its queues are destroyed; waits for their progress have ended. One that
    /// has ended ends again at once.
    pub fn terminate(&self) {
        {
            let mut stage = lock(&self.stage);
            match *stage {
                Stage::Running | Stage::Ending => *stage = Stage::InError,
                Stage::Ended | Stage::InError => return,
            }
        }
        let contexts = self.adapter().contexts.all().into_iter();
        let contexts = contexts.filter(|context| context.process() == self.id());
        let asked = contexts.map(|context| (context.ask_for_good(), context));
        let asked: Vec<_> = asked.collect();
        for (fence, context) in asked {
            // Why one is not suspended is in the file's head.
            let _suspended = fence.and_then(|fence| context.wait(fence, None));
        }
        for queue in self.queues() {
            queue.abandon();
        }
    }

    /// Whether it was ended with work queued.
    #[must_use]
    pub fn is_in_error(&self) -> bool {
        *lock(&self.stage) == Stage::InError
    }
}
