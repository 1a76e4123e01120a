//! Waiter: a thread in a CPU wait, as the conformance suite has it; what goes wrong with one fails the test.

use native_fence::{Fence, Timeout, WaitError, WaitManyError, conform};

/// See the file's head. A wait for one fence ends as the default says.
pub(crate) struct Waiter<T = Result<(), WaitError>>(conform::Waiter<T>);

impl Waiter {
    pub(super) fn standing(fence: &Fence, value: u64, timeout: impl Into<Timeout>) -> Self {
        Self(conform::Waiter::standing(fence, value, timeout).unwrap())
    }
}

impl Waiter<Result<usize, WaitManyError>> {
    /// A wait for any of the fences, none of which is there.
    pub(crate) fn for_any(waits: &[(&Fence, u64)]) -> Self {
        Self(conform::Waiter::for_any(waits).unwrap())
    }
}

impl Waiter<Result<(), WaitManyError>> {
    /// A wait for all of the fences, none of which is there.
    pub(crate) fn for_all(waits: &[(&Fence, u64)]) -> Self {
        Self(conform::Waiter::for_all(waits).unwrap())
    }
}

impl<T: Send + 'static> Waiter<T> {
    /// Starts a wait, and returns when it stands in the list of each of the fences, as often as
    /// they are named, with its MonitoredValue posted and CurrentValue read again, or is over.
    pub(crate) fn on(fences: &[&Fence], wait: impl FnOnce() -> T + Send + 'static) -> Self {
        Self(conform::Waiter::on(fences, wait).unwrap())
    }

    /// Waits until the thread sleeps: what releases it from now on is somebody else. One that is
    /// over never sleeps.
    pub(crate) fn until_asleep(&self) {
        self.0.until_asleep().unwrap();
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// How the wait ended.
    pub(crate) fn join(self) -> T {
        self.0.join()
    }
}
