//! Native fence: the global object, its values and its CPU waiters.
//!
//! The conditional notification (NF-04 to NF-08) from the OS's side. Changing the waiter list,
//! computing the MonitoredValue and posting it is one critical section of the fence
//! (`decisions.md` 6); after the post CurrentValue is read again. Why no wake-up is lost: take a
//! waiter for V and the signal that stores N ≥ V. By the contract of UpdateMonitoredValues, N is
//! read by the read after the post; or the signal compares with this MonitoredValue or a later
//! one, which is less than V while the waiter stands, and raises; or its engine adopts later,
//! reads CurrentValue then, and raises. A raise is answered by releasing up to the greater of the
//! record's value and CurrentValue, and by posting again (one-shot arming).
//!
//! The record's value counts because it can be read here before the CurrentValue that was stored
//! first. It does not count for a waiter that came after a rewind of CurrentValue, since the record
//! may have been raised before it; that waiter loses nothing: the answer makes the engine look at
//! CurrentValue again.

use super::fence_storage::FenceStorage;
use super::wait_cell::{WaitError, WaitPart};
use super::waiter::Waiter;
use super::waiter_list::{WaiterKey, WaiterList};
use crate::abi::{FenceId, Home};
use crate::kmd::{CurrentValueUpdate, Ddi, MonitoredValueUpdate, ProcessId, UpdateFlags};
use crate::shared::{ReadBlock, Region};
use crate::sync::{Arc, Mutex, MutexGuard, lock};

/// Why a CPU signal stored nothing.
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
    /// The handle was opened without the right to signal, as that of a progress fence is (NF-23).
    #[error("access denied: the fence's handle may not signal")]
    AccessDenied,
    /// More fences than one call takes.
    #[error("one call signals at most {most} fences", most = CpuSignal::MOST_OBJECTS)]
    TooMany,
    /// Fences of several adapters in one call: it is one call of one driver.
    #[error("one call signals fences of one adapter")]
    SeveralAdapters,
    /// The same fence twice in one call.
    #[error("a fence is named twice in one call")]
    NamedTwice,
}

/// One fence of a CPU signal (`D3DKMTSignalSynchronizationObjectFromCpu`).
#[derive(Clone, Copy, Debug)]
pub struct CpuSignal<'a> {
    /// Which fence.
    pub fence: &'a NativeFence,
    /// The value to store.
    pub value: u64,
    /// `AllowFenceRewind`.
    pub allow_rewind: bool,
}

impl CpuSignal<'_> {
    /// `D3DDDI_MAX_OBJECT_SIGNALED`.
    pub const MOST_OBJECTS: usize = 32;
}

type Waiters = WaiterList<Waiter>;

#[derive(Debug, Default)]
struct State {
    waiters: Waiters,
    failed: Option<WaitError>,
    /// MonitoredValue as last posted.
    posted: u64,
    /// CPU waits that were added so far.
    cpu_waits: u64,
}

/// Who can signal a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signaller {
    /// Every queue of a process, and its CPU side.
    Process(ProcessId),
    /// One queue, whose progress it carries.
    Queue,
}

/// A fence.
#[derive(Debug)]
pub struct NativeFence {
    id: FenceId,
    signaller: Signaller,
    storage: FenceStorage,
    ddi: Arc<dyn Ddi>,
    state: Mutex<State>,
}

impl NativeFence {
    /// Writes the first values (NF-28). No engine knows the fence yet.
    pub(super) fn new(
        id: FenceId,
        signaller: Signaller,
        storage: FenceStorage,
        ddi: Arc<dyn Ddi>,
        initial: u64,
    ) -> Self {
        storage.current.word(0).publish(initial);
        let waiters = Waiters::default();
        let posted = waiters.monitored_value();
        storage.monitored.word(0).publish(posted);
        Self {
            id,
            signaller,
            storage,
            ddi,
            state: Mutex::new(State {
                waiters,
                failed: None,
                posted,
                cpu_waits: 0,
            }),
        }
    }

    /// Which fence, system-wide.
    #[must_use]
    pub fn id(&self) -> FenceId {
        self.id
    }

    /// Who can signal it.
    pub(super) fn signaller(&self) -> Signaller {
        self.signaller
    }

    /// CurrentValue, as the OS reads it.
    #[must_use]
    pub fn current_value(&self) -> u64 {
        self.storage.current.word(0).observe()
    }

    /// MonitoredValue, as the OS has it.
    #[must_use]
    pub fn monitored_value(&self) -> u64 {
        self.storage.monitored.word(0).observe()
    }

