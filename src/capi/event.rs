//! Event: `hAsyncEvent`, the number of an eventfd that the program made.
//!
//! It is duplicated at the call, so the program may close its own number while waits stand. Numbers
//! are the program's word: what is behind one is looked at before anything is ever written to it.

use super::refusal::Refusal;
use crate::abi::wddm::{Handle, NtStatus};
use crate::os::EventHandle;
use rustix::fs::{OFlags, fcntl_getfl, readlinkat};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The event of this number.
///
/// # Errors
/// It is no eventfd, or one that blocks; no descriptor is left.
pub(super) fn of(
    number: Handle,
    duplicate: impl FnOnce(RawFd) -> Result<OwnedFd, Errno>,
) -> Result<EventHandle, Refusal> {
    let number = RawFd::try_from(number).map_err(|_| no_event())?;
    let event = duplicate(number).map_err(|error| match error {
        Errno::BADF => no_event(),
        Errno::MFILE => {
            let why = "no file descriptor is left for the wait: raise the program's limit \
                       (ulimit -n), or wait for several fences with one call";
            Refusal::new(NtStatus::INSUFFICIENT_RESOURCES, why)
        }
        error => {
            let why = format!("the system does not duplicate hAsyncEvent: {error}");
            Refusal::new(NtStatus::INSUFFICIENT_RESOURCES, why)
        }
    })?;
    let path = format!("/proc/self/fd/{}", event.as_raw_fd());
    let kind = readlinkat(rustix::fs::CWD, path, Vec::new()).map_err(|error| {
        let why = format!("what hAsyncEvent is cannot be seen: /proc is needed: {error}");
        Refusal::not_supported(why)
    })?;
    if kind.as_bytes() != b"anon_inode:[eventfd]" {
        return Err(no_event());
    }
    let does_not_block = fcntl_getfl(&event).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK));
    if !does_not_block {
        // Whoever ends the wait writes to it: a thread of interrupts would stand at a full counter.
        let why = "hAsyncEvent is an eventfd that blocks: make it with EFD_NONBLOCK";
        return Err(Refusal::parameter(why));
    }
    Ok(EventHandle::received(event))
}

fn no_event() -> Refusal {
    let why = "hAsyncEvent is the number of no eventfd: make one with eventfd(0, EFD_NONBLOCK)";
    Refusal::new(NtStatus::INVALID_HANDLE, why)
}
