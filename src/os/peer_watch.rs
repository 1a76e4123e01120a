//! Peer watch: the thread that hears of the ends of processes that have shared fences open.
//!
//! It sleeps until one ends: an idle system wakes nobody (HQ-09). There is one for all fences of an adapter
//! that are shared with others; it ends with the last of them.

use super::native_fence::NativeFence;
use crate::supply::start_thread;
use crate::sync::{Arc, plain};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::{Errno, write};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Weak;

/// Events that one look takes.
const EVENTS: usize = 16;
/// What says that the thread is to end.
const STOP: u64 = u64::MAX;

/// What the thread and its users have.
#[derive(Debug)]
struct Watched {
    epoll: OwnedFd,
    stop: OwnedFd,
    fences: plain::Mutex<HashMap<u64, Weak<NativeFence>>>,
    numbers: plain::AtomicU64,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct PeerWatch(Arc<Watched>);

/// Low bits of a token: the slot of a process.
const SLOT_BITS: u32 = 8;

/// A fence that is watched, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WatchNumber(u64);

impl PeerWatch {
    /// Starts the thread.
    ///
    /// # Errors
    /// No descriptor or no thread is left.
    pub(super) fn start() -> io::Result<Self> {
        let watched = Arc::new(Watched {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            stop: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            fences: plain::Mutex::default(),
            numbers: plain::AtomicU64::new(0),
        });
        watched.add(&watched.stop, STOP)?;
        let for_thread = Arc::clone(&watched);
        let run = move || for_thread.run();
        start_thread("nf-peers", run)?;
        Ok(Self(watched))
    }

    /// A number for one more fence, which is told of it from [`PeerWatch::tell_to`] on.
    pub(super) fn number(&self) -> WatchNumber {
        use crate::sync::Ordering;
        WatchNumber(self.0.numbers.fetch_add(1, Ordering::Relaxed))
    }

    /// The fence of a number.
    pub(super) fn tell_to(&self, number: WatchNumber, fence: &Arc<NativeFence>) {
        plain::lock(&self.0.fences).insert(number.0, Arc::downgrade(fence));
    }

    /// Forgets a fence.
    pub(super) fn forget(&self, number: WatchNumber) {
        plain::lock(&self.0.fences).remove(&number.0);
    }

    /// Listens to the end of the process that has a slot of it. Closing its descriptor ends that.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn listen_for_end(
        &self,
        number: WatchNumber,
        slot: usize,
        process: &OwnedFd,
    ) -> io::Result<()> {
        self.0.add(process, number.0 << SLOT_BITS | slot as u64)
    }
}

impl Drop for PeerWatch {
    fn drop(&mut self) {
        // Not waited for: the last fence may go on that thread.
        if let Err(error) = write(&self.0.stop, &1_u64.to_ne_bytes()) {
            eprintln!("native-fence: the thread of shared fences goes on: {error}");
        }
    }
}

impl Watched {
    fn add(&self, descriptor: impl AsFd, token: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        // Told once for each change: the end of a process stays readable for ever.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.epoll, descriptor, data, flags)?;
        Ok(())
    }

    fn run(&self) {
        loop {
            let mut events = Vec::with_capacity(EVENTS);
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => panic!("the thread of shared fences cannot listen: {error}"),
            }
            for event in events {
                let token = event.data.u64();
                if token == STOP {
                    return;
                }
                let slot = token & ((1 << SLOT_BITS) - 1);
                let number = token >> SLOT_BITS;
                let fence = plain::lock(&self.fences)
                    .get(&number)
                    .and_then(Weak::upgrade);
                if let Some(fence) = fence {
                    fence.peers_called(Some(slot as usize));
                }
            }
        }
    }
}
