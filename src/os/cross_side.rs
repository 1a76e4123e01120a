//! Cross side: what a cross-adapter fence is on one adapter, and what it hears of the others (XA-08).
//!
//! The fence holds its sides weakly: each is its adapter's, and goes with the last handle there. An interrupt of one
//! adapter keeps another's fence alive for a moment, and its driver with it, but not the adapter, whose end stops both.

use super::cpu_signal::SignalError;
use super::cross_adapter::CrossAdapterFence;
use super::crossing::Crossing;
use super::global_fence::GlobalFence;
use super::listener::Listeners;
use super::monitored_fence::MonitoredFence;
use super::native_fence::{NativeFence, State};
use super::record::Record;
use super::waiter::Waiter;
use super::witness::CrossStep;
use crate::kmd::{CurrentValueUpdate, Level, UpdateCurrentValuesFlags};
use crate::sync::{Arc, MutexGuard};
use std::sync::Weak;

/// A side, as the fence has it.
#[derive(Debug)]
pub(super) enum Side {
    /// On an adapter with native fences: one for all handles there.
    Native {
        fence: Weak<NativeFence>,
        global: Weak<GlobalFence>,
    },
    /// On one without: one for each handle.
    Monitored(Weak<MonitoredFence>),
}

/// A side that hears.
pub(super) enum Heard {
    Native(Arc<NativeFence>),
    Monitored(Arc<MonitoredFence>),
}

impl Side {
    /// A handle of it is open.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Native { global, .. } => global.strong_count() > 0,
            Self::Monitored(fence) => fence.strong_count() > 0,
        }
    }

    pub(super) fn fence(&self) -> Option<Heard> {
        match self {
            // One whose last handle has gone is destroyed, whoever keeps its memory.
            Self::Native { fence, .. } if self.is_open() => fence.upgrade().map(Heard::Native),
            Self::Native { .. } => None,
            Self::Monitored(fence) => fence.upgrade().map(Heard::Monitored),
        }
    }
}

impl Heard {
    /// On another adapter `value` was stored.
    pub(super) fn hear(&self, value: u64, told: &mut Listeners) {
        match self {
            Self::Native(fence) => fence.hear(value, told),
            Self::Monitored(fence) => fence.hear(value, told),
        }
    }

    /// On another adapter a lower value will be stored.
    pub(super) fn hear_of_rewind(&self, told: &mut Listeners) {
        match self {
            Self::Native(fence) => fence.hear_of_rewind(told),
            Self::Monitored(fence) => fence.hear_of_rewind(told),
        }
    }

    /// A live device has it open there with the right to signal it (TD-15). A handle lives on beside an adapter that has
    /// gone, and is no such right. The caller holds no fence's lock.
    pub(super) fn may_be_signalled(&self) -> bool {
        match self {
            Self::Native(fence) => {
                let devices: Vec<_> = fence.state().openers.signallers().collect();
                fence.life().has_live(&devices)
            }
            // It is its device's alone, and has failed when that is lost, the adapter stopped, or the handle closed.
            Self::Monitored(fence) => !fence.has_failed(),
        }
    }

    /// On another adapter a device is lost that could signal it.
    pub(super) fn lose(&self) {
        match self {
            Self::Native(fence) => fence.always_signal(),
            Self::Monitored(fence) => fence.always_signal(),
        }
    }
}

/// What a side has of the fence.
#[derive(Debug)]
pub(super) struct CrossSide {
    fence: Arc<CrossAdapterFence>,
    number: u64,
}

impl CrossSide {
    pub(super) fn new(fence: Arc<CrossAdapterFence>, number: u64) -> Self {
        Self { fence, number }
    }

    /// The fence.
    pub(super) fn fence(&self) -> &Arc<CrossAdapterFence> {
        &self.fence
    }

    /// Which side it is.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The turn of a signal of the CPU.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.fence.turn()
    }

    /// As [`CrossAdapterFence::propagate`].
    pub(super) fn propagate(&self, value: u64, told: &mut Listeners) {
        self.fence.propagate(self.number, value, told);
    }

    /// As [`CrossAdapterFence::rewind`].
    pub(super) fn rewind(&self, told: &mut Listeners) {
        self.fence.rewind(self.number, told);
    }

    /// As [`CrossAdapterFence::lose`].
    pub(super) fn lose(&self) {
        self.fence.lose(self.number);
    }

    /// As [`CrossAdapterFence::others_may_signal`].
    pub(super) fn others_may_signal(&self) -> bool {
        self.fence.others_may_signal(self.number)
    }
}

