//! The one doorway to atomics, locks and threads, so that loom can take their place.
//!
//! Rooms name these and never `std::sync` for what takes part in a protocol between threads. Under
//! `--cfg loom` (`tests/loom.rs`) they are loom's, which runs a scenario once for every order of
//! their accesses that can matter, weak orders of memory among them. `Arc` stays std's: loom's
//! cannot hold a trait object, and no protocol of this crate hangs on a count of references.
//!
//! What only keeps books beside a protocol takes [`plain`]: under loom it is no place to stop at.

pub(crate) use std::sync::Arc;

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    sync::{Condvar, Mutex, MutexGuard},
    thread, thread_local,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    sync::{Condvar, Mutex, MutexGuard},
    thread, thread_local,
};

/// Locks of books: of a pool's free places, of what a test double has seen. They keep the data
/// whole and order nothing that anybody else relies on; nobody touches a word with one held. And what keeps
/// threads out for a while, through which all calls and interrupts of a scenario go: that is explored by itself.
pub(crate) mod plain {
    pub(crate) use std::sync::atomic::AtomicU64;
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    use std::time::Instant;

    /// As [`lock`](super::lock).
    pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sleeps until the condition variable is notified, or at most until the deadline; `None` where the
    /// deadline was reached before. Like every such sleep it may also end for no reason.
    pub(crate) fn sleep_until<'a, T>(
        condvar: &Condvar,
        guard: MutexGuard<'a, T>,
        deadline: Option<Instant>,
    ) -> Option<MutexGuard<'a, T>> {
        let Some(deadline) = deadline else {
            return Some(sleep(condvar, guard));
        };
        let left = deadline.saturating_duration_since(Instant::now());
        (!left.is_zero()).then(|| match condvar.wait_timeout(guard, left) {
            Ok((guard, _)) => guard,
            Err(poisoned) => poisoned.into_inner().0,
        })
    }

    /// Sleeps until the condition variable is notified; poison is no news here either.
    pub(crate) fn sleep<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condvar
            .wait(guard)
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(not(loom))]
pub(crate) use plain::{sleep, sleep_until};

/// CLOCK_MONOTONIC in nanoseconds: the clock of all times that are compared with an engine's.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Processors that this process may use now.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Locks a mutex. A panic elsewhere does not make the data unusable here: every critical section
/// of this crate leaves its data whole, so poison is no news.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// As [`plain::sleep_until`], where no time passes: a sleep with a deadline is one without.
#[cfg(loom)]
pub(crate) fn sleep_until<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    _: Option<std::time::Instant>,
) -> Option<MutexGuard<'a, T>> {
    Some(sleep(condvar, guard))
}

/// As [`plain::sleep`].
#[cfg(loom)]
pub(crate) fn sleep<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar
        .wait(guard)
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
