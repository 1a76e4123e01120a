//! Kernel book: what an engine was handed through the OS, and what the OS is to be told of it.
//!
//! The OS names each command by an id that rises. Queues of one engine run side by side, so the last
//! completed id is the greatest completed one below which none is outstanding: it advances only when a
//! command completes.
//!
//! What is told stands in one list for the engine, and one thread at a time tells; what comes meanwhile is
//! told by it. So the order stays, that of several queues too: what completed before a preemption was
//! answered is told before it is.

use super::Interrupt;
use crate::sync::{Mutex, lock};
use std::collections::{BTreeSet, VecDeque};

#[derive(Debug, Default)]
struct State {
    /// Handed over, and neither completed nor taken back.
    outstanding: BTreeSet<u64>,
    /// Completed, and a lesser id is outstanding.
    completed: BTreeSet<u64>,
    last_completed: u64,
    /// A preemption was asked for and is not answered.
    preempting: bool,
    /// To be told, oldest first.
    news: VecDeque<Interrupt>,
    telling: bool,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct KernelBook(Mutex<State>);

impl KernelBook {
    /// A command is handed over.
    pub(super) fn submitted(&self, id: u64) {
        lock(&self.0).outstanding.insert(id);
    }

    /// A command is none of the engine's any more, and has not completed.
    pub(super) fn taken_back(&self, id: u64) {
        lock(&self.0).outstanding.remove(&id);
    }

    /// A command has completed, which `interrupt` tells.
    pub(super) fn completed(&self, id: u64, interrupt: Interrupt) {
        let state = &mut *lock(&self.0);
        state.outstanding.remove(&id);
        state.completed.insert(id);
        let oldest = state.outstanding.first().copied().unwrap_or(u64::MAX);
        while let Some(completed) = state.completed.pop_first() {
            if completed > oldest {
                state.completed.insert(completed);
                break;
            }
            state.last_completed = state.last_completed.max(completed);
        }
        state.news.push_back(interrupt);
    }

    /// One more thing to be told.
    pub(super) fn add(&self, interrupt: Interrupt) {
        lock(&self.0).news.push_back(interrupt);
    }

    /// A preemption is asked for; `false` where one is not answered yet.
    #[must_use]
    pub(super) fn begin_preemption(&self) -> bool {
        !std::mem::replace(&mut lock(&self.0).preempting, true)
    }

    /// Whether one is not answered yet.
    pub(super) fn is_preempting(&self) -> bool {
        lock(&self.0).preempting
    }

    /// Whether the engine has something that has not completed.
    pub(super) fn has_outstanding(&self) -> bool {
        !lock(&self.0).outstanding.is_empty()
    }

    /// Whether a later command has completed, and none up to it is left.
    pub(super) fn is_beyond(&self, id: u64) -> bool {
        lock(&self.0).last_completed > id
    }

    /// The preemption is answered: to be told with the last completed id.
    pub(super) fn end_preemption(&self, preemption_id: u64, node_ordinal: u32) {
        let state = &mut *lock(&self.0);
        state.preempting = false;
        state.news.push_back(Interrupt::DmaPreempted {
            preemption_id,
            last_completed_id: state.last_completed,
            node_ordinal,
            engine_ordinal: 0,
        });
    }

    /// Has `tell` be told of all that there is, in order, unless another thread does. Nothing is held
    /// meanwhile.
    pub(super) fn tell(&self, tell: &dyn Fn(Interrupt)) {
        let mut state = lock(&self.0);
        if state.telling {
            return;
        }
        state.telling = true;
        while let Some(interrupt) = state.news.pop_front() {
            drop(state);
            tell(interrupt);
            state = lock(&self.0);
        }
        state.telling = false;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::Index;
    use std::cell::RefCell;

    fn completed(id: u64) -> Interrupt {
        Interrupt::DmaCompleted {
            submission_id: id,
            node_ordinal: 0,
            engine_ordinal: 0,
        }
    }

    /// PR-04: the last completed id is one that has completed and that no outstanding one is below; what was
    /// taken back does not advance it.
    ///
    /// Kills `the-last-completed-id-overtakes`.
    #[test]
    fn pr_04_the_last_completed_id_waits_for_those_below() {
        let book = KernelBook::default();
        let last = || lock(&book.0).last_completed;
        (1..=4).for_each(|id| book.submitted(id));
        book.completed(2, completed(2));
        assert_eq!(last(), 0);
        book.completed(1, completed(1));
        assert_eq!(last(), 2);
        book.taken_back(3);
        assert_eq!(last(), 2);
        book.completed(4, completed(4));
        assert_eq!(last(), 4);
    }

    /// TD-03: an id below the last completed one is given for no aborted one.
    ///
    /// Kills `an-id-is-never-passed`.
    #[test]
    fn td_03_an_engine_is_beyond_what_it_completed_before_another() {
        let book = KernelBook::default();
        (1..=2).for_each(|id| book.submitted(id));
        book.completed(2, completed(2));
        assert!(!book.is_beyond(1) && !book.is_beyond(2), "1 is outstanding");
        book.completed(1, completed(1));
        assert!(book.is_beyond(1) && !book.is_beyond(2));
    }

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Submitted,
        Completed(Index),
        TakenBack(Index),
        /// One that was taken back: it keeps its id.
        SubmittedAgain(Index),
        PreemptionBegins,
        PreemptionEnds,
        Told,
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            6 => Just(Event::Submitted),
            5 => any::<Index>().prop_map(Event::Completed),
            2 => any::<Index>().prop_map(Event::TakenBack),
            1 => any::<Index>().prop_map(Event::SubmittedAgain),
            1 => Just(Event::PreemptionBegins),
            1 => Just(Event::PreemptionEnds),
            2 => Just(Event::Told),
        ]
    }

