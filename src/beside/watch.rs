//! Watch: a thread that sleeps in Vulkan for values of a timeline, while it has one to sleep for.
//!
//! Nothing ends such a sleep but the value or the loss of the device; a wait for any of two timelines, which could be
//! woken by the second, burns a core on Mesa. So a watch that goes away while its thread sleeps there leaves the thread
//! to it: it has nothing to do any more, and ends when its sleep does.

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, sleep, thread};
use crate::vulkan::{Alive, DeviceLost, EndsAtExit, InVulkan, Timeline, at_exit};
use std::sync::Weak;
use std::thread::JoinHandle;
use std::time::Instant;

/// What a watch is for.
///
/// It is asked and told with no lock of the watch's held.
pub(super) trait Watched: Send + Sync + 'static {
    /// The value to sleep for now.
    fn next(&self) -> Option<u64>;

    /// The timeline has that value, and maybe more by now; or never will.
    fn woken(&self, reached: Result<u64, DeviceLost>);

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
    state: Mutex<State>,
    changed: Condvar,
    _alive: Alive,
}

#[derive(Default)]
struct State {
    /// How often [`Watched::next`] may have changed.
    changes: u64,
    thread: Option<JoinHandle<()>>,
    is_closed: bool,
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
            state: Mutex::default(),
            changed: Condvar::new(),
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
        let mut state = lock(&self.inner.state);
        if state.thread.is_none() {
            let inner = Arc::clone(&self.inner);
            let thread = thread::Builder::new().name("nf-bridge".into());
            state.thread = Some(thread.spawn(move || watch(inner))?);
        }
        Ok(())
    }

    /// By what it is told of changes.
    pub(super) fn nudge(&self) -> Nudge<W> {
        Nudge(Arc::downgrade(&self.inner))
    }
}

/// Tells a watch that there may be something to sleep for.
pub(super) struct Nudge<W>(Weak<Inner<W>>);

impl<W> Nudge<W> {
    /// Who calls this has changed what [`Watched::next`] says. Waits for nobody.
    pub(super) fn changed(&self) {
        if let Some(inner) = self.0.upgrade() {
            lock(&inner.state).changes += 1;
            inner.changed.notify_all();
        }
    }
}

/// What the thread does.
fn watch<W: Watched>(inner: Arc<Inner<W>>) {
    let mut state = lock(&inner.state);
    while !state.is_closed {
        let changes = state.changes;
        drop(state);
        let next = inner.what.next();
        state = lock(&inner.state);
        state = match next {
            Some(value) if !state.is_closed => inner.sleep_for(state, value),
            // Nothing has changed since it was asked.
            None if !state.is_closed && state.changes == changes => sleep(&inner.changed, state),
            Some(_) | None => state,
        };
    }
    let left = state.left.take();
    drop(state);
    // The timeline, with what it keeps, before it is told that nobody is in Vulkan.
    drop(inner);
    drop(left);
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
        state = lock(&self.state);
        state.sleeps_in_vulkan = false;
        if state.is_closed {
            return state;
        }
        drop(state);
        self.what.woken(reached);
        lock(&self.state)
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        let thread = state.thread.take();
        if state.sleeps_in_vulkan && !state.is_closed {
            state.left = Some(InVulkan::begin());
        }
        let is_left = state.left.is_some();
        state.is_closed = true;
        drop(state);
        self.changed.notify_all();
        // It may be the thread itself, which tells somebody who drops the bridge.
        let another = |thread: &JoinHandle<()>| thread.thread().id() != thread::current().id();
        if let Some(thread) = thread.filter(another).filter(|_| !is_left) {
            // Its panic was reported as every panic is.
            let _panicked = thread.join();
        }
        self.what.closed();
    }
}

impl<W: Watched> EndsAtExit for Inner<W> {
    fn end_at_exit(&self, _: Instant) {
        self.close();
    }
}

impl<W: Watched> Drop for Watch<W> {
    fn drop(&mut self) {
        self.inner.close();
    }
}
