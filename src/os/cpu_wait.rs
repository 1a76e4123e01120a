//! CPU wait: a thread that blocks until fences have their values
//! (`D3DKMTWaitForSynchronizationObjectFromCpu`).
//!
//! The thread looks, for a short time, whether the values are there; then the wait is armed: it comes
//! to stand in the list of each fence that it still needs, one after the other; the thread sleeps, and
//! takes the wait out of the lists in which it still stands (`armed_wait`). A wait for one fence is
//! one for all of one.
//!
//! Why no wake-up is lost with several fences: the parts of a wait meet in its tally and nowhere
//! else. For each fence by itself it holds that a part that stands in its list is ended once its
//! value is reached or cannot be (`native_fence`), and one that does not stand was ended when it
//! would have come to stand. An end is kept in the tally, so it does not matter whether the other
//! parts stand already; the end that decides and the thread that goes to sleep meet at the lock of
//! the cell. So the order of the fences means nothing, and the locks of two are never held
//! together.
//!
//! A part that is open when the sleep is over may still stand; its fence's list is asked. One that
//! is not open was taken out by whoever ended it. So when the wait returns none stands anywhere, and
//! each MonitoredValue is what follows from those that wait on (NF-04).

use super::armed_wait;
use super::process::FenceObject;
use super::wait_cell::{WaitCell, WaitError};
use super::wait_note::WaitNote;
use super::wait_tally::{Ended, Needs, WaitTally};
use super::waitable::Waitable;
use crate::sync::Arc;
use crate::trace::{WaitEnd, WaiterKind};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// Why a wait for several fences ended without what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitManyError {
    /// The time-out came first.
    #[error("the wait timed out")]
    TimedOut,
    /// A fence can reach its value no more, and without it the wait has no chance. Of a wait for
    /// any fence it is the last one that could have.
    #[error("fence {index} of the wait: {error}")]
    Failed {
        /// Which of the fences, counted from 0.
        index: usize,
        /// Why.
        error: WaitError,
    },
    /// There was nothing to wait for.
    #[error("a wait names at least one fence")]
    NoFence,
    /// More fences than one call takes.
    #[error("one call waits for at most {most} fences", most = CpuWait::MOST_OBJECTS)]
    TooMany,
}

/// One fence of a CPU wait.
#[derive(Clone, Copy, Debug)]
pub struct CpuWait<'a> {
    /// The handle.
    pub object: &'a dyn Waitable,
    /// The value to reach, or a greater one.
    pub value: u64,
}

impl CpuWait<'_> {
    /// `D3DDDI_MAX_OBJECT_WAITED_ON`.
    pub const MOST_OBJECTS: usize = WaitTally::MOST_PARTS;

    /// Waits until a fence has its value, or a greater one.
    ///
    /// # Errors
    /// [`WaitError`].
    pub fn one(
        object: &dyn Waitable,
        value: u64,
        timeout: Option<Duration>,
    ) -> Result<(), WaitError> {
        let ended = wait(&[CpuWait { object, value }], Needs::All, timeout);
        ended.map_or(Err(WaitError::TimedOut), |ended| ended.result)
    }

    /// Waits until a fence has its value: which one. If several have when the call begins, the
    /// first of them; else the one that came first (choice).
    ///
    /// # Errors
    /// [`WaitManyError`]; a fence that fails does so only if it was the last that could come.
    pub fn any(waits: &[Self], timeout: Option<Duration>) -> Result<usize, WaitManyError> {
        Self::many(waits, Needs::Any, timeout)
    }

    /// Waits until each fence has had its value; what was reached during the wait is not waited for
    /// again after a rewind (NF-26).
    ///
    /// # Errors
    /// [`WaitManyError`]; the first fence that fails does so at once.
    pub fn all(waits: &[Self], timeout: Option<Duration>) -> Result<(), WaitManyError> {
        Self::many(waits, Needs::All, timeout).map(drop)
    }

    /// The part that decided it.
    fn many(
        waits: &[Self],
        needs: Needs,
        timeout: Option<Duration>,
    ) -> Result<usize, WaitManyError> {
        Self::check_number(waits)?;
        let ended = wait(waits, needs, timeout).ok_or(WaitManyError::TimedOut)?;
        ended.of_any()
    }

    /// Whether one wait takes so many.
    pub(super) fn check_number<T>(waits: &[T]) -> Result<(), WaitManyError> {
        if waits.is_empty() {
            return Err(WaitManyError::NoFence);
        }
        if waits.len() > Self::MOST_OBJECTS {
            return Err(WaitManyError::TooMany);
        }
        Ok(())
    }

    pub(super) fn is_reached(&self) -> bool {
        self.object.is_reached(self.value)
    }
}

