//! Fence peers: what a fence makes of other operating systems that have it open. Why nothing is lost
//! between them stands in `peers`.

use super::listener::Listeners;
use super::native_fence::{NativeFence, State};
use super::peers::{PeerCounters, Peers};
use super::wait_cell::WaitError;
use crate::sync::{Arc, Ordering, fence};

impl NativeFence {
    /// The MonitoredValue that follows from the waiters, here and in other operating systems.
    /// `None` where it has no place any more to be stored at.
    pub(super) fn least(&self, state: &mut State) -> Option<u64> {
        let own = state.waiters.monitored_value();
        let recorded = std::mem::take(&mut state.recorded);
        let Some(peers) = self.peers.get() else {
            return Some(own);
        };
        peers.await_own(own);
        // After the value that was stored, or that the driver told of, and before the others' words are
        // read: pairs with the fence of a peer between its word and its read of CurrentValue.
        fence(Ordering::SeqCst);
        peers.least(own, &|| self.current_value(), recorded)
    }

    /// CurrentValue is about to be stored backwards: what was raised or told before says nothing to
    /// waiters that come from now on, here and in other operating systems.
    pub(super) fn rewind(&self, state: &mut State) {
        state.waiters.rewind();
        if let Some(peers) = self.peers.get() {
            peers.rewind();
        }
    }

    /// From now on others may have it open: their waiters count, and they hear of what is reached here.
    pub(super) fn link(&self, peers: Arc<dyn Peers>) {
        self.with_state(|state, _| {
            let peers = self.peers.get_or_init(|| peers);
            if state.waiters.was_rewound() {
                peers.rewind();
            }
            if state.is_always_signaled {
                peers.always_signal();
            }
        });
    }

    /// Takes what others told of, and what they wait for; answered like a raise, since their engines may
    /// have stored anything.
    pub(super) fn look_at_peers(&self) {
        self.with_state(|state, told| {
            self.answer_peers(state, told);
            self.settle(state, Vec::new(), true, told);
        });
        if self
            .peers
            .get()
            .is_some_and(|peers| peers.is_always_signaled())
        {
            self.always_signal();
        }
    }

    /// What was told to other operating systems and heard of them; 0 for a fence that never was shared
    /// with any.
    #[must_use]
    pub fn peer_counters(&self) -> PeerCounters {
        let peers = self.peers.get();
        peers.map_or_else(PeerCounters::default, |peers| peers.counters())
    }

    /// Another operating system calls, or the process of one may have ended.
    pub(super) fn peers_called(&self, ended: Option<usize>) {
        let Some(peers) = self.peers.get() else {
            return;
        };
        peers.heard(ended);
        if !peers.keeps_slot() {
            return self.fail(WaitError::SlotLost);
        }
        self.look_at_peers();
    }

    /// Takes what others told of and releases whom it satisfies.
    pub(super) fn answer_peers(&self, state: &mut State, told: &mut Listeners) {
        let Some(peers) = self.peers.get() else {
            return;
        };
        let reached = peers.reached();
        if reached.is_empty() {
            return;
        }
        let before = state.waiters.monitored_value();
        let ended = reached
            .into_iter()
            .flat_map(|told| state.waiters.release_older(told.value, told.before))
            .collect();
        self.settle(state, ended, true, told);
        if state.waiters.monitored_value() == before {
            // They have left this system out since, and have not been called by a change.
            peers.call();
        }
    }

    /// A waiter is about to come, which has seen CurrentValue: what others are in the midst of telling may be
    /// older than it, and so may be records, where any of them has stored CurrentValue backwards since the
    /// waiter before. Who did so said it before, and the waiter has seen what was stored.
    pub(super) fn part_from_earlier(&self, state: &mut State) {
        let Some(peers) = self.peers.get() else {
            return;
        };
        let rewinds = peers.rewinds();
        if std::mem::replace(&mut state.rewinds, rewinds) != rewinds {
            state.waiters.rewind();
        }
        peers.waiter_comes(state.waiters.next_number());
    }
}
