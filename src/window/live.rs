//! Live: the latest of a recording that goes on.
//!
//! Cuts of the recording are put together; of what is done the latest events are kept. What was not done at the last cut is
//! in the next one again, as it is then, and replaced.

use super::Source;
use crate::Recordings;
use crate::trace::{Command, Event, Operation, Trace, What};
use crate::viewer::Scene;
use std::collections::{HashMap, HashSet};

/// Events that are kept, so that a picture is put together in milliseconds.
const MOST_EVENTS: usize = 30_000;

/// See the file's head.
#[derive(Debug)]
pub struct Live {
    recording: Recordings,
    latest: Latest,
}

impl Live {
    /// Of a recording, or of several. `about` is what is said of it, names and values.
    #[must_use]
    pub fn new(recording: impl Into<Recordings>, about: Vec<(String, String)>) -> Self {
        Self {
            recording: recording.into(),
            latest: Latest::new(about, MOST_EVENTS),
        }
    }
}

impl Source for Live {
    fn advance(&mut self) -> bool {
        self.latest.take_in(self.recording.cut());
        true
    }

    fn goes_on(&self) -> bool {
        true
    }

    fn look(&self, at: &mut dyn FnMut(&Scene<'_>, u64)) {
        let trace = &self.latest.trace;
        at(&Scene::new(trace), trace.length);
    }
}

/// Events in the order of their times, at most so many.
#[derive(Debug)]
struct Latest {
    trace: Trace,
    most: usize,
}

/// A command that may still be done.
fn is_open(event: &Event) -> bool {
    matches!(
        &event.what,
        What::Command(Command {
            end: None,
            is_lost: false,
            ..
        })
    )
}

/// Which fence's CurrentValue or MonitoredValue an event says.
fn value_of(event: &Event) -> Option<(u32, bool)> {
    match &event.what {
        What::Command(Command {
            operation: Operation::Signal,
            fence,
            end: Some(_),
            ..
        })
        | What::CpuSignal { fence, .. } => Some((*fence, true)),
        What::MonitoredValue { fence, .. } => Some((*fence, false)),
        _ => None,
    }
}

/// The last that say a value of a fence: without them it would not be known.
fn newest_values(events: &[Event]) -> HashSet<usize> {
    let mut newest = HashMap::new();
    for (number, event) in events.iter().enumerate() {
        if let Some(value) = value_of(event) {
            newest.insert(value, number);
        }
    }
    newest.into_values().collect()
}

impl Latest {
    fn new(about: Vec<(String, String)>, most: usize) -> Self {
        let trace = Trace {
            about,
            ..Trace::default()
        };
        Self { trace, most }
    }

    fn take_in(&mut self, cut: Trace) {
        let trace = &mut self.trace;
        trace.events.retain(|event| !is_open(event));
        trace.events.extend(cut.events);
        if trace.events.len() > self.most {
            // By when it was known: a command that was queued long ago may be done just now.
            trace.events.sort_by_key(Event::latest);
            let too_many = trace.events.len() - self.most;
            let values = newest_values(&trace.events);
            let mut number = 0;
            trace.events.retain(|event| {
                number += 1;
                number > too_many || is_open(event) || values.contains(&(number - 1))
            });
        }
        trace.events.sort_by_key(|event| event.at);
        trace.adapters = cut.adapters;
        trace.queues = cut.queues;
        trace.fences = cut.fences;
        trace.clocks = cut.clocks;
        trace.began_ns = cut.began_ns;
        trace.length = cut.length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(value: u64, queued: u64, end: Option<u64>) -> Event {
        let command = Command {
            queue: 0,
            operation: Operation::Wait,
            fence: 0,
            value,
            queued: Some(queued),
            observed: None,
            end,
            is_lost: false,
        };
        Event {
            at: queued,
            what: What::Command(command),
        }
    }

    fn cut(length: u64, events: Vec<Event>) -> Trace {
        Trace {
            length,
            events,
            ..Trace::default()
        }
    }

    fn shown(latest: &Latest) -> Vec<(u64, Option<u64>)> {
        let commands = latest.trace.commands();
        commands
            .map(|(_, command)| (command.value, command.end))
            .collect()
    }

    /// Mutant: `what-was-open-stays-open`.
    #[test]
    fn what_was_not_done_is_replaced() {
        let mut latest = Latest::new(Vec::new(), 10);
        latest.take_in(cut(100, vec![wait(1, 10, Some(20)), wait(2, 30, None)]));
        assert_eq!(shown(&latest), [(1, Some(20)), (2, None)]);
        latest.take_in(cut(200, vec![wait(2, 30, None), wait(3, 110, Some(150))]));
        assert_eq!(shown(&latest), [(1, Some(20)), (2, None), (3, Some(150))]);
        latest.take_in(cut(300, vec![wait(2, 30, Some(250))]));
        assert_eq!(
            shown(&latest),
            [(1, Some(20)), (2, Some(250)), (3, Some(150))]
        );
        assert_eq!(latest.trace.length, 300);
    }

    /// Mutants: `the-hung-wait-goes-first`, `a-quiet-fence-loses-its-value`.
    #[test]
    fn what_hangs_and_what_a_fence_has_are_kept() {
        let mut latest = Latest::new(Vec::new(), 2);
        let value = |value, at| Event {
            at,
            what: What::MonitoredValue { fence: 9, value },
        };
        let early = vec![
            wait(1, 10, None),
            value(7, 11),
            value(8, 12),
            wait(2, 30, Some(40)),
        ];
        latest.take_in(cut(100, early));
        let late = vec![
            wait(1, 10, None),
            wait(3, 110, Some(120)),
            wait(4, 130, Some(140)),
        ];
        latest.take_in(cut(200, late));
        assert_eq!(shown(&latest), [(1, None), (3, Some(120)), (4, Some(140))]);
        let values = latest
            .trace
            .events
            .iter()
            .filter(|event| value_of(event).is_some());
        assert!(values.eq(&[value(8, 12)]));
    }

    /// Mutant: `the-oldest-queued-goes-first`.
    #[test]
    fn what_was_done_last_is_kept() {
        let mut latest = Latest::new(Vec::new(), 3);
        let early = vec![
            wait(1, 10, Some(20)),
            wait(2, 30, Some(40)),
            wait(3, 50, Some(60)),
        ];
        latest.take_in(cut(100, early));
        // Queued before all others, and done last.
        latest.take_in(cut(200, vec![wait(4, 5, Some(190))]));
        assert_eq!(
            shown(&latest),
            [(4, Some(190)), (2, Some(40)), (3, Some(60))]
        );
    }
}
