//! Live: the latest of a recording that goes on.
//!
//! Cuts of the recording are put together; of what is done the latest events are kept. What was not done at the last cut is
//! in the next one again, as it is then, and replaced.

use super::Source;
use crate::Recording;
use crate::trace::{Command, Event, Trace, What};
use crate::viewer::Scene;

/// Events that are kept, so that a picture is put together in milliseconds.
const MOST_EVENTS: usize = 30_000;

/// See the file's head.
#[derive(Debug)]
pub struct Live {
    recording: Recording,
    latest: Latest,
}

impl Live {
    /// Of a recording. `about` is what is said of it, names and values.
    #[must_use]
    pub fn new(recording: Recording, about: Vec<(String, String)>) -> Self {
        Self {
            recording,
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
        // By when it was known: a command that was queued long ago may be done just now.
        if trace.events.len() > self.most {
            trace.events.sort_by_key(Event::latest);
            trace.events.drain(..trace.events.len() - self.most);
        }
        trace.events.sort_by_key(|event| event.at);
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
    use crate::trace::Operation;

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
