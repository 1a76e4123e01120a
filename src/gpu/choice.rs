//! Choice: which queues of a run list the next slice has.
//!
//! Contexts have priorities. While a queue of a higher one can go on, slices leave the lower ones out; one
//! slice of several has all, so that none starves (PR-08). A queue that stands at a wait of a higher
//! context does not keep a lower one out: what it waits for may come from there.
//!
//! An engine that is not preempted has one context at a time, and keeps it while a packet of it is divided:
//! its parts run back to back (PR-11). The contexts take turns.
//!
//! Pure: it is told how queues stand, and keeps whose turn it was.

use super::QueueStanding;

/// Slices in a row that may leave somebody out.
const MOST_LEFT_OUT: u64 = 15;

/// How a queue stands when a slice is put together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) context: u32,
    pub(super) priority: i32,
    pub(super) standing: QueueStanding,
    /// Some parts of the packet at its head are done.
    pub(super) is_divided: bool,
}

/// Which of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Choice {
    /// All.
    #[default]
    All,
    /// Those of at least this priority.
    AtLeast(i32),
    /// Those of one context.
    Only(u32),
}

impl Choice {
    /// Whether it has a queue.
    pub(super) fn has(self, context: u32, priority: i32) -> bool {
        match self {
            Self::All => true,
            Self::AtLeast(least) => priority >= least,
            Self::Only(one) => context == one,
        }
    }
}

/// Whose turn it was.
#[derive(Debug, Default)]
pub(super) struct Chooser {
    left_out: u64,
    last_context: Option<u32>,
}

impl Chooser {
    /// For an engine that is preempted.
    pub(super) fn by_priority(&mut self, candidates: &[Candidate]) -> Choice {
        let goes_on = |one: &&Candidate| one.standing == QueueStanding::Runnable;
        let top = candidates.iter().filter(goes_on).map(|one| one.priority);
        let top = top.max();
        let lower = |top: &i32| candidates.iter().any(|one| one.priority < *top);
        match top.filter(lower) {
            Some(top) if self.left_out < MOST_LEFT_OUT => {
                self.left_out += 1;
                Choice::AtLeast(top)
            }
            Some(_) | None => {
                self.left_out = 0;
                Choice::All
            }
        }
    }

    /// For an engine that is not.
    pub(super) fn one_context(&mut self, candidates: &[Candidate]) -> Choice {
        let divided = candidates
            .iter()
            .find(|one| one.is_divided && one.standing != QueueStanding::Faulted);
        let has_work = |one: &&Candidate| {
            matches!(
                one.standing,
                QueueStanding::Runnable | QueueStanding::Blocked
            )
        };
        let contexts = || candidates.iter().filter(has_work).map(|one| one.context);
        let next = contexts()
            .filter(|next| Some(*next) > self.last_context)
            .min();
        let context = divided.map(|one| one.context).or(next);
        self.last_context = context.or_else(|| contexts().min());
        self.last_context.map_or(Choice::All, Choice::Only)
    }
}

#[cfg(test)]
mod tests {
    use super::QueueStanding::{Blocked, Faulted, Idle, Runnable};
    use super::*;
    use proptest::prelude::*;

    fn one(context: u32, priority: i32, standing: QueueStanding) -> Candidate {
        Candidate {
            context,
            priority,
            standing,
            is_divided: false,
        }
    }

    /// PR-08: lower ones are left out while a higher one can go on, and not while it waits or is idle; but
    /// one slice of sixteen has them all the same.
    ///
    /// Kills `the-lower-ones-starve`, `a-waiting-queue-keeps-others-out`.
    #[test]
    fn pr_08_lower_priorities_are_left_out_and_do_not_starve() {
        let mut chooser = Chooser::default();
        let low = one(0, 0, Runnable);
        for standing in [Blocked, Idle] {
            let choice = chooser.by_priority(&[low, one(1, 3, standing)]);
            assert!(choice.has(0, 0));
        }
        let mut slices = (0..64).map(|_| chooser.by_priority(&[low, one(1, 3, Runnable)]));
        let with_low = slices.by_ref().take(64).filter(|choice| choice.has(0, 0));
        assert_eq!(with_low.count(), 4);
        assert!(Choice::AtLeast(3).has(1, 3) && !Choice::AtLeast(3).has(0, 2));
        let alike = [low, one(1, 0, Runnable)];
        assert_eq!(chooser.by_priority(&alike), Choice::All);
    }

