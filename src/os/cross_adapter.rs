//! Cross-adapter fence: one fence of several adapters of this process (XA-02, XA-03).
//!
//! CurrentValue is one word of system memory, which every adapter has. On each of them the fence is an object of that
//! adapter's own, a side (`cross_side`): native, with a MonitoredValue of its own that is 0 for good, so that every
//! signal interrupts; or monitored, where there are no native fences, and then its signals are the OS's. No adapter
//! hears of another, so the OS propagates what one tells of: it has the engines of the others look again
//! (UpdateCurrentValuesFromCpu with NotificationOnly) and releases who waits there.
//!
//! Why no wake-up is lost: take a waiter for V on one side and the signal that stores N ≥ V, which is not 0, on another
//! or the same. The signal raises, whatever was raised before and whoever waits. Its propagation takes the lock of the
//! waiter's fence after the store: either the waiter stands and is released by N, or it comes later and reads N
//! when it comes. A store of 0 satisfies nobody.
//! What a program's own work stores raises nothing: whoever watches the work has the OS look when it has ended, and then
//! all sides hear, whether or not the value is another one than they heard last. It may have been taken back and stored
//! again since, with a waiter between the two (NF-26).
//! Under the Vulkan memory model a record promises the CPU nothing of a CurrentValue that was stored before it
//! (`decisions.md` 4): it counts by its own value for who stands, and that who comes later reads it is practice. The
//! next signal, or any look at the fence, is the backstop.
//!
//! Locks: the turn of a signal of the CPU, of several in the order of their numbers, before the locks of fences; of
//! these never two of different adapters at a time. An interrupt takes no turn. Who propagates holds no
//! fence's lock, and a side holds none of this; the book of the sides is locked alone.

use super::cross_side::{CrossSide, Heard, Side};
use super::fence_options::FenceTerms;
use super::listener::Listeners;
use super::witness::{CrossStep, Witness};
use crate::abi::{PAGE_BYTES, WordGroup};
use crate::shared::{Block, Region, RegionError};
use crate::sync::{Arc, Mutex, MutexGuard, Ordering, lock, plain};
use std::sync::OnceLock;

/// The sides, and what one that comes later is to know.
#[derive(Debug, Default)]
struct Sides {
    open: Vec<(u64, Side)>,
    /// A device was lost that could signal the fence.
    is_lost: bool,
    /// CurrentValue was stored backwards.
    was_rewound: bool,
}

/// The next one's number.
static NUMBERS: plain::AtomicU64 = plain::AtomicU64::new(0);

/// A number that no other fence of several adapters of this process ever has.
pub(super) fn next_number() -> u64 {
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct CrossAdapterFence {
    number: u64,
    terms: FenceTerms,
    /// The page of CurrentValue.
    current: Arc<Region>,
    /// The OS's view of it.
    view: Block,
    sides: Mutex<Sides>,
    next_side: plain::AtomicU64,
    /// Of signals of the CPU: each compares and stores before the next one does, on whatever side.
    turn: Mutex<()>,
    witness: OnceLock<Arc<dyn Witness>>,
}

impl CrossAdapterFence {
    /// One that nobody has open.
    pub(super) fn new(terms: FenceTerms) -> Result<Arc<Self>, RegionError> {
        let current = Region::for_words(WordGroup::CurrentValues, PAGE_BYTES)?;
        Ok(Arc::new(Self {
            number: next_number(),
            terms,
            view: current.host()?,
            current,
            sides: Mutex::default(),
            next_side: plain::AtomicU64::new(0),
            turn: Mutex::default(),
            witness: OnceLock::new(),
        }))
    }

    /// Has somebody watch, if nobody does.
    pub(super) fn watch(&self, witness: Arc<dyn Witness>) {
        self.witness.get_or_init(|| witness);
    }

    /// Whether somebody does.
    pub(super) fn is_watched(&self) -> bool {
        self.witness.get().is_some()
    }

    /// Somebody may watch.
    pub(super) fn witnessed(&self, side: u64, step: CrossStep) {
        if let Some(witness) = self.witness.get() {
            witness.sees(side, step);
        }
    }

    /// What it was made for.
    pub(super) fn terms(&self) -> FenceTerms {
        self.terms
    }

    /// The page of CurrentValue.
    pub(super) fn current(&self) -> &Arc<Region> {
        &self.current
    }

    /// CurrentValue.
    pub(super) fn current_value(&self) -> u64 {
        self.view.word(0).observe()
    }

    /// Which comes first where several turns are taken.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// One signal of the CPU at a time.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// What a side that is being made has of it.
    pub(super) fn new_side(self: &Arc<Self>) -> CrossSide {
        let number = self.next_side.fetch_add(1, Ordering::Relaxed);
        CrossSide::new(Arc::clone(self), number)
    }

    /// From now on the side hears: before anybody can wait there, so a signal whose propagation does not find it has
    /// stored before he looks. Of a loss or a rewind either the walk finds the side, or it learns of it here.
    pub(super) fn joined(&self, number: u64, side: Side) {
        let mut sides = lock(&self.sides);
        sides.open.retain(|(_, side)| side.is_open());
        let fence = side.fence();
        sides.open.push((number, side));
        let (is_lost, was_rewound) = (sides.is_lost, sides.was_rewound);
        drop(sides);
        let Some(fence) = fence else {
            return;
        };
        if was_rewound {
            let mut told = Listeners::default();
            fence.hear_of_rewind(&mut told);
            told.tell();
        }
        if is_lost {
            fence.lose();
        }
    }

    /// Looks for a side.
    pub(super) fn find<T>(&self, find: impl FnMut(&Side) -> Option<T>) -> Vec<T> {
        let sides = lock(&self.sides);
        let open = sides.open.iter();
        open.map(|(_, side)| side).filter_map(find).collect()
    }

    /// The sides but this one. What `note` notes first, a side that is not among them learns when it joins.
    fn others(&self, than: u64, note: impl FnOnce(&mut Sides)) -> Vec<(u64, Heard)> {
        let mut sides = lock(&self.sides);
        note(&mut sides);
        let others = sides.open.iter().filter(|(number, _)| *number != than);
        others
            .filter_map(|(number, side)| Some((*number, side.fence()?)))
            .collect()
    }

    /// Whether somebody may signal it on a side but this one. The caller holds no fence's lock.
    pub(super) fn others_may_signal(&self, than: u64) -> bool {
        let others = self.others(than, |_| {});
        others.iter().any(|(_, side)| side.may_be_signalled())
    }

    /// A signal on side `from` has stored `value`: the others hear of it. Who is told of the end of his wait is told by
    /// the caller, when it has no turn any more.
    pub(super) fn propagate(&self, from: u64, value: u64, told: &mut Listeners) {
        let others = self.others(from, |_| {});
        if !others.is_empty() {
            self.witnessed(from, CrossStep::Propagated(value));
        }
        for (number, side) in others {
            self.witnessed(number, CrossStep::Heard(value));
            side.hear(value, told);
        }
    }

    /// A signal on side `from` will store a lower value: what was told before says nothing to who comes from now on
    /// (NF-26).
    pub(super) fn rewind(&self, from: u64, told: &mut Listeners) {
        for (_, side) in self.others(from, |sides| sides.was_rewound = true) {
            side.hear_of_rewind(told);
        }
    }

    /// A device of side `from` is lost that could signal it (XA-11).
    pub(super) fn lose(&self, from: u64) {
        for (_, side) in self.others(from, |sides| sides.is_lost = true) {
            side.lose();
        }
    }
}
