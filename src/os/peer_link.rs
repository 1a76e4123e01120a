//! Peer link: one operating system's place among those that have a fence open (`peers`).
//!
//! It has a slot of the fence's page, hears when it is called there, and calls the others. It knows of
//! each other slot by whose descriptor its owner's end is told; an owner that is new is looked up when it
//! is first seen. The descriptors are closed with the link.

use super::native_fence::NativeFence;
use super::opener_page::OpenerPage;
use super::peer_ear::PeerEar;
use super::peer_watch::{PeerWatch, WatchNumber};
use super::peers::{PeerCounters, Peers, Reached};
use super::process_identity::{ProcessDescriptor, ProcessIdentity, Standing, has_ended};
use super::reached_words::ReachedWords;
use super::shared_pages::{PassFenceError, SharedPages};
use crate::abi::{NO_CPU_WAITER, OpenerSlot};
use crate::sync::plain::AtomicU64;
use crate::sync::{Arc, Mutex, Ordering, fence, lock};
use std::sync::OnceLock;

const SLOTS: usize = OpenerSlot::SLOTS as usize;

/// The owner of another slot.
#[derive(Debug)]
struct Peer {
    owner: u64,
    /// Readable when it has ended; `None` where the system had no descriptor for it.
    process: Option<ProcessDescriptor>,
}

#[derive(Debug)]
struct Known {
    /// What the own slot says.
    awaited: u64,
    /// The own slot is another's, or nobody's and not to be had.
    is_lost: bool,
    /// Where the others tell this one.
    reached: ReachedWords,
    /// Of whom it is still to be said that their end will not be noticed, and why.
    unwatched: Vec<(u64, std::io::Error)>,
    peers: [Option<Peer>; SLOTS],
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct PeerLink {
    page: OpenerPage,
    slot: usize,
    own: ProcessIdentity,
    watch: Arc<PeerWatch>,
    number: WatchNumber,
    ear: OnceLock<PeerEar>,
    known: Mutex<Known>,
    told: AtomicU64,
    called: AtomicU64,
    heard: AtomicU64,
    cleared: AtomicU64,
    unwatched: AtomicU64,
}

impl PeerLink {
    /// The first opener's, whose engines have the first slot already.
    pub(super) fn first(
        pages: &Arc<SharedPages>,
        watch: Arc<PeerWatch>,
    ) -> Result<Arc<Self>, PassFenceError> {
        let (page, own) = (pages.page()?, ProcessIdentity::own()?);
        if !page.take_slot(0, own, NO_CPU_WAITER) {
            // Nobody else has had the page yet.
            return Err(PassFenceError::NoFence(
                "the first slot of a new page is taken",
            ));
        }
        Ok(Self::new(page, 0, own, watch))
    }

    /// One more opener's.
    pub(super) fn join(
        pages: &Arc<SharedPages>,
        watch: Arc<PeerWatch>,
    ) -> Result<Arc<Self>, PassFenceError> {
        let (page, own) = (pages.page()?, ProcessIdentity::own()?);
        if let Some(slot) = page.join(own) {
            return Ok(Self::new(page, slot, own, watch));
        }
        let cleared = clear_the_dead(&page);
        match (page.join(own), cleared) {
            (Some(slot), _) => Ok(Self::new(page, slot, own, watch)),
            (None, Ok(())) => Err(PassFenceError::TooManyOpeners),
            (None, Err(error)) => Err(error.into()),
        }
    }

    fn new(
        page: OpenerPage,
        slot: usize,
        own: ProcessIdentity,
        watch: Arc<PeerWatch>,
    ) -> Arc<Self> {
        Arc::new(Self {
            page,
            slot,
            own,
            number: watch.number(),
            watch,
            ear: OnceLock::new(),
            known: Mutex::new(Known {
                awaited: NO_CPU_WAITER,
                is_lost: false,
                reached: ReachedWords::new(slot),
                unwatched: Vec::new(),
                peers: Default::default(),
            }),
            told: AtomicU64::new(0),
            called: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            cleared: AtomicU64::new(0),
            unwatched: AtomicU64::new(0),
        })
    }

    /// Its slot of the page.
    pub(super) fn slot(&self) -> usize {
        self.slot
    }

    /// From now on the fence hears of the others, and tells them of what is signalled here. Nobody is
    /// woken by that.
    pub(super) fn listen(self: &Arc<Self>, fence: &Arc<NativeFence>) -> Result<(), PassFenceError> {
        // Before the others are looked at: of what they tell after that, and of their ends, it hears.
        self.watch.tell_to(self.number, fence);
        let calls = self.page.calls(self.slot);
        let ear = PeerEar::start(&self.page, self.slot, calls, fence)?;
        self.ear.get_or_init(|| ear);
        fence.link(Arc::clone(self) as _);
        Ok(())
    }

