//! Explored processes: who has a slot of a shared fence, as loom has it.
//!
//! Loom explores several operating systems in one process, each of which is named by a number that no other
//! has. A scenario says which of them have ended, as others see it; there is no thread that hears of it. What
//! a death leaves to others is proved with real processes.

use super::native_fence::NativeFence;
use crate::sync::{Arc, Ordering, plain};
use std::collections::BTreeSet;
use std::io;

/// Of an operating system, in one word; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessIdentity(u64);

/// What a system's word says of it.
#[derive(Debug)]
pub(super) enum Standing {
    /// It lives.
    Lives(ProcessDescriptor),
    /// No system has this word.
    Ended,
}

/// In the place of a process's descriptor.
#[derive(Debug)]
pub(super) struct ProcessDescriptor(u64);

static SYSTEMS: plain::AtomicU64 = plain::AtomicU64::new(0);
static ENDED: plain::Mutex<BTreeSet<u64>> = plain::Mutex::new(BTreeSet::new());

/// The system of a word has ended, as all others see it.
pub(super) fn end(word: u64) {
    plain::lock(&ENDED).insert(word);
}

fn is_ended(word: u64) -> bool {
    plain::lock(&ENDED).contains(&word)
}

impl ProcessIdentity {
    /// One more system.
    ///
    /// # Errors
    /// Never.
    pub(super) fn own() -> io::Result<Self> {
        Ok(Self(SYSTEMS.fetch_add(1, Ordering::Relaxed) + 1))
    }

    /// As a slot has it.
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// How the system of a word stands.
    ///
    /// # Errors
    /// Never.
    pub(super) fn standing(word: u64) -> io::Result<Standing> {
        Ok(match word {
            0 => Standing::Ended,
            _ if is_ended(word) => Standing::Ended,
            _ => Standing::Lives(ProcessDescriptor(word)),
        })
    }
}

/// Whether a system has ended.
pub(super) fn has_ended(process: &ProcessDescriptor) -> bool {
    is_ended(process.0)
}

/// There is one namespace.
///
/// # Errors
/// Never.
pub(super) fn pid_namespace() -> io::Result<u64> {
    Ok(1)
}

/// In the place of the thread that hears of ends.
#[derive(Debug)]
pub(super) struct PeerWatch;

/// A fence that would be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WatchNumber;

#[expect(clippy::unused_self, reason = "as of the watch that has a thread")]
impl PeerWatch {
    /// Starts nothing.
    ///
    /// # Errors
    /// Never.
    pub(super) fn start() -> io::Result<Self> {
        Ok(Self)
    }

    /// The number of every fence.
    pub(super) fn number(&self) -> WatchNumber {
        WatchNumber
    }

    /// Notes nothing.
    pub(super) fn tell_to(&self, _: WatchNumber, _: &Arc<NativeFence>) {}

    /// Forgets nothing.
    pub(super) fn forget(&self, _: WatchNumber) {}

    /// Listens to nothing.
    ///
    /// # Errors
    /// Never.
    pub(super) fn listen_for_end(
        &self,
        _: WatchNumber,
        _: usize,
        _: &ProcessDescriptor,
    ) -> io::Result<()> {
        Ok(())
    }
}
