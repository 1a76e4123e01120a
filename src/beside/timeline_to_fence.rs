//! Timeline to fence: a timeline semaphore's values, carried to a native fence.
//!
//! A thread sleeps in `vkWaitSemaphores` for the value that comes next, then signals the fence as any CPU signal does.
//! Nothing ends such a sleep but the value or the loss of the device; a wait for any of two timelines, which could be
//! woken by the second, burns a core on Mesa. So a bridge that goes away while its thread sleeps there leaves the thread
//! to it: the thread has nothing of the bridge any more but the timeline, ends when its sleep does, and does nothing
//! else.

use super::crossing::{Crossing, CrossingError};
use super::forward::{AskError, Forward};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, sleep, thread};
use crate::vulkan::{Alive, EndsAtExit, InVulkan, Timeline, at_exit};
use crate::{Fence, SignalError};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Weak;
use std::thread::JoinHandle;
use std::time::Instant;

/// Signals a native fence when a timeline comes to a value, each time by a call.
///
/// The first call makes a thread for the bridge. It sleeps in Vulkan while a value is asked for that has not come, and
/// on a lock else. That it is asked for is for the program to know: the fence's waiters ask by themselves for nothing.
///
/// Dropping the bridge takes back what has not come, and tells so ([`CrossingError::Closed`]). A thread that sleeps in
/// Vulkan then keeps the timeline until its value comes or the device is lost, and what was given to
/// [`Timeline::import`] with it: where that is dropped, the semaphore may be destroyed.
pub struct TimelineToFence {
    inner: Arc<Inner>,
}

struct Inner {
    timeline: Timeline,
    state: Mutex<State>,
    changed: Condvar,
    _alive: Alive,
}

struct State {
    /// None once the bridge is gone.
    fence: Option<Fence>,
    forward: Forward,
    asked: VecDeque<Asked>,
    thread: Option<JoinHandle<()>>,
    sleeps_in_vulkan: bool,
    /// Of a thread that is left to its sleep.
    left: Option<InVulkan>,
}

struct Asked {
    timeline_value: u64,
    fence_value: u64,
    crossing: Crossing,
}

impl TimelineToFence {
    /// A bridge, with nothing asked for. It keeps the fence's handle open, as a clone does.
    #[must_use]
    pub fn new(timeline: &Timeline, fence: &Fence) -> Self {
        let inner = Arc::new_cyclic(|me: &Weak<Inner>| Inner {
            timeline: timeline.clone(),
            state: Mutex::new(State {
                fence: Some(fence.clone()),
                forward: Forward::default(),
                asked: VecDeque::new(),
                thread: None,
                sleeps_in_vulkan: false,
                left: None,
            }),
            changed: Condvar::new(),
            _alive: at_exit(me.clone()),
        });
        Self { inner }
    }

    /// Signals the fence with `fence_value` when the timeline has `timeline_value` or more.
    ///
    /// # Errors
    /// Values that go back, against those asked for before or against the fence; the timeline's device is lost; no
    /// thread. What becomes of a value that is carried the [`Crossing`] tells.
    pub fn signal_after(
        &self,
        timeline_value: u64,
        fence_value: u64,
    ) -> Result<Crossing, AskError> {
        let mut state = lock(&self.inner.state);
        let values = (timeline_value, fence_value);
        state.forward.check(values)?;
        self.inner.timeline.value()?;
        if let Some(fence) = &state.fence {
            check_fence(fence, fence_value)?;
        }
        if state.thread.is_none() {
            let inner = Arc::clone(&self.inner);
            let thread = thread::Builder::new().name("nf-bridge".into());
            let thread = thread.spawn(move || carry(inner));
            state.thread = Some(thread.map_err(|error| AskError::NoThread(error.to_string()))?);
        }
        state.forward.note(values);
        let crossing = Crossing::default();
        state.asked.push_back(Asked {
            timeline_value,
            fence_value,
            crossing: crossing.clone(),
        });
        self.inner.changed.notify_all();
        Ok(crossing)
    }
}

/// Whether a fence can come to have a value by a signal.
fn check_fence(fence: &Fence, value: u64) -> Result<(), AskError> {
    if fence.is_intra_gpu() {
        return Err(AskError::Fence(SignalError::IntraGpu));
    }
    let current = fence.current_value();
    if value < current {
        return Err(AskError::Fence(SignalError::Backward { current }));
    }
    Ok(())
}

/// What the thread does.
fn carry(inner: Arc<Inner>) {
    let mut state = lock(&inner.state);
    while state.fence.is_some() {
        state = match state.asked.front() {
            Some(next) => {
                let value = next.timeline_value;
                inner.carry_one(state, value)
            }
            None => sleep(&inner.changed, state),
        };
    }
    let left = state.left.take();
    drop(state);
    // The timeline, with what it keeps, before it is told that nobody is in Vulkan.
    drop(inner);
    drop(left);
}

impl Inner {
    /// The first of those that were asked for, which waits for `value` of the timeline. The thread has no clone of the
    /// fence while it sleeps: the handle closes with the bridge.
    fn carry_one<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        value: u64,
    ) -> MutexGuard<'a, State> {
        state.sleeps_in_vulkan = true;
        drop(state);
        let reached = self.timeline.wait(value, None);
        let mut state = lock(&self.state);
        state.sleeps_in_vulkan = false;
        let Some(fence) = state.fence.clone() else {
            return state;
        };
        match reached {
            Ok(_reached) => {
                let asked = state.asked.pop_front();
                drop(state);
                if let Some(asked) = asked {
                    let signalled = fence.signal(asked.fence_value);
                    asked.crossing.end(signalled.map_err(Into::into));
                }
                // Maybe the last: with no lock held.
                drop(fence);
            }
            Err(lost) => {
                let asked = std::mem::take(&mut state.asked);
                drop(state);
                for asked in asked {
                    asked.crossing.end(Err(CrossingError::DeviceLost(lost)));
                }
            }
        }
        lock(&self.state)
    }

    /// Nothing is carried any more, and what was asked for is told so.
    fn close(&self) {
        let mut state = lock(&self.state);
        let fence = state.fence.take();
        let asked = std::mem::take(&mut state.asked);
        let mut thread = state.thread.take();
        if state.sleeps_in_vulkan && fence.is_some() {
            state.left = Some(InVulkan::begin());
            thread = None;
        }
        drop(state);
        self.changed.notify_all();
        for asked in asked {
            asked.crossing.end(Err(CrossingError::Closed));
        }
        drop(fence);
        // It may be the thread itself, which tells somebody who drops the bridge.
        let another = |thread: &JoinHandle<()>| thread.thread().id() != thread::current().id();
        if let Some(thread) = thread.filter(another) {
            // Its panic was reported as every panic is.
            let _panicked = thread.join();
        }
    }
}

impl EndsAtExit for Inner {
    fn end_at_exit(&self, _: Instant) {
        self.close();
    }
}

impl Drop for TimelineToFence {
    fn drop(&mut self) {
        self.inner.close();
    }
}

impl fmt::Debug for TimelineToFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimelineToFence")
            .field("timeline", &self.inner.timeline)
            .finish_non_exhaustive()
    }
}
