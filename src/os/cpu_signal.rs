//! CPU signal: what one call stores, and why it may be refused
//! (`D3DKMTSignalSynchronizationObjectFromCpu`).

use super::adapter_life::Settles;
use super::crossing::Crossing;
use super::listener::Listeners;
use super::monitored_signal::MonitoredSignal;
use super::native_fence::{NativeFence, State};
use super::process::FenceObject;
use super::record::Record;
use super::witness::CrossStep;
use crate::kmd::{CurrentValueUpdate, Level, UpdateCurrentValuesFlags};
use crate::sync::{Arc, MutexGuard};
use crate::trace::Recorder;

/// Why a CPU signal stored nothing, or, where the adapter was stopped, may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignalError {
    /// The value is below CurrentValue and a rewind was not asked for (NF-21).
    #[error("the fence stands at {current}; a lower value needs AllowFenceRewind")]
    Backward {
        /// CurrentValue.
        current: u64,
    },
    /// The handle was closed.
    #[error("the fence's handle is closed")]
    Closed,
    /// A value that is more than `UINT_MAX/2` from that of a fence which is kept by 32-bit stores, or
    /// from a signal of it that is outstanding.
    #[error(
        "the value is more than UINT_MAX/2 from the fence's or from an outstanding signal's, and the \
         fence is kept by 32-bit stores: signal in smaller steps"
    )]
    TooFar,
    /// The handle was opened without the right to signal, as that of a progress fence is (NF-23).
    #[error("access denied: the fence's handle may not signal")]
    AccessDenied,
    /// A fence of type INTRA_GPU (NF-13).
    #[error("the CPU cannot signal a fence of type INTRA_GPU: signal by a queue, or use DEFAULT")]
    IntraGpu,
    /// More fences than one call takes.
    #[error("one call signals at most {most} fences", most = CpuSignal::MOST_OBJECTS)]
    TooMany,
    /// Fences of several adapters in one call: it is one call of one driver.
    #[error("one call signals fences of one adapter")]
    SeveralAdapters,
    /// The same fence twice in one call.
    #[error("a fence is named twice in one call")]
    NamedTwice,
    /// The device whose handle it is is lost.
    #[error("the device is lost")]
    DeviceLost,
    /// A bug check stopped the adapter, before the call or in it: then the values may be stored.
    #[error("the adapter was stopped: its records say why")]
    AdapterStopped,
}

/// One fence of a CPU signal (`D3DKMTSignalSynchronizationObjectFromCpu`).
#[derive(Clone, Copy, Debug)]
pub struct CpuSignal<'a> {
    /// The handle.
    pub object: &'a FenceObject,
    /// The value to store.
    pub value: u64,
    /// `AllowFenceRewind`.
    pub allow_rewind: bool,
}

