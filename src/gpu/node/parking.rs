//! Parking of a node: letting the engine go when nothing can run, and bringing it back.
//!
//! An engine whose queues stand at waits is let go in two steps. First the doorbells say that
//! producers must call, and the OS is asked to wait in the queues' stead: it adds a waiter to each
//! fence and posts its MonitoredValue to every engine. Then [`Node::finish_parking`] looks at the
//! rings once more and parks, unless somebody has woken the engine since the first step.
//!
//! Why no wake-up is lost. Of a producer that does not call, its write index is seen by the look at
//! the rings after `meet_doorbell`. Of one that calls, and of a CPU signal: its read-modify-write of
//! the engine word comes before ours of the first step, then what it stored before is seen by what
//! looks after that (here, and the OS after its post); or between the two steps, then parking fails;
//! or after the second, then it finds Parked. Of another engine's signal: the OS's waiter is one like
//! any other, so the contract of UpdateMonitoredValues holds (NF-08). The OS's read after the post
//! is the last look of `decisions.md` 8; no slice is needed for it where the CPU can read
//! CurrentValue.
//!
//! It reads none of type INTRA_GPU (NF-13). So where a queue stands at one of these, the second step
//! submits one more slice first, after the post, and parks in an attempt that finds the same waits after
//! it. By the contract a signal by another engine was stored before a slice of that engine ended which
//! knew of no post: then it is seen by the look, or, where that slice was in flight over the post, the
//! OS is told to look again and brings the engine back instead. Or it raises. Whoever brings the engine
//! back over the look has it look once more: their stores may be later than what it saw.

use super::Node;
use super::inner::{Inner, KnownFence, Life, ParkingState};
use crate::abi::{DoorbellStatus, FenceId, LocalHandle, ObjectId};
use crate::gpu::{EngineWait, Parking, QueueScan, QueueStanding, Taken, Wake};
use crate::sync::lock;

impl ParkingState {
    /// The OS is to wait for these, and for nothing else.
    fn ask(&mut self, waits: Vec<EngineWait>) {
        let has_looked = self.look.take() == Some(true) && self.known && self.waits == waits;
        self.look = has_looked.then_some(true);
        self.attempt += 1;
        self.known = true;
        self.waits.clone_from(&waits);
        self.news = Some(Parking::Asked {
            attempt: self.attempt,
            waits,
        });
    }

    /// The engine runs on.
    pub(super) fn over(&mut self) {
        self.look = None;
        if self.known {
            self.known = false;
            self.news = Some(Parking::Over {
                attempt: self.attempt,
            });
        }
    }
}

impl Node {
    /// Nothing can go on and no slice is in flight: the first step.
    pub(super) fn begin_parking(&self, inner: &mut Inner) {
        self.word.begin_parking();
        if inner.self_service {
            inner.self_service = false;
            for queue in inner.run_list.connected() {
                queue.set_connected(DoorbellStatus::ConnectedNotify);
                queue.meet_doorbell();
            }
        }
        // No slice is in flight: one that was to look has looked.
        inner.parking.look = inner.parking.look.map(|_| true);
        let scan = QueueScan::of(inner.run_list.active());
        if scan.runnable {
            self.run_on(inner, 1);
        } else if scan.blocked {
            if let Some(waits) = waits_of(inner) {
                inner.parking.ask(waits);
                inner.parking.asked = true;
            } else {
                self.run_on(inner, 1);
            }
        } else {
            inner.parking.over();
            self.park(inner, false);
        }
    }

    /// The OS waits in the queues' stead: the second step of attempt `attempt`. `true` if the
    /// engine is parked: then the other engines are to [`Node::interrupt_from_now`].
    #[must_use]
    pub fn finish_parking(&self, attempt: u64) -> bool {
        let mut inner = lock(&self.inner);
        let is_asked = inner.parking.asked && inner.parking.attempt == attempt;
        if !is_asked || inner.life != Life::Up {
            return false;
        }
        inner.parking.asked = false;
        let scan = QueueScan::of(inner.run_list.active());
        if scan.runnable {
            self.run_on(&mut inner, 1);
            return false;
        }
        if scan.blocked && inner.parking.look.is_none() && inner.stands_at_intra_gpu() {
            self.look_once_more(&mut inner);
            return false;
        }
        if scan.blocked {
            // Before it parks: whoever takes it back says that it waits no more.
            self.crowd.begin_waiting();
            inner.parking.waiting = true;
        }
        self.park(&mut inner, scan.blocked)
    }

    /// A slice that looks at what the CPU does not read. The OS goes on waiting in the queues' stead.
    fn look_once_more(&self, inner: &mut Inner) {
        inner.parking.look = Some(false);
        let _ = self.word.wake();
        self.submit(inner);
    }

