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
    MustSubmit,
    /// Nothing will run any more.
    Lost,
}

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
        self.wake_if(|_| true)
    }

    /// After a CurrentValue was stored: an engine that stands at a wait shall look again. One
    /// that parked with nothing blocked sleeps on.
    pub fn wake_if_blocked(&self) -> Wake {
        self.wake_if(|word| word & BLOCKED != 0)
    }

    fn wake_if(&self, parked_wakes: impl Fn(u64) -> bool) -> Wake {
        let before = self.update(|word| match state(word) {
            EngineState::Parked if parked_wakes(word) => changed(word, EngineState::Running),
            EngineState::Parking => changed(word, EngineState::Running),
            EngineState::Parked | EngineState::Running | EngineState::Lost => word,
        });
        match state(before) {
            EngineState::Parked if parked_wakes(before) => Wake::MustSubmit,
            EngineState::Parked | EngineState::Running | EngineState::Parking => Wake::Seen,
            EngineState::Lost => Wake::Lost,
        }
    }

    /// Begins the last look; `true` if it had begun before and nobody has woken the engine since.
    pub fn begin_parking(&self) -> bool {
        let before = self.update(|word| match state(word) {
            EngineState::Running | EngineState::Parked => changed(word, EngineState::Parking),
            EngineState::Parking | EngineState::Lost => word,
        });
        state(before) == EngineState::Parking
    }

    /// Ends the last look: parked, unless somebody woke the engine since it began; then it runs
    /// on, and the caller submits.
    #[must_use]
    pub fn park(&self, blocked: bool) -> bool {
        let before = self.update(|word| match state(word) {
            EngineState::Parking => {
                changed(word, EngineState::Parked) | if blocked { BLOCKED } else { 0 }
            }
            EngineState::Parked | EngineState::Running | EngineState::Lost => word,
        });
        matches!(state(before), EngineState::Parking | EngineState::Lost)
    }

    /// The engine executes no more.
    pub fn lose(&self) {
        self.update(|word| changed(word, EngineState::Lost));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_a_parked_engine_submits() {
        let word = EngineWord::default();
        assert_eq!(word.wake(), Wake::MustSubmit);
        assert_eq!(word.wake(), Wake::Seen);
    }

    #[test]
    fn a_wake_during_the_last_look_keeps_the_engine() {
        let word = EngineWord::default();
        let _ = word.wake();
        assert!(!word.begin_parking());
        assert_eq!(word.wake(), Wake::Seen);
        assert!(!word.park(false), "parked over a wake");
        assert_eq!(word.state(), EngineState::Running);
    }

    #[test]
    fn a_signal_wakes_only_an_engine_that_stands_at_a_wait() {
        let word = EngineWord::default();
        for (blocked, expected) in [(false, Wake::Seen), (true, Wake::MustSubmit)] {
            let _ = word.wake();
            word.begin_parking();
            assert!(word.park(blocked));
            assert_eq!(word.wake_if_blocked(), expected);
        }
    }

    #[test]
    fn a_lost_engine_stays_lost() {
        let word = EngineWord::default();
        word.lose();
        assert_eq!(
            (word.wake(), word.wake_if_blocked()),
            (Wake::Lost, Wake::Lost)
        );
        word.begin_parking();
        assert_eq!(word.state(), EngineState::Lost);
    }
}
