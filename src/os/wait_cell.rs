//! Wait cell: how one CPU wait ends, for one fence or for several, and who is told of it.
//!
//! What stands in the list of a fence is a [`WaitPart`]: the cell, and which of its parts the fence
//! is. Who takes a part out of a list ends it, with that fence's lock held, but for whoever gives
//! it up. A cell takes no other lock.
//!
//! The end is kept in the tally, whoever asks for it; who is to be told stands beside it: threads that
//! sleep, and a listener. So an end that nobody is told of makes no system call.
//!
//! Why no listener is lost: it comes to stand in the cell, and is taken out by the end of the wait,
//! under the cell's lock. Who comes after the end is given that instead.

use super::listener::{Listener, Listeners};
use super::queue_stop::QueueStop;
use super::wait_note::KeptNote;
use super::wait_tally::{Ended, WaitTally};
use crate::kmd::QueueFault;
use crate::sync::{Arc, Condvar, Mutex, lock, sleep_until};
use crate::trace::WaitEnd;
use std::time::Instant;

/// Why a wait ended without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The time-out came first.
    #[error("the wait timed out")]
    TimedOut,
    /// The handle was closed, before or during the wait.
    #[error("the fence's handle is closed")]
    Closed,
    /// A value that is more than `UINT_MAX/2` from that of a fence which is kept by 32-bit stores.
    #[error(
        "the value is more than UINT_MAX/2 from the fence's, which is kept by 32-bit stores: wait in \
         smaller steps"
    )]
    TooFar,
    /// The handle was opened without the right to wait (NF-23).
    #[error("access denied: the fence's handle may not wait")]
    AccessDenied,
    /// A fence of type INTRA_GPU (NF-13).
    #[error("the CPU cannot wait for a fence of type INTRA_GPU: wait by a queue, or use DEFAULT")]
    IntraGpu,
    /// The device that would signal the fence is lost.
    #[error("the device is lost")]
    DeviceLost,
    /// The queue whose progress fence this is was stopped.
    #[error("the queue was stopped: {0}")]
    QueueFaulted(QueueFault),
    /// The queue whose progress fence this is executes nothing any more.
    #[error("the queue was stopped: {0}")]
    QueueStopped(QueueStop),
    /// A bug check stopped the adapter; [`AdapterState::records`](super::AdapterState::records)
    /// says which.
    #[error("the adapter was stopped: its records say why")]
    AdapterStopped,
    /// A process that has the fence open took this one's place among those that are told of its values.
    #[error(
        "another process took this one's place among those that have the fence open: close it, and \
         open it anew"
    )]
    SlotLost,
}

impl WaitError {
    /// Why a queue was stopped, to stand behind words that say that it was.
    pub(super) fn why_stopped(&self) -> String {
        match self {
            Self::QueueFaulted(fault) => fault.to_string(),
            Self::QueueStopped(stop) => stop.to_string(),
            Self::TimedOut
            | Self::Closed
            | Self::TooFar
            | Self::AccessDenied
            | Self::IntraGpu
            | Self::DeviceLost
            | Self::AdapterStopped
            | Self::SlotLost => self.to_string(),
        }
    }
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct WaitCell {
    wait: Mutex<Wait>,
    ended: Condvar,
}

#[derive(Debug)]
struct Wait {
    tally: WaitTally,
    /// Threads that are to be woken when it has ended.
    sleepers: usize,
    /// Who else is to be told; none once it has ended.
    listener: Option<Listener>,
    /// What the recorder is told when it ends.
    note: Option<Box<KeptNote>>,
}

impl WaitCell {
    /// A cell for what is still open of a wait.
    pub(super) fn new(tally: WaitTally) -> Self {
        let wait = Wait {
            tally,
            sleepers: 0,
            listener: None,
            note: None,
        };
        Self {
            wait: Mutex::new(wait),
            ended: Condvar::new(),
        }
    }

    /// Which parts have ended by now.
    pub(super) fn tally(&self) -> WaitTally {
        lock(&self.wait).tally
    }

    /// Has one more be told of the end of the wait: there was none.
    ///
    /// # Errors
    /// How it has ended already, with the listener, who is told nothing.
    pub(super) fn listen(&self, listener: Listener) -> Result<(), (Ended, Listener)> {
        let mut wait = lock(&self.wait);
        if let Some(ended) = wait.tally.ended() {
            return Err((ended, listener));
        }
        wait.listener = Some(listener);
        Ok(())
    }

    /// Has the recorder be told of the end of the wait.
    ///
    /// # Errors
    /// How it has ended already, with the note.
    pub(super) fn keep(&self, note: Box<KeptNote>) -> Result<(), (Ended, Box<KeptNote>)> {
        let wait = &mut *lock(&self.wait);
        let Some(ended) = wait.tally.ended() else {
            wait.note = Some(note);
            return Ok(());
        };
        Err((ended, note))
    }

    /// The note of a wait that has not ended, and will not any more.
    pub(super) fn take_note(&self) -> Option<Box<KeptNote>> {
        lock(&self.wait).note.take()
    }

    /// From now on nobody is told; gives back who would have been, to be dropped without a lock.
    pub(super) fn silence(&self) -> Option<Listener> {
        lock(&self.wait).listener.take()
    }

    /// Sleeps until the wait has ended or the deadline is reached.
    pub(super) fn sleep(&self, deadline: Option<Instant>) {
        let mut wait = lock(&self.wait);
        wait.sleepers += 1;
        while wait.tally.ended().is_none() {
            let Some(woken) = sleep_until(&self.ended, wait, deadline) else {
                wait = lock(&self.wait);
                break;
            };
            wait = woken;
        }
        wait.sleepers -= 1;
    }
}

/// A waiter in the list of a fence.
#[derive(Debug)]
pub struct WaitPart {
    /// Where the parts of the wait meet.
    pub(super) cell: Arc<WaitCell>,
    /// Which part of the wait the fence is.
    pub(super) part: usize,
}

impl WaitPart {
    /// Whether a queue in kernel mode waits, and no program.
    pub(super) fn is_of_queue(&self) -> bool {
        matches!(lock(&self.cell.wait).listener, Some(Listener::Queue(_)))
    }

    /// Ends the part, with its value reached or an error. If that ends the wait, wakes who sleeps, and
    /// gives who is to be `told` as soon as the caller holds no lock.
    pub(super) fn end(&self, result: Result<(), WaitError>, told: &mut Listeners) {
        let mut wait = lock(&self.cell.wait);
        let before = wait.tally.ended();
        wait.tally.end(self.part, result);
        if before != wait.tally.ended() && wait.sleepers > 0 {
            self.cell.ended.notify_all();
        }
        if wait.tally.ended().is_some() {
            if let Some(note) = wait.note.take() {
                note.tell(wait.tally.ended(), WaitEnd::Released);
            }
            told.add(wait.listener.take());
        }
    }
}
