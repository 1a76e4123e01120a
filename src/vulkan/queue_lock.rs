//! Queue lock: by what a program and this library take turns on one of the program's queues.
//!
//! Vulkan lets one thread at a time use a queue. A program that hands a queue over and goes on using it
//! has a lock for it; this library takes that lock for each `vkQueueSubmit` of its own and for nothing else: it
//! never waits, sleeps or calls back while it holds it.

use std::sync::{Mutex, PoisonError};

/// A lock of the program's, or whatever else keeps its threads off the queue.
///
/// A queue that the program does not use itself may have a `Mutex` that nobody else knows.
///
/// Engines submit on threads that ring doorbells, the program's own among them. So a thread that holds the lock calls
/// nothing of this library, or it waits for itself; nor does it wait for a thread that may.
pub trait QueueLock: Send + Sync {
    /// Runs `call` once, on this thread, before it returns. Meanwhile no other thread uses the queue.
    fn during(&self, call: &mut dyn FnMut());
}

impl<T: Send> QueueLock for Mutex<T> {
    fn during(&self, call: &mut dyn FnMut()) {
        let _locked = self.lock().unwrap_or_else(PoisonError::into_inner);
        call();
    }
}
