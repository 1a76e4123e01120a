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
//! may have been raised before it. That waiter is released by CurrentValue alone, which the answer makes
//! the engine look at again: what an engine stores and takes back before anybody looked, a 6 and then
//! a 0, releases a waiter for 5 of a fence that was never rewound, and after a rewind does not.
//!
//! A wait ends under the fence's lock, and its listener is told after it: foreign code runs with no
//! lock held (`listener`).

use super::adapter_life::{AdapterLife, Settles};
use super::cross_doorbells::CrossDoorbell;
use super::cross_side::CrossSide;
use super::elsewhere::SignalsElsewhere;
use super::fence_storage::FenceStorage;
use super::listener::Listeners;
use super::openers::{OpenerId, Openers};
use super::peers::Peers;
use super::record::Record;
use super::signaller::Signaller;
use super::wait_cell::{WaitError, WaitPart};
use super::waiter::Waiter;
use super::waiter_list::{WaiterKey, WaiterList};
use crate::abi::{FenceId, HandleAccess, Home};
use crate::kmd::{Ddi, MonitoredValueUpdate, ProcessId};
use crate::shared::{ReadBlock, Region, RegionError, Word};
use crate::sync::{Arc, Mutex, MutexGuard, lock, monotonic_ns};
use crate::trace::{Note, Recorder};
use std::ops::{Deref, DerefMut};
use std::sync::{OnceLock, Weak};

type Waiters = WaiterList<Waiter>;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) waiters: Waiters,
    pub(super) openers: Openers,
    pub(super) failed: Option<WaitError>,
    /// For good (`always_signaled`).
    pub(super) is_always_signaled: bool,
    /// MonitoredValue as last posted.
    pub(super) posted: u64,
    /// CPU waits that were added so far.
    cpu_waits: u64,
    /// Interrupts that have named the fence.
    pub(super) notifications: u64,
    /// The value of the record that is being answered, for the other operating systems; else 0.
    pub(super) recorded: u64,
    /// How often CurrentValue had been stored backwards when the last waiter came, by whatever system of
    /// those that have the fence open.
    pub(super) rewinds: u64,
    /// Who has work watched that signals the fence.
    pub(super) elsewhere: Vec<Weak<dyn SignalsElsewhere>>,
}

/// What a fence is made for, for good.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) signaller: Signaller,
    /// What each of its handles may do (NF-23, NF-30).
    pub(super) access: HandleAccess,
    /// Others may open it (NF-30).
    pub(super) is_shareable: bool,
    /// NoSignalMaxValueOnTdr: it goes on where a device is lost that could signal it (TD-14).
    pub(super) keeps_value_on_tdr: bool,
    pub(super) reach: Reach,
}

/// Who reaches a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The CPU and the engines of its adapter.
    Adapter,
    /// The engines alone, of type INTRA_GPU: the CPU maps, waits for and signals nothing of it (NF-13).
    Engines,
    /// With CrossAdapter other adapters as well: MonitoredValue is 0 for good, and nothing is posted (XA-03).
    Adapters,
}

impl Terms {
    /// Type INTRA_GPU.
    pub(super) fn is_intra_gpu(&self) -> bool {
        self.reach == Reach::Engines
    }

    /// CrossAdapter.
    pub(super) fn is_cross_adapter(&self) -> bool {
        self.reach == Reach::Adapters
    }
}

/// A fence.
#[derive(Debug)]
pub struct NativeFence {
    id: FenceId,
    terms: Terms,
    storage: FenceStorage,
    ddi: Arc<dyn Ddi>,
    life: Arc<AdapterLife>,
    /// What its signals by the CPU and its MonitoredValues are told to.
    recorder: Arc<Recorder>,
    state: Mutex<State>,
    /// The other operating systems that may have it open.
    pub(super) peers: OnceLock<Arc<dyn Peers>>,
    /// Of what it is a side.
    cross_side: OnceLock<CrossSide>,
    /// What wakes who waits for it on other adapters (XA-10).
    doorbell: OnceLock<Arc<CrossDoorbell>>,
}

/// The fence's lock. A bug check that is found while it is held takes its effect on other fences
/// when it is let go.
struct Held<'a> {
    state: MutexGuard<'a, State>,
    _settles: Settles<'a>,
}

impl Deref for Held<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl NativeFence {
    /// Writes the first values (NF-28), or the MonitoredValue alone of one that was made elsewhere. No
    /// engine here knows the fence yet.
    pub(super) fn new(
        id: FenceId,
        terms: Terms,
        storage: FenceStorage,
        ddi: Arc<dyn Ddi>,
        life: Arc<AdapterLife>,
        recorder: Arc<Recorder>,
        initial: Option<u64>,
    ) -> Self {
        if let Some(initial) = initial {
            storage.current.word(0).publish(initial);
        }
        let waiters = Waiters::default();
        let posted = if terms.is_cross_adapter() {
            0
        } else {
            waiters.monitored_value()
        };
        storage.monitored.word(0).publish(posted);
        Self {
            id,
            terms,
            storage,
            ddi,
            life,
            recorder,
            state: Mutex::new(State {
                waiters,
                posted,
                ..State::default()
            }),
            peers: OnceLock::new(),
            cross_side: OnceLock::new(),
            doorbell: OnceLock::new(),
        }
    }

