//! Releases: which signal let go which wait.
//!
//! A wait that was seen unsatisfied went on when the fence had its value. Who stored that: the first signal with the value
//! or a greater one that ended after the wait was observed, and not after its end. Clocks of two engines may be off by
//! what they say, so such a signal may seem to end a little outside.

use super::{Command, Operation, Trace, What};
use std::collections::HashMap;

/// Who let a wait go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Releaser {
    /// A queue's signal: its place among the events.
    Command(usize),
    /// The CPU's.
    CpuSignal(usize),
}

/// A signal and a wait that it let go, by their places among [`Trace::events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    /// The signal.
    pub signal: Releaser,
    /// The wait: of a queue or of the CPU.
    pub wait: usize,
}

/// A signal of one fence: the value was stored between two times, which are the same where an engine took it.
#[derive(Clone, Copy, Debug)]
struct Stored {
    from: u64,
    to: u64,
    value: u64,
    by: Releaser,
}

impl Trace {
    /// See the file's head; in the order of the waits.
    #[must_use]
    pub fn releases(&self) -> Vec<Release> {
        let signals = self.signals_by_fence();
        let errors = self.clocks.iter().map(|clock| clock.max_error_ns);
        // Of the signal's engine and of the wait's.
        let slack = errors.max().unwrap_or(0).saturating_mul(2);
        let mut releases = Vec::new();
        for (index, event) in self.events.iter().enumerate() {
            let (fence, value, from, to) = match &event.what {
                What::Command(
                    command @ Command {
                        operation: Operation::Wait,
                        observed: Some(observed),
                        end: Some(end),
                        ..
                    },
                ) if observed < end => (command.fence, command.value, *observed, *end),
                What::CpuWait(wait) if wait.is_satisfied => {
                    (wait.fence, wait.value, wait.began, wait.woke)
                }
                _ => continue,
            };
            let Some(stored) = signals.get(&fence) else {
                continue;
            };
            // Sorted by their ends: from the first that can be.
            let first = stored.partition_point(|s| s.to.saturating_add(slack) < from);
            let found = stored[first..]
                .iter()
                .take_while(|s| s.from <= to.saturating_add(slack))
                .find(|s| s.value >= value);
            if let Some(signal) = found {
                releases.push(Release {
                    signal: signal.by,
                    wait: index,
                });
            }
        }
        releases
    }

    fn signals_by_fence(&self) -> HashMap<u32, Vec<Stored>> {
        let mut signals: HashMap<u32, Vec<Stored>> = HashMap::new();
        for (index, event) in self.events.iter().enumerate() {
            let (fence, stored) = match &event.what {
                What::Command(Command {
                    operation: Operation::Signal,
                    fence,
                    value,
                    end: Some(end),
                    ..
                }) => {
                    let stored = Stored {
                        from: *end,
                        to: *end,
                        value: *value,
                        by: Releaser::Command(index),
                    };
                    (fence, stored)
                }
                What::CpuSignal { fence, value, done } => {
                    let stored = Stored {
                        from: event.at,
                        to: *done,
                        value: *value,
                        by: Releaser::CpuSignal(index),
                    };
                    (fence, stored)
                }
                _ => continue,
            };
            signals.entry(*fence).or_default().push(stored);
        }
        for stored in signals.values_mut() {
            stored.sort_by_key(|s| s.to);
        }
        signals
    }
}