    /// CPU waits that have come to stand in the list so far, with their MonitoredValue posted.
    #[must_use]
    pub fn waits(&self) -> u64 {
        lock(&self.state).cpu_waits
    }

    /// The user's read-only view of CurrentValue.
    #[must_use]
    pub fn user_view(&self) -> &ReadBlock {
        &self.storage.user
    }

    /// The memory that CurrentValue and MonitoredValue are in, as their regions show it (NF-12).
    #[must_use]
    pub fn memory(&self) -> (Home, Home) {
        let (current, monitored) = (
            &self.storage.current_value.0,
            &self.storage.monitored_value.0,
        );
        (current.home(), monitored.home())
    }

    /// Region and byte offset of CurrentValue.
    #[must_use]
    pub fn current_value_place(&self) -> (&Arc<Region>, u64) {
        (&self.storage.current_value.0, self.storage.current_value.1)
    }

    /// Region and byte offset of MonitoredValue.
    #[must_use]
    pub fn monitored_value_place(&self) -> (&Arc<Region>, u64) {
        (
            &self.storage.monitored_value.0,
            self.storage.monitored_value.1,
        )
    }

    /// Posts the MonitoredValue that follows from the waiters, if it changed or `answers` a raise.
    fn post(&self, state: &mut State, answers: bool) {
        let value = state.waiters.monitored_value();
        if answers || value != state.posted {
            state.posted = value;
            let word = self.storage.monitored.word(0);
            let update = MonitoredValueUpdate {
                fence: self.id,
                value,
                word,
            };
            if let Err(error) = self.ddi.update_monitored_values(&[update]) {
                // Bug check 0x119, P1 = 0x12: without it wake-ups would be lost in silence.
                panic!("UpdateMonitoredValues failed for {:?}: {error}", self.id);
            }
        }
    }

    /// Ends the waits of `ended` and those that CurrentValue satisfies.
    ///
    /// The MonitoredValue is right before a waiter runs (NF-04). After every post CurrentValue is
    /// read again: a signal between the first read and the post was compared with the old shadow,
    /// and while no slice is in flight nobody adopts the new one (NF-08).
    fn settle(&self, state: &mut State, mut ended: Vec<Waiter>, answers: bool) {
        ended.extend(state.waiters.release(self.current_value()));
        if answers || !ended.is_empty() {
            self.post(state, answers);
        }
        loop {
            let more = state.waiters.release(self.current_value());
            if more.is_empty() {
                break;
            }
            ended.extend(more);
            self.post(state, false);
        }
        for waiter in &ended {
            waiter.end(Ok(()), self.ddi.as_ref());
        }
    }

    /// Whether a wait for `value` is satisfied now.
    pub(super) fn is_reached(&self, value: u64) -> bool {
        self.current_value() >= value
    }

    /// How a wait for `value` would end now; `None` while it would last.
    pub(super) fn outlook(&self, value: u64) -> Option<Result<(), WaitError>> {
        self.outlook_of(&lock(&self.state), value)
    }

    fn outlook_of(&self, state: &State, value: u64) -> Option<Result<(), WaitError>> {
        if self.is_reached(value) {
            return Some(Ok(()));
        }
        state.failed.map(Err)
    }

    /// Adds a thread's wait for `value`. Without a key it has ended and stands nowhere; with one it
    /// stood, and may have ended by now.
    pub(super) fn arm(&self, value: u64, part: WaitPart) -> Option<WaiterKey> {
        let mut state = lock(&self.state);
        if let Some(result) = self.outlook_of(&state, value) {
            part.end(result);
            return None;
        }
        state.cpu_waits += 1;
        Some(self.add(&mut state, value, Waiter::Cpu(part)))
    }

    fn add(&self, state: &mut State, value: u64, waiter: Waiter) -> WaiterKey {
        let key = state.waiters.add(value, waiter);
        self.post(state, false);
        // The read after the post: a signal before the adoption may have raised nothing.
        self.settle(state, Vec::new(), false);
        key
    }

    /// Takes a thread's wait out that was given up, if it still stands; MonitoredValue is right on
    /// return. One that was satisfied meanwhile ends so: no interrupt need have told of it.
    pub(super) fn cancel(&self, key: WaiterKey) {
        let mut state = lock(&self.state);
        if let Some(waiter) = self.take(&mut state, key)
            && self.is_reached(key.value())
        {
            waiter.end(Ok(()), self.ddi.as_ref());
        }
    }

    fn take(&self, state: &mut State, key: WaiterKey) -> Option<Waiter> {
        let waiter = state.waiters.remove(key)?;
        self.post(state, false);
        Some(waiter)
    }

