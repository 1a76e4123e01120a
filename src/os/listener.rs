//! Listener: who is told that a wait has ended, beside the threads that sleep for it.
//!
//! A waker is foreign code. It may poll its future at once and on this thread, signal, arm another
//! wait, drop the last reference to a fence, or panic. So listeners are taken out of their cells
//! while the wait ends, and told when whoever ended it holds no lock any more.

use super::adapter_life::AdapterLife;
use super::adapter_state::AdapterState;
use super::event_handle::EventHandle;
use super::queue_core::QueueCore;
use super::turn::Foreign;
use crate::kmd::Level;
use crate::supply::start_thread_with;
use crate::sync::{Arc, thread_local};
use std::cell::Cell;
use std::sync::Weak;
use std::task::Waker;

/// See the file's head.
#[derive(Debug)]
pub(super) enum Listener {
    /// A future's task.
    Waker(Waker),
    /// An event handle.
    Event(EventHandle),
    /// A kernel-mode queue, which is held back by the wait.
    Queue(Weak<QueueCore>),
}

impl Listener {
    fn tell(self) {
        match self {
            Self::Waker(waker) => wake(waker),
            Self::Event(event) => event.signal(),
            Self::Queue(queue) => {
                if let Some(queue) = queue.upgrade() {
                    queue.advance();
                }
            }
        }
    }
}

/// Who panics does it for himself: the panic is reported as every panic is, and the others are told.
#[cfg(not(loom))]
fn wake(waker: Waker) {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    // Nothing of this crate is in the middle of a change here, and the waker is gone.
    let _reported = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}

/// Loom tells by a panic of a deadlock that it finds there.
#[cfg(loom)]
fn wake(waker: Waker) {
    waker.wake();
}

/// Listeners of waits that have ended.
#[derive(Debug, Default)]
#[must_use = "nobody is told until no lock is held"]
pub(super) struct Listeners {
    listeners: Vec<Listener>,
    /// Of adapters whose driver failed meanwhile: what follows from that takes the locks of all their fences.
    lives: Vec<Arc<AdapterLife>>,
}

impl Listeners {
    /// One more, if there is one.
    pub(super) fn add(&mut self, listener: Option<Listener>) {
        self.listeners.extend(listener);
    }

    /// An adapter's life is settled when they are told.
    pub(super) fn settle(&mut self, life: &Arc<AdapterLife>) {
        self.lives.push(Arc::clone(life));
    }

    /// Tells them, in the order in which their waits ended. The caller holds no lock. It may have a turn,
    /// for which no listener is put to sleep (`turn`).
    ///
    /// A waker does what it does for the task that it wakes and not for the interrupt on whose thread it
    /// runs: at PASSIVE_LEVEL, where it may call what every program may.
    pub(super) fn tell(self) {
        if !self.listeners.is_empty() {
            as_told(|| self.listeners.into_iter().for_each(Listener::tell));
        }
        for life in self.lives {
            life.settle();
        }
    }
}

/// Does something as a listener is told: what may be the last reference to an adapter, or calls what
/// belongs at PASSIVE_LEVEL. The caller holds no lock.
pub(super) fn as_told(act: impl FnOnce()) {
    let (_tells, _foreign) = (Tells::begin(), Foreign::begin());
    Level::Passive.during(act);
}

thread_local! {
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's takes no const")]
    static TELLS: Cell<bool> = Cell::new(false);
}

/// Whether this thread tells listeners now.
pub(super) fn tells() -> bool {
    TELLS.with(Cell::get)
}

/// This thread tells, until it is dropped.
struct Tells(bool);

impl Tells {
    fn begin() -> Self {
        Self(TELLS.with(|tells| tells.replace(true)))
    }
}

impl Drop for Tells {
    fn drop(&mut self) {
        TELLS.with(|tells| tells.set(self.0));
    }
}

/// Stops a driver whose adapter has no user any more; when this returns it has stopped.
///
/// But where a waker let the last reference go: it may run on a thread of the driver, and to stop a
/// driver is to wait for its threads. Then a thread of its own does it. Where the system has none left, this
/// one does what does not wait for others.
pub(super) fn stop(adapter: Arc<AdapterState>) {
    if !tells() {
        return stop_and_wait(&adapter);
    }
    // Whoever stops it has the last reference: the other thread, or this one where there is no other.
    let started = start_thread_with("nf-stop", adapter, |adapter| stop_and_wait(&adapter));
    let Err((error, adapter)) = started else {
        return;
    };
    eprintln!(
        "native-fence: an adapter is stopped and not waited for, for want of a thread: {error}"
    );
    adapter.tdr.let_go();
    adapter.ddi().stop_unawaited();
}

fn stop_and_wait(adapter: &Arc<AdapterState>) {
    adapter.tdr.stop();
    adapter.ddi().stop();
}
