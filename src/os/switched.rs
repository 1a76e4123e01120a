//! Switched: whether the driver was asked to let go of a queue's context (PR-12).
//!
//! Whoever destroys the queue waits for that: another thread may be in the driver, and takes the packet there after
//! its own (`level_one`), or the engine is being preempted, and takes nothing until it has answered. Who has the
//! packet drops what says so when it has handed it over, or when nobody will.

use super::listener;
use crate::kmd::Level;
use crate::sync::{Arc, Condvar, Mutex, lock, sleep_until};
use std::time::{Duration, Instant};

/// For a thread that does not come out of the driver, and for an engine that answers nothing and is not
/// recovered: the queue goes all the same, and the driver waits for the slices that may know it.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct Shared {
    is_over: Mutex<bool>,
    changed: Condvar,
}

/// Who waits.
#[derive(Debug)]
pub(super) struct Switched(Arc<Shared>);

/// Who has the packet, until it is dropped.
#[derive(Debug)]
pub(super) struct Switch(Arc<Shared>);

/// For one packet.
pub(super) fn switch() -> (Switch, Switched) {
    let shared = Arc::new(Shared::default());
    (Switch(Arc::clone(&shared)), Switched(shared))
}

impl Switched {
    /// Sleeps until the driver was asked. But who tells of a wait's end, or handles an interrupt, may be the
    /// thread that is in the driver, or the one that brings the answer: he does not wait.
    pub(super) fn wait(&self) {
        if listener::tells() || Level::of_thread() > Level::Passive {
            return;
        }
        let deadline = Instant::now() + PATIENCE;
        let mut is_over = lock(&self.0.is_over);
        while !*is_over {
            match sleep_until(&self.0.changed, is_over, Some(deadline)) {
                Some(woken) => is_over = woken,
                None => return,
            }
        }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        *lock(&self.0.is_over) = true;
        self.0.changed.notify_all();
    }
}