impl NativeFence {
    /// Nothing here signals it any more: the adapter was stopped.
    pub(super) fn lose_elsewhere(&self) {
        if self.terms().keeps_value_on_tdr || !self.is_signalled_by(|_| true) {
            return;
        }
        if let Some(side) = self.cross_side() {
            side.lose();
        }
        // Its other adapters are other operating systems (`peers`).
        if let (Some(_), Some(peers)) = (self.doorbell(), self.peers.get()) {
            peers.always_signal();
        }
    }

    /// `value` was stored here, as an interrupt of this adapter has said.
    pub(super) fn propagate(&self, value: u64) {
        let Some(side) = self.cross_side() else {
            return;
        };
        let mut told = Listeners::default();
        side.propagate(value, &mut told);
        told.tell();
    }

    /// CurrentValue may have been stored, with whatever value; the others look, whether or not it is news.
    pub(super) fn propagate_what_there_is(&self) {
        if self.cross_side().is_some() {
            self.propagate(self.current_value());
        }
    }

    /// Its engines look again, then its waiters go on.
    fn hear(&self, value: u64, told: &mut Listeners) {
        let mut state = self.state();
        let stood = self.is_watched().then(|| threads_and_contexts(&state));
        self.have_engines_look(told);
        let ended = state.waiters.release_recorded(value);
        self.settle(&mut state, ended, false, told);
        let ended = stood.map_or(0, |stood| stood - threads_and_contexts(&state));
        if ended > 0 {
            self.witness(CrossStep::Released(ended));
        }
    }

    fn is_watched(&self) -> bool {
        self.cross_side()
            .is_some_and(|side| side.fence().is_watched())
    }

    /// A lower value will be stored: of what was told before nothing counts from now on.
    fn hear_of_rewind(&self, told: &mut Listeners) {
        let mut state = self.state();
        self.settle(&mut state, Vec::new(), false, told);
        self.rewind(&mut state);
    }

    /// A signal of a queue in kernel mode: the OS stores the value, and has the engines of this adapter look as those
    /// of the others (XA-07, XA-09). What the GPU stores is not refused (NF-21).
    ///
    /// # Errors
    /// The adapter was stopped, or the handle was closed meanwhile, which `check` says.
    pub(super) fn store_by_os(
        &self,
        side: &CrossSide,
        value: u64,
        check: impl FnOnce() -> Result<(), SignalError>,
    ) -> Result<(), SignalError> {
        let mut told = Listeners::default();
        let crossing = Crossing::begin([(Some(side), value, true)]);
        if crossing.goes_back() {
            crossing.rewind(&mut told);
            self.hear_of_rewind(&mut told);
        }
        let mut state = self.state();
        let allowed = match self.life().end() {
            Some(_) => Err(SignalError::AdapterStopped),
            None => check(),
        };
        // One that became AlwaysSignaled meanwhile is left alone (NF-19).
        let stores = allowed.is_ok() && !state.is_always_signaled;
        if stores {
            self.current_word().publish(value);
            side.witness(CrossStep::StoredByOs(value));
            self.have_engines_look(&mut told);
            let ended = state.waiters.release(value);
            self.settle(&mut state, ended, false, &mut told);
        }
        drop(state);
        if stores {
            crossing.propagate(&mut told);
        }
        drop(crossing);
        told.tell();
        allowed
    }

    /// With the fence's lock held, as every update. As deferred work: an interrupt of another adapter may wait for the
    /// lock, and a thread of a program would sleep in the call while this one is reset.
    fn have_engines_look(&self, told: &mut Listeners) {
        if self.life().end().is_some() {
            return;
        }
        let update = CurrentValueUpdate {
            fence: self.id(),
            value: self.current_value(),
            word: self.current_word(),
        };
        let flags = UpdateCurrentValuesFlags::NOTIFICATION_ONLY;
        self.witness(CrossStep::Notified(update.value));
        let call = || self.ddi().update_current_values_from_cpu(&[update], flags);
        if let Err(error) = Level::Dispatch.raised(call) {
            let record = Record::update_of_current_value_failed(self.id(), &error);
            self.life().bug_check(record);
            told.settle(self.life());
        }
    }
}

fn threads_and_contexts(state: &State) -> usize {
    let waiters = state.waiters.iter();
    waiters
        .filter(|(_, waiter)| matches!(waiter, Waiter::Cpu(..)))
        .count()
}
