//! Standing wait: a wait that keeps its fences, and stands in their lists until it is dropped.
//!
//! What is armed, awaited and told of by events is one of these. It keeps the handles of its fences
//! open, as a clone of each would.

use super::armed_wait::{self, has_ended};
use super::cpu_wait::{CpuWait, WaitManyError};
use super::listener::Listener;
use super::wait_cell::WaitCell;
use super::wait_note::KeptNote;
use super::wait_tally::{Ended, WaitTally};
use super::waitable::Waitable;
use super::waiter_list::WaiterKey;
use crate::sync::Arc;
use crate::trace::{WaitEnd, WaiterKind};
use std::slice;
use std::time::Instant;

/// A fence, and the value that is waited for.
pub(super) type FenceValue = (Arc<dyn Waitable>, u64);

/// Fences of a wait. One, as of most, costs no allocation.
#[derive(Debug)]
pub(super) enum Fences {
    One(FenceValue),
    Several(Box<[FenceValue]>),
}

impl Fences {
    /// One.
    pub(super) fn one<W: Waitable + 'static>(object: &Arc<W>, value: u64) -> Self {
        Self::One((Arc::clone(object) as Arc<dyn Waitable>, value))
    }

    /// One to 32.
    ///
    /// # Errors
    /// Another number of them.
    pub(super) fn several<W: Waitable + 'static>(
        waits: &[(&Arc<W>, u64)],
    ) -> Result<Self, WaitManyError> {
        CpuWait::check_number(waits)?;
        let owned = waits
            .iter()
            .map(|(object, value)| (Arc::clone(object) as Arc<dyn Waitable>, *value));
        Ok(Self::Several(owned.collect()))
    }

    /// These, 1 to 32.
    pub(super) fn these(waits: &[FenceValue]) -> Self {
        match waits {
            [(object, value)] => Self::One((Arc::clone(object), *value)),
            several => Self::Several(several.into()),
        }
    }

    fn all(&self) -> &[FenceValue] {
        match self {
            Self::One(one) => slice::from_ref(one),
            Self::Several(several) => several,
        }
    }

    /// Does something with the fences as a blocking wait has them.
    pub(super) fn with_waits<T>(&self, act: impl FnOnce(&[CpuWait<'_>]) -> T) -> T {
        match self {
            Self::One(one) => act(&[cpu_wait(one)]),
            Self::Several(several) => act(&several.iter().map(cpu_wait).collect::<Vec<_>>()),
        }
    }
}

fn cpu_wait((object, value): &FenceValue) -> CpuWait<'_> {
    CpuWait {
        object: object.as_ref(),
        value: *value,
    }
}

/// Its place in the list of each fence.
#[derive(Debug)]
enum Keys {
    One([Option<WaiterKey>; 1]),
    Several(Box<[Option<WaiterKey>]>),
}

impl Keys {
    fn none_of(fences: &Fences) -> Self {
        match fences {
            Fences::One(_) => Self::One([None]),
            Fences::Several(several) => Self::Several(vec![None; several.len()].into()),
        }
    }

    fn all(&self) -> &[Option<WaiterKey>] {
        match self {
            Self::One(one) => one,
            Self::Several(several) => several,
        }
    }

    fn all_mut(&mut self) -> &mut [Option<WaiterKey>] {
        match self {
            Self::One(one) => one,
            Self::Several(several) => several,
        }
    }
}

/// See the file's head. It may have one listener.
#[derive(Debug)]
pub(super) struct StandingWait {
    fences: Fences,
    keys: Keys,
    cell: Arc<WaitCell>,
}

impl StandingWait {
    /// Has a wait stand for what its tally still needs. One that is satisfied already, or has no
    /// chance, has ended on return and stands nowhere. The recorder is told of it as of that waiter's.
    pub(super) fn new(fences: Fences, tally: WaitTally, waiter: WaiterKind) -> Self {
        let note = fences.with_waits(|waits| KeptNote::begin(waiter, waits, &tally));
        let wait = Self::untold(fences, tally);
        // Now that it is known whether it came to stand.
        if let Some(Err((ended, note))) = note.map(|note| wait.cell.keep(note)) {
            let has_stood = wait.keys.all().iter().any(Option::is_some);
            let with_value = if has_stood {
                WaitEnd::Released
            } else {
                WaitEnd::AtOnce
            };
            note.tell(Some(ended), with_value);
        }
        wait
    }

    /// The same for a queue in kernel mode, which tells the recorder itself (LG-09).
    pub(super) fn untold(fences: Fences, tally: WaitTally) -> Self {
        let cell = Arc::new(WaitCell::new(tally));
        let mut keys = Keys::none_of(&fences);
        fences.with_waits(|waits| armed_wait::stand(&cell, waits, keys.all_mut()));
        Self { fences, keys, cell }
    }

    /// The value that is waited for, of the first fence.
    pub(super) fn value(&self) -> u64 {
        self.fences.all()[0].1
    }

    /// How it has ended; `None` while it lasts. A CurrentValue that has come ends it, whether or
    /// not an interrupt has told of it yet.
    pub(super) fn outcome(&self) -> Option<Ended> {
        self.fences.with_waits(|waits| has_ended(&self.cell, waits));
        self.cell.tally().ended()
    }

    /// Looks for a short time whether it has ended, and sleeps until it has or the deadline is
    /// reached.
    pub(super) fn sleep(&self, deadline: Option<Instant>) {
        self.fences.with_waits(|waits| {
            let ended = || has_ended(&self.cell, waits);
            if !ended() {
                let ddi = waits[0].object.ddi();
                ddi.look_for_interrupts(&ended, deadline);
                armed_wait::sleep(&self.cell, waits, deadline);
            }
        });
    }

    /// As [`WaitCell::listen`].
    pub(super) fn listen(&self, listener: Listener) -> Result<(), (Ended, Listener)> {
        self.cell.listen(listener)
    }

    /// As [`WaitCell::silence`].
    pub(super) fn silence(&self) -> Option<Listener> {
        self.cell.silence()
    }
}

impl Drop for StandingWait {
    fn drop(&mut self) {
        // Who ends a part at the same time may have the last reference to the cell, and drops it
        // under a lock: there is no waker in it any more. This one goes last, with no lock held.
        let _listener = self.cell.silence();
        let leave = |waits: &[CpuWait<'_>]| armed_wait::leave(&self.cell, waits, self.keys.all());
        let ended = self.fences.with_waits(leave);
        if let Some(note) = self.cell.take_note() {
            note.tell(ended, WaitEnd::Released);
        }
    }
}
