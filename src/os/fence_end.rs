//! Fence end: waits that end without their value, because the fence failed, or one of its openers.

use super::listener::Listeners;
use super::native_fence::{NativeFence, State};
use super::openers::OpenerId;
use super::wait_cell::WaitError;
use super::waiter::Waiter;
use crate::kmd::ProcessId;

impl NativeFence {
    /// Ends all waits that CurrentValue does not satisfy, now and to come, with an error; the last
    /// good value stays readable (NF-26).
    pub(super) fn fail(&self, error: WaitError) {
        self.with_state(|state, told| {
            state.failed.get_or_insert(error);
            self.end_all_waits(state, error, told);
        });
    }

    /// Of a fence that has failed.
    pub(super) fn end_all_waits(&self, state: &mut State, error: WaitError, told: &mut Listeners) {
        // What was reached is satisfied, although no interrupt has told it yet.
        let satisfied = self.release_reached(state);
        let failed = state.waiters.drain();
        self.end(state, (satisfied, failed), error, told);
    }

    /// The same for the waits of these processes alone.
    pub(super) fn fail_openers(&self, is_failing: impl Fn(ProcessId) -> bool, error: WaitError) {
        self.with_state(|state, told| {
            let failing = state.openers.fail(is_failing, error);
            self.fail_waits_of(state, &failing, error, told);
        });
    }

    /// An opener closes its handle: its waits end, and those of others stand (NF-14).
    pub(super) fn close(&self, opener: OpenerId) {
        self.with_state(|state, told| {
            state.openers.remove(opener);
            self.fail_waits_of(state, &[opener], WaitError::Closed, told);
        });
    }

    fn fail_waits_of(
        &self,
        state: &mut State,
        failing: &[OpenerId],
        error: WaitError,
        told: &mut Listeners,
    ) {
        let satisfied = self.release_reached(state);
        let failed = state.waiters.take_if(|waiter| match waiter {
            Waiter::Cpu(_, opener) => failing.contains(opener),
            // Which queue it waits for is not known here. If it is another's, it parks again.
            Waiter::Engine(_) => !failing.is_empty(),
        });
        self.end(state, (satisfied, failed), error, told);
    }

    fn end(
        &self,
        state: &mut State,
        (satisfied, failed): (Vec<Waiter>, Vec<Waiter>),
        error: WaitError,
        told: &mut Listeners,
    ) {
        self.post(state, false);
        for waiter in satisfied {
            waiter.end(Ok(()), self.ddi().as_ref(), told);
        }
        for waiter in failed {
            waiter.end(Err(error), self.ddi().as_ref(), told);
        }
    }
}
