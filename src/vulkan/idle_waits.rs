//! Idle waits: threads that wait for what nobody has submitted yet, apart from the driver.
//!
//! Who waits in the driver already when something is submitted need not be woken for it. But a driver need not sleep
//! meanwhile: NVIDIA's looks a hundred times a second, with a thread of its own beside. So who has waited in vain for
//! a while sleeps here, until something is submitted or the device is found to be lost.
//!
//! No wake-up is lost: who sleeps says so, notes how often it was called, and then looks whether it has to sleep;
//! who has changed what is looked at, under the lock that it is looked at by, looks afterwards whether anybody sleeps.
//! Of the two the one that comes second there sees what the other has done before: a sleeper the change, or the other
//! the sleeper, whose number it then counts up. Nobody looks with the lock of this held, nor needs another one to call:
//! who calls may hold the one that is looked at.

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, sleep};

#[derive(Debug, Default)]
struct Called {
    times: u64,
    is_lost: bool,
}

/// The sleepers of a device. See the file's head.
#[derive(Debug, Default)]
pub(super) struct IdleWaits {
    called: Mutex<Called>,
    changed: Condvar,
    sleepers: AtomicU64,
}

impl IdleWaits {
    /// Sleeps until a look says that it is over, or the device is known to be lost.
    pub(super) fn sleep_until(&self, is_over: impl Fn() -> bool) {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        loop {
            let seen = lock(&self.called).times;
            if is_over() {
                break;
            }
            let mut called = lock(&self.called);
            while called.times == seen && !called.is_lost {
                called = sleep(&self.changed, called);
            }
            if called.is_lost {
                break;
            }
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many there are.
    pub(super) fn sleepers(&self) -> u64 {
        self.sleepers.load(Ordering::Relaxed)
    }

    /// What is looked at has changed. A load where nobody sleeps.
    pub(super) fn call(&self) {
        if self.sleepers() > 0 {
            self.call_anyway();
        }
    }

    /// The same of what is looked at without a lock.
    pub(super) fn call_anyway(&self) {
        lock(&self.called).times += 1;
        self.changed.notify_all();
    }

    /// The device is lost, or its driver gives up, which counts the same here: nobody sleeps apart from the driver any more.
    pub(super) fn note_loss(&self) {
        lock(&self.called).is_lost = true;
        self.changed.notify_all();
    }
}
