//! Engine word: whether an engine has slices, and who must submit the next one.
//!
//! Changed by read-modify-write alone, always after the stores that it announces (a ring's write
//! index, a CurrentValue, a post). Read-modify-writes of one word are in one order, so of "I
//! stored, then touched the word" and "I said Parking, then looked" one sees the other: either the
//! parker's look sees the store, or the storer sees Parking or Parked and takes the engine back
//! (`decisions.md` 8).

use crate::sync::{AtomicU64, Ordering};

/// State of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum EngineState {
    /// No slice in flight, and whoever wants one must take the engine to Running.
    Parked = 0,
    /// Slices are in flight, or somebody who will submit one holds the node's lock.
    Running = 1,
    /// As Running, but the last look is under way.
    Parking = 2,
    /// Executes no more.
    Lost = 3,
}

/// What a caller of [`EngineWord::wake`] owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an engine taken from Parked runs only if the taker submits"]
pub enum Wake {
    /// Others look, and will see what the caller stored before.
    Seen,
    /// The caller took Parked to Running: it submits a slice.
    MustSubmit(Taken),
    /// Nothing will run any more.
    Lost,
}

/// The word as the one left it who took the engine from Parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken(u64);

/// The word.
#[derive(Debug)]
pub struct EngineWord(AtomicU64);

const STATE: u64 = 0b11;
/// Parked with a queue that stands at a wait.
const BLOCKED: u64 = 0b100;
/// Counted up with every change, so that a stale compare-exchange fails.
const EPOCH: u64 = 0b1000;

fn state(word: u64) -> EngineState {
    match word & STATE {
        0 => EngineState::Parked,
        1 => EngineState::Running,
        2 => EngineState::Parking,
        _ => EngineState::Lost,
    }
}

const fn changed(word: u64, state: EngineState) -> u64 {
    (word & !(STATE | BLOCKED)).wrapping_add(EPOCH) | state as u64
}

impl Default for EngineWord {
    fn default() -> Self {
        Self(AtomicU64::new(EngineState::Parked as u64))
    }
}

impl EngineWord {
    fn update(&self, change: impl Fn(u64) -> u64) -> u64 {
        // A read-modify-write even where nothing changes: the order is what is wanted.
        match self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                Some(change(word))
            }) {
            Ok(before) | Err(before) => before,
        }
    }

    /// The state; a hint for reports, not for decisions.
    #[must_use]
    pub fn state(&self) -> EngineState {
        state(self.0.load(Ordering::Acquire))
    }

    /// After new work was stored: somebody shall look at it.
    pub fn wake(&self) -> Wake {
        let before = self.update(|word| match state(word) {
            EngineState::Parked | EngineState::Parking => changed(word, EngineState::Running),
            EngineState::Running | EngineState::Lost => word,
        });
        match state(before) {
            EngineState::Parked => Wake::MustSubmit(Taken(changed(before, EngineState::Running))),
            EngineState::Running | EngineState::Parking => Wake::Seen,
            EngineState::Lost => Wake::Lost,
        }
    }

    /// Whether the engine is still as its taker left it: nobody changes the word before a slice is submitted, but
    /// for a loss. Who took another engine's place has looked at what the taker stored, and has submitted or
    /// parked.
    #[must_use]
    pub fn is_taken(&self, taken: Taken) -> bool {
        self.0.load(Ordering::Acquire) == taken.0
    }

    /// After a CurrentValue was stored: an engine that is about to park looks again. `true` if it
    /// is parked and stands at a wait: then the caller finds out whether it waits for this fence,
    /// and wakes it if so.
    pub fn signalled(&self) -> bool {
        let before = self.update(|word| match state(word) {
            EngineState::Parking => changed(word, EngineState::Running),
            EngineState::Parked | EngineState::Running | EngineState::Lost => word,
        });
        state(before) == EngineState::Parked && before & BLOCKED != 0
    }

    /// Begins the last look of an engine that runs.
    pub fn begin_parking(&self) {
        let before = self.update(|word| match state(word) {
            EngineState::Running => changed(word, EngineState::Parking),
            EngineState::Parked | EngineState::Parking | EngineState::Lost => word,
        });
        debug_assert!(
            matches!(state(before), EngineState::Running | EngineState::Lost),
            "one thread parks, and none while the engine is parked"
        );
    }

    /// Ends the last look: parked, unless somebody woke the engine since it began; then it runs
    /// on, and the caller submits. A lost engine is not parked.
    #[must_use]
    pub fn park(&self, blocked: bool) -> bool {
        let before = self.update(|word| match state(word) {
            EngineState::Parking => {
                changed(word, EngineState::Parked) | if blocked { BLOCKED } else { 0 }
            }
            EngineState::Parked | EngineState::Running | EngineState::Lost => word,
        });
        state(before) == EngineState::Parking
    }

    /// Another engine has taken the place of a lost one: it runs, and the caller submits or parks it.
    pub fn revive(&self) {
        let before = self.update(|word| match state(word) {
            EngineState::Lost => changed(word, EngineState::Running),
            EngineState::Parked | EngineState::Running | EngineState::Parking => word,
        });
        debug_assert_eq!(
            state(before),
            EngineState::Lost,
            "one that runs has a successor"
        );
    }

    /// The engine executes no more; `true` if it ran until now.
    pub fn lose(&self) -> bool {
        let before = self.update(|word| changed(word, EngineState::Lost));
        matches!(state(before), EngineState::Running | EngineState::Parking)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_a_parked_engine_submits() {
        let word = EngineWord::default();
        let Wake::MustSubmit(taken) = word.wake() else {
            panic!("it was parked");
        };
        assert_eq!(word.wake(), Wake::Seen);
        assert!(word.is_taken(taken));
    }

    /// TD-12: who took a parked engine that was lost before he could submit leaves it to the recovery.
    ///
    /// Kills `a-lost-engine-is-its-takers`.
    #[test]
    fn td_12_who_took_an_engine_that_was_lost_owes_nothing() {
        let word = EngineWord::default();
        let Wake::MustSubmit(taken) = word.wake() else {
            panic!("it was parked");
        };
        assert!(word.lose());
        assert!(!word.is_taken(taken));
        word.revive();
        assert!(!word.is_taken(taken));
        word.begin_parking();
        assert!(word.park(false));
        assert!(!word.is_taken(taken));
    }

    #[test]
    fn a_wake_during_the_last_look_keeps_the_engine() {
        let word = EngineWord::default();
        let _ = word.wake();
        word.begin_parking();
        assert_eq!(word.wake(), Wake::Seen);
        assert!(!word.park(false), "parked over a wake");
        assert_eq!(word.state(), EngineState::Running);
    }

    #[test]
    fn a_signal_is_for_an_engine_that_stands_at_a_wait_or_is_about_to() {
        let word = EngineWord::default();
        for blocked in [false, true] {
            let _ = word.wake();
            assert!(!word.signalled(), "its slices look");
            word.begin_parking();
            assert!(!word.signalled());
            assert!(!word.park(blocked), "parked over a signal");
            word.begin_parking();
            assert!(word.park(blocked));
            assert_eq!(word.signalled(), blocked);
            assert_eq!(word.state(), EngineState::Parked);
        }
    }

    #[test]
    fn a_lost_engine_stays_lost() {
        let word = EngineWord::default();
        word.lose();
        assert_eq!((word.wake(), word.signalled()), (Wake::Lost, false));
        word.begin_parking();
        assert_eq!(word.state(), EngineState::Lost);
    }
}