    /// What the others did before is looked at, and they know of the fence.
    pub(super) fn look(&self, fence: &NativeFence) {
        fence.look_at_peers();
        self.call();
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        let own = self.slot;
        (0..SLOTS).filter(move |slot| *slot != own)
    }

    /// Whether the slot has an owner that lives, as far as is known.
    fn meets(&self, known: &mut Known, slot: usize) -> bool {
        let owner = self.page.owner(slot);
        let peer = &mut known.peers[slot];
        if owner == 0 {
            *peer = None;
            return false;
        }
        if peer.as_ref().is_some_and(|peer| peer.owner == owner) {
            return true;
        }
        let watched = match ProcessIdentity::standing(owner) {
            Ok(Standing::Lives(process)) => {
                let listens = self.watch.listen_for_end(self.number, slot, &process);
                listens.map(|()| process)
            }
            Ok(Standing::Ended) => {
                *peer = None;
                self.clear(slot, owner);
                return false;
            }
            Err(error) => Err(error),
        };
        let process = watched.map_err(|error| {
            self.unwatched.fetch_add(1, Ordering::Relaxed);
            // Not more than it can soon be said of, whatever others write.
            if known.unwatched.len() < SLOTS {
                known.unwatched.push((owner, error));
            }
            // Whoever calls this has the fence's lock: the thread that is called by this says it.
            self.look_again();
        });
        let process = process.ok();
        *peer = Some(Peer { owner, process });
        true
    }

    /// Tells the owner of a slot, which waits for more than `awaited`, of CurrentValue or the greater value
    /// of a record. What it answers to: it is left out until then if it waits for less.
    fn tell(
        &self,
        slot: usize,
        awaited: u64,
        current_value: &dyn Fn() -> u64,
        recorded: u64,
    ) -> u64 {
        let telling = self.page.telling().begin(self.slot, slot);
        // Read after that: it was there after those waiters had come that are told of it.
        let current = current_value();
        // So was this: those that came after a rewind have seen that there was one.
        let is_of_now = recorded > current && !self.page.was_rewound();
        let reached = if is_of_now { recorded } else { current };
        if awaited < reached {
            // Counted before: whoever it wakes may ask for the count.
            self.told.fetch_add(1, Ordering::Relaxed);
            telling.tell(reached);
            drop(telling);
            self.page.call(slot);
        }
        current
    }

    fn clear(&self, slot: usize, dead: u64) {
        if self.page.clear(slot, dead) {
            self.cleared.fetch_add(1, Ordering::Relaxed);
            // If it lives after all it finds that it has lost its slot, and takes it again.
            self.page.call(slot);
        }
    }

    fn has_slot(&self) -> bool {
        self.page.owner(self.slot) == self.own.word()
    }

    /// Says in the own slot what is waited for. If it is another's by now, that one's word is not its own any
    /// more, and it is called to say it again.
    fn say_awaited(&self, known: &Known) {
        self.page.set_awaited(self.slot, known.awaited);
        // Before CurrentValue is read again: pairs with the signaller's, in `NativeFence::least`. And before the
        // owner is: pairs with that of `OpenerPage::take_back`; who took the slot before that is seen, and who takes
        // it later stores later.
        fence(Ordering::SeqCst);
        if !self.has_slot() {
            self.page.call(self.slot);
        }
    }
}

/// The process of a slot cannot be watched: its end is noticed when its slot is needed.
fn say_unwatched(owner: u64, error: &std::io::Error) {
    eprintln!(
        "native-fence: the end of process {} will not be noticed: {error}",
        owner & ((1 << OpenerSlot::PROCESS_BITS) - 1)
    );
}

/// Frees the slots of processes that have ended.
///
/// # Errors
/// Of some it is not known whether they have.
fn clear_the_dead(page: &OpenerPage) -> std::io::Result<()> {
    let mut all = Ok(());
    for slot in 0..SLOTS {
        let owner = page.owner(slot);
        match ProcessIdentity::standing(owner) {
            Ok(Standing::Lives(_)) => {}
            Ok(Standing::Ended) => {
                if page.clear(slot, owner) {
                    page.call(slot);
                }
            }
            Err(error) => all = Err(error),
        }
    }
    all
}

impl Peers for PeerLink {
    fn await_own(&self, monitored_value: u64) {
        let mut known = lock(&self.known);
        if known.is_lost || known.awaited == monitored_value {
            return;
        }
        known.awaited = monitored_value;
        self.say_awaited(&known);
        drop(known);
        self.call();
    }

