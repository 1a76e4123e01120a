//! Scheduler: what of the operating system monitored fences need.
//!
//! It keeps the software list of each queue and the CPU's waiters. Nothing of it runs by itself:
//! whoever queues, signals from the CPU or is interrupted takes its lock and looks. A look hands to
//! an engine what no wait holds back any more, and wakes the waiters whose value is reached
//! (MF-02, MF-03, MF-07).

use super::engine::Engine;
use super::store::{Place, Store};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, sleep_until};
use crate::vulkan::CommandBuffer;
use anyhow::{anyhow, ensure};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What a queue's list holds.
pub(super) enum Queued {
    Commands(CommandBuffer),
    Wait(Place, u64),
}

/// Number of a queue's list.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListId(usize);

pub(super) struct Scheduler {
    pub(super) store: Store,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    lists: Vec<List>,
    waiters: Vec<Waiter>,
    /// Why no wait can end well any more.
    problem: Option<String>,
}

struct List {
    engine: Arc<Engine>,
    queued: VecDeque<Queued>,
}

struct Waiter {
    place: Place,
    value: u64,
    woken: Arc<Condvar>,
}

impl Scheduler {
    pub(super) fn new(store: Store) -> Arc<Self> {
        Arc::new(Self {
            store,
            state: Mutex::default(),
        })
    }

    /// A list for a queue of an engine.
    pub(super) fn add_list(&self, engine: &Arc<Engine>) -> ListId {
        let mut state = lock(&self.state);
        state.lists.push(List {
            engine: Arc::clone(engine),
            queued: VecDeque::new(),
        });
        ListId(state.lists.len() - 1)
    }

    /// Puts more behind what a list holds, and hands to the engine what nothing holds back. What is
    /// held back stays in the list: the caller does not wait.
    pub(super) fn queue(
        &self,
        list: ListId,
        more: impl IntoIterator<Item = Queued>,
    ) -> anyhow::Result<()> {
        let mut state = lock(&self.state);
        let list = &mut state.lists[list.0];
        list.queued.extend(more);
        let mut ready = Vec::new();
        list.take_ready(&self.store, &mut ready);
        list.engine.submit(&ready)
    }

    /// Drops what a list still holds back; its queue is gone.
    pub(super) fn forget(&self, list: ListId) {
        lock(&self.state).lists[list.0].queued.clear();
    }

    /// What an interrupt asks for: a look at all that waits.
    pub(super) fn interrupted(&self, lost: bool) {
        let mut state = lock(&self.state);
        if lost {
            state.fail("the Vulkan device of an engine is lost".into());
        }
        self.look(state);
    }

    /// A signal from the CPU (MF-04).
    pub(super) fn signal(&self, place: Place, value: u64) -> anyhow::Result<()> {
        let state = lock(&self.state);
        let now = self.store.read(place);
        ensure!(
            value >= now,
            "a monitored fence goes up: {value} after {now}"
        );
        self.store.write(place, value);
        self.look(state);
        Ok(())
    }

    /// Sleeps until a value is reached (MF-04).
    pub(super) fn wait(&self, place: Place, value: u64, timeout: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now().checked_add(timeout);
        let woken = Arc::new(Condvar::new());
        let mut state = lock(&self.state);
        loop {
            // Before the waiter is known to anybody, and after each time that it is woken: what was
            // stored in between is followed by an interrupt, and by a look.
            if let Some(outcome) = self.outcome(&state, place, value) {
                state.forget(&woken);
                return outcome;
            }
            state.remember(place, value, &woken);
            let Some(again) = sleep_until(&woken, state, deadline) else {
                lock(&self.state).forget(&woken);
                return Err(anyhow!("a monitored fence did not reach {value} in time"));
            };
            state = again;
        }
    }

    fn outcome(&self, state: &State, place: Place, value: u64) -> Option<anyhow::Result<()>> {
        if self.store.read(place) >= value {
            return Some(Ok(()));
        }
        let problem = state.problem.as_ref()?;
        Some(Err(anyhow!("{problem}")))
    }

    /// Looks at every list and every waiter, and gives the lock back.
    fn look(&self, mut state: MutexGuard<'_, State>) {
        if let Err(error) = state.hand_over(&self.store) {
            state.fail(format!("{error:#}"));
        }
        let hopeless = state.problem.is_some();
        let waiters = state.waiters.iter();
        let ready = |waiter: &&Waiter| hopeless || self.store.read(waiter.place) >= waiter.value;
        let woken: Vec<_> = waiters
            .filter(ready)
            .map(|waiter| Arc::clone(&waiter.woken))
            .collect();
        // Without the lock, which each of them takes.
        drop(state);
        for waiter in woken {
            waiter.notify_one();
        }
    }
}

impl State {
    /// Hands each engine what nothing holds back, of all its queues in one go.
    fn hand_over(&mut self, store: &Store) -> anyhow::Result<()> {
        let mut ready = Vec::new();
        let mut lists = self.lists.iter_mut().peekable();
        while let Some(list) = lists.next() {
            list.take_ready(store, &mut ready);
            let more = lists.peek();
            if more.is_none_or(|next| !Arc::ptr_eq(&next.engine, &list.engine)) {
                list.engine.submit(&ready)?;
                ready.clear();
            }
        }
        Ok(())
    }

    fn fail(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    /// Puts a waiter on the list, once.
    fn remember(&mut self, place: Place, value: u64, woken: &Arc<Condvar>) {
        self.forget(woken);
        self.waiters.push(Waiter {
            place,
            value,
            woken: Arc::clone(woken),
        });
    }

    fn forget(&mut self, woken: &Arc<Condvar>) {
        self.waiters
            .retain(|waiter| !Arc::ptr_eq(&waiter.woken, woken));
    }
}

impl List {
    /// Takes what comes before the first wait that is not satisfied.
    fn take_ready(&mut self, store: &Store, ready: &mut Vec<CommandBuffer>) {
        while let Some(next) = self.queued.pop_front() {
            match next {
                Queued::Commands(commands) => ready.push(commands),
                Queued::Wait(place, value) if store.read(place) >= value => {}
                Queued::Wait(..) => {
                    self.queued.push_front(next);
                    break;
                }
            }
        }
    }
}