    /// Adds an engine that parks at a wait for `value`; one whose value is reached already is
    /// brought back at once. So is every one of a fence that fails, when it fails: its queue finds
    /// out if the handle is closed. Of a device that is lost it finds out nothing, and stands on:
    /// that nobody is left who can signal is not looked for yet (TD-15).
    pub(super) fn add_engine(&self, value: u64, node_ordinal: u32) -> WaiterKey {
        self.add(&mut lock(&self.state), value, Waiter::Engine(node_ordinal))
    }

    /// Whether a waiter was neither released nor withdrawn.
    pub(super) fn has_waiter(&self, key: WaiterKey) -> bool {
        lock(&self.state).waiters.contains(key)
    }

    /// Takes a waiter out that waits no more, if it was not released before.
    pub(super) fn withdraw(&self, key: WaiterKey) -> bool {
        self.take(&mut lock(&self.state), key).is_some()
    }

    /// The driver that interrupts for this fence.
    pub(super) fn ddi(&self) -> &Arc<dyn Ddi> {
        &self.ddi
    }

    /// Stores values from the CPU (NF-17, NF-20): all of the batch in its order, with one
    /// notification of the GPU, and every CPU waiter that is satisfied is released on return.
    ///
    /// # Errors
    /// [`SignalError`]; then nothing was stored.
    ///
    /// # Panics
    /// If the driver breaks the DDI's contract: bug check 0x119, P1 = 0x13.
    pub fn signal_from_cpu(ddi: &dyn Ddi, signals: &[CpuSignal<'_>]) -> Result<(), SignalError> {
        if signals.len() > CpuSignal::MOST_OBJECTS {
            return Err(SignalError::TooMany);
        }
        // Locks in the order of the ids, so that two batches never wait for each other.
        let mut in_order: Vec<&CpuSignal<'_>> = signals.iter().collect();
        in_order.sort_by_key(|signal| signal.fence.id);
        if in_order
            .windows(2)
            .any(|pair| pair[0].fence.id == pair[1].fence.id)
        {
            return Err(SignalError::NamedTwice);
        }
        let mut states: Vec<(&CpuSignal<'_>, MutexGuard<'_, State>)> = in_order
            .into_iter()
            .map(|signal| (signal, lock(&signal.fence.state)))
            .collect();
        for (signal, state) in &states {
            if state.failed == Some(WaitError::Closed) {
                return Err(SignalError::Closed);
            }
            let current = signal.fence.current_value();
            if signal.value < current && !signal.allow_rewind {
                return Err(SignalError::Backward { current });
            }
        }
        for (signal, state) in &mut states {
            if signal.allow_rewind {
                // Whom the value satisfies that is taken away now was satisfied (NF-26).
                signal.fence.settle(state, Vec::new(), false);
                state.waiters.rewind();
            }
        }
        let updates: Vec<CurrentValueUpdate<'_>> = signals
            .iter()
            .map(|signal| CurrentValueUpdate {
                fence: signal.fence.id,
                value: signal.value,
                word: signal.fence.storage.current.word(0),
            })
            .collect();
        if let Err(error) = ddi.update_current_values_from_cpu(&updates, UpdateFlags::Store) {
            // Bug check 0x119, P1 = 0x13.
            panic!("UpdateCurrentValuesFromCpu failed: {error}");
        }
        for (signal, state) in &mut states {
            let ended = state.waiters.release(signal.value);
            // After a rewind the shadow is armed anew, or later signals would not raise.
            signal.fence.settle(state, ended, signal.allow_rewind);
        }
        Ok(())
    }

    /// The deferred part of an interrupt that names this fence with `value`.
    pub(super) fn raised(&self, value: u64) {
        let mut state = lock(&self.state);
        let ended = state.waiters.release_recorded(value);
        self.settle(&mut state, ended, true);
    }

    /// Reads CurrentValue again and releases whom it satisfies.
    pub(super) fn resample(&self) {
        let mut state = lock(&self.state);
        self.settle(&mut state, Vec::new(), false);
    }

    /// Ends all waits that CurrentValue does not satisfy, now and to come, with an error; the last
    /// good value stays readable (NF-26).
    pub(super) fn fail(&self, error: WaitError) {
        let mut state = lock(&self.state);
        state.failed.get_or_insert(error);
        // What was reached is satisfied, although no interrupt has told it yet.
        let satisfied = state.waiters.release(self.current_value());
        let failed = state.waiters.drain();
        self.post(&mut state, false);
        for waiter in satisfied {
            waiter.end(Ok(()), self.ddi.as_ref());
        }
        for waiter in failed {
            waiter.end(Err(error), self.ddi.as_ref());
        }
    }
}
