//! Settling: the waits of a fence that have come to their end do end, and what its engines compare with
//! follows. Why no wake-up is lost stands in `native_fence`, and between operating systems in `peers`.

use super::listener::Listeners;
use super::native_fence::{NativeFence, State};
use super::waiter::Waiter;
use super::witness::CrossStep;

/// How often one settling posts for other operating systems alone.
const ROUNDS_FOR_PEERS: u32 = 2;

impl NativeFence {
    /// Ends the waits of `ended` and those that CurrentValue satisfies.
    ///
    /// The MonitoredValue is right before a waiter runs (NF-04). After every post CurrentValue is
    /// read again: a signal between the first read and the post was compared with the old shadow,
    /// and while no slice is in flight nobody adopts the new one (NF-08). What others wait for may
    /// change all the while; after some rounds for nobody here the rest is left to the thread that
    /// hears of them, so that the lock is held for no longer than the own waiters are many (NF-08).
    pub(super) fn settle(
        &self,
        state: &mut State,
        mut ended: Vec<Waiter>,
        answers: bool,
        told: &mut Listeners,
    ) {
        ended.extend(self.release_reached(state));
        // Others may wait for what nobody does here: their words are read whoever ended.
        let has_peers = self.peers.get().is_some();
        if answers || has_peers || !ended.is_empty() {
            self.post(state, answers);
        }
        let mut rounds = 0;
        loop {
            let more = self.release_reached(state);
            if more.is_empty() && rounds == ROUNDS_FOR_PEERS {
                self.peers.get().inspect(|peers| peers.look_again());
                break;
            }
            rounds += u32::from(more.is_empty());
            let posted = state.posted;
            if has_peers || !more.is_empty() {
                self.post(state, false);
            }
            if more.is_empty() && posted == state.posted {
                break;
            }
            ended.extend(more);
        }
        for waiter in &ended {
            waiter.end(Ok(()), self.ddi().as_ref(), told);
        }
    }

    /// Ends the waits whose value is there and of which nobody has told: how many there were.
    pub(super) fn wake_reached(&self) -> usize {
        self.with_state(|state, told| {
            let ended = self.release_reached(state);
            let count = ended.len();
            if count > 0 {
                self.settle(state, ended, false, told);
            }
            count
        })
    }

    /// The deferred part of an interrupt that names this fence with `value`. Who waits on another adapter hears of it
    /// then.
    pub(super) fn raised(&self, value: u64) {
        self.witness(CrossStep::Interrupted(value));
        self.with_state(|state, told| {
            // For other systems as well: it may have been stored backwards since (NF-26).
            state.recorded = value;
            state.notifications += 1;
            let ended = state.waiters.release_recorded(value);
            self.settle(state, ended, true, told);
        });
        self.propagate(value);
    }
}
