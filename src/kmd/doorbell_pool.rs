//! Doorbell pool: the physical doorbells of an engine, and who gives one up when there are fewer than
//! queues (HQ-13).
//!
//! Who connects takes a free one; else that of the queue which has been quiet longest, by its user's
//! rings as they were seen at each choice, and of several the one that has had it longest. One is not
//! taken while it changes hands, nor by who connects while its user may be in the midst of connecting it:
//! until the user has rung twice since, which a user does only for something new. Who finds none but these
//! is turned away and runs by calls: its status is CONNECTED_NOTIFY, which nobody takes away, and when its
//! user calls, it takes one whatever the other user does.
//!
//! Why there is no livelock. A user goes on ringing and connecting until it reads that it is connected. A
//! doorbell is taken by who connects only after its user has rung for something new, and so has read once
//! that it was connected; or by who calls, which it does after it has read so itself. So each loss of a
//! doorbell has a ring of its own that came to its end, and users who ring for a finite number of things
//! read DISCONNECTED_RETRY a finite number of times. Who waits here waits for a call of another thread in
//! the driver, never for a user.

use super::{DdiError, DoorbellId};
use crate::gpu::{Node, QueueSlot};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, sleep};
use std::num::NonZeroU32;

/// Rings by which a user says that it has read the status after the first of them.
const RINGS_THAT_TELL: u64 = 2;

/// What is done with a doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// A queue has it.
    Held,
    /// A thread connects or disconnects it.
    Changing,
}

/// A physical doorbell that a queue has.
#[derive(Debug)]
struct Held {
    doorbell: DoorbellId,
    slot: Arc<QueueSlot>,
    hold: Hold,
    /// Rings when it got it.
    first: u64,
    /// Rings at the last choice.
    seen: u64,
    /// The last choice at which there were more.
    stirred: u64,
}

impl Held {
    /// Whether its user may be between connecting and reading the status.
    fn is_fresh(&self) -> bool {
        self.seen.wrapping_sub(self.first) < RINGS_THAT_TELL
    }
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which queues got them.
    held: Vec<Held>,
    choices: u64,
}

/// Who asks for a doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    /// Its user connects.
    ByConnect,
    /// Its user has read that it is connected by calls, and calls.
    ByCall,
}

/// What who asks has got.
enum Claim {
    /// A free one.
    Own,
    /// One that another queue has to give up first.
    Of(DoorbellId, Arc<QueueSlot>),
    /// None.
    ByCall,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct DoorbellPool {
    limit: Option<NonZeroU32>,
    state: Mutex<State>,
    /// A doorbell has changed hands.
    changed: Condvar,
}

impl State {
    fn of(&mut self, doorbell: DoorbellId) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.doorbell == doorbell)
    }

    fn add(&mut self, doorbell: DoorbellId, slot: &Arc<QueueSlot>) {
        let rings = slot.rings();
        self.held.push(Held {
            doorbell,
            slot: Arc::clone(slot),
            hold: Hold::Changing,
            first: rings,
            seen: rings,
            stirred: self.choices,
        });
    }

    /// The one to be given up, which changes hands now; `None` where there is none for who asks.
    fn choose(&mut self, asks: Asks) -> Option<(DoorbellId, Arc<QueueSlot>)> {
        self.choices += 1;
        for held in &mut self.held {
            let rings = held.slot.rings();
            if rings != held.seen {
                held.seen = rings;
                held.stirred = self.choices;
            }
        }
        // A queue that is connected no more, by a stop or a loss, has no use for it.
        let is_over = |held: &Held| !held.slot.is_connected();
        let held = self.held.iter_mut();
        let free = held.filter(|held| {
            let is_spared = asks == Asks::ByConnect && held.is_fresh();
            held.hold == Hold::Held && (is_over(held) || !is_spared)
        });
        let chosen = free.min_by_key(|held| (!is_over(held), held.stirred))?;
        chosen.hold = Hold::Changing;
        Some((chosen.doorbell, Arc::clone(&chosen.slot)))
    }
}