    /// PR-11: without preemption a divided packet keeps its context on the engine alone; else contexts that
    /// have something take turns.
    ///
    /// Kills `a-divided-packet-shares-the-engine`.
    #[test]
    fn pr_11_a_divided_packet_keeps_its_context() {
        let mut chooser = Chooser::default();
        let (first, second) = (one(4, 0, Runnable), one(9, 0, Blocked));
        let idle = one(5, 0, Idle);
        let mut choose = |of: &[Candidate]| chooser.one_context(of);
        let all = [first, idle, second];
        assert_eq!(choose(&all), Choice::Only(4));
        assert_eq!(choose(&all), Choice::Only(9));
        assert_eq!(choose(&all), Choice::Only(4));
        let divided = Candidate {
            is_divided: true,
            ..first
        };
        for _ in 0..3 {
            assert_eq!(choose(&[divided, idle, second]), Choice::Only(4));
        }
        assert_eq!(choose(&all), Choice::Only(9));
        assert_eq!(choose(&[idle]), Choice::All);
    }

    /// Slice by slice how some contexts stand, of which each keeps its number and priority.
    fn slices() -> impl Strategy<Value = Vec<Vec<Candidate>>> {
        let standing = prop_oneof![4 => Just(Runnable), 2 => Just(Blocked), 1 => Just(Idle), 1 => Just(Faulted)];
        prop::collection::vec(-7..=7, 1..6).prop_flat_map(move |priorities: Vec<i32>| {
            let contexts = priorities.len();
            let standings = prop::collection::vec((standing.clone(), 0..12_u8), contexts);
            prop::collection::vec(standings, 1..80).prop_map(move |slices| {
                let candidates = |standings: Vec<(QueueStanding, u8)>| {
                    let contexts = (0..).zip(&priorities).zip(standings);
                    let candidate =
                        |((context, priority), (standing, divided)): ((u32, &i32), (_, u8))| {
                            Candidate {
                                is_divided: divided == 0 && standing != Idle,
                                ..one(context, *priority, standing)
                            }
                        };
                    contexts.map(candidate).collect()
                };
                slices.into_iter().map(candidates).collect()
            })
        })
    }

    proptest! {
        /// PR-08: however queues stand from slice to slice, the first that can go on is in it, with all of its priority
        /// and above; lower ones are left out for no more than fifteen slices in a row.
        ///
        /// Kills `the-lower-ones-starve`, `who-is-as-high-as-the-top-is-left-out`.
        #[test]
        fn pr_08_the_highest_goes_on_and_nobody_starves(slices in slices()) {
            let (mut chooser, mut left_out) = (Chooser::default(), 0);
            for candidates in slices {
                let choice = chooser.by_priority(&candidates);
                let runnable = candidates.iter().filter(|one| one.standing == Runnable);
                let top = runnable.map(|one| one.priority).max();
                let is_out = |one: &Candidate| !choice.has(one.context, one.priority);
                for one in candidates.iter().filter(|one| is_out(one)) {
                    prop_assert!(top.is_some_and(|top| one.priority < top), "{choice:?}: {one:?}");
                }
                left_out = if candidates.iter().any(is_out) { left_out + 1 } else { 0 };
                prop_assert!(left_out <= 15);
            }
        }

        /// PR-11: however queues stand from slice to slice, an engine without preemption has one context that has work,
        /// the one whose packet is divided where there is one; else whoever has work all the time has its turn as often
        /// as there are contexts.
        ///
        /// Kills `a-divided-packet-shares-the-engine`, `the-first-context-has-every-turn`.
        #[test]
        fn pr_11_contexts_take_turns(slices in slices()) {
            let mut chooser = Chooser::default();
            let mut waits = [0; 8];
            for candidates in slices {
                let contexts = candidates.len();
                let choice = chooser.one_context(&candidates);
                let divided = |one: &&Candidate| one.is_divided && one.standing != Faulted;
                let divided = candidates.iter().find(divided);
                if let Some(divided) = divided {
                    prop_assert_eq!(choice, Choice::Only(divided.context));
                }
                let has_work = |one: &Candidate| matches!(one.standing, Runnable | Blocked);
                let mut chosen = candidates.iter().filter(|one| choice == Choice::Only(one.context));
                prop_assert!(choice == Choice::All || chosen.any(has_work));
                prop_assert_eq!(choice == Choice::All, !candidates.iter().any(has_work));
                for one in &candidates {
                    let waits = &mut waits[one.context as usize];
                    let has_turn = choice == Choice::Only(one.context);
                    let waited = if has_turn || divided.is_some() || !has_work(one) { 0 } else { *waits + 1 };
                    *waits = waited;
                    prop_assert!(waited < contexts, "context {} has no turn", one.context);
                }
            }
        }
    }
}
