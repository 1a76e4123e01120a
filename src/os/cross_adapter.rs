//! Cross-adapter fence: one fence of several adapters of this process (XA-02, XA-03).
//!
//! CurrentValue is one word of system memory, which every adapter has. On each of them the fence is an object of that
//! adapter's own, a side, with a MonitoredValue of its own that is 0 for good: every signal interrupts. No adapter
//! hears of another, so the OS propagates what one tells of: it has the engines of the others look again
//! (UpdateCurrentValuesFromCpu with NotificationOnly) and releases who waits there.
//!
//! Why no wake-up is lost: take a waiter for V on one side and the signal that stores N ≥ V, which is not 0, on another
//! or the same. The signal raises, whatever was raised before and whoever waits. Its propagation takes the lock of the
//! waiter's fence after the store: either the waiter stands and is released by N, or it comes later and reads N
//! when it comes. A store of 0 satisfies nobody.
//! Under the Vulkan memory model a record promises the CPU nothing of a CurrentValue that was stored before it
//! (`decisions.md` 4), so it counts by its own value for who stands, and for who comes later this is practice; the
//! backstop is the end of the slice, whose semaphore makes all that it stored visible, and after which the driver has
//! the OS look at the fences that it named once more.
//!
//! Locks: the turn of a signal of the CPU, of several in the order of their numbers, before the locks of fences; of
//! these never two of different adapters at a time. An interrupt takes no turn. Who propagates holds no
//! fence's lock, and a side holds none of this.

use super::adapter::{Adapter, OsError};
use super::fence_options::FenceTerms;
use super::fence_storage::{FenceMemory, FenceStorage};
use super::global_fence::GlobalFence;
use super::listener::Listeners;
use super::native_fence::{NativeFence, Reach, State, Terms};
use super::process::{FenceObject, Process};
use super::record::Record;
use super::signaller::Signaller;
use crate::abi::{PAGE_BYTES, WordGroup};
use crate::kmd::{CurrentValueUpdate, UpdateCurrentValuesFlags};
use crate::shared::Region;
use crate::sync::plain::{self, AtomicU64};
use crate::sync::{Arc, Ordering};
use std::sync::Weak;

/// What the fence is on one adapter.
#[derive(Debug)]
struct Side {
    /// For who propagates: nothing else is kept alive by an interrupt of another adapter.
    fence: Weak<NativeFence>,
    /// For who opens it once more.
    global: Weak<GlobalFence>,
}

/// The next one's number.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// See the file's head.
#[derive(Debug)]
pub(super) struct CrossAdapterFence {
    number: u64,
    terms: FenceTerms,
    /// The page of CurrentValue.
    current: Arc<Region>,
    /// One for each adapter that has it open.
    sides: plain::Mutex<Vec<Side>>,
    /// Of signals of the CPU: each compares and stores before the next one does, on whatever side.
    turn: plain::Mutex<()>,
    /// The value that was propagated last.
    propagated: AtomicU64,
}

impl CrossAdapterFence {
    fn new(initial: u64, terms: FenceTerms) -> Result<Arc<Self>, OsError> {
        Ok(Arc::new(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            terms,
            current: Region::for_words(WordGroup::CurrentValues, PAGE_BYTES)?,
            sides: plain::Mutex::default(),
            turn: plain::Mutex::default(),
            propagated: AtomicU64::new(initial),
        }))
    }

    /// Which comes first where several turns are taken.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// One signal of the CPU at a time.
    pub(super) fn turn(&self) -> plain::MutexGuard<'_, ()> {
        plain::lock(&self.turn)
    }

    fn side_on(&self, adapter: &Arc<Adapter>) -> Option<Arc<GlobalFence>> {
        let globals: Vec<_> = {
            let sides = plain::lock(&self.sides);
            sides
                .iter()
                .filter_map(|side| side.global.upgrade())
                .collect()
        };
        let mut globals = globals.into_iter();
        globals.find(|global| Arc::ptr_eq(global.adapter(), adapter))
    }

    /// The sides but this one.
    fn others(&self, than: &NativeFence) -> Vec<Arc<NativeFence>> {
        let sides = plain::lock(&self.sides);
        let fences = sides.iter().filter_map(|side| side.fence.upgrade());
        fences
            .filter(|fence| !std::ptr::eq(Arc::as_ptr(fence), than))
            .collect()
    }

    /// A signal on side `from` has stored `value`: the others hear of it. Who is told of the end of his wait is told by
    /// the caller, when it has no turn any more.
    pub(super) fn propagate(&self, from: &NativeFence, value: u64, told: &mut Listeners) {
        // Before the others hear: who sees that a value was propagated need not do it again, and who does not does.
        self.propagated.store(value, Ordering::Release);
        for side in self.others(from) {
            side.hear(value, told);
        }
    }

    /// The same for an interrupt on side `from` that does not say with which value it was signalled, if it was.
    pub(super) fn propagate_news(&self, from: &NativeFence, told: &mut Listeners) {
        let value = from.current_value();
        if value != self.propagated.load(Ordering::Acquire) {
            self.propagate(from, value, told);
        }
    }

    /// A signal on side `from` will store a lower value: what was told before says nothing to who comes from now on
    /// (NF-26).
    pub(super) fn rewind(&self, from: &NativeFence, told: &mut Listeners) {
        for side in self.others(from) {
            side.hear_of_rewind(told);
        }
    }
}

