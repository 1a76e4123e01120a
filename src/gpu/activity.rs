//! Activity: whether any engine of an adapter runs, told to whoever watches over them.
//!
//! A watch costs nothing while all engines are let go: it sleeps without a timer, and an engine that is
//! taken from Parked wakes it. While it is awake it need not be told, which costs the engine's taker one
//! load. Loom does not look at it: there nobody watches.

use crate::sync::Ordering;
use crate::sync::plain::{AtomicU64, Mutex, lock};
use std::sync::{Condvar, PoisonError};
use std::time::{Duration, Instant};

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

    /// No engine was seen to run. Who says so looks at the engines once more before it sleeps: of one that
    /// is taken from Parked and of this, one comes first, and is seen by the other.
    pub fn rest(&self) {
        self.is_awake.swap(0, Ordering::AcqRel);
    }

    /// For the watch: sleeps until it is called, or until the deadline. `seen` is what the call before gave.
    pub fn wait(&self, seen: u64, deadline: Option<Instant>) -> u64 {
        let mut calls = lock(&self.calls);
        while *calls == seen {
            calls = match deadline {
                None => self
                    .changed
                    .wait(calls)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left == Duration::ZERO {
                        break;
                    }
                    let woken = self.changed.wait_timeout(calls, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *calls
    }
}