    fn least(&self, own: u64, current_value: &dyn Fn() -> u64, recorded: u64) -> Option<u64> {
        let mut known = lock(&self.known);
        if known.is_lost {
            return None;
        }
        let has_slot = self.has_slot();
        if !has_slot {
            // Nobody tells this one any more; what to do about it needs the fence's lock let go.
            self.look_again();
        }
        let (mut least, reached) = (own, current_value());
        for slot in self.others() {
            if !self.meets(&mut known, slot) {
                continue;
            }
            let awaited = self.page.awaited(slot);
            let mut answers_at = reached;
            // Who tells says so in its own slot, and without one tells nobody: it looks again.
            if has_slot && awaited < reached.max(recorded) {
                answers_at = self.tell(slot, awaited, current_value, recorded);
            }
            if awaited >= answers_at {
                least = least.min(awaited);
            }
        }
        Some(least)
    }

    fn rewind(&self) {
        self.page.rewind();
    }

    fn rewinds(&self) -> u64 {
        self.page.rewinds()
    }

    fn always_signal(&self) {
        if self.page.always_signal() {
            // Before the owners are read: pairs with that of who takes a slot, in `OpenerPage::take_back`.
            fence(Ordering::SeqCst);
            self.call();
        }
    }

    fn is_always_signaled(&self) -> bool {
        self.page.is_always_signaled()
    }

    fn has_others(&self) -> bool {
        self.others().any(|slot| self.page.owner(slot) != 0)
    }

    fn reached(&self) -> Vec<Reached> {
        let known = lock(&self.known);
        // In a slot that is another's by now stands what that one is told.
        if known.is_lost || !self.has_slot() {
            return Vec::new();
        }
        known.reached.take(self.page.telling())
    }

    fn waiter_comes(&self, number: u64) {
        // Of one that was never rewound, what others read is there still. Who waits has seen a lower value
        // after a rewind, and with it that there was one.
        if self.page.was_rewound() {
            let mut known = lock(&self.known);
            if !known.is_lost && self.has_slot() {
                known.reached.change(self.page.telling(), number);
            }
        }
    }

    fn heard(&self, ended: Option<usize>) {
        if let Some(slot) = ended {
            let mut known = lock(&self.known);
            let ended = |peer: &mut Peer| peer.process.as_ref().is_some_and(has_ended);
            // Another process may have the slot by now, and be known.
            if let Some(peer) = known.peers[slot].take_if(ended) {
                self.clear(slot, peer.owner);
            }
            return;
        }
        self.heard.fetch_add(1, Ordering::Relaxed);
        let unwatched = std::mem::take(&mut lock(&self.known).unwatched);
        for (owner, error) in unwatched {
            say_unwatched(owner, &error);
        }
    }

    fn call(&self) {
        for slot in self.others() {
            if self.page.owner(slot) != 0 {
                self.called.fetch_add(1, Ordering::Relaxed);
                self.page.call(slot);
            }
        }
    }

    fn look_again(&self) {
        self.page.call(self.slot);
    }

    fn keeps_slot(&self) -> bool {
        let mut known = lock(&self.known);
        if known.is_lost {
            return false;
        }
        if self.has_slot() {
            // Who had it before, and did not know yet that it has it no more, may have stored there.
            if self.page.awaited(self.slot) != known.awaited {
                self.say_awaited(&known);
                drop(known);
                self.call();
            }
            return true;
        }
        if !self.page.take_back(self.slot, self.own) {
            known.is_lost = true;
            drop(known);
            eprintln!("native-fence: another process has taken this one's slot of a shared fence");
            return false;
        }
        // As when it joined: others know neither it nor what it waits for.
        known.reached.restore(self.page.telling());
        self.say_awaited(&known);
        drop(known);
        self.call();
        true
    }

    fn counters(&self) -> PeerCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PeerCounters {
            told: read(&self.told),
            called: read(&self.called),
            heard: read(&self.heard),
            cleared: read(&self.cleared),
            unwatched: read(&self.unwatched),
        }
    }
}

impl Drop for PeerLink {
    fn drop(&mut self) {
        // No slice of this system refers to the fence any more: what its engines stored last, the
        // others look for now.
        self.page.leave(self.slot, self.own);
        self.call();
        self.watch.forget(self.number);
    }
}
