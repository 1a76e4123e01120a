//! Activity: whether any engine of an adapter runs, told to whoever watches over them.
//!
//! A watch costs nothing while all engines are let go: it sleeps without a timer, and an engine that is
//! taken from Parked wakes it. While it is awake it need not be told, which costs the engine's taker one
//! load.
//!
//! Why no engine runs unseen: a taker says so ([`Activity::begin`]) under the lock under which the watch looks whether a
//! slice is in flight, and after it is. The watch says that it will sleep, and then looks once more. Of that look and the
//! taker one has the lock first: either the look finds the slice, or the taker finds that the watch sleeps, or is about to,
//! and calls. Calls are counted under the lock of the sleep, so none comes between.

use super::guards::{AtomicU64, Condvar, Mutex, lock, sleep_until};
use crate::sync::Ordering;
use std::time::Instant;

/// See the file's head.
#[derive(Debug, Default)]
pub struct Activity {
    /// 1: some engine may run, and the watch looks again.
    is_awake: AtomicU64,
    /// Calls that the watch has not seen.
    calls: Mutex<u64>,
    changed: Condvar,
}

impl Activity {
    /// An engine was taken from Parked, and its slice is in flight.
    pub fn begin(&self) {
        let is_awake = self.is_awake.load(Ordering::Acquire) == 1;
        if !is_awake && self.is_awake.swap(1, Ordering::AcqRel) == 0 {
            self.call();
        }
    }

    /// The watch looks at once, whether or not it is awake.
    pub fn call(&self) {
        self.is_awake.store(1, Ordering::Release);
        *lock(&self.calls) += 1;
        self.changed.notify_all();
    }

    /// For the watch: whether any engine runs, as `looks` finds under each engine's lock. Where none does it may sleep
    /// without a deadline.
    pub fn finds(&self, mut looks: impl FnMut() -> bool) -> bool {
        looks() || {
            self.is_awake.swap(0, Ordering::AcqRel);
            looks()
        }
    }

    /// For the watch: sleeps until it is called, or until the deadline. `seen` is what the call before gave.
    pub fn wait(&self, seen: u64, deadline: Option<Instant>) -> u64 {
        let mut calls = lock(&self.calls);
        let mut now = *calls;
        while now == seen {
            let Some(woken) = sleep_until(&self.changed, calls, deadline) else {
                break;
            };
            calls = woken;
            now = *calls;
        }
        now
    }
}
