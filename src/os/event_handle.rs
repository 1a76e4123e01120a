//! Event handle: a file descriptor that is readable when a wait has ended (`hAsyncEvent`).
//!
//! An eventfd, which every poller of the system takes. Each end of a wait adds 1 to its counter: it
//! is readable until somebody takes the count. A manual reset (choice): one descriptor serves many
//! waits and many pollers, and an event that reset itself when one of them looked would hide from it
//! the end of another wait.
//!
//! Who resets it first and asks its waits then misses none: a wait has ended before the event is
//! signalled for it, so an end whose count was taken can be asked for, and one whose count was not
//! makes the event readable again.

use crate::sync::Arc;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// Why there is no event handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The process has as many file descriptors as it may.
    #[error(
        "no file descriptor is left for an event handle: raise the program's limit (ulimit -n), or \
         let one event serve several waits"
    )]
    ProcessLimit,
    /// The system has as many open files as it may.
    #[error("the system has no file descriptor left for an event handle: raise fs.file-max")]
    SystemLimit,
    /// The system refused for another reason.
    #[error("the system gives no event handle: {0}")]
    System(std::io::ErrorKind),
}

/// An event that waits make readable when they end, well or with an error.
///
/// Clones are the same event. It is closed when the last clone is gone and no wait is left that
/// would signal it.
#[derive(Clone, Debug)]
pub struct EventHandle {
    descriptor: Arc<OwnedFd>,
}

impl EventHandle {
    /// An event that is not signalled. Its descriptor does not block and is closed on exec.
    ///
    /// # Errors
    /// [`EventError`], when the system has no descriptor: nothing else takes its place (NF-25).
    pub fn new() -> Result<Self, EventError> {
        match eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC) {
            Ok(descriptor) => Ok(Self {
                descriptor: Arc::new(descriptor),
            }),
            Err(Errno::MFILE) => Err(EventError::ProcessLimit),
            Err(Errno::NFILE) => Err(EventError::SystemLimit),
            Err(error) => Err(EventError::System(error.kind())),
        }
    }

    /// An event that a C program passed, which does not block either.
    #[cfg(all(feature = "capi", not(loom)))]
    pub(crate) fn received(descriptor: OwnedFd) -> Self {
        Self {
            descriptor: Arc::new(descriptor),
        }
    }

    /// Takes the count: how often it was signalled since it was last reset, 0 if it was not. Until
    /// the next signal it is not readable.
    ///
    /// The counter stops at its greatest value, 2^64 - 2; the event stays readable then.
    ///
    /// # Panics
    /// If somebody closed the descriptor, which is the event's own.
    #[must_use = "the count is taken; `let _ = event.reset()` where it does not matter"]
    pub fn reset(&self) -> u64 {
        let mut count = [0; 8];
        loop {
            match read(&self.descriptor, &mut count) {
                Ok(_) => return u64::from_ne_bytes(count),
                Err(Errno::AGAIN) => return 0,
                Err(Errno::INTR) => {}
                Err(error) => panic!("an event handle cannot be read: {error}"),
            }
        }
    }

    /// Whether it is readable, or comes to be within this time: `Duration::ZERO` looks once,
    /// `Duration::MAX` waits for as long as it takes. No count is taken: it stays readable until
    /// somebody resets it.
    ///
    /// A signal to the program that disturbs the thread meanwhile is no time-out: it waits on for what
    /// is left.
    ///
    /// # Errors
    /// The system's, when it has no memory to wait with.
    pub fn is_readable_within(&self, most: Duration) -> std::io::Result<bool> {
        // A time that no clock reaches has no end.
        let deadline = Instant::now().checked_add(most);
        loop {
            let left = deadline.and_then(|deadline| {
                Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok()
            });
            match poll(&mut [PollFd::new(self, PollFlags::IN)], left.as_ref()) {
                Err(Errno::INTR) => {}
                told => return Ok(told? > 0),
            }
        }
    }

    /// Makes it readable. Never blocks: a counter that is full is readable already.
    pub(super) fn signal(&self) {
        loop {
            match write(&self.descriptor, &1_u64.to_ne_bytes()) {
                Ok(_) | Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(error) => {
                    // On whichever thread ended the wait: its status tells, and others go on.
                    eprintln!("native-fence: an event handle cannot be signalled: {error}");
                    return;
                }
            }
        }
    }
}

impl AsFd for EventHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl AsRawFd for EventHandle {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills `an-event-is-looked-at-once`.
    #[test]
    fn an_event_is_waited_for_and_stays_readable() {
        let (event, most) = (EventHandle::new().unwrap(), Duration::from_millis(20));
        let began = Instant::now();
        assert!(!event.is_readable_within(most).unwrap());
        assert!(began.elapsed() >= most);
        let signals = event.clone();
        let thread = std::thread::spawn(move || signals.signal());
        assert!(event.is_readable_within(Duration::MAX).unwrap());
        thread.join().unwrap();
        assert!(event.is_readable_within(Duration::ZERO).unwrap());
        assert_eq!(event.reset(), 1);
        assert!(!event.is_readable_within(Duration::ZERO).unwrap());
    }
}
