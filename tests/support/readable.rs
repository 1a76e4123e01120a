//! Readable: whether an event handle is, now or in time.
#![allow(dead_code, reason = "each test file uses a part")]

use super::bench::LONG;
use native_fence::EventHandle;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn is_readable_in(event: &EventHandle, time: &Timespec) -> bool {
    poll(&mut [PollFd::new(event, PollFlags::IN)], Some(time)).unwrap() == 1
}

pub(crate) fn is_readable(event: &EventHandle) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    is_readable_in(event, &now)
}

/// Sleeps until it is readable.
pub(crate) fn until_readable(event: &EventHandle) {
    let long = Timespec::try_from(LONG).unwrap();
    assert!(is_readable_in(event, &long), "never readable");
}
