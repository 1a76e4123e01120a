//! Armed wait: a wait that stands in the lists of its fences, and need not have a thread
//! (`D3DKMTWaitForSynchronizationObjectFromCpu` with an asynchronous event).
//!
//! It is armed by whoever begins it and ended by whoever releases it; its cell keeps how it ended.
//! Somebody may sleep for that, or listen, or look now and then, or never ask. So one thread has as
//! many waits outstanding as there is memory, and each of them counts for the MonitoredValue as that
//! of a sleeping thread does (NF-04).
//!
//! Where interrupts are polled for, only a thread that sleeps for a wait watches for them. A wait
//! without one is ended by the next record that anybody takes: whoever watches, or the interrupt
//! thread when the slice ends, after the policy's slice time at the latest.
//!
//! A blocking wait (`cpu_wait`) is one whose thread arms it, sleeps and gives it up; what it does
//! stands here. [`ArmedWait`] is the same for one fence, with the parts called one by one.

use super::cpu_wait::{self, CpuWait};
use super::standing_wait::{Fences, StandingWait};
use super::wait_cell::{WaitCell, WaitError, WaitPart};
use super::wait_tally::{Ended, Needs};
use super::waitable::Waitable;
use super::waiter_list::WaiterKey;
use crate::sync::Arc;
use crate::trace::WaiterKind;
use std::time::{Duration, Instant};

/// Has a wait stand in the lists of the fences that it still needs, and notes where.
pub(super) fn stand(cell: &Arc<WaitCell>, waits: &[CpuWait<'_>], keys: &mut [Option<WaiterKey>]) {
    for part in cell.tally().open() {
        let cell = Arc::clone(cell);
        if cell.tally().ended().is_some() {
            break;
        }
        let CpuWait { object, value } = waits[part];
        keys[part] = object.arm(value, WaitPart { cell, part });
    }
}

/// Sleeps until the wait has ended, or the deadline is reached.
pub(super) fn sleep(cell: &WaitCell, waits: &[CpuWait<'_>], deadline: Option<Instant>) {
    for part in cell.tally().open() {
        // Where an adapter's interrupts are polled for, this thread does it, and sees the values of
        // all fences of the wait. Fences of several adapters of that kind are told by the values
        // and by the ends of slices; only the first adapter's records are watched (choice).
        let ddi = waits[part].object.ddi();
        ddi.watch_interrupts(&|| has_ended(cell, waits), deadline);
    }
    cell.sleep(deadline);
}

/// Takes a wait out of the lists in which it still stands; how it ended, if it has. What is
/// satisfied before the last list is left counts.
pub(super) fn leave(
    cell: &WaitCell,
    waits: &[CpuWait<'_>],
    keys: &[Option<WaiterKey>],
) -> Option<Ended> {
    for part in cell.tally().open() {
        if let Some(key) = keys[part] {
            waits[part].object.cancel(key);
        }
    }
    cell.tally().ended()
}

/// Whether a wait has ended, with values that can be seen before anybody has told of them.
pub(super) fn has_ended(cell: &WaitCell, waits: &[CpuWait<'_>]) -> bool {
    for part in cell.tally().open() {
        if waits[part].is_reached() {
            waits[part].object.resample();
        }
    }
    cell.tally().ended().is_some()
}

/// A wait for one fence. Dropping it takes it out of the list.
#[derive(Debug)]
pub struct ArmedWait {
    wait: StandingWait,
}

impl ArmedWait {
    /// Arms a wait until CurrentValue is at least `value`. One that is satisfied already, or has no
    /// chance, has ended on return and stands nowhere.
    #[must_use]
    pub fn new<W: Waitable + 'static>(object: &Arc<W>, value: u64) -> Self {
        let fences = Fences::one(object, value);
        let tally = fences.with_waits(|waits| cpu_wait::begin(waits, Needs::All));
        Self {
            wait: StandingWait::new(fences, tally, WaiterKind::Armed),
        }
    }

    /// The value that is waited for.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.wait.value()
    }

    /// How it has ended; `None` while it lasts. A CurrentValue that has come ends it, whether or
    /// not an interrupt has told of it yet.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<(), WaitError>> {
        self.wait.outcome().map(Ended::of_one)
    }

    /// Looks for a short time whether it has ended, and sleeps until it has.
    ///
    /// # Errors
    /// [`WaitError`]; after a time-out the wait stands as before.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<(), WaitError> {
        if timeout != Some(Duration::ZERO) {
            let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
            self.wait.sleep(deadline);
        }
        self.outcome().unwrap_or(Err(WaitError::TimedOut))
    }
}
