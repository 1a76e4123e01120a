//! Monitored signal: what a CPU signal of several fences stores to the monitored ones among them.
//!
//! The batch stores all or nothing, so every fence of it is locked before one is looked at: native
//! fences first, then these, each kind in the order of ids. So two batches never wait for each other.

use super::cpu_signal::SignalError;
use super::crossing::{Crossing, Signalled};
use super::listener::Listeners;
use super::monitored_fence::{MonitoredFence, State};
use super::monitored_object::MonitoredFenceObject;
use crate::sync::{Arc, MutexGuard};

/// One monitored fence of a CPU signal.
#[derive(Clone, Copy, Debug)]
pub(super) struct MonitoredSignal<'a> {
    pub(super) object: &'a Arc<MonitoredFenceObject>,
    pub(super) value: u64,
    /// `AllowFenceRewind`.
    pub(super) allow_rewind: bool,
}

/// Fences that are locked and may have their values.
#[must_use = "nothing is stored yet"]
pub(super) struct HeldSignals<'a>(Vec<(&'a MonitoredSignal<'a>, MutexGuard<'a, State>)>);

impl<'a> MonitoredSignal<'a> {
    fn fence(&self) -> &'a MonitoredFence {
        self.object.fence()
    }

    /// What it has to do with other adapters.
    pub(super) fn crossing(&self) -> Signalled<'a> {
        (self.fence().cross_side(), self.value, self.allow_rewind)
    }

    /// A batch of monitored fences alone. Whom it satisfies is told by the caller.
    ///
    /// # Errors
    /// As [`CpuSignal::all`](super::CpuSignal::all).
    pub(super) fn all(
        signals: &[Self],
        crossing: &Crossing<'_>,
        told: &mut Listeners,
    ) -> Result<(), SignalError> {
        let Some(first) = signals.first() else {
            return Ok(());
        };
        let adapter = first.object.process().adapter();
        for signal in signals {
            signal.object.check_signal()?;
            if !Arc::ptr_eq(signal.object.process().adapter(), adapter) {
                return Err(SignalError::SeveralAdapters);
            }
        }
        if adapter.check_up().is_err() {
            return Err(SignalError::AdapterStopped);
        }
        crossing.rewind(told);
        Self::hold(signals)?.store(told);
        Ok(())
    }

    /// Locks the fences, and looks whether each may have its value.
    ///
    /// # Errors
    /// As [`CpuSignal::all`](super::CpuSignal::all): the locks are let go.
    pub(super) fn hold<'b>(signals: &'b [Self]) -> Result<HeldSignals<'b>, SignalError>
    where
        'a: 'b,
    {
        let mut in_order: Vec<&Self> = signals.iter().collect();
        in_order.sort_by_key(|signal| signal.fence().id());
        if in_order
            .windows(2)
            .any(|pair| pair[0].fence().id() == pair[1].fence().id())
        {
            return Err(SignalError::NamedTwice);
        }
        let mut held: Vec<_> = in_order
            .into_iter()
            .map(|signal| (signal, signal.fence().state()))
            .collect();
        for (signal, state) in &mut held {
            // Under the lock: a handle that is being closed stores nothing afterwards.
            signal.object.check_signal()?;
            let (value, allow_rewind) = (signal.value, signal.allow_rewind);
            signal.fence().check_signal(state, value, allow_rewind)?;
        }
        Ok(HeldSignals(held))
    }
}

impl HeldSignals<'_> {
    /// Stores the values, and lets the locks go; whom they satisfy is told by the caller, when it holds
    /// no lock any more.
    pub(super) fn store(self, told: &mut Listeners) {
        for (signal, mut state) in self.0 {
            let fence = signal.fence();
            fence.store_signal(&mut state, signal.value, told);
            fence.keep_book(&mut state);
        }
    }
}
