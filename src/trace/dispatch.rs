//! Dispatch: a kernel that a queue was asked to run, and when it ran.

use serde::{Deserialize, Serialize};

/// A dispatch of a user-mode queue.
///
/// An engine that traces verbosely logs when it released a dispatch and when it found it done. Otherwise, and where that entry
/// was lost, it is known by the waits and signals around it, since a queue executes in order, when it can have begun at the
/// earliest and must have ended at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// Index into [`Trace::queues`](super::Trace::queues).
    pub queue: u32,
    /// The handle of its kernel, in the process whose the queue is.
    pub kernel: u32,
    /// Workgroups, where the packet says so: none of an indirect one, and of one that nobody told of.
    pub groups: Option<[u32; 3]>,
    /// When its user queued it, by the CPU; none of one that nobody told of.
    pub queued: Option<u64>,
    /// When the engine released it, if [`Dispatch::is_logged`]; else it did not begin before.
    pub began: Option<u64>,
    /// When the engine found it done, if [`Dispatch::is_logged`]; else it had ended by then. None of one that was not done
    /// yet.
    pub end: Option<u64>,
    /// The engine has logged its times.
    pub is_logged: bool,
    /// It was done, and what would tell when was overwritten before anybody read it.
    pub is_lost: bool,
}

impl Dispatch {
    /// The first of its times, and the last.
    #[must_use]
    pub fn span(&self) -> (u64, u64) {
        super::event::span([self.queued, self.began, self.end])
    }
}
