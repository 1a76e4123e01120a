//! Waiter: a thread in a CPU wait, which is known to stand in the lists of its fences, and that a wait was ended by
//! somebody.

use super::until::{LONG, until, until_sleeping};
use crate::{Fence, Timeout, WaitError, WaitManyError};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// See the file's head. A wait for one fence ends as the default says.
#[derive(Debug)]
pub struct Waiter<T = Result<(), WaitError>> {
    thread: JoinHandle<T>,
    number: rustix::thread::Pid,
}

impl Waiter {
    /// A wait for one fence.
    ///
    /// # Errors
    /// As [`Waiter::on`].
    pub fn standing(
        fence: &Fence,
        value: u64,
        timeout: impl Into<Timeout>,
    ) -> anyhow::Result<Self> {
        let (waits, timeout) = (fence.clone(), timeout.into());
        Self::on(&[fence], move || woken(&waits, value, timeout))
    }
}

impl Waiter<Result<usize, WaitManyError>> {
    /// A wait for any of the fences, none of which is there.
    ///
    /// # Errors
    /// As [`Waiter::on`].
    pub fn for_any(waits: &[(&Fence, u64)]) -> anyhow::Result<Self> {
        let owned = owned(waits);
        Self::on(&fences(waits), move || {
            told_within(LONG, WaitManyError::TimedOut, || {
                Fence::wait_any(&borrowed(&owned), LONG)
            })
        })
    }
}

impl Waiter<Result<(), WaitManyError>> {
    /// A wait for all of the fences, none of which is there.
    ///
    /// # Errors
    /// As [`Waiter::on`].
    pub fn for_all(waits: &[(&Fence, u64)]) -> anyhow::Result<Self> {
        let owned = owned(waits);
        Self::on(&fences(waits), move || {
            told_within(LONG, WaitManyError::TimedOut, || {
                Fence::wait_all(&borrowed(&owned), LONG)
            })
        })
    }
}

/// A wait that somebody ends.
///
/// # Errors
/// As [`Fence::wait`], and as [`told_within`].
pub(super) fn woken(
    fence: &Fence,
    value: u64,
    timeout: impl Into<Timeout>,
) -> Result<(), WaitError> {
    let timeout = timeout.into();
    let wait = || fence.wait(value, timeout);
    match timeout {
        Timeout::After(most) if !most.is_zero() => told_within(most, WaitError::TimedOut, wait),
        Timeout::After(_) | Timeout::Never => wait(),
    }
}

/// How a wait has ended whose time-out is `most`, if somebody has ended it. One that finds its value, or that there is no
/// chance, by the last look of its time-out was told by nobody: here it has timed out.
///
/// # Errors
/// The wait's own; `timed_out`.
pub(super) fn told_within<T, E>(
    most: Duration,
    timed_out: E,
    wait: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let began = Instant::now();
    let ended = wait();
    if began.elapsed() < most {
        ended
    } else {
        Err(timed_out)
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
    ///
    /// # Errors
    /// No thread, or it never comes to stand.
    pub fn on(
        fences: &[&Fence],
        wait: impl FnOnce() -> T + Send + 'static,
    ) -> anyhow::Result<Self> {
        let native = |fence: &Fence| std::ptr::from_ref(fence.object().fence());
        let stood = |fence: &&Fence| {
            let of_one = |other: &&&Fence| native(other) == native(fence);
            let named = fences.iter().filter(of_one);
            fence.object().fence().waits() + named.count() as u64
        };
        let stood: Vec<_> = fences.iter().map(stood).collect();
        let (tell, told) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("nf-waiter".into())
            .spawn(move || {
                // Who started it waits for the number.
                let _ = tell.send(rustix::thread::gettid());
                wait()
            })?;
        let number = told.recv()?;
        until("a wait stands", || {
            let mut stands = fences.iter().zip(&stood);
            thread.is_finished()
                || stands.all(|(fence, stood)| fence.object().fence().waits() >= *stood)
        })?;
        Ok(Self { thread, number })
    }

    /// Waits until the thread sleeps: what releases it from now on is somebody else. One that is
    /// over never sleeps.
    ///
    /// # Errors
    /// It does not for [`LONG`].
    pub fn until_asleep(&self) -> anyhow::Result<()> {
        until_sleeping(self.number)
    }

    /// Whether the wait is over.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// How the wait ended.
    ///
    /// # Panics
    /// When it panicked.
    #[must_use]
    pub fn join(self) -> T {
        match self.thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