impl Process {
    /// `D3DKMTCreateNativeFence` with `CrossAdapter` and `Shared`, type DEFAULT: others open it on this adapter and on
    /// other ones of this process (XA-01, XA-02).
    ///
    /// # Errors
    /// As [`Process::create_shared_fence`].
    pub fn create_cross_adapter_fence(
        self: &Arc<Self>,
        initial: u64,
        asked: impl Into<FenceTerms>,
    ) -> Result<FenceObject, OsError> {
        self.check_fences()?;
        let cross = CrossAdapterFence::new(initial, asked.into())?;
        self.open_side(&cross, Some(initial))
    }

    /// A handle on a fence that another adapter may have made: on this adapter's side, which is made where there is
    /// none.
    pub(super) fn open_cross_adapter(
        self: &Arc<Self>,
        cross: &Arc<CrossAdapterFence>,
    ) -> Result<FenceObject, OsError> {
        self.check_fences()?;
        // One at a time, from the look to the entry: else each of several would make a side.
        let _turn = self.adapter().turn_to_open_passed();
        match cross.side_on(self.adapter()) {
            Some(global) => self.open(global, |_| Ok(())),
            None => self.open_side(cross, None),
        }
    }

    fn open_side(
        self: &Arc<Self>,
        cross: &Arc<CrossAdapterFence>,
        initial: Option<u64>,
    ) -> Result<FenceObject, OsError> {
        let adapter = self.adapter();
        let segments = adapter.default_segments(FenceMemory::System, true)?;
        let storage =
            FenceStorage::cross_adapter(&cross.current, adapter.ddi().providers(), segments)?;
        let terms = Terms {
            signaller: Signaller::Openers,
            access: cross.terms.access,
            is_shareable: true,
            keeps_value_on_tdr: cross.terms.no_signal_max_value_on_tdr,
            reach: Reach::Adapters,
        };
        let fence = adapter.register_fence(terms, storage, initial)?;
        fence.crosses(cross);
        let object = self.open_first(GlobalFence::new(fence, adapter))?;
        // Before anybody has a handle to wait by: a signal whose propagation does not find the side has stored before.
        let mut sides = plain::lock(&cross.sides);
        sides.retain(|side| side.global.strong_count() > 0);
        sides.push(Side {
            fence: Arc::downgrade(object.global().fence()),
            global: Arc::downgrade(object.global()),
        });
        Ok(object)
    }
}

impl NativeFence {
    /// An interrupt of this adapter has named `value`, or none.
    pub(super) fn propagate(&self, value: Option<u64>) {
        let Some(cross) = self.cross_adapter() else {
            return;
        };
        let mut told = Listeners::default();
        match value {
            Some(value) => cross.propagate(self, value, &mut told),
            None => cross.propagate_news(self, &mut told),
        }
        told.tell();
    }

    /// On another adapter `value` was stored: its engines look again, then its waiters go on.
    fn hear(&self, value: u64, told: &mut Listeners) {
        let mut state = self.hold();
        self.have_engines_look();
        let ended = state.waiters.release_recorded(value);
        self.settle(&mut state, ended, false, told);
    }

    /// On another adapter a lower value will be stored.
    fn hear_of_rewind(&self, told: &mut Listeners) {
        let state: &mut State = &mut self.hold();
        self.settle(state, Vec::new(), false, told);
        self.rewind(state);
    }

    /// With the fence's lock held, as every update.
    fn have_engines_look(&self) {
        if self.life().end().is_some() {
            return;
        }
        let update = CurrentValueUpdate {
            fence: self.id(),
            value: self.current_value(),
            word: self.current_word(),
        };
        let flags = UpdateCurrentValuesFlags::NOTIFICATION_ONLY;
        if let Err(error) = self.ddi().update_current_values_from_cpu(&[update], flags) {
            let record = Record::update_of_current_value_failed(self.id(), &error);
            self.life().bug_check(record);
        }
    }
}
