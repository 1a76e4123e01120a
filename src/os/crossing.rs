//! Crossing: what a signal of the CPU has to do with other adapters than its own.
//!
//! Whether a value may be stored is judged under the lock of the signalled side, and another adapter's side has another
//! lock. So the fence's turn comes first, that of each fence of a batch, in the order of their numbers, and is kept
//! until all sides have heard.

use super::cross_side::CrossSide;
use super::listener::Listeners;
use crate::sync::MutexGuard;

/// A signal: the side that it signals, if that is one, the value, and whether it may go back.
pub(super) type Signalled<'a> = (Option<&'a CrossSide>, u64, bool);

/// One signal of a cross-adapter fence.
#[derive(Debug)]
struct Signal<'a> {
    side: &'a CrossSide,
    value: u64,
    goes_back: bool,
}

/// See the file's head. Whoever drops it holds no fence's lock.
#[derive(Debug)]
pub(super) struct Crossing<'a> {
    signals: Vec<Signal<'a>>,
    /// One for each fence.
    turns: Vec<MutexGuard<'a, ()>>,
}

impl<'a> Crossing<'a> {
    /// Of the signals of a batch.
    pub(super) fn begin(batch: impl IntoIterator<Item = Signalled<'a>>) -> Self {
        let batch = batch.into_iter();
        let batch: Vec<_> = batch
            .filter_map(|(side, value, may)| Some((side?, value, may)))
            .collect();
        let mut fences: Vec<_> = batch.iter().map(|(side, ..)| *side).collect();
        fences.sort_by_key(|side| side.fence().number());
        fences.dedup_by_key(|side| side.fence().number());
        let turns = fences.into_iter().map(CrossSide::turn).collect();
        // In the turn no other CPU stores; what a GPU stores meanwhile its user orders.
        let signals = batch.into_iter().map(|(side, value, may)| Signal {
            side,
            value,
            goes_back: may && value < side.fence().current_value(),
        });
        Self {
            signals: signals.collect(),
            turns,
        }
    }

    /// Whether a fence is signalled twice, by whichever of its handles.
    pub(super) fn names_twice(&self) -> bool {
        self.turns.len() < self.signals.len()
    }

    /// Whether there is nothing to it.
    pub(super) fn is_empty(&self) -> bool {
        self.signals.is_empty()
    }

    /// Whether a value goes back that may.
    pub(super) fn goes_back(&self) -> bool {
        self.signals.iter().any(|signal| signal.goes_back)
    }

    /// Before any value is stored: of those that go back the other sides hear first.
    pub(super) fn rewind(&self, told: &mut Listeners) {
        for signal in self.signals.iter().filter(|signal| signal.goes_back) {
            signal.side.rewind(told);
        }
    }

    /// The values are stored.
    pub(super) fn propagate(&self, told: &mut Listeners) {
        for signal in &self.signals {
            signal.side.propagate(signal.value, told);
        }
    }
}
