//! Level one: the calls of a driver of which at most one thread is inside at a time (TD-18): those that
//! preempt, submit, and ask for and reset engines.
//!
//! Who hands commands over never sleeps for it, since he may be in an interrupt: where somebody is inside, he
//! leaves word, and whoever is inside does it too, call after call. So no lock is held in the driver, and a
//! call within a call, by an interrupt that the driver raises on this thread, waits until the outer one is
//! over. Who recovers an engine sleeps until he is the next.

use super::kernel_engine::KernelEngine;
use crate::kmd::StillInside;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, sleep_until};
use std::collections::VecDeque;
use std::sync::Weak;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct State {
    /// A thread is inside, or about to be.
    is_inside: bool,
    /// Engines that have something for the driver.
    left: VecDeque<Weak<KernelEngine>>,
    /// Threads that sleep until they are the next.
    claims: u64,
}

/// See the file's head. Of one adapter.
#[derive(Debug, Default)]
pub(super) struct LevelOne {
    state: Mutex<State>,
    changed: Condvar,
}

impl LevelOne {
    /// Has an engine hand over what it has: on this thread, or by the one that is inside.
    pub(super) fn hand_over(&self, engine: &Arc<KernelEngine>) {
        let mut state = lock(&self.state);
        state.left.push_back(Arc::downgrade(engine));
        if !state.is_inside {
            state.is_inside = true;
            self.work_off(state);
        }
    }

    /// Makes a call alone; what comes meanwhile is handed over after it.
    ///
    /// # Errors
    /// Another thread was inside for `most`.
    pub(super) fn alone<T>(
        &self,
        most: Duration,
        call: impl FnOnce() -> T,
    ) -> Result<T, StillInside> {
        let deadline = Instant::now() + most;
        let mut state = lock(&self.state);
        state.claims += 1;
        while state.is_inside {
            let woken = sleep_until(&self.changed, state, Some(deadline));
            let is_late = woken.is_none();
            state = woken.unwrap_or_else(|| lock(&self.state));
            // Who has come out by now has left the rest to this thread.
            if is_late && state.is_inside {
                state.claims -= 1;
                return Err(StillInside);
            }
        }
        state.claims -= 1;
        state.is_inside = true;
        drop(state);
        let result = call();
        self.work_off(lock(&self.state));
        Ok(result)
    }

    /// Engine after engine, until none is left or somebody else is to be inside, who does the rest.
    fn work_off<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        while state.claims == 0
            && let Some(engine) = state.left.pop_front()
        {
            drop(state);
            if let Some(engine) = engine.upgrade() {
                engine.work();
            }
            state = lock(&self.state);
        }
        state.is_inside = false;
        drop(state);
        self.changed.notify_all();
    }
}
