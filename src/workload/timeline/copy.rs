//! Copy with a timeline semaphore: `vkCmdCopyBuffer` in a command buffer that signals it.

use crate::vulkan::{COPY_END, Queue};
use crate::workload::copy::{COPIES, COPY_BYTES};
use crate::workload::queue_copy::QueueCopy;

const WORK: &str = "One vkQueueSubmit of a command buffer that was recorded before, with 16 \
                    vkCmdCopyBuffer of 1 MiB each between imported system memory, which signals a \
                    timeline semaphore that the CPU waits for; measured is from the call to the \
                    return of vkWaitSemaphores.";

/// On a queue.
///
/// # Errors
/// No memory, or the driver imports none or gives no timeline.
pub fn copy(queue: Queue) -> anyhow::Result<QueueCopy> {
    QueueCopy::new(queue, WORK, |mut recorder, from, to| {
        for copy in 0..COPIES {
            let at = copy * COPY_BYTES;
            recorder = recorder.copy((from, at), (to, at), COPY_BYTES);
        }
        Ok(recorder.barrier(COPY_END))
    })
}
