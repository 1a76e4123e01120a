//! The one doorway to atomics, locks and threads, so that loom can take their place.
//!
//! Rooms name these and never `std::sync` for what takes part in a protocol between threads.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(crate) use std::thread;
use std::time::Instant;

/// Processors that this process may use now.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Locks a mutex. A panic elsewhere does not make the data unusable here: every critical section
/// of this crate leaves its data whole, so poison is no news.
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
