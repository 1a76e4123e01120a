//! Monitored fence: the object of WDDM 2.x, its value and its waiters.
//!
//! The CPU holds the value and nobody compares: a GPU signal is a store from the command stream, and
//! either each of them interrupts (the advanced form, MF-02), or the end of the command buffer does
//! (MF-07). Neither interrupt names a fence, so the OS looks at all that are waited for. Engines never
//! wait on one: the OS holds back what does (MF-03).
//!
//! Why no wake-up is lost: a waiter comes to stand in the list, the fence comes to stand among those
//! that are waited for, under the fence's lock, and then CurrentValue is read, with the lock taken again.
//! The interrupt of a signal comes after its store. Either its look finds the fence and takes the lock
//! after the waiter did, and reads the store; or it looked before, and the waiter's read, which is later,
//! sees the store. Where records can reach the CPU before the value does (`decisions.md` 4), the end of
//! the command buffer says with which value it signalled ([`MonitoredFence::signalled`]).
//!
//! On an adapter with No64BitAtomics the word holds the low 32 bits, and `carry` says of which value:
//! all that may be stored at one time is near enough to each other (MF-06). A fence without GPU access
//! has 64 bits everywhere.

use super::carry::{carry, is_near};
use super::cpu_signal::SignalError;
use super::cross_side::CrossSide;
use super::crossing::Crossing;
use super::listener::Listeners;
use super::monitored_fences::WaitedFor;
use super::outstanding::{Outstanding, OutstandingSignal};
use super::wait_cell::{WaitError, WaitPart};
use super::waiter_list::{WaiterKey, WaiterList};
use super::witness::CrossStep;
use crate::abi::FenceId;
use crate::kmd::{Ddi, ProcessId};
use crate::shared::{Block, PoolPlace, ReadBlock, Region};
use crate::sync::{Arc, AtomicU64, Mutex, MutexGuard, Ordering, lock};
use std::sync::Weak;

/// How a value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// By 64-bit stores.
    Whole,
    /// By 32-bit stores of the low half (`No64BitAtomics`).
    LowHalf,
}

#[derive(Debug, Default)]
pub(super) struct State {
    waiters: WaiterList<WaitPart>,
    /// It stands among those that are waited for.
    waited_for: bool,
    failed: Option<WaitError>,
    outstanding: Outstanding,
    /// CPU waits that were added so far.
    cpu_waits: u64,
    /// On another adapter a device was lost that could signal it: waits of queues pass (XA-11).
    is_always_signaled: bool,
}

/// See the file's head.
#[derive(Debug)]
pub struct MonitoredFence {
    this: Weak<Self>,
    id: FenceId,
    process: ProcessId,
    /// NoSignalMaxValueOnTdr is not set.
    ends_on_tdr: bool,
    width: Width,
    place: PoolPlace,
    current: Block,
    user: ReadBlock,
    /// Of a fence of 32 bits: the value when the OS last looked. Stored under the lock.
    known: AtomicU64,
    ddi: Arc<dyn Ddi>,
    waited_for: Arc<WaitedFor>,
    state: Mutex<State>,
    /// Of what it is a side.
    cross_side: Option<CrossSide>,
}

/// What a monitored fence is made of.
#[derive(Debug)]
pub(super) struct MonitoredFenceParts {
    pub(super) id: FenceId,
    pub(super) process: ProcessId,
    pub(super) ends_on_tdr: bool,
    pub(super) width: Width,
    pub(super) place: PoolPlace,
    /// The user's view of `place`.
    pub(super) user: ReadBlock,
    pub(super) ddi: Arc<dyn Ddi>,
    pub(super) waited_for: Arc<WaitedFor>,
    /// Of a cross-adapter fence; then `place` is the one that all adapters have.
    pub(super) cross_side: Option<CrossSide>,
}