    /// Takes one of them out.
    fn take(ids: &mut BTreeSet<u64>, index: Index) -> Option<u64> {
        let id = (!ids.is_empty()).then(|| index.index(ids.len()))?;
        let id = ids.iter().nth(id).copied()?;
        ids.remove(&id);
        Some(id)
    }

    proptest! {
        /// PR-04, TD-03: however commands of several queues are handed over, complete, and are taken back and handed over
        /// again, the last completed id is the greatest of those that had completed when one did last below all that were
        /// outstanding; it never goes back, and a preemption tells it as it is then. All is told once and in order,
        /// though who is told has something to tell.
        ///
        /// Kills `the-last-completed-id-overtakes`, `an-id-is-never-passed`, `the-last-completed-id-goes-back`,
        /// `what-is-told-comes-from-two-threads`.
        #[test]
        fn pr_04_the_last_completed_id_is_below_all_that_is_outstanding(
            events in prop::collection::vec(event(), 1..100),
        ) {
            let book = KernelBook::default();
            let (mut outstanding, mut taken_back) = (BTreeSet::new(), BTreeSet::new());
            let (mut done, mut news) = (BTreeSet::new(), VecDeque::new());
            let (mut submitted, mut last, mut preempting) = (0, 0, None);
            for event in events {
                match event {
                    Event::Submitted => {
                        submitted += 1;
                        book.submitted(submitted);
                        outstanding.insert(submitted);
                    }
                    Event::Completed(index) => {
                        if let Some(id) = take(&mut outstanding, index) {
                            book.completed(id, completed(id));
                            done.insert(id);
                            let oldest = outstanding.first().copied().unwrap_or(u64::MAX);
                            last = done.range(..oldest).copied().max().unwrap_or(0).max(last);
                            news.push_back(completed(id));
                        }
                    }
                    Event::TakenBack(index) => {
                        if let Some(id) = take(&mut outstanding, index) {
                            book.taken_back(id);
                            taken_back.insert(id);
                        }
                    }
                    Event::SubmittedAgain(index) => {
                        if let Some(id) = take(&mut taken_back, index) {
                            book.submitted(id);
                            outstanding.insert(id);
                        }
                    }
                    Event::PreemptionBegins => {
                        prop_assert_eq!(book.begin_preemption(), preempting.is_none());
                        preempting.get_or_insert(submitted);
                    }
                    Event::PreemptionEnds => {
                        if let Some(preemption_id) = preempting.take() {
                            book.end_preemption(preemption_id, 3);
                            news.push_back(Interrupt::DmaPreempted {
                                preemption_id,
                                last_completed_id: last,
                                node_ordinal: 3,
                                engine_ordinal: 0,
                            });
                        }
                    }
                    Event::Told => {
                        let told = RefCell::new(Vec::new());
                        book.tell(&|interrupt| {
                            // Whoever is told has more, once: it comes last, and to the same.
                            if let Interrupt::DmaCompleted { submission_id, node_ordinal: 0, .. } = interrupt {
                                book.add(more(submission_id));
                                book.tell(&|_| panic!("two tell at a time"));
                            }
                            told.borrow_mut().push(interrupt);
                        });
                        let mut expected = Vec::new();
                        while let Some(interrupt) = news.pop_front() {
                            if let Interrupt::DmaCompleted { submission_id, node_ordinal: 0, .. } = interrupt {
                                news.push_back(more(submission_id));
                            }
                            expected.push(interrupt);
                        }
                        prop_assert_eq!(told.into_inner(), expected);
                    }
                }
                prop_assert_eq!(book.has_outstanding(), !outstanding.is_empty());
                prop_assert_eq!(book.is_preempting(), preempting.is_some());
                for id in 0..=submitted {
                    prop_assert_eq!(book.is_beyond(id), id < last, "{} of {}", id, last);
                }
            }
        }
    }

    /// What who is told of a command has to tell.
    fn more(submission_id: u64) -> Interrupt {
        Interrupt::DmaCompleted {
            submission_id,
            node_ordinal: 1,
            engine_ordinal: 0,
        }
    }
}