    /// It is a side of a cross-adapter fence: before anybody knows it.
    pub(super) fn crosses(&self, side: CrossSide) {
        self.cross_side.get_or_init(|| side);
    }

    /// Of what it is a side.
    pub(super) fn cross_side(&self) -> Option<&CrossSide> {
        self.cross_side.get()
    }

    /// Its signals ring this: before anybody knows it.
    pub(super) fn rings(&self, doorbell: Arc<CrossDoorbell>) {
        self.doorbell.get_or_init(|| doorbell);
    }

    /// What its signals ring.
    pub(super) fn doorbell(&self) -> Option<&Arc<CrossDoorbell>> {
        self.doorbell.get()
    }

    /// Which fence, system-wide.
    #[must_use]
    pub fn id(&self) -> FenceId {
        self.id
    }

    /// What it is made for.
    pub(super) fn terms(&self) -> Terms {
        self.terms
    }

    /// Whether the queues of one of these processes can signal it.
    pub(super) fn is_signalled_by(&self, is_asked: impl Fn(ProcessId) -> bool) -> bool {
        match self.terms.signaller {
            Signaller::Openers => lock(&self.state).openers.may_signal(is_asked),
            Signaller::Queue(process) => is_asked(process),
        }
    }

    /// The processes that have it open.
    pub(super) fn processes(&self) -> Vec<ProcessId> {
        lock(&self.state).openers.processes().collect()
    }

    /// CurrentValue, as the OS reads it.
    ///
    /// # Panics
    /// Of type INTRA_GPU, which it does not read.
    #[must_use]
    pub fn current_value(&self) -> u64 {
        assert!(
            !self.terms.is_intra_gpu(),
            "the CPU does not read a fence of type INTRA_GPU: copy it by a queue"
        );
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

    /// How often an interrupt has named the fence so far, on this adapter.
    #[must_use]
    pub fn notifications(&self) -> u64 {
        lock(&self.state).notifications
    }

    /// The memory that CurrentValue and MonitoredValue are in, as their regions show it (NF-12).
    #[must_use]
    pub fn memory(&self) -> (Home, Home) {
        let (current, monitored) = (self.current_value_place(), self.monitored_value_place());
        (current.0.home(), monitored.0.home())
    }

    /// Region and byte offset of CurrentValue.
    #[must_use]
    pub fn current_value_place(&self) -> (&Arc<Region>, u64) {
        self.storage.current_value()
    }

    /// Region and byte offset of MonitoredValue.
    #[must_use]
    pub fn monitored_value_place(&self) -> (&Arc<Region>, u64) {
        self.storage.monitored_value()
    }

    /// CurrentValue's word: the caller holds the fence's lock and passes it to the driver.
    pub(super) fn current_word(&self) -> Word<'_> {
        self.storage.current.word(0)
    }

    /// One more opener, with the view of its process.
    pub(super) fn open(
        &self,
        process: ProcessId,
    ) -> Result<(OpenerId, Option<ReadBlock>), RegionError> {
        let mut state = lock(&self.state);
        let view = match state.openers.view_of(process) {
            Some(view) => Some(view),
            None if self.terms.is_intra_gpu() => None,
            None => Some(self.storage.view()?),
        };
        let can_signal = !self.terms.access.has(HandleAccess::NO_SIGNAL);
        let opener = state.openers.add(process, can_signal, view.clone());
        Ok((opener, view))
    }

    /// The fence's lock for one that holds several, and settles the adapter's life when it has let all
    /// of them go.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The adapter's life.
    pub(super) fn life(&self) -> &Arc<AdapterLife> {
        &self.life
    }

