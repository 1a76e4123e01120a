//! Waiter: a thread in a CPU wait, which is known to stand in its fence's list.

use super::{native, until, until_sleeping};
use native_fence::{Fence, Timeout, WaitError};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// See the file's head.
pub(crate) struct Waiter {
    thread: JoinHandle<Result<(), WaitError>>,
    number: rustix::thread::Pid,
}

impl Waiter {
    /// Starts a wait, and returns when the wait stands in the list, with its MonitoredValue posted
    /// and CurrentValue read again, or is over.
    pub(super) fn standing(fence: &Fence, value: u64, timeout: impl Into<Timeout>) -> Self {
        let (fence, timeout) = (fence.clone(), timeout.into());
        let before = native(&fence).waits();
        let (tell, told) = mpsc::channel();
        let waits = fence.clone();
        let thread = thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            waits.wait(value, timeout)
        });
        let number = told.recv().unwrap();
        until("a wait stands", || {
            thread.is_finished() || native(&fence).waits() > before
        });
        Self { thread, number }
    }

    /// Waits until the thread sleeps: what releases it from now on is somebody else.
    pub(crate) fn until_asleep(&self) {
        until_sleeping(self.number);
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// How the wait ended.
    pub(crate) fn join(self) -> Result<(), WaitError> {
        self.thread.join().unwrap()
    }
}
