//! Events: descriptors that a case hands to calls, and how often waits must tell each.
#![allow(unsafe_code, reason = "a call of C gives the number of a descriptor")]

use super::arguments::{Event, Shared};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// See the file's head.
#[derive(Debug)]
pub(super) struct Events {
    /// With the number of waits that were taken.
    told: [(OwnedFd, u64); 2],
    blocking: OwnedFd,
    pipe: (OwnedFd, OwnedFd),
    /// What calls have given for shared fences.
    shared: Vec<OwnedFd>,
}

/// As a call takes it.
fn number(of: &OwnedFd) -> u64 {
    u64::from(of.as_raw_fd().cast_unsigned())
}

/// The descriptor that a call has just given.
pub(super) fn given(handle: u64) -> OwnedFd {
    let number = i32::try_from(handle).expect("a descriptor");
    // SAFETY: the call made it for this program, which has given it to nobody else.
    unsafe { OwnedFd::from_raw_fd(number) }
}

impl Events {
    pub(super) fn new() -> Self {
        let event = |flags| eventfd(0, EventfdFlags::CLOEXEC | flags).expect("an eventfd");
        let counting = || (event(EventfdFlags::NONBLOCK), 0);
        Self {
            told: [counting(), counting()],
            blocking: event(EventfdFlags::empty()),
            pipe: rustix::pipe::pipe().expect("a pipe"),
            shared: Vec::new(),
        }
    }

    pub(super) fn number(&self, event: Event) -> u64 {
        match event {
            Event::None => 0,
            Event::Own(at) => number(&self.told[usize::from(at % 2)].0),
            Event::Blocking => number(&self.blocking),
            Event::Pipe => number(&self.pipe.1),
            Event::Wild(number) => number,
        }
    }

    /// A wait was taken that tells an event.
    pub(super) fn waits(&mut self, event: Event) {
        if let Event::Own(at) = event {
            self.told[usize::from(at % 2)].1 += 1;
        }
    }

    pub(super) fn shared(&self, shared: Shared) -> u64 {
        match shared {
            Shared::Given(at) if self.shared.is_empty() => u64::from(at) | 1 << 30,
            Shared::Given(at) => number(&self.shared[usize::from(at) % self.shared.len()]),
            Shared::Event => number(&self.told[0].0),
            Shared::Pipe => number(&self.pipe.0),
            Shared::Wild(number) => number,
        }
    }

    /// Whether a call has given it.
    pub(super) fn is_shared(&self, shared: Shared) -> bool {
        matches!(shared, Shared::Given(_)) && !self.shared.is_empty()
    }

    /// Keeps a few of them.
    pub(super) fn keep(&mut self, shared: OwnedFd) {
        if self.shared.len() == 8 {
            self.shared.remove(0);
        }
        self.shared.push(shared);
    }

    /// All waits have ended, and each has told its event once.
    ///
    /// # Panics
    /// If it is not so.
    pub(super) fn end(self) {
        const LONG: Timespec = Timespec {
            tv_sec: 20,
            tv_nsec: 0,
        };
        for (event, waits) in &self.told {
            let mut told = 0;
            while told < *waits {
                let mut polled = [PollFd::new(event, PollFlags::IN)];
                let ready = poll(&mut polled, Some(&LONG)).expect("it is polled");
                assert_eq!(ready, 1, "{told} of {waits} waits have told their event");
                let mut count = [0; 8];
                rustix::io::read(event, &mut count).expect("it is read");
                told += u64::from_ne_bytes(count);
            }
            assert_eq!(told, *waits, "waits have told their event too often");
        }
    }
}