/// What is told of an end, by what was waited for.
impl Ended {
    /// One fence.
    pub(super) fn of_one(self) -> Result<(), WaitError> {
        self.result
    }

    /// Any of several: which.
    pub(super) fn of_any(self) -> Result<usize, WaitManyError> {
        let Self { part, result } = self;
        match result {
            Ok(()) => Ok(part),
            Err(error) => Err(WaitManyError::Failed { index: part, error }),
        }
    }

    /// All of several.
    pub(super) fn of_all(self) -> Result<(), WaitManyError> {
        self.of_any().map(drop)
    }
}

impl FenceObject {
    /// Waits until CurrentValue is at least `value` (NF-22).
    ///
    /// # Errors
    /// [`WaitError`]; after a time-out the waiter is gone and the MonitoredValue right again.
    pub fn wait(&self, value: u64, timeout: Option<Duration>) -> Result<(), WaitError> {
        CpuWait::one(self, value, timeout)
    }
}

/// A wait that begins.
pub(super) fn begin(waits: &[CpuWait<'_>], needs: Needs) -> WaitTally {
    let mut tally = WaitTally::new(needs, waits.len());
    for (part, wait) in waits.iter().enumerate() {
        // Whatever the value: who closed the handle has no fence, and who may not wait no answer.
        if let Err(error) = wait.object.check_wait_for(wait.value) {
            tally.end(part, Err(error));
        }
    }
    tally
}

/// The same, with what is there already.
pub(super) fn begin_with_a_look(waits: &[CpuWait<'_>], needs: Needs) -> WaitTally {
    let mut tally = begin(waits, needs);
    look(&mut tally, waits);
    tally
}

/// How the wait ended; `None` if the time-out came first.
fn wait(waits: &[CpuWait<'_>], needs: Needs, timeout: Option<Duration>) -> Option<Ended> {
    let tally = begin_with_a_look(waits, needs);
    if tally.ended().is_some() {
        WaitNote::at_once(WaiterKind::Thread, waits, &tally);
        return tally.ended();
    }
    if timeout == Some(Duration::ZERO) {
        let tally = glance(tally, waits);
        if tally.ended().is_some() {
            WaitNote::at_once(WaiterKind::Thread, waits, &tally);
        }
        return tally.ended();
    }
    let note = WaitNote::begin(WaiterKind::Thread, waits, &tally);
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let tally = look_for_a_while(tally, waits, deadline);
    let (ended, with_value) = match tally.ended() {
        None => (sleep(tally, waits, deadline), WaitEnd::Released),
        ended => (ended, WaitEnd::Seen),
    };
    if let Some(note) = note {
        note.tell(waits, ended, with_value);
    }
    if ended.is_none() {
        // It has expired: maybe somebody waits for what will not come (TD-15).
        waits[0].object.process().adapter().judge();
    }
    ended
}

/// Ends the parts whose values are there, the first of them first.
fn look(tally: &mut WaitTally, waits: &[CpuWait<'_>]) {
    for part in tally.open() {
        if waits[part].is_reached() {
            tally.end(part, Ok(()));
        }
    }
}

/// A wait that does not wait: nobody needs to be told of its end.
fn glance(mut tally: WaitTally, waits: &[CpuWait<'_>]) -> WaitTally {
    for part in tally.open() {
        let wait = &waits[part];
        if let Some(result) = wait.object.outlook(wait.value) {
            tally.end(part, result);
        }
    }
    tally
}

/// A thread that looks is in no list yet, and nobody interrupts for it. It looks at the slices of
/// the first fence's adapter, and at the values of all (choice).
fn look_for_a_while(
    tally: WaitTally,
    waits: &[CpuWait<'_>],
    deadline: Option<Instant>,
) -> WaitTally {
    let tally = RefCell::new(tally);
    let ended = || {
        let mut tally = tally.borrow_mut();
        look(&mut tally, waits);
        tally.ended().is_some()
    };
    let ddi = waits[0].object.ddi();
    ddi.look_for_interrupts(&ended, deadline);
    tally.into_inner()
}

/// Stands in the lists, sleeps, and stands in none.
fn sleep(tally: WaitTally, waits: &[CpuWait<'_>], deadline: Option<Instant>) -> Option<Ended> {
    let mut keys = [None; CpuWait::MOST_OBJECTS];
    let cell = Arc::new(WaitCell::new(tally));
    armed_wait::stand(&cell, waits, &mut keys);
    armed_wait::sleep(&cell, waits, deadline);
    armed_wait::leave(&cell, waits, &keys)
}
