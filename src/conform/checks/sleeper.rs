//! Sleeper: waits for a monitored fence that somebody ends: whose value is found by the last look of the time-out alone has
//! timed out.

use crate::conform::waiter::told_within;
use crate::conform::{LONG, until, until_sleeping};
use crate::{MonitoredFence, WaitError};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A thread in a wait, which stands and sleeps.
pub(super) fn sleeper(
    fence: &MonitoredFence,
    value: u64,
) -> anyhow::Result<JoinHandle<Result<(), WaitError>>> {
    let (waits, stood) = (fence.clone(), fence.object().fence().waits());
    let (tell, told) = mpsc::channel();
    let thread = std::thread::Builder::new().spawn(move || {
        // Who started it waits for the number.
        let _ = tell.send(rustix::thread::gettid());
        woken(&waits, value)
    })?;
    until("a wait stands", || fence.object().fence().waits() > stood)?;
    until_sleeping(told.recv()?)?;
    Ok(thread)
}

/// How such a wait ended.
pub(super) fn ended(thread: JoinHandle<Result<(), WaitError>>) -> Result<(), WaitError> {
    match thread.join() {
        Ok(ended) => ended,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// A wait of this thread.
///
/// # Errors
/// As [`MonitoredFence::wait`], and as [`told_within`].
pub(super) fn woken(fence: &MonitoredFence, value: u64) -> Result<(), WaitError> {
    told_within(LONG, WaitError::TimedOut, || fence.wait(value, LONG))
}
