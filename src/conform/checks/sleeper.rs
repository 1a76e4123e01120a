//! Sleeper: a thread in a wait for a monitored fence.

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
        waits.wait(value, LONG)
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