impl CpuSignal<'_> {
    /// `D3DDDI_MAX_OBJECT_SIGNALED`.
    pub const MOST_OBJECTS: usize = 32;

    fn fence(&self) -> &NativeFence {
        self.object.fence()
    }

    /// Stores values from the CPU (NF-17, NF-20): all of the batch in its order, with one
    /// notification of the GPU, and every CPU waiter that is satisfied is released on return.
    ///
    /// # Errors
    /// [`SignalError`]; then nothing was stored, unless it says otherwise.
    pub fn all(signals: &[Self]) -> Result<(), SignalError> {
        Self::all_of_both(signals, &[])
    }

    /// The same for a queue, whose trace has the signal already.
    ///
    /// # Errors
    /// As [`CpuSignal::all`].
    pub(super) fn all_of_queue(signals: &[Self]) -> Result<(), SignalError> {
        Self::store(signals, &[], false)
    }

    /// The same with monitored fences among them.
    ///
    /// # Errors
    /// As [`CpuSignal::all`].
    pub(super) fn all_of_both(
        signals: &[Self],
        monitored: &[MonitoredSignal<'_>],
    ) -> Result<(), SignalError> {
        Self::store(signals, monitored, true)
    }

    fn store(
        signals: &[Self],
        monitored: &[MonitoredSignal<'_>],
        is_noted: bool,
    ) -> Result<(), SignalError> {
        // Dropped last: what follows from a failure of the driver takes locks, and tells.
        let _settles = signals.first().map(|signal| Settles(signal.fence().life()));
        let mut told = Listeners::default();
        let native = signals.iter().map(|signal| {
            let side = signal.fence().cross_side();
            (side, signal.value, signal.allow_rewind)
        });
        let others = monitored.iter().map(MonitoredSignal::crossing);
        let crossing = Crossing::begin(native.chain(others));
        if crossing.names_twice() {
            return Err(SignalError::NamedTwice);
        }
        let mut is_stored = false;
        let recorder = Self::recorder(signals, monitored).filter(|_| is_noted);
        let begun = recorder.and_then(Recorder::now);
        let stored = Self::store_all((signals, monitored), &crossing, &mut is_stored, &mut told);
        if let Some(begun) = begun.filter(|_| is_stored) {
            for signal in signals {
                signal.fence().note_cpu_signal(signal.value, begun);
            }
            for signal in monitored {
                signal.object.note_cpu_signal(signal.value, begun);
            }
        }
        if is_stored {
            crossing.propagate(&mut told);
        }
        drop(crossing);
        told.tell();
        stored
    }

    /// All are of one adapter, or nothing is stored.
    fn recorder<'b>(
        signals: &'b [Self],
        monitored: &'b [MonitoredSignal<'_>],
    ) -> Option<&'b Recorder> {
        let native = || signals.first().map(|signal| signal.fence().recorder());
        let first = monitored.first();
        first.map_or_else(native, |signal| Some(signal.object.recorder()))
    }

    fn store_all(
        (signals, monitored): (&[Self], &[MonitoredSignal<'_>]),
        crossing: &Crossing<'_>,
        is_stored: &mut bool,
        told: &mut Listeners,
    ) -> Result<(), SignalError> {
        if signals.len() + monitored.len() > Self::MOST_OBJECTS {
            return Err(SignalError::TooMany);
        }
        let Some(first) = signals.first().map(Self::fence) else {
            MonitoredSignal::all(monitored, crossing, told)?;
            *is_stored = true;
            return Ok(());
        };
        let adapter = signals[0].object.process().adapter();
        let mut others = monitored.iter().map(|signal| signal.object.process());
        if others.any(|process| !Arc::ptr_eq(process.adapter(), adapter)) {
            return Err(SignalError::SeveralAdapters);
        }
        for signal in signals {
            signal.object.check_signal()?;
            if !Arc::ptr_eq(signal.object.process().adapter(), adapter) {
                return Err(SignalError::SeveralAdapters);
            }
        }
        // Locks in the order of the ids, so that two batches never wait for each other.
        let mut in_order: Vec<&Self> = signals.iter().collect();
        in_order.sort_by_key(|signal| signal.fence().id());
        if in_order
            .windows(2)
            .any(|pair| pair[0].fence().id() == pair[1].fence().id())
        {
            return Err(SignalError::NamedTwice);
        }
        let life = first.life();
        if life.end().is_some() {
            return Err(SignalError::AdapterStopped);
        }
        crossing.rewind(told);
        let mut states: Vec<(&Self, MutexGuard<'_, State>)> = in_order
            .into_iter()
            .map(|signal| (signal, signal.fence().state()))
            .collect();
        for (signal, _) in &states {
            // Again, under the lock: a handle that is being closed stores nothing afterwards.
            signal.object.check_signal()?;
            let current = signal.fence().current_value();
            if signal.value < current && !signal.allow_rewind {
                return Err(SignalError::Backward { current });
            }
        }
        let held = MonitoredSignal::hold(monitored)?;
        // Not what may go back, but what does: after a rewind records say nothing to who waits from then on.
        let go_back: Vec<bool> = states
            .iter()
            .map(|(signal, _)| signal.value < signal.fence().current_value())
            .collect();
        for ((signal, state), goes_back) in states.iter_mut().zip(&go_back) {
            if *goes_back {
                // Whom the value satisfies that is taken away now was satisfied (NF-26).
                signal.fence().settle(state, Vec::new(), false, told);
                signal.fence().rewind(state);
            }
        }
        let updates: Vec<CurrentValueUpdate<'_>> = signals
            .iter()
            .map(|signal| CurrentValueUpdate {
                fence: signal.fence().id(),
                value: signal.value,
                word: signal.fence().current_word(),
            })
            .collect();
        let ddi = adapter.ddi();
        let flags = UpdateCurrentValuesFlags::default();
        let call = || ddi.update_current_values_from_cpu(&updates, flags);
        // For whose locks an interrupt of another adapter may wait, as deferred work (`cross_side`).
        let updated = if crossing.is_empty() {
            call()
        } else {
            Level::Dispatch.raised(call)
        };
        if let Err(error) = updated {
            // The locks go first, then what the record ends (FQ-09).
            let record = Record::update_of_current_value_failed(first.id(), &error);
            life.bug_check(record);
            return Err(SignalError::AdapterStopped);
        }
        *is_stored = true;
        for doorbell in signals
            .iter()
            .filter_map(|signal| signal.fence().doorbell())
        {
            doorbell.ring();
        }
        for (signal, _) in &states {
            signal.fence().witness(CrossStep::Stored(signal.value));
        }
        for ((signal, state), goes_back) in states.iter_mut().zip(go_back) {
            let ended = state.waiters.release(signal.value);
            // After a rewind the shadow is armed anew, or later signals would not raise.
            signal.fence().settle(state, ended, goes_back, told);
        }
        held.store(told);
        drop(states);
        // A post of these may have failed: the values are stored, and the adapter is stopped.
        if life.end().is_some() {
            return Err(SignalError::AdapterStopped);
        }
        Ok(())
    }
}
