//! Turn: one at a time, with no lock held meanwhile.
//!
//! For what waits for the driver, whose callbacks come on the same thread: whoever else wants a turn
//! sleeps, and the callbacks find no lock taken.
//!
//! But a turn is a lock to whom it keeps out. The driver delivers reports on the thread that has the
//! turn; they end waits, and wakers run there (`listener`). A waker that asked for the same turn would
//! sleep for its own thread, and two, each in the turn that the other asks for, for each other. So
//! foreign code that runs within a turn is not put to sleep for one: where it would be, it is refused
//! ([`Turn::ask`]). No others can wait in a ring: who has the turn of a log asks for no other by itself,
//! and who switches tracing asks for those of logs alone, one after another.

use super::adapter::OsError;
use crate::sync::{Condvar, Mutex, lock, sleep, thread_local};
use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// Turns that this thread has.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's takes no const")]
    static HAS: Cell<u32> = Cell::new(0);
    /// Foreign code runs on this thread, within a turn of its own.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's takes no const")]
    static WITHIN: Cell<bool> = Cell::new(false);
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Turn {
    taken: Mutex<bool>,
    given_back: Condvar,
}

/// This thread has it, until this is dropped.
#[derive(Debug)]
#[must_use = "the turn is over when it is dropped"]
pub(super) struct Taken<'a> {
    turn: &'a Turn,
    of_this_thread: PhantomData<*const ()>,
}

/// Foreign code runs on this thread, until this is dropped, after a panic too.
#[derive(Debug)]
pub(super) struct Foreign {
    before: bool,
}

impl Foreign {
    /// It runs from now on.
    pub(super) fn begin() -> Self {
        let is_within = HAS.with(Cell::get) > 0;
        let before = WITHIN.with(|within| within.replace(within.get() || is_within));
        Self { before }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        WITHIN.with(|within| within.set(self.before));
    }
}

impl Turn {
    /// Sleeps until nobody has it. For a turn in which no driver calls back: whoever has it gives it
    /// back.
    pub(super) fn take(&self) -> Taken<'_> {
        let mut taken = lock(&self.taken);
        while *taken {
            taken = sleep(&self.given_back, taken);
        }
        self.taken(&mut taken)
    }

    /// The same for one in which it may.
    ///
    /// # Errors
    /// [`OsError::Busy`]: somebody has it, and this is foreign code within a turn.
    pub(super) fn ask(&self) -> Result<Taken<'_>, OsError> {
        let mut taken = lock(&self.taken);
        while *taken {
            if WITHIN.with(Cell::get) {
                return Err(OsError::Busy);
            }
            taken = sleep(&self.given_back, taken);
        }
        Ok(self.taken(&mut taken))
    }

    fn taken(&self, taken: &mut bool) -> Taken<'_> {
        *taken = true;
        HAS.with(|has| has.set(has.get() + 1));
        Taken {
            turn: self,
            of_this_thread: PhantomData,
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        HAS.with(|has| has.set(has.get() - 1));
        *lock(&self.turn.taken) = false;
        self.turn.given_back.notify_one();
    }
}
