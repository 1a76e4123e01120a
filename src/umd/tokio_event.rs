//! Tokio event: an event handle in tokio's runtime (feature `tokio`).
//!
//! A task has futures of its own for single waits ([`WaitFuture`](crate::WaitFuture), which any
//! runtime takes); this is for one task that serves the ends of many waits.

use crate::os::EventHandle;
use std::io;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// An [`EventHandle`] that a tokio task waits for.
#[derive(Debug)]
pub struct TokioEvent {
    registered: AsyncFd<EventHandle>,
}

impl TokioEvent {
    /// Registers an event with the runtime that this is called in. A clone of it stays usable.
    ///
    /// # Errors
    /// The system's, where it cannot be registered: twice with one runtime, for one.
    ///
    /// # Panics
    /// Outside of a runtime, or in one whose input and output is not enabled.
    pub fn new(event: EventHandle) -> io::Result<Self> {
        // What the unsafe successor asks of its caller holds for every event handle: its descriptor is
        // its own, the same for its whole life, and closed with its last clone.
        #[allow(deprecated, reason = "the successor is unsafe, which this room is not")]
        let registered = AsyncFd::with_interest(event, Interest::READABLE)?;
        Ok(Self { registered })
    }

    /// The event.
    #[must_use]
    pub fn event(&self) -> &EventHandle {
        self.registered.get_ref()
    }

    /// Waits until the event is signalled, and resets it: how often it was, at least once. Whoever
    /// asks its waits afterwards misses none. For one task at a time: of several the first takes
    /// the count, and the others wait on.
    ///
    /// It can be cancelled: a count that it has not returned is not taken.
    ///
    /// # Errors
    /// The runtime is shutting down.
    pub async fn ready(&self) -> io::Result<u64> {
        loop {
            let mut readable = self.registered.readable().await?;
            match self.event().reset() {
                // Taken already: readable again at the next signal, which the runtime tells.
                0 => readable.clear_ready(),
                count => return Ok(count),
            }
        }
    }
}