impl MonitoredFence {
    /// Writes the first value, if the fence was not made elsewhere. No engine knows the fence yet.
    pub(super) fn new(parts: MonitoredFenceParts, initial: Option<u64>) -> Arc<Self> {
        let fence = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            id: parts.id,
            process: parts.process,
            ends_on_tdr: parts.ends_on_tdr,
            width: parts.width,
            current: parts.place.block().part(0, 8),
            user: parts.user,
            place: parts.place,
            known: AtomicU64::new(initial.unwrap_or(0)),
            ddi: parts.ddi,
            waited_for: parts.waited_for,
            state: Mutex::default(),
            cross_side: parts.cross_side,
        });
        if let Some(initial) = initial {
            fence.store(initial);
        }
        fence
    }

    /// Of what it is a side, if it is cross-adapter.
    pub(super) fn cross_side(&self) -> Option<&CrossSide> {
        self.cross_side.as_ref()
    }

    /// As [`NativeFence::cross_side_number`](super::NativeFence::cross_side_number).
    #[must_use]
    pub fn cross_side_number(&self) -> Option<u64> {
        self.cross_side().map(CrossSide::number)
    }

    /// Does something with who waits.
    pub(super) fn with_waiters<T>(&self, act: impl FnOnce(&WaiterList<WaitPart>) -> T) -> T {
        act(&lock(&self.state).waiters)
    }

    /// Which fence, system-wide.
    #[must_use]
    pub fn id(&self) -> FenceId {
        self.id
    }

    /// The process whose fence it is.
    pub(super) fn process(&self) -> ProcessId {
        self.process
    }

    /// Where its value lies.
    pub(super) fn place(&self) -> &PoolPlace {
        &self.place
    }

    /// Region and byte offset of its value.
    #[must_use]
    pub fn current_value_place(&self) -> (&Arc<Region>, u64) {
        (self.place.region(), self.place.offset())
    }

    /// The driver under it.
    pub(super) fn ddi(&self) -> &Arc<dyn Ddi> {
        &self.ddi
    }

    /// The user's view of the word, for reading: CurrentValue, or its low 32 bits where
    /// [`MonitoredFence::is_64_bit`] says no.
    #[must_use]
    pub fn user_view(&self) -> &ReadBlock {
        &self.user
    }

    /// Whether the word holds all of the value; else an engine stores its low 32 bits, and the OS
    /// carries the wrap (MF-06).
    #[must_use]
    pub fn is_64_bit(&self) -> bool {
        self.width == Width::Whole
    }

    /// CPU waits that have come to stand in the list so far.
    #[must_use]
    pub fn waits(&self) -> u64 {
        lock(&self.state).cpu_waits
    }

    /// CurrentValue: one read of the word, and of a fence of 32 bits the carry.
    #[must_use]
    pub fn current_value(&self) -> u64 {
        let word = || self.user.word(0).observe();
        match self.width {
            Width::Whole => word(),
            Width::LowHalf => loop {
                // The word lies near what was known at the same time: if that has changed between
                // the two reads, it may have gone round.
                let known = self.known.load(Ordering::Acquire);
                let low = word();
                if self.known.load(Ordering::Acquire) == known {
                    return carry(known, low as u32);
                }
            },
        }
    }

    /// What an engine, or the OS, stores for a value.
    pub(super) fn stored_as(&self, value: u64) -> u64 {
        match self.width {
            Width::Whole => value,
            Width::LowHalf => value & u64::from(u32::MAX),
        }
    }

    fn store(&self, value: u64) {
        self.current.word(0).publish(self.stored_as(value));
        self.known.store(value, Ordering::Release);
    }

    /// Whether a wait for `value` is near enough. One that was reached is, however long ago: the OS
    /// knows all 64 bits, so of the past there is no doubt.
    pub(super) fn check_distance_of_wait(&self, value: u64) -> Result<(), WaitError> {
        let now = self.current_value();
        if self.width == Width::LowHalf && value > now && !is_near(now, value) {
            return Err(WaitError::TooFar);
        }
        Ok(())
    }

    /// Whether a signal of `value` is near enough.
    ///
    /// The word goes from what is known to the value of an outstanding signal, and on to another, and
    /// the carry is right as long as all of these are near to each other. The value now is one of
    /// them, but need not be the known one: a signal whose command has not completed has stored it.
    /// So it becomes the known one before anything is judged by it. Else the word could go on to a
    /// value that is near to it and not to what was known before, and be carried from there, to a
    /// value of 2^32 less.
    fn check_distance_of_signal(&self, state: &mut State, value: u64) -> Result<(), SignalError> {
        if self.width == Width::Whole || self.are_near(state, value) {
            return Ok(());
        }
        // Who signals may have seen in the progress word what the OS was not told yet. First that is read,
        // and then the word anew: in the other order a signal could be stored between the two and be let go
        // of, and count neither as outstanding nor as known.
        state.outstanding.let_completed_go();
        if self.are_near(state, value) {
            return Ok(());
        }
        Err(SignalError::TooFar)
    }

    /// Whether a value is near to what is known now, and to what is outstanding.
    fn are_near(&self, state: &State, value: u64) -> bool {
        let now = self.current_value();
        self.known.store(now, Ordering::Release);
        state.outstanding.are_near(now, value)
    }

    /// Does something with the lock held, keeps the book of fences that are waited for, and tells
    /// afterwards of the waits that it ended.
    fn with_state<T>(&self, act: impl FnOnce(&mut State, &mut Listeners) -> T) -> T {
        let mut told = Listeners::default();
        let mut state = lock(&self.state);
        let result = act(&mut state, &mut told);
        self.keep_book(&mut state);
        drop(state);
        told.tell();
        result
    }

    /// The lock, for a signal that is one of several.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Notes whether it is waited for: before the lock is let go.
    pub(super) fn keep_book(&self, state: &mut State) {
        let has_waiters = !state.waiters.is_empty();
        if has_waiters != state.waited_for {
            state.waited_for = has_waiters;
            self.waited_for
                .set(self.id, has_waiters.then_some(&self.this));
        }
    }

    /// Reads CurrentValue and ends the waits that it satisfies.
    fn look(&self, state: &mut State, told: &mut Listeners) {
        let now = self.current_value();
        self.known.store(now, Ordering::Release);
        for part in state.waiters.release(now) {
            part.end(Ok(()), told);
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

    /// As [`NativeFence::arm`](super::NativeFence), without a MonitoredValue.
    pub(super) fn arm(&self, value: u64, part: WaitPart) -> Option<WaiterKey> {
        let key = self.with_state(|state, told| {
            if let Some(result) = self.outlook_of(state, value) {
                part.end(result, told);
                return None;
            }
            state.cpu_waits += 1;
            Some(state.waiters.add(value, part))
        })?;
        // The read after the fence has come among those that are waited for.
        self.resample();
        Some(key)
    }

    /// Takes a wait out that was given up, if it still stands.
    pub(super) fn cancel(&self, key: WaiterKey) {
        self.with_state(|state, told| {
            if let Some(part) = state.waiters.remove(key)
                && self.is_reached(key.value())
            {
                part.end(Ok(()), told);
            }
        });
    }

    /// Reads CurrentValue again and releases whom it satisfies: what an interrupt asks for.
    pub(super) fn resample(&self) {
        self.with_state(|state, told| self.look(state, told));
    }

    /// The same: how many waits have ended by it.
    pub(super) fn wake_reached(&self) -> usize {
        self.with_state(|state, told| {
            let before = state.waiters.len();
            self.look(state, told);
            before - state.waiters.len()
        })
    }

    /// A signal is queued: one that an engine makes by a queue with this progress fence, or one of the OS.
    ///
    /// # Errors
    /// Too far for a fence of 32 bits; the handle is closed.
    pub(super) fn begin_signal(
        &self,
        value: u64,
        progress: Option<&Arc<Self>>,
    ) -> Result<Arc<OutstandingSignal>, SignalError> {
        let mut state = lock(&self.state);
        if state.failed == Some(WaitError::Closed) {
            return Err(SignalError::Closed);
        }
        self.check_distance_of_signal(&mut state, value)?;
        Ok(state.outstanding.begin(value, progress))
    }

    /// A signal that was queued will not be made: by now no engine has it.
    pub(super) fn withdraw_signal(&self, signal: &OutstandingSignal) {
        lock(&self.state).outstanding.end(signal);
    }

    /// The command buffer has completed that stored `value`, by this signal if it was queued as one.
    pub(super) fn signalled(&self, value: u64, signal: Option<&OutstandingSignal>) {
        self.with_state(|state, told| {
            if let Some(signal) = signal {
                state.outstanding.end(signal);
            }
            for part in state.waiters.release_recorded(value) {
                part.end(Ok(()), told);
            }
            self.look(state, told);
        });
    }

    /// A signal by the OS: from the CPU (MF-04), or of a software packet (MF-05). When it returns the
    /// value is stored and every waiter that it satisfies is released (NF-20).
    ///
    /// # Errors
    /// A value below CurrentValue without `allow_rewind`, one that is too far, a closed handle.
    pub(super) fn signal(&self, value: u64, allow_rewind: bool) -> Result<(), SignalError> {
        self.crossing((value, allow_rewind), |state, told| {
            self.check_signal(state, value, allow_rewind)?;
            self.store_signal(state, value, told);
            Ok(true)
        })
    }

    /// A signal by the OS that was queued ([`MonitoredFence::begin_signal`]): its turn has come, and it may
    /// go back. It is outstanding until it is stored, since who signals in between would be judged by
    /// neither. Whatever was signalled since it was queued is near to it, so it is not judged again.
    ///
    /// # Errors
    /// The handle is closed; it is outstanding no more.
    pub(super) fn signal_queued(&self, signal: &OutstandingSignal) -> Result<(), SignalError> {
        let value = signal.value();
        self.crossing((value, true), |state, told| {
            state.outstanding.end(signal);
            if state.failed == Some(WaitError::Closed) {
                return Err(SignalError::Closed);
            }
            // It leaves the storage alone (NF-19).
            let stores = !state.is_always_signaled;
            if stores {
                self.store_signal(state, value, told);
            }
            Ok(stores)
        })
    }

    /// Whether a signal by the OS may be made.
    pub(super) fn check_signal(
        &self,
        state: &mut State,
        value: u64,
        allow_rewind: bool,
    ) -> Result<(), SignalError> {
        if state.failed == Some(WaitError::Closed) {
            return Err(SignalError::Closed);
        }
        let current = self.current_value();
        if value < current && !allow_rewind {
            return Err(SignalError::Backward { current });
        }
        self.check_distance_of_signal(state, value)
    }

    /// Makes it.
    pub(super) fn store_signal(&self, state: &mut State, value: u64, told: &mut Listeners) {
        if value < self.current_value() {
            // Whom the value satisfies that is taken away now was satisfied (NF-26).
            self.look(state, told);
            state.waiters.rewind();
        }
        self.store(value);
        if let Some(side) = self.cross_side() {
            side.witness(CrossStep::StoredByOs(value));
        }
        self.look(state, told);
    }

    /// A signal of the OS, which says whether it stores, with all that other adapters have to do with it, if they have.
    fn crossing(
        &self,
        (value, allow_rewind): (u64, bool),
        store: impl FnOnce(&mut State, &mut Listeners) -> Result<bool, SignalError>,
    ) -> Result<(), SignalError> {
        let mut told = Listeners::default();
        let crossing = Crossing::begin([(self.cross_side(), value, allow_rewind)]);
        crossing.rewind(&mut told);
        let mut state = lock(&self.state);
        let result = store(&mut state, &mut told);
        self.keep_book(&mut state);
        drop(state);
        if let Ok(true) = result {
            crossing.propagate(&mut told);
        }
        drop(crossing);
        told.tell();
        result.map(|_| ())
    }

    /// The other adapters' `value` was stored: its waiters go on.
    pub(super) fn hear(&self, value: u64, told: &mut Listeners) {
        let mut state = lock(&self.state);
        let stood = state.waiters.len();
        for part in state.waiters.release_recorded(value) {
            part.end(Ok(()), told);
        }
        self.look(&mut state, told);
        self.keep_book(&mut state);
        if let Some(side) = self.cross_side().filter(|_| stood > state.waiters.len()) {
            side.witness(CrossStep::Released(stood - state.waiters.len()));
        }
    }

    /// Another adapter will store a lower value: of what was told before nothing counts from now on.
    pub(super) fn hear_of_rewind(&self, told: &mut Listeners) {
        let mut state = lock(&self.state);
        self.look(&mut state, told);
        state.waiters.rewind();
        self.keep_book(&mut state);
    }

    /// A device is lost that could signal it, of another adapter or this one: as of a native fence waits of queues pass
    /// from then on, those of the CPU end with the error, and the value stays what it was (XA-11, NF-19).
    pub(super) fn always_signal(&self) {
        lock(&self.state).is_always_signaled = true;
        self.fail(WaitError::DeviceLost);
    }

    /// Whether waits that CurrentValue does not satisfy end with an error.
    pub(super) fn has_failed(&self) -> bool {
        lock(&self.state).failed.is_some()
    }

    /// Whether a wait of a queue on it passes, whatever the value.
    pub(super) fn is_always_signaled(&self) -> bool {
        lock(&self.state).is_always_signaled
    }

    /// The device that could signal it is lost: its maximum satisfies every wait (MF-08), or where
    /// that was forbidden they end with the error.
    pub(super) fn lose(&self) {
        if let Some(side) = self.cross_side().filter(|_| self.ends_on_tdr) {
            self.always_signal();
            side.lose();
        } else if self.ends_on_tdr {
            self.with_state(|state, told| {
                self.store(u64::MAX);
                self.look(state, told);
            });
        } else {
            self.fail(WaitError::DeviceLost);
        }
    }

    /// Nothing here signals it any more: the adapter was stopped.
    pub(super) fn lose_elsewhere(&self) {
        let is_closed = lock(&self.state).failed == Some(WaitError::Closed);
        if let Some(side) = self.cross_side().filter(|_| self.ends_on_tdr && !is_closed) {
            side.lose();
        }
    }

    /// Ends all waits that CurrentValue does not satisfy, now and to come, with an error; the last
    /// good value stays readable (NF-26).
    pub(super) fn fail(&self, error: WaitError) {
        self.with_state(|state, told| {
            // Its handle is closed for good, whatever it had failed by: who signals by it is told under this lock.
            if state.failed.is_none() || error == WaitError::Closed {
                state.failed = Some(error);
            }
            self.look(state, told);
            for part in state.waiters.drain() {
                part.end(Err(error), told);
            }
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::low_half_fence::low_half_fence;
    use super::*;

    /// MF-04: by a handle that is closed nothing is signalled, whatever the fence had failed by before. Who began
    /// earlier finds that under the fence's lock.
    ///
    /// Kills `a-close-after-a-loss-closes-nothing`.
    #[test]
    fn mf_04_a_handle_that_is_closed_after_a_loss_signals_nothing() {
        let fence = low_half_fence(5).expect("memory");
        let queued = fence.begin_signal(6, None).expect("it is near");
        fence.fail(WaitError::DeviceLost);
        assert!(fence.signal(6, false).is_ok(), "a loss forbids nothing");
        fence.fail(WaitError::Closed);
        let is_closed = |result| matches!(result, Err(SignalError::Closed));
        assert!(is_closed(fence.signal(7, false)));
        assert!(is_closed(fence.signal_queued(&queued)));
        assert!(is_closed(fence.begin_signal(7, None).map(drop)));
        assert_eq!(fence.current_value(), 6);
    }
}
