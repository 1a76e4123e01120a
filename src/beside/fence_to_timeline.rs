//! Fence to timeline: a native fence's values, carried to a timeline semaphore.

use super::crossing::{Crossing, CrossingError};
use super::forward::{AskError, Forward};
use super::wait_task::WaitTask;
use crate::Fence;
use crate::sync::{Arc, Mutex, lock};
use crate::vulkan::Timeline;
use std::collections::HashMap;
use std::fmt;

/// Raises a timeline when a native fence comes to a value, each time by a call.
///
/// Each value that was asked for is a waiter of the fence as any CPU wait is (NF-04): the one who releases it calls
/// `vkSignalSemaphore`, on the adapter's interrupt thread or the thread of a CPU signal, and no thread is there for
/// the bridge alone. While none is asked for the fence has no waiter, and a GPU signals it without an interrupt.
/// Where interrupts are polled for ([`Delivery::Polled`](crate::Delivery::Polled)) it is as with
/// [`WaitFuture`](crate::WaitFuture).
///
/// A program may submit work that waits for the timeline before or after it asks: a wait without anybody who
/// asked waits for ever. Dropping the bridge takes back what has not come, and tells so
/// ([`CrossingError::Closed`]).
pub struct FenceToTimeline {
    fence: Fence,
    timeline: Timeline,
    asked: Arc<Mutex<Asked>>,
}

#[derive(Default)]
struct Asked {
    forward: Forward,
    next: u64,
    tasks: HashMap<u64, Arc<WaitTask>>,
}

impl FenceToTimeline {
    /// A bridge, with nothing asked for. It keeps the fence's handle open, as a clone does.
    #[must_use]
    pub fn new(fence: &Fence, timeline: &Timeline) -> Self {
        Self {
            fence: fence.clone(),
            timeline: timeline.clone(),
            asked: Arc::default(),
        }
    }

    /// Raises the timeline to `timeline_value` when the fence has `fence_value` or more; on return already where
    /// it does. A timeline that somebody else raises as far meanwhile is left as it is.
    ///
    /// ```no_run
    /// # fn example(fence: &native_fence::Fence, timeline: &native_fence::vulkan::Timeline)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// use native_fence::beside::FenceToTimeline;
    ///
    /// let bridge = FenceToTimeline::new(fence, timeline);
    /// for frame in 1..=3 {
    ///     bridge.signal_after(frame, frame)?;
    ///     // Work of the program's that waits for `frame` of the timeline is submitted as any other.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Values that go back, against those asked for before or against the timeline; the timeline's device is lost.
    /// What becomes of a value that is carried the [`Crossing`] tells.
    pub fn signal_after(
        &self,
        fence_value: u64,
        timeline_value: u64,
    ) -> Result<Crossing, AskError> {
        let mut asked = lock(&self.asked);
        asked.forward.check((fence_value, timeline_value))?;
        let now = self.timeline.value()?;
        if timeline_value <= now {
            let asked = timeline_value;
            return Err(AskError::TimelineIsThere { asked, now });
        }
        asked.forward.note((fence_value, timeline_value));
        let number = asked.next;
        asked.next += 1;
        let crossing = Crossing::default();
        let (told, timeline) = (crossing.clone(), self.timeline.clone());
        let tasks = Arc::downgrade(&self.asked);
        let task = WaitTask::new(self.fence.wait_async(fence_value), move |ended| {
            told.end(match ended {
                Some(Ok(())) => timeline.raise_to(timeline_value).map_err(Into::into),
                Some(Err(error)) => Err(error.into()),
                None => Err(CrossingError::Closed),
            });
            if let Some(asked) = tasks.upgrade() {
                let ended = lock(&asked).tasks.remove(&number);
                drop(ended);
            }
        });
        asked.tasks.insert(number, Arc::clone(&task));
        drop(asked);
        task.run();
        Ok(crossing)
    }
}

impl Drop for FenceToTimeline {
    fn drop(&mut self) {
        let tasks = std::mem::take(&mut lock(&self.asked).tasks);
        for task in tasks.values() {
            task.give_up();
        }
    }
}

impl fmt::Debug for FenceToTimeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceToTimeline")
            .field("fence", &self.fence)
            .field("timeline", &self.timeline)
            .finish_non_exhaustive()
    }
}
