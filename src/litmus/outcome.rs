//! Outcomes: what was seen, counted.

use super::setup::low_of;
use serde::Serialize;

/// What a party says of an instance.
pub(super) const SAW_NEW: u64 = 1;
pub(super) const SAW_OLD: u64 = 2;

/// Counts over all runs of a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcomes {
    /// Instances that both parties did, at about the same time.
    pub runs: u64,
    /// Those with the outcome that must not be.
    pub forbidden: u64,
    /// Of store buffering: those in which only the first party saw the other.
    #[serde(skip_serializing_if = "is_zero")]
    pub first_saw: u64,
    /// Of store buffering: those in which only the second did.
    #[serde(skip_serializing_if = "is_zero")]
    pub second_saw: u64,
    /// Of store buffering: those in which each saw the other.
    #[serde(skip_serializing_if = "is_zero")]
    pub both_saw: u64,
    /// Instances that were not done together.
    pub not_met: u64,
    /// Dispatches.
    pub batches: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Outcomes {
    /// Of one dispatch, of which nothing is counted yet.
    pub(super) fn of_a_batch() -> Self {
        Self {
            batches: 1,
            ..Self::default()
        }
    }

    /// Instances that were to be done together.
    pub(super) fn tried(&self) -> u64 {
        self.runs + self.not_met
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.runs += more.runs;
        self.forbidden += more.forbidden;
        self.first_saw += more.first_saw;
        self.second_saw += more.second_saw;
        self.both_saw += more.both_saw;
        self.not_met += more.not_met;
        self.batches += more.batches;
    }
}

/// Of message passing, and of what a dispatch left: what the reader says of each instance.
pub(super) fn of_reader(results: impl Iterator<Item = u64>, generation: u64) -> Outcomes {
    let mut outcomes = Outcomes::of_a_batch();
    for word in results {
        match low_of(word, generation) {
            Some(SAW_NEW) => outcomes.runs += 1,
            Some(SAW_OLD) => {
                outcomes.runs += 1;
                outcomes.forbidden += 1;
            }
            _ => outcomes.not_met += 1,
        }
    }
    outcomes
}

/// Of store buffering: what both say. An engine that raised has seen the waiter.
pub(super) fn of_both(results: impl Iterator<Item = (u64, u64)>, generation: u64) -> Outcomes {
    let mut outcomes = Outcomes::of_a_batch();
    for (first, second) in results {
        let said = [first, second].map(|word| low_of(word, generation));
        let count = match said {
            [Some(SAW_OLD), Some(SAW_OLD)] => &mut outcomes.forbidden,
            [Some(SAW_NEW), Some(SAW_OLD)] => &mut outcomes.first_saw,
            [Some(SAW_OLD), Some(SAW_NEW)] => &mut outcomes.second_saw,
            [Some(SAW_NEW), Some(SAW_NEW)] => &mut outcomes.both_saw,
            _ => {
                outcomes.not_met += 1;
                continue;
            }
        };
        *count += 1;
        outcomes.runs += 1;
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: u64 = 7 << 32;

    #[test]
    fn what_is_of_another_run_was_not_met() {
        let words = [G | SAW_NEW, G | SAW_OLD, 6 << 32 | SAW_OLD, 0, G];
        let outcomes = of_reader(words.into_iter(), 7);
        let expected = Outcomes {
            runs: 2,
            forbidden: 1,
            not_met: 3,
            batches: 1,
            ..Outcomes::default()
        };
        assert_eq!(outcomes, expected);
    }

    #[test]
    fn neither_saw_is_forbidden_and_one_of_two_is_enough() {
        let pairs = [
            (G | SAW_OLD, G | SAW_OLD),
            (G | SAW_NEW, G | SAW_OLD),
            (G | SAW_OLD, G | SAW_NEW),
            (G | SAW_NEW, G | SAW_NEW),
            (G | SAW_OLD, 6 << 32 | SAW_OLD),
        ];
        let outcomes = of_both(pairs.into_iter(), 7);
        let expected = Outcomes {
            runs: 4,
            forbidden: 1,
            first_saw: 1,
            second_saw: 1,
            both_saw: 1,
            not_met: 1,
            batches: 1,
        };
        assert_eq!(outcomes, expected);
    }
}
