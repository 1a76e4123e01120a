//! Idle waits: threads that wait for what nobody has submitted yet, apart from the driver.
//!
//! Who waits in the driver already when something is submitted need not be woken for it. But a driver need not sleep
//! meanwhile: NVIDIA's looks a hundred times a second, with a thread of its own beside. So who has waited in vain for
//! a while sleeps here, until something is submitted or the device is found to be lost.
//!
//! No wake-up is lost: who sleeps says so before it looks whether it has to, and who has changed that looks afterwards
//! whether anybody sleeps. What is looked at has a lock, so the one that comes second there sees what the
//! other has done before.

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, sleep};

/// The sleepers of a device. See the file's head.
#[derive(Debug, Default)]
pub(super) struct IdleWaits {
    is_lost: Mutex<bool>,
    changed: Condvar,
    sleepers: AtomicU64,
}

impl IdleWaits {
    /// Sleeps until a look says that it is over, or the device is known to be lost.
    pub(super) fn sleep_until(&self, is_over: impl Fn() -> bool) {
        let mut is_lost = lock(&self.is_lost);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        while !*is_lost && !is_over() {
            is_lost = sleep(&self.changed, is_lost);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many there are.
    pub(super) fn sleepers(&self) -> u64 {
        self.sleepers.load(Ordering::Relaxed)
    }

    /// What is looked at has changed. A load where nobody sleeps.
    pub(super) fn call(&self) {
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            drop(lock(&self.is_lost));
            self.changed.notify_all();
        }
    }

    /// The device is lost: nobody sleeps for its sake any more.
    pub(super) fn note_loss(&self) {
        *lock(&self.is_lost) = true;
        self.changed.notify_all();
    }
}
