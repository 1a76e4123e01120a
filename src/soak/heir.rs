//! Heir: a process that has a fence of the guilty's open, on the same adapter or on another.
//!
//! A queue of its own stands at a wait for the fence, and so does the CPU. When the guilty's device is lost, which could
//! signal it, the queue goes on and the wait is told of the loss (TD-14, XA-11); or the fence was made so that it goes on,
//! and both wait for what the heir signals itself. By what stands in memory then, the queue tells which of the two it was.

use super::outcome::WaitEnd;
use crate::CrossAdapter;

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heir {
    /// Where its queue is.
    pub context: usize,
    /// How adapters hear of each other's signals, where it is of the other.
    pub crosses: CrossAdapter,
    /// The fence goes on where a device is lost that could signal it.
    pub goes_on: bool,
}

/// What became of an heir.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeirOutcome {
    /// How the waits of the CPU and of the queue have ended by the loss alone.
    pub by_loss: [WaitEnd; 2],
    /// How the same wait of the CPU has ended when the heir has signalled the value; one that begins then, and the queue's.
    pub by_signal: [WaitEnd; 3],
    /// Where the fence stood before that, and then.
    pub values: [u64; 2],
    /// What the queue found behind its wait: 1, which the heir stores before it signals, or 0.
    pub word: u64,
}

impl Heir {
    /// Where an outcome is not what it must be.
    #[must_use]
    pub fn difference(&self, outcome: &HeirOutcome) -> Option<String> {
        let by_loss = if self.goes_on {
            [WaitEnd::TimedOut, WaitEnd::TimedOut]
        } else {
            [WaitEnd::Lost, WaitEnd::Came]
        };
        if outcome.by_loss != by_loss {
            let got = &outcome.by_loss;
            return Some(format!(
                "waits of the CPU and of its queue, by the loss: {got:?} instead of {by_loss:?}"
            ));
        }
        if outcome.values != [0, 1] {
            let got = outcome.values;
            return Some(format!(
                "the fence stood at {} after the loss, and at {} when 1 was signalled",
                got[0], got[1]
            ));
        }
        // A wait ends once.
        let of_the_first = if self.goes_on {
            WaitEnd::Came
        } else {
            WaitEnd::Lost
        };
        let by_signal = [of_the_first, WaitEnd::Came, WaitEnd::Came];
        if outcome.by_signal != by_signal {
            let got = &outcome.by_signal;
            return Some(format!(
                "waits of the CPU, that one and another, and of its queue, for what it signals itself: {got:?} instead of \
                 {by_signal:?}"
            ));
        }
        let (got, right) = (outcome.word, u64::from(self.goes_on));
        (got != right).then(|| format!("its queue found {got} behind its wait instead of {right}"))
    }
}