    fn hold(&self) -> Held<'_> {
        Held {
            state: lock(&self.state),
            _settles: Settles(&self.life),
        }
    }

    /// Does something with the lock held, and tells afterwards of the waits that it ended.
    pub(super) fn with_state<T>(&self, act: impl FnOnce(&mut State, &mut Listeners) -> T) -> T {
        let mut told = Listeners::default();
        let result = act(&mut self.hold(), &mut told);
        told.tell();
        result
    }

    /// Posts the MonitoredValue that follows from the waiters, if it changed or `answers` a raise. Of a cross-adapter
    /// fence none does.
    pub(super) fn post(&self, state: &mut State, answers: bool) {
        if self.terms.is_cross_adapter() {
            return;
        }
        let Some(value) = self.least(state) else {
            return;
        };
        if answers || value != state.posted {
            let is_news = value != state.posted;
            state.posted = value;
            if is_news {
                Self::tell_elsewhere(state);
            }
            if self.life.end().is_some() {
                return;
            }
            self.recorder.note(|| Note::MonitoredValue {
                fence: self.id,
                value,
                at: monotonic_ns(),
            });
            let word = self.storage.monitored.word(0);
            let update = MonitoredValueUpdate {
                fence: self.id,
                value,
                word,
            };
            if let Err(error) = self.ddi.update_monitored_values(&[update]) {
                // Wake-ups would be lost: no wait may sleep on (FQ-09).
                let record = Record::update_of_monitored_value_failed(self.id, &error);
                self.life.bug_check(record);
            }
        }
    }

    /// How a wait of an opener for `value` would end now; `None` while it would last.
    pub(super) fn outlook(&self, opener: OpenerId, value: u64) -> Option<Result<(), WaitError>> {
        self.outlook_of(&lock(&self.state), opener, value)
    }

    fn outlook_of(
        &self,
        state: &State,
        opener: OpenerId,
        value: u64,
    ) -> Option<Result<(), WaitError>> {
        if self.is_reached(value) {
            return Some(Ok(()));
        }
        state.failed.or(state.openers.failure(opener)).map(Err)
    }

    /// Adds a CPU wait of an opener for `value`. Without a key it has ended and stands nowhere; with
    /// one it stood, and may have ended by now.
    pub(super) fn arm(&self, opener: OpenerId, value: u64, part: WaitPart) -> Option<WaiterKey> {
        self.with_state(|state, told| {
            if let Some(result) = self.outlook_of(state, opener, value) {
                part.end(result, told);
                return None;
            }
            state.cpu_waits += 1;
            Some(self.add(state, value, Waiter::Cpu(part, opener), told))
        })
    }

    fn add(
        &self,
        state: &mut State,
        value: u64,
        waiter: Waiter,
        told: &mut Listeners,
    ) -> WaiterKey {
        // What others told of is older, and so may be what they are about to tell of.
        self.answer_peers(state, told);
        self.part_from_earlier(state);
        let key = state.waiters.add(value, waiter);
        self.post(state, false);
        // The read after the post: a signal before the adoption may have raised nothing.
        self.settle(state, Vec::new(), false, told);
        key
    }

    /// Takes a CPU wait out that was given up, if it still stands; MonitoredValue is right on
    /// return. One that was satisfied meanwhile ends so: no interrupt need have told of it.
    pub(super) fn cancel(&self, key: WaiterKey) {
        self.with_state(|state, told| {
            if let Some(waiter) = self.take(state, key)
                && self.is_reached(key.value())
            {
                waiter.end(Ok(()), self.ddi.as_ref(), told);
            }
        });
    }

    fn take(&self, state: &mut State, key: WaiterKey) -> Option<Waiter> {
        let waiter = state.waiters.remove(key)?;
        self.post(state, false);
        Some(waiter)
    }

    /// Adds an engine that parks at a wait for `value`; one whose value is reached already is
    /// brought back at once. So is every one of a fence that fails, when it fails: its queue finds out if
    /// the handle is closed, else it stands on, and whether anybody is left who can signal is another
    /// question (`verdict`). Of one that is always signaled the driver knows by itself.
    ///
    /// The caller holds the lock of the parked engines, so it tells of the waits that end here, and
    /// settles the adapter's life, when it has let it go.
    pub(super) fn add_engine(
        &self,
        value: u64,
        node_ordinal: u32,
        told: &mut Listeners,
    ) -> WaiterKey {
        let engine = Waiter::Engine(node_ordinal);
        self.add(&mut lock(&self.state), value, engine, told)
    }

    /// Whether a waiter was neither released nor withdrawn.
    pub(super) fn has_waiter(&self, key: WaiterKey) -> bool {
        lock(&self.state).waiters.contains(key)
    }

    /// Takes a waiter out that waits no more, if it was not released before; as
    /// [`NativeFence::add_engine`] for the caller.
    pub(super) fn withdraw(&self, key: WaiterKey) -> bool {
        self.take(&mut lock(&self.state), key).is_some()
    }

    /// What it is told to.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The CPU has stored a value, in a call that began then.
    pub(super) fn note_cpu_signal(&self, value: u64, at: u64) {
        self.recorder.note(|| Note::CpuSignal {
            fence: self.id,
            value,
            at,
            done: monotonic_ns(),
        });
    }

    /// The driver that interrupts for this fence.
    pub(super) fn ddi(&self) -> &Arc<dyn Ddi> {
        &self.ddi
    }
}
