//! Waiter: a thread in a CPU wait, which is known to stand in its fence's list.

use super::book::Assist;
use super::ddi_spy::DdiSpy;
use super::{until, until_sleeping};
use native_fence::{Fence, Timeout, WaitError};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle, ThreadId};

/// See the file's head.
pub(crate) struct Waiter {
    thread: JoinHandle<Result<(), WaitError>>,
    id: ThreadId,
    number: rustix::thread::Pid,
    spy: Arc<DdiSpy>,
}

impl Waiter {
    /// Starts a wait, and returns when the wait stands in the list, with its MonitoredValue posted
    /// and CurrentValue read again, or is over.
    pub(super) fn standing(
        spy: &Arc<DdiSpy>,
        fence: &Fence,
        value: u64,
        timeout: impl Into<Timeout>,
    ) -> Self {
        let (fence, timeout) = (fence.clone(), timeout.into());
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            fence.wait(value, timeout)
        });
        let waiter = Self {
            id: thread.thread().id(),
            number: told.recv().unwrap(),
            spy: Arc::clone(spy),
            thread,
        };
        waiter.until_its_look(|look| look.is_some());
        waiter
    }

    /// Waits until the thread looks at no slice any more and sleeps: what releases it from now on
    /// is somebody else.
    pub(crate) fn until_asleep(&self) {
        self.until_its_look(|look| look == Some(Assist::Returned));
        until_sleeping(self.number);
    }

    /// Waits until the thread sleeps, be it for the end of a slice.
    pub(crate) fn until_sleeping(&self) {
        until_sleeping(self.number);
    }

    fn until_its_look(&self, is: impl Fn(Option<Assist>) -> bool) {
        until("a wait stands", || {
            self.thread.is_finished() || is(self.spy.assist_of(self.id))
        });
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// How the wait ended.
    pub(crate) fn join(self) -> Result<(), WaitError> {
        self.thread.join().unwrap()
    }
}
