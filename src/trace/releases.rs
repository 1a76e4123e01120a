//! Releases: which signal let go which wait.
//!
//! A wait that was seen unsatisfied went on when the fence had its value. Who stored that: the first signal with the value
//! or a greater one that ended after the wait was observed, and not after its end. Clocks of two engines may be off by
//! what they say, so such a signal may seem to end a little outside.

use super::{Command, Operation, Trace, WaitEnd, What};
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

/// Of one fence, by their ends.
#[derive(Debug)]
struct Signals {
    signals: Vec<Stored>,
    greatest: Greatest,
}

/// The greatest value of each run of signals that is a power of two long: finds the next that has a value, however
/// many do not.
#[derive(Debug)]
struct Greatest {
    /// Those of all signals first, then of pairs, of fours.
    levels: Vec<Vec<u64>>,
}

impl Greatest {
    fn of(values: impl Iterator<Item = u64>) -> Self {
        let mut levels = vec![values.collect::<Vec<_>>()];
        while let Some(last) = levels.last()
            && last.len() > 1
        {
            let pairs = last.chunks(2);
            levels.push(
                pairs
                    .filter_map(|pair| pair.iter().max().copied())
                    .collect(),
            );
        }
        Self { levels }
    }

    /// The first from `first` on that has the value or a greater one.
    fn first_from(&self, first: usize, value: u64) -> Option<usize> {
        let (mut level, mut at) = (0, first);
        // Up, past whole runs that have it not.
        while *self.levels[level].get(at)? < value {
            at += 1;
            while at.is_multiple_of(2) && level + 1 < self.levels.len() {
                at /= 2;
                level += 1;
            }
        }
        // Down, into the first half that has it.
        while level > 0 {
            level -= 1;
            at *= 2;
            if self.levels[level][at] < value {
                at += 1;
            }
        }
        Some(at)
    }
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
                What::CpuWait(wait) if matches!(wait.end, WaitEnd::Seen | WaitEnd::Released) => {
                    (wait.fence, wait.value, wait.began, wait.woke)
                }
                _ => continue,
            };
            let Some(stored) = signals.get(&fence) else {
                continue;
            };
            // Sorted by their ends: from the first that can be.
            let first = stored
                .signals
                .partition_point(|s| s.to.saturating_add(slack) < from);
            let found = stored.greatest.first_from(first, value);
            let found = found.map(|found| &stored.signals[found]);
            if let Some(signal) = found.filter(|s| s.from <= to.saturating_add(slack)) {
                releases.push(Release {
                    signal: signal.by,
                    wait: index,
                });
            }
        }
        releases
    }

    fn signals_by_fence(&self) -> HashMap<u32, Signals> {
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
        let sorted = signals.into_iter().map(|(fence, mut signals)| {
            signals.sort_by_key(|s| s.to);
            let greatest = Greatest::of(signals.iter().map(|s| s.value));
            (fence, Signals { signals, greatest })
        });
        sorted.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CpuWait, Event, GpuClock, WaiterKind};
    use super::*;

    /// Whatever the clocks may be off: who found the value there has waited for nobody.
    ///
    /// Mutant: `what-is-there-is-released`.
    #[test]
    fn who_finds_the_value_there_is_released_by_nobody() {
        let released = |end| {
            let signal = What::CpuSignal {
                fence: 0,
                value: 5,
                done: 20,
            };
            let wait = What::CpuWait(CpuWait {
                fence: 0,
                value: 5,
                began: 30,
                woke: 30,
                waiter: WaiterKind::Thread,
                end,
            });
            let clock = GpuClock {
                max_error_ns: 100,
                ..GpuClock::default()
            };
            let events = [(10, signal), (30, wait)].map(|(at, what)| Event { at, what });
            let trace = Trace {
                clocks: vec![clock],
                events: events.into(),
                ..Trace::default()
            };
            trace.releases().len()
        };
        let ends = [
            WaitEnd::AtOnce,
            WaitEnd::Seen,
            WaitEnd::Released,
            WaitEnd::GivenUp,
        ];
        assert_eq!(ends.map(released), [0, 1, 1, 0]);
    }

    #[test]
    fn the_next_that_has_the_value_is_found_as_by_looking_at_each() {
        let mut noise = 7_u64;
        for len in 0..70_usize {
            let values: Vec<u64> = (0..len)
                .map(|_| {
                    noise = noise
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    noise >> 59
                })
                .collect();
            let greatest = Greatest::of(values.iter().copied());
            for first in 0..=len {
                for value in 0..34 {
                    let found = values[first..].iter().position(|v| *v >= value);
                    let found = found.map(|found| first + found);
                    assert_eq!(greatest.first_from(first, value), found);
                }
            }
        }
    }
}
