//! Timeline to fence: a timeline semaphore's values, carried to a native fence.
//!
//! A value is slept for from when it is asked for, and not from when somebody waits for the fence (choice). Who waits
//! is not known of all, and whoever is missed would wait for ever for a value that the timeline has (NF-06):
//!
//! - CPU waiters and parked engines, also those of other processes, are: MonitoredValue says so, and
//!   [`SignalsElsewhere`](crate::os::SignalsElsewhere) tells of it. An enrolled fence needs no others told, since its
//!   value is stored whether anybody looks or not.
//! - A queue that stands at a wait while its engine runs for others is seen by its node at each slice's end
//!   (`Node::supply` reads what all queues stand at), once the slice's time is over. To tell of it takes an interrupt
//!   of its own and a call by which the OS asks for it, lest every such slice's end tell of what nobody needs.
//! - Such a queue of another process is seen by that process alone. Engines compare with the openers' page, which has what
//!   CPU waiters and parked engines wait for: it would need a further word for each opener.
//! - A kernel in `nf_wait` looks at CurrentValue itself, while no slice ends; so does a thread that reads the fence
//!   (NF-27). Nobody sees either.
//!
//! So a bridge that sleeps only while somebody waits could be no more than a second way of asking, for programs that use
//! none of the last two; a queue would wait for up to a slice's time longer, in which nobody sleeps for the value yet.
//! What it would save is one wake-up for each value that comes with nobody waiting: a thread that sleeps in Vulkan
//! costs nothing (HQ-09), and cannot be called back from it when the last waiter goes.

use super::crossing::{Crossing, CrossingError};
use super::forward::{AskError, Forward};
use super::watch::{Watch, Watched};
use crate::sync::{Arc, Mutex, lock};
use crate::vulkan::{DeviceFailure, Timeline};
use crate::{Fence, SignalError};
use std::collections::VecDeque;
use std::fmt;

/// Signals a native fence when a timeline comes to a value, each time by a call.
///
/// The first call makes a thread for the bridge. It sleeps in Vulkan while a value is asked for that has not come, and
/// on a lock else. That one is asked for is for the program to know: the fence's waiters ask by themselves for nothing
/// (choice). They cannot all: a kernel that looks at CurrentValue itself is seen by nobody, nor is a thread that only
/// reads the fence, nor a queue of another process whose engine runs for others. So who asks for a value says that
/// somebody waits or will, and a value that is asked for is carried when it comes.
///
/// Dropping the bridge takes back what has not come, and tells so ([`CrossingError::Closed`]). A thread that sleeps in
/// Vulkan then keeps the timeline until its value comes or the device is lost, and what was given to
/// [`Timeline::import`] with it: where that is dropped, the semaphore may be destroyed.
pub struct TimelineToFence {
    watch: Watch<Carried>,
    carried: Arc<Carried>,
}

/// What is on its way.
struct Carried(Mutex<State>);

struct State {
    /// None once the bridge is gone: a thread that is left to its sleep keeps no handle open.
    fence: Option<Fence>,
    forward: Forward,
    asked: VecDeque<Asked>,
}

struct Asked {
    timeline_value: u64,
    fence_value: u64,
    crossing: Crossing,
}

impl TimelineToFence {
    /// A bridge, with nothing asked for. It keeps the fence's handle open, as a clone does.
    ///
    /// # Errors
    /// The fence may not be signalled by the CPU: its handle is closed or has no right to (NF-23), it is of type INTRA_GPU,
    /// or its device is lost.
    pub fn new(timeline: &Timeline, fence: &Fence) -> Result<Self, SignalError> {
        fence.object().check_signal()?;
        let carried = Arc::new(Carried(Mutex::new(State {
            fence: Some(fence.clone()),
            forward: Forward::default(),
            asked: VecDeque::new(),
        })));
        let watch = Watch::new(timeline, &carried);
        Ok(Self { watch, carried })
    }

    /// Signals the fence with `fence_value` when the timeline has `timeline_value` or more.
    ///
    /// # Errors
    /// Values that go back, against those asked for before or against the fence; a fence that may not be signalled any
    /// more; the timeline's device is lost; no thread. What becomes of a value that is carried the [`Crossing`] tells.
    pub fn signal_after(
        &self,
        timeline_value: u64,
        fence_value: u64,
    ) -> Result<Crossing, AskError> {
        let values = (timeline_value, fence_value);
        let mut state = lock(&self.carried.0);
        state.forward.check(values)?;
        self.watch.timeline().value()?;
        if let Some(fence) = &state.fence {
            check_fence(fence, fence_value)?;
        }
        let begun = self.watch.begin();
        begun.map_err(|error| AskError::NoThread(error.to_string()))?;
        state.forward.note(values);
        let crossing = Crossing::default();
        state.asked.push_back(Asked {
            timeline_value,
            fence_value,
            crossing: crossing.clone(),
        });
        drop(state);
        self.watch.nudge().changed();
        Ok(crossing)
    }
}

/// Whether a fence can come to have a value by a signal.
fn check_fence(fence: &Fence, value: u64) -> Result<(), AskError> {
    fence.object().check_signal().map_err(AskError::Fence)?;
    let current = fence.current_value();
    if value < current {
        return Err(AskError::Fence(SignalError::Backward { current }));
    }
    Ok(())
}

impl Watched for Carried {
    fn next(&self) -> Option<u64> {
        let state = lock(&self.0);
        state.asked.front().map(|asked| asked.timeline_value)
    }

    fn woken(&self, reached: Result<u64, DeviceFailure>) {
        let mut state = lock(&self.0);
        let Some(fence) = state.fence.clone() else {
            return;
        };
        // After a driver that gives up as well, though the value may come yet: who asked is told, and may ask again. (An
        // enrolled fence has nobody to tell, and looks again.)
        let count = if reached.is_ok() {
            1
        } else {
            state.asked.len()
        };
        let ended: Vec<_> = state.asked.drain(..count).collect();
        // The fence is signalled, and maybe let go for the last time, with no lock held.
        drop(state);
        for asked in ended {
            let signalled = match reached {
                Ok(_) => fence.signal(asked.fence_value).map_err(Into::into),
                Err(failure) => Err(CrossingError::Device(failure)),
            };
            asked.crossing.end(signalled);
        }
    }

    fn closed(&self) {
        let mut state = lock(&self.0);
        let fence = state.fence.take();
        let asked = std::mem::take(&mut state.asked);
        drop(state);
        drop(fence);
        for asked in asked {
            asked.crossing.end(Err(CrossingError::Closed));
        }
    }
}

impl fmt::Debug for TimelineToFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimelineToFence")
            .field("timeline", self.watch.timeline())
            .finish_non_exhaustive()
    }
}
