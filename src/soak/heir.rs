//! Heir: a process that has a fence of the guilty's open, on the same adapter or on another.
//!
//! A queue of its own stands at a wait for the fence, and so does the CPU. When the guilty's device is lost, which could
//! signal it, the queue goes on and the wait is told of the loss (TD-14, XA-11); or the fence was made so that it goes on,
//! and both wait for what the heir signals itself.

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
    /// How waits for the same value end that begin when the heir has signalled it.
    pub by_signal: [WaitEnd; 2],
    /// Where the fence stood before that, and then.
    pub values: [u64; 2],
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
        let by_signal = [WaitEnd::Came, WaitEnd::Came];
        (outcome.by_signal != by_signal).then(|| {
            let got = &outcome.by_signal;
            format!("waits of the CPU and of its queue, for what it signals itself: {got:?}")
        })
    }
}
