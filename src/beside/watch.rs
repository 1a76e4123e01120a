//! Watch: a thread that sleeps in Vulkan for values of a timeline, while it has one to sleep for.
//!
//! Nothing ends such a sleep but the value or the loss of the device; a wait for any of two timelines, which could be
//! woken by the second, burns a core on Mesa. So a watch that goes away while its thread sleeps there leaves the thread
//! to it: it has nothing to do any more, and ends when its sleep does.

use crate::supply::start_thread;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, sleep, sleep_until, thread};
use crate::vulkan::{Alive, DeviceFailure, EndsAtExit, InVulkan, Timeline, at_exit};
use std::sync::Weak;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two waits of which the first has failed, at once as it may be: who waits again does not burn a core.
const PAUSE: Duration = Duration::from_millis(10);

/// What a watch is for.
///
/// It is asked and told with no lock of the watch's held.
pub(super) trait Watched: Send + Sync + 'static {
    /// The value to sleep for now.
    fn next(&self) -> Option<u64>;

    /// The timeline has that value, and maybe more by now; or the driver cannot say, and what is to be slept for is asked
    /// again after a pause; or it never will.
    fn woken(&self, reached: Result<u64, DeviceFailure>);

    /// Nothing comes any more. Maybe more than once.
    fn closed(&self);
}

/// See the file's head. Dropping it closes it.
pub(super) struct Watch<W: Watched> {
    inner: Arc<Inner<W>>,
}

struct Inner<W> {
    timeline: Timeline,
    what: Arc<W>,
    core: Arc<Core>,
    _alive: Alive,
}

/// What a nudge keeps: nothing of Vulkan, so that it may be let go under any lock.
#[derive(Default)]
struct Core {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How often [`Watched::next`] may have changed.
    changes: u64,
    thread: Option<JoinHandle<()>>,
    is_closed: bool,
    has_ended: bool,
    sleeps_in_vulkan: bool,
    /// Of a thread that is left to its sleep.
    left: Option<InVulkan>,
}

impl<W: Watched> Watch<W> {
    /// A watch without a thread.
    pub(super) fn new(timeline: &Timeline, what: &Arc<W>) -> Self {
        let inner = Arc::new_cyclic(|me: &Weak<Inner<W>>| Inner {
            timeline: timeline.clone(),
            what: Arc::clone(what),
            core: Arc::default(),
            _alive: at_exit(me.clone()),
        });
        Self { inner }
    }

    /// The timeline.
    pub(super) fn timeline(&self) -> &Timeline {
        &self.inner.timeline
    }

    /// Makes the thread, if there is none.
    pub(super) fn begin(&self) -> std::io::Result<()> {
        let mut state = lock(&self.inner.core.state);
        if state.thread.is_none() {
            let inner = Arc::clone(&self.inner);
            state.thread = Some(start_thread("nf-bridge", move || watch(inner))?);
        }
        Ok(())
    }

    /// By what it is told of changes.
    pub(super) fn nudge(&self) -> Nudge {
        Nudge(Arc::clone(&self.inner.core))
    }
}

/// Tells a watch that there may be something to sleep for.
pub(super) struct Nudge(Arc<Core>);

impl Nudge {
    /// Who calls this has changed what [`Watched::next`] says. Waits for nobody.
    pub(super) fn changed(&self) {
        lock(&self.0.state).changes += 1;
        self.0.changed.notify_all();
    }
}

/// What the thread does.
fn watch<W: Watched>(inner: Arc<Inner<W>>) {
    let core = Arc::clone(&inner.core);
    let mut state = lock(&core.state);
    while !state.is_closed {
        let changes = state.changes;
        drop(state);
        let next = inner.what.next();
        state = lock(&core.state);
        state = match next {
            Some(value) if !state.is_closed => inner.sleep_for(state, value),
            // Nothing has changed since it was asked.
            None if !state.is_closed && state.changes == changes => sleep(&core.changed, state),
            Some(_) | None => state,
        };
    }
    let left = state.left.take();
    drop(state);
    // The timeline, with what it keeps, before it is told that nobody is in Vulkan.
    drop(inner);
    drop(left);
    lock(&core.state).has_ended = true;
    core.changed.notify_all();
}

impl<W: Watched> Inner<W> {
    fn sleep_for<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        value: u64,
    ) -> MutexGuard<'a, State> {
        state.sleeps_in_vulkan = true;
        drop(state);
        let reached = self.timeline.wait(value, None);
        let reached = reached.and_then(|_reached| self.timeline.value());
        state = lock(&self.core.state);
        state.sleeps_in_vulkan = false;
        if state.is_closed {
            return state;
        }
        drop(state);
        self.what.woken(reached);
        let state = lock(&self.core.state);
        if reached.is_ok() || state.is_closed {
            return state;
        }
        // A change, or the end, is not slept over: each is made under the lock, and notifies.
        let again = Instant::now().checked_add(PAUSE);
        let woken = sleep_until(&self.core.changed, state, again);
        woken.unwrap_or_else(|| lock(&self.core.state))
    }

    /// Ends the thread, or leaves it where it is at the deadline: a waker of the program's may hold it up.
    fn close(&self, deadline: Option<Instant>) {
        let mut state = lock(&self.core.state);
        let thread = state.thread.take();
        if state.sleeps_in_vulkan && !state.is_closed {
            state.left = Some(InVulkan::begin());
        }
        let is_left = state.left.is_some();
        state.is_closed = true;
        self.core.changed.notify_all();
        // It may be the thread itself, which tells somebody who drops the bridge.
        let another = |thread: &JoinHandle<()>| thread.thread().id() != thread::current().id();
        let thread = thread.filter(another).filter(|_| !is_left);
        match (thread, deadline) {
            (Some(thread), None) => {
                drop(state);
                // Its panic was reported as every panic is.
                let _panicked = thread.join();
            }
            (Some(_left), Some(_)) => {
                let mut waits = Some(state);
                while let Some(state) = waits.take().filter(|state| !state.has_ended) {
                    waits = sleep_until(&self.core.changed, state, deadline);
                }
            }
            (None, _) => drop(state),
        }
        self.what.closed();
    }
}

impl<W: Watched> EndsAtExit for Inner<W> {
    fn end_at_exit(&self, deadline: Instant) {
        self.close(Some(deadline));
    }
}

impl<W: Watched> Drop for Watch<W> {
    fn drop(&mut self) {
        self.inner.close(None);
    }
}
