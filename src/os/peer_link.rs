//! Peer link: one operating system's place among those that have a fence open (`peers`).
//!
//! It has a slot of the fence's page, hears when it is called there, and calls the others. It knows of
//! each other slot by whose descriptor its owner's end is told; an owner that is new is looked up when it
//! is first seen. The descriptors are closed with the link.

use super::native_fence::NativeFence;
use super::opener_page::OpenerPage;
use super::peer_ear::PeerEar;
use super::peer_watch::{PeerWatch, WatchNumber};
use super::peers::{PeerCounters, Peers};
use super::process_identity::{ProcessDescriptor, ProcessIdentity, Standing, has_ended};
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
                peers: Default::default(),
            }),
            told: AtomicU64::new(0),
            called: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            cleared: AtomicU64::new(0),
        })
    }

    /// Its slot of the page.
    pub(super) fn slot(&self) -> usize {
        self.slot
    }

    /// From now on the fence hears of the others, and they know of it.
    pub(super) fn begin(self: &Arc<Self>, fence: &Arc<NativeFence>) -> Result<(), PassFenceError> {
        // Before the others are looked at: of what they tell after that, and of their ends, it hears.
        self.watch.tell_to(self.number, fence);
        let calls = self.page.calls(self.slot);
        let ear = PeerEar::start(&self.page, self.slot, calls, fence)?;
        self.ear.get_or_init(|| ear);
        fence.link(Arc::clone(self) as _);
        self.call();
        Ok(())
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
        let process = match ProcessIdentity::standing(owner) {
            Ok(Standing::Lives(process)) => {
                match self.watch.listen_for_end(self.number, slot, &process) {
                    Ok(()) => Some(process),
                    Err(error) => unwatched(owner, &error),
                }
            }
            Ok(Standing::Ended) => {
                *peer = None;
                self.clear(slot, owner);
                return false;
            }
            Err(error) => unwatched(owner, &error),
        };
        *peer = Some(Peer { owner, process });
        true
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
}

/// The process of a slot cannot be watched: its end is noticed when its slot is needed.
fn unwatched(owner: u64, error: &std::io::Error) -> Option<ProcessDescriptor> {
    eprintln!(
        "native-fence: the end of process {} will not be noticed: {error}",
        owner & ((1 << OpenerSlot::PROCESS_BITS) - 1)
    );
    None
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
        drop(known);
        self.page.set_awaited(self.slot, monitored_value);
        // Before CurrentValue is read again: pairs with the signaller's, in `NativeFence::post`.
        fence(Ordering::SeqCst);
        self.call();
    }

    fn least(&self, own: u64, current_value: &dyn Fn() -> u64, recorded: u64) -> Option<u64> {
        let mut known = lock(&self.known);
        if known.is_lost {
            return None;
        }
        if !self.has_slot() {
            // Nobody tells this one any more; what to do about it needs the fence's lock let go.
            self.look_again();
        }
        let before = current_value();
        let mut least = own;
        for slot in self.others() {
            if !self.meets(&mut known, slot) {
                continue;
            }
            let awaited = self.page.awaited(slot);
            let (mut current, mut reached) = (before, recorded.max(before));
            // After the word: whose waiter came after a rewind has seen that there was one, and a lower
            // CurrentValue, and so does this read of it.
            if awaited < reached && self.page.was_rewound() {
                current = current_value();
                reached = current;
            }
            if awaited < reached {
                // Counted before: whoever it wakes may ask for the count.
                self.told.fetch_add(1, Ordering::Relaxed);
                self.page.tell(slot, reached);
                self.page.call(slot);
            }
            if awaited >= current {
                least = least.min(awaited);
            }
        }
        Some(least)
    }

    fn rewind(&self) {
        self.page.rewind();
    }

    fn reached(&self) -> u64 {
        self.page.take_reached(self.slot)
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
        if known.is_lost || self.has_slot() {
            return !known.is_lost;
        }
        if !self.page.take_back(self.slot, self.own) {
            known.is_lost = true;
            eprintln!("native-fence: another process has taken this one's slot of a shared fence");
            return false;
        }
        // As when it joined: others know neither it nor what it waits for.
        self.page.set_awaited(self.slot, known.awaited);
        drop(known);
        fence(Ordering::SeqCst);
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