impl DoorbellPool {
    /// Of so many; of any number where `None`.
    pub(super) fn new(limit: Option<NonZeroU32>) -> Self {
        Self {
            limit,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Connects a doorbell; `tell` has the OS say that another is disconnected.
    ///
    /// # Errors
    /// As [`Node::connect`].
    pub(super) fn connect(
        &self,
        node: &Node,
        doorbell: DoorbellId,
        slot: &Arc<QueueSlot>,
        tell: impl Fn(DoorbellId),
    ) -> Result<(), DdiError> {
        let Some(limit) = self.limit else {
            return Ok(node.connect(slot)?);
        };
        match self.claim(limit, doorbell, slot, Asks::ByConnect) {
            Claim::ByCall => return Ok(node.connect_by_call(slot)?),
            Claim::Own => {}
            Claim::Of(other, of) => self.take(node, other, &of, doorbell, slot, tell),
        }
        let connected = node.connect(slot);
        self.settle(doorbell, connected.is_ok());
        Ok(connected?)
    }

    /// The user of a queue that runs by calls has called: it gets a doorbell, if there is one for it.
    pub(super) fn called(
        &self,
        node: &Node,
        doorbell: DoorbellId,
        slot: &Arc<QueueSlot>,
        tell: impl Fn(DoorbellId),
    ) {
        let Some(limit) = self.limit else { return };
        if !node.is_by_call(slot) {
            return;
        }
        match self.claim(limit, doorbell, slot, Asks::ByCall) {
            Claim::ByCall => return,
            Claim::Own => {}
            Claim::Of(other, of) => self.take(node, other, &of, doorbell, slot, tell),
        }
        let given = node.give_doorbell(slot);
        self.settle(doorbell, given);
    }

    /// Disconnects a doorbell, or does what else ends a queue's hold on one.
    pub(super) fn release<T>(&self, doorbell: DoorbellId, disconnect: impl FnOnce() -> T) -> T {
        if self.limit.is_none() {
            return disconnect();
        }
        let mut state = self.settled(doorbell);
        let held = state.of(doorbell);
        let is_held = held.map(|held| held.hold = Hold::Changing).is_some();
        drop(state);
        let result = disconnect();
        // One that nobody held may have been connected meanwhile.
        if is_held {
            self.settle(doorbell, false);
        }
        result
    }

    /// The state when no thread changes the hands of this one.
    fn settled(&self, doorbell: DoorbellId) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        while state
            .of(doorbell)
            .is_some_and(|held| held.hold == Hold::Changing)
        {
            state = sleep(&self.changed, state);
        }
        state
    }

    /// A doorbell for a queue, which changes hands from now until [`DoorbellPool::settle`].
    fn claim(
        &self,
        limit: NonZeroU32,
        doorbell: DoorbellId,
        slot: &Arc<QueueSlot>,
        asks: Asks,
    ) -> Claim {
        let mut state = self.settled(doorbell);
        loop {
            if let Some(held) = state.of(doorbell) {
                held.hold = Hold::Changing;
                return Claim::Own;
            }
            if state.held.len() < limit.get() as usize {
                state.add(doorbell, slot);
                return Claim::Own;
            }
            if let Some((other, of)) = state.choose(asks) {
                return Claim::Of(other, of);
            }
            if state.held.iter().any(|held| held.hold == Hold::Held) {
                // Only who connects is turned away: a call finds any that is held.
                return Claim::ByCall;
            }
            drop(sleep(&self.changed, state));
            state = self.settled(doorbell);
        }
    }

    /// Has a queue give up its doorbell for another: the status first, then the disconnect.
    fn take(
        &self,
        node: &Node,
        other: DoorbellId,
        of: &QueueSlot,
        doorbell: DoorbellId,
        slot: &Arc<QueueSlot>,
        tell: impl Fn(DoorbellId),
    ) {
        if node.begin_taking(of) {
            tell(other);
            node.end_taking(of);
        }
        let mut state = lock(&self.state);
        state.held.retain(|held| held.doorbell != other);
        state.add(doorbell, slot);
        drop(state);
        self.changed.notify_all();
    }

    /// A doorbell has changed hands.
    fn settle(&self, doorbell: DoorbellId, is_held: bool) {
        let mut state = lock(&self.state);
        if is_held {
            if let Some(held) = state.of(doorbell) {
                held.hold = Hold::Held;
            }
        } else {
            state.held.retain(|held| held.doorbell != doorbell);
        }
        drop(state);
        self.changed.notify_all();
    }
}
