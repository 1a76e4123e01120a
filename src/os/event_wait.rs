//! Event wait: a CPU wait that signals an event handle when it has ended.
//!
//! `D3DKMTWaitForSynchronizationObjectFromCpu` with `hAsyncEvent`. It stands from the call on; the
//! event says that some wait has ended, and each wait how.

use super::cpu_wait::{self, WaitManyError};
use super::event_handle::EventHandle;
use super::listener::Listener;
use super::standing_wait::{Fences, StandingWait};
use super::wait_cell::WaitError;
use super::wait_tally::{Ended, Needs};
use super::waitable::Waitable;
use crate::sync::Arc;
use crate::trace::WaiterKind;

/// See the file's head. `T` is what the blocking wait gives. Dropping it cancels the wait.
#[derive(Debug)]
pub struct EventWait<T> {
    wait: StandingWait,
    told: fn(Ended) -> T,
}

impl EventWait<Result<(), WaitError>> {
    /// A wait until CurrentValue is at least `value`.
    #[must_use]
    pub fn one<W: Waitable + 'static>(object: &Arc<W>, value: u64, event: &EventHandle) -> Self {
        Self::stand(Fences::one(object, value), Needs::All, event, Ended::of_one)
    }
}

impl EventWait<Result<usize, WaitManyError>> {
    /// A wait for any of several fences, as [`CpuWait::any`](super::CpuWait::any).
    ///
    /// # Errors
    /// Not 1 to 32 of them; then nothing is signalled.
    pub fn any<W: Waitable + 'static>(
        waits: &[(&Arc<W>, u64)],
        event: &EventHandle,
    ) -> Result<Self, WaitManyError> {
        let fences = Fences::several(waits)?;
        Ok(Self::stand(fences, Needs::Any, event, Ended::of_any))
    }
}

impl EventWait<Result<(), WaitManyError>> {
    /// A wait for all of several fences, as [`CpuWait::all`](super::CpuWait::all).
    ///
    /// # Errors
    /// Not 1 to 32 of them; then nothing is signalled.
    pub fn all<W: Waitable + 'static>(
        waits: &[(&Arc<W>, u64)],
        event: &EventHandle,
    ) -> Result<Self, WaitManyError> {
        let fences = Fences::several(waits)?;
        Ok(Self::stand(fences, Needs::All, event, Ended::of_all))
    }
}

impl<T> EventWait<T> {
    fn stand(fences: Fences, needs: Needs, event: &EventHandle, told: fn(Ended) -> T) -> Self {
        let tally = fences.with_waits(|waits| cpu_wait::begin(waits, needs));
        let wait = StandingWait::new(fences, tally, WaiterKind::Event);
        if wait.listen(Listener::Event(event.clone())).is_err() {
            // It had ended before there was anybody to tell.
            event.signal();
        }
        Self { wait, told }
    }

    /// How it has ended; `None` while it lasts. A CurrentValue that has come ends it, whether or
    /// not an interrupt has told of it yet; the event is signalled then.
    #[must_use]
    pub fn outcome(&self) -> Option<T> {
        self.wait.outcome().map(self.told)
    }
}
