//! Mutex: what these programs keep behind one is right whenever it is let go, so a thread that panicked spoils nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes it, whoever panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
