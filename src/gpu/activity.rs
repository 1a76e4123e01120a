//! Activity: whether any engine of an adapter runs, told to whoever watches over them.
//!
//! A watch costs nothing while all engines are let go: it sleeps without a timer, and an engine that is
//! taken from Parked wakes it. While it is awake it need not be told, which costs the engine's taker one
//! load and one exchange.

use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, lock, sleep, sleep_until};
use std::time::Instant;

/// See the file's head.
#[derive(Debug, Default)]
pub struct Activity {
    /// Some engine may run: the watch looks again.
    is_awake: AtomicBool,
    /// Calls that the watch has not seen.
    calls: Mutex<u64>,
    changed: Condvar,
}

impl Activity {
    /// An engine was taken from Parked, or something else is to be looked at.
    pub fn begin(&self) {
        if !self.is_awake.load(Ordering::Acquire) && !self.is_awake.swap(true, Ordering::AcqRel) {
            self.call();
        }
    }

    /// The watch looks at once, whether or not it is awake.
    pub fn call(&self) {
        self.is_awake.store(true, Ordering::Release);
        *lock(&self.calls) += 1;
        self.changed.notify_all();
    }

    /// No engine was seen to run. Who asks looks at the engines once more before it sleeps: of one that is
    /// taken from Parked and of this, one comes first, and is seen by the other.
    pub fn rest(&self) {
        self.is_awake.swap(false, Ordering::AcqRel);
    }

    /// For the watch: sleeps until it is called, or until the deadline. `seen` is what the call before gave.
    pub fn wait(&self, seen: u64, deadline: Option<Instant>) -> u64 {
        let mut calls = lock(&self.calls);
        while *calls == seen {
            calls = match deadline {
                None => sleep(&self.changed, calls),
                Some(_) => match sleep_until(&self.changed, calls, deadline) {
                    Some(calls) => calls,
                    None => return *lock(&self.calls),
                },
            };
        }
        *calls
    }
}
