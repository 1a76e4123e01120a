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

/// A signal of one fence.
#[derive(Clone, Copy, Debug)]
struct Stored {
    end: u64,
    value: u64,
    by: Releaser,
    error: u64,
}

impl Trace {
    /// How far a queue's times may be off.
    #[must_use]
    pub fn error_of_queue(&self, queue: u32) -> u64 {
        let Some(queue) = self.queues.get(queue as usize) else {
            return 0;
        };
        if queue.is_kernel_mode {
            return 0;
        }
        let clock = self.clocks.get(queue.node_ordinal as usize);
        clock.map_or(0, |clock| clock.max_error_ns)
    }

    /// See the file's head; in the order of the waits.
    #[must_use]
    pub fn releases(&self) -> Vec<Release> {
        let signals = self.signals_by_fence();
        let mut releases = Vec::new();
        for (index, event) in self.events.iter().enumerate() {
            let (fence, value, from, to, error) = match &event.what {
                What::Command(
                    command @ Command {
                        operation: Operation::Wait,
                        observed: Some(observed),
                        end: Some(end),
                        ..
                    },
                ) if observed < end => {
                    let error = self.error_of_queue(command.queue);
                    (command.fence, command.value, *observed, *end, error)
                }
                What::CpuWait(wait) if wait.is_satisfied => {
                    (wait.fence, wait.value, wait.began, wait.woke, 0)
                }
                _ => continue,
            };
            let Some(stored) = signals.get(&fence) else {
                continue;
            };
            // Sorted by their ends: from the first that can be.
            let first = stored.partition_point(|s| s.end + s.error + error < from);
            let found = stored[first..]
                .iter()
                .take_while(|s| s.end <= to.saturating_add(s.error + error))
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
                    queue,
                    ..
                }) => {
                    let by = Releaser::Command(index);
                    let error = self.error_of_queue(*queue);
                    let (end, value) = (*end, *value);
                    (
                        fence,
                        Stored {
                            end,
                            value,
                            by,
                            error,
                        },
                    )
                }
                What::CpuSignal { fence, value } => {
                    let by = Releaser::CpuSignal(index);
                    let (end, value, error) = (event.at, *value, 0);
                    (
                        fence,
                        Stored {
                            end,
                            value,
                            by,
                            error,
                        },
                    )
                }
                _ => continue,
            };
            signals.entry(*fence).or_default().push(stored);
        }
        for stored in signals.values_mut() {
            stored.sort_by_key(|s| s.end);
        }
        signals
    }
}
