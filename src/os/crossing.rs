//! Crossing: what a signal of the CPU has to do with other adapters than its own.
//!
//! Whether a value may be stored is judged under the lock of the signalled side, and another adapter's side has another
//! lock. So the fence's turn comes first, that of each fence of a batch, in the order of their numbers, and is kept
//! until all sides have heard.

use super::cross_side::CrossSide;
use super::listener::Listeners;
use crate::sync::plain::MutexGuard;

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
    _turns: Vec<MutexGuard<'a, ()>>,
}

impl<'a> Crossing<'a> {
    /// Of the signals of a batch: each with the side that it signals, if that is one. A fence that is named twice is
    /// refused later.
    pub(super) fn begin(batch: impl IntoIterator<Item = (Option<&'a CrossSide>, u64)>) -> Self {
        let batch = batch.into_iter();
        let batch: Vec<_> = batch
            .filter_map(|(side, value)| Some((side?, value)))
            .collect();
        let mut fences: Vec<_> = batch.iter().map(|(side, _)| *side).collect();
        fences.sort_by_key(|side| side.fence().number());
        fences.dedup_by_key(|side| side.fence().number());
        let turns = fences.into_iter().map(CrossSide::turn).collect();
        // In the turn no other CPU stores; what a GPU stores meanwhile its user orders.
        let signals = batch.into_iter().map(|(side, value)| Signal {
            side,
            value,
            goes_back: value < side.fence().current_value(),
        });
        Self {
            signals: signals.collect(),
            _turns: turns,
        }
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