    /// A queue was taken out. If the OS waits in its stead, it is told what is left to wait for.
    pub(super) fn leave_waits(&self, inner: &mut Inner) {
        if !inner.parking.known {
            return;
        }
        if let Some(waits) = waits_of(inner) {
            if waits.is_empty() {
                self.end_waiting(inner);
            }
            inner.parking.ask(waits);
        } else if let Wake::MustSubmit(taken) = self.word.wake() {
            self.start(inner, taken);
        }
    }

    fn park(&self, inner: &mut Inner, blocked: bool) -> bool {
        let parked = self.word.park(blocked);
        if parked {
            inner.counters.parks += 1;
            self.crowd.leave();
        } else {
            self.end_waiting(inner);
            self.run_on(inner, 1);
        }
        parked
    }

    pub(super) fn end_waiting(&self, inner: &mut Inner) {
        if std::mem::take(&mut inner.parking.waiting) {
            self.crowd.end_waiting();
        }
    }

    /// Another engine sleeps for values that this one may reach: a slice in flight that would not
    /// end for it is asked to. Those that are submitted from now on do.
    pub fn interrupt_from_now(&self) {
        let mut inner = lock(&self.inner);
        if inner.serviced < inner.last_polled {
            self.request_end(&mut inner);
        }
    }

    /// A value that the engine waits for was reached, by somebody who does not run on it.
    pub fn resume(&self) {
        // A look that is under way may have come too early for this. Before the engine's word: who parks
        // after it sees the one or the other.
        lock(&self.inner).parking.look = None;
        if matches!(self.wake(), Wake::MustSubmit(_)) {
            lock(&self.inner).counters.returns += 1;
        }
    }

    /// CurrentValues were stored by the CPU: queues that wait for one of these fences look again.
    pub fn signalled(&self, is_stored: impl Fn(FenceId) -> bool) {
        if !self.word.signalled() {
            return;
        }
        let mut inner = lock(&self.inner);
        let waits = |wait: &EngineWait| is_stored(wait.fence);
        if inner.parking.waits.iter().any(waits)
            && let Wake::MustSubmit(taken) = self.word.wake()
        {
            self.start(&mut inner, taken);
        }
    }

    /// There is new work: takes the engine from Parked, if it was.
    pub(super) fn wake(&self) -> Wake {
        let wake = self.word.wake();
        if let Wake::MustSubmit(taken) = wake {
            self.start(&mut lock(&self.inner), taken);
        }
        wake
    }

    /// The engine was taken from Parked.
    fn start(&self, inner: &mut Inner, taken: Taken) {
        // Whoever lost it meanwhile has let it leave.
        self.crowd.enter();
        if !self.word.is_taken(taken) {
            return;
        }
        self.end_waiting(inner);
        self.submit(inner);
        // After the slice is in flight, under the lock under which a watch looks whether one is.
        self.crowd.activity().begin();
    }
}

impl Inner {
    fn stands_at_intra_gpu(&self) -> bool {
        let is_intra_gpu = |known: &KnownFence| known.is_intra_gpu;
        let mut waits = self.parking.waits.iter();
        waits.any(|wait| self.known_fence(wait.fence).is_some_and(is_intra_gpu))
    }

    fn is_always_signaled(&self, fence: FenceId) -> bool {
        let known = self.known_fence(fence);
        known.is_some_and(|known| known.is_always_signaled)
    }

    fn known_fence(&self, fence: FenceId) -> Option<&KnownFence> {
        let known = self.known.get(&fence.slot);
        known.filter(|known| known.id == fence)
    }
}

/// What the queues stand at; `None` if one of them stands at nothing that can be waited for, which it finds
/// out when it looks: its handle was closed meanwhile, or the fence is always signaled (NF-19). A wait for 0
/// never waits, so that is a state that cannot be.
///
/// Both are told under the lock that the caller holds, and then the engine's word is changed ([`Node::signalled`]).
/// So what was told before this look is found here; of what is told later the word's change comes either before the
/// parking, which fails, or after it, and then it finds the engine parked at these waits and brings it back.
fn waits_of(inner: &Inner) -> Option<Vec<EngineWait>> {
    let mut waits = Vec::new();
    for queue in inner.run_list.active() {
        let state = queue.state();
        if QueueStanding::of(&state, || queue.write_index()) != QueueStanding::Blocked {
            continue;
        }
        let handle = LocalHandle::from_raw((state.head_control >> 32) as u32);
        let ObjectId::Fence(fence) = inner.handles.get(&queue.process())?.object(handle)? else {
            return None;
        };
        if inner.is_always_signaled(fence) {
            return None;
        }
        let wait = EngineWait {
            fence,
            value: (state.head_value != 0).then_some(state.head_value)?,
        };
        if !waits.contains(&wait) {
            waits.push(wait);
        }
    }
    Some(waits)
}
