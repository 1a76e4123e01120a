//! Crossing: what a signal of the CPU has to do with other adapters than its own.
//!
//! Whether a value may be stored is judged under the lock of the signalled side, and another adapter's side has another
//! lock. So the fence's turn comes first, that of each fence of a batch, in the order of their numbers, and is kept
//! until all sides have heard.

use super::cross_adapter::CrossAdapterFence;
use super::listener::Listeners;
use super::native_fence::NativeFence;
use crate::sync::Arc;
use crate::sync::plain::MutexGuard;

/// One signal of a cross-adapter fence.
#[derive(Debug)]
struct Signal<'a> {
    cross: &'a Arc<CrossAdapterFence>,
    side: &'a NativeFence,
    value: u64,
}

/// See the file's head. Whoever drops it holds no fence's lock.
#[derive(Debug)]
pub(super) struct Crossing<'a> {
    signals: Vec<Signal<'a>>,
    _turns: Vec<MutexGuard<'a, ()>>,
}

impl<'a> Crossing<'a> {
    /// Of a batch, of which these are the native fences. A fence that is named twice is refused later.
    pub(super) fn begin(batch: impl Iterator<Item = (&'a NativeFence, u64)>) -> Self {
        let signals: Vec<_> = batch
            .filter_map(|(side, value)| {
                let cross = side.cross_adapter()?;
                Some(Signal { cross, side, value })
            })
            .collect();
        let mut crosses: Vec<_> = signals.iter().map(|signal| signal.cross).collect();
        crosses.sort_by_key(|cross| cross.number());
        crosses.dedup_by_key(|cross| cross.number());
        let turns = crosses.into_iter().map(|cross| cross.turn()).collect();
        Self {
            signals,
            _turns: turns,
        }
    }

    /// Before any value is stored, and if all are allowed: of those that go back the other sides hear first.
    pub(super) fn rewind(&self, told: &mut Listeners) {
        for signal in &self.signals {
            if signal.value < signal.side.current_value() {
                signal.cross.rewind(signal.side, told);
            }
        }
    }

    /// The values are stored.
    pub(super) fn propagate(&self, told: &mut Listeners) {
        for signal in &self.signals {
            signal.cross.propagate(signal.side, signal.value, told);
        }
    }
}
