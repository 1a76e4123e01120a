//! Waiter: a thread in a CPU wait, which is known to stand in the lists of its fences.

use super::{LONG, native, until, until_sleeping};
use native_fence::{Fence, Timeout, WaitError, WaitManyError};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// See the file's head. A wait for one fence ends as the default says.
pub(crate) struct Waiter<T = Result<(), WaitError>> {
    thread: JoinHandle<T>,
    number: rustix::thread::Pid,
}

impl Waiter {
    pub(super) fn standing(fence: &Fence, value: u64, timeout: impl Into<Timeout>) -> Self {
        let (waits, timeout) = (fence.clone(), timeout.into());
        Self::on(&[fence], move || waits.wait(value, timeout))
    }
}

impl Waiter<Result<usize, WaitManyError>> {
    /// A wait for any of the fences, none of which is there.
    pub(crate) fn for_any(waits: &[(&Fence, u64)]) -> Self {
        let owned = owned(waits);
        Self::on(&fences(waits), move || {
            Fence::wait_any(&borrowed(&owned), LONG)
        })
    }
}

impl Waiter<Result<(), WaitManyError>> {
    /// A wait for all of the fences, none of which is there.
    pub(crate) fn for_all(waits: &[(&Fence, u64)]) -> Self {
        let owned = owned(waits);
        Self::on(&fences(waits), move || {
            Fence::wait_all(&borrowed(&owned), LONG)
        })
    }
}

fn owned(waits: &[(&Fence, u64)]) -> Vec<(Fence, u64)> {
    let owned = waits
        .iter()
        .map(|(fence, value)| ((*fence).clone(), *value));
    owned.collect()
}

fn borrowed(waits: &[(Fence, u64)]) -> Vec<(&Fence, u64)> {
    waits.iter().map(|(fence, value)| (fence, *value)).collect()
}

fn fences<'a>(waits: &[(&'a Fence, u64)]) -> Vec<&'a Fence> {
    waits.iter().map(|(fence, _)| *fence).collect()
}

impl<T: Send + 'static> Waiter<T> {
    /// Starts a wait, and returns when it stands in the list of each of the fences, as often as
    /// they are named, with its MonitoredValue posted and CurrentValue read again, or is over.
    pub(crate) fn on(fences: &[&Fence], wait: impl FnOnce() -> T + Send + 'static) -> Self {
        let stood = |fence: &&Fence| {
            let of_one = |other: &&&Fence| std::ptr::eq(native(other), native(fence));
            let named = fences.iter().filter(of_one);
            native(fence).waits() + named.count() as u64
        };
        let stood: Vec<_> = fences.iter().map(stood).collect();
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            wait()
        });
        let number = told.recv().unwrap();
        until("a wait stands", || {
            let mut stands = fences.iter().zip(&stood);
            thread.is_finished() || stands.all(|(fence, stood)| native(fence).waits() >= *stood)
        });
        Self { thread, number }
    }

    /// Waits until the thread sleeps: what releases it from now on is somebody else. One that is
    /// over never sleeps.
    pub(crate) fn until_asleep(&self) {
        until_sleeping(self.number);
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// How the wait ended.
    pub(crate) fn join(self) -> T {
        self.thread.join().unwrap()
    }
}
