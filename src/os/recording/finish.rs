//! Finish: a trace of what was collected.
//!
//! The notes come first, and then the entries, queue by queue in the order in which they were read: so each entry finds
//! the command that it is of (`pairing`). Engines' times are brought to the CPU's clock last.

use super::collector::{Collector, LogPiece, NodeClock};
use super::pairing::Queued;
use super::tables::Tables;
use crate::abi::{LogEntry, LogType, SliceReason};
use crate::sync::monotonic_ns;
use crate::trace::{
    Command, CpuWait, Event, Exchange, GpuClock, Lost, LostFrom, Note, Operation, Slice,
    Submission, Trace, What,
};

/// A trace in the making, with engines' times in their ticks.
#[derive(Debug)]
struct Draft {
    tables: Tables,
    clocks: Vec<GpuClock>,
    events: Vec<Event>,
}

impl Collector {
    /// Ends, and gives the trace.
    pub(super) fn finish(mut self, about: Vec<(String, String)>) -> Trace {
        self.end();
        let ended_ns = monotonic_ns();
        let began_ns = self.began_ns;
        let draft = Draft::of(self);
        let mut trace = Trace {
            about,
            began_ns,
            length: ended_ns - began_ns,
            queues: draft.tables.queues.iter().map(|q| q.name).collect(),
            fences: draft.tables.fences,
            clocks: draft.clocks,
            events: draft.events,
        };
        for event in &mut trace.events {
            event.bring_over(&trace.queues, &trace.clocks, began_ns);
        }
        trace.events.sort_by_key(|event| event.at);
        trace
    }
}

impl Draft {
    fn of(mut collected: Collector) -> Self {
        let mut draft = Self {
            tables: Tables::new(collected.names()),
            clocks: clocks(&collected),
            events: Vec::new(),
        };
        for (id, process, is_kernel_mode) in collected.queues {
            draft.tables.enter(id, process, is_kernel_mode);
        }
        for (node_ordinal, slice) in collected.slices {
            let what = What::Slice(Slice {
                node_ordinal,
                number: slice.number,
                reason: slice.reason as u64,
                submitted: slice.submitted_ns,
                begin: slice.begin_ticks,
                end: slice.end_ticks,
                seen: slice.seen_ns,
            });
            draft.push(slice.submitted_ns, what);
        }
        for note in collected.notes.drain(..).flatten() {
            draft.note(note);
        }
        for submission in &collected.submissions {
            draft.submission(submission);
        }
        for piece in collected.logs {
            draft.log(&piece);
        }
        for (at, lost) in collected.lost {
            draft.push(at, What::Lost(lost));
        }
        draft.rest();
        draft
    }

    fn push(&mut self, at: u64, what: What) {
        self.events.push(Event { at, what });
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::KernelQueueMade { queue, process } => self.tables.enter(queue, process, true),
            Note::Queued {
                queue,
                operation,
                handle,
                value,
                at,
            } => {
                // The note of its making may have been dropped.
                let Some(queue) = self.tables.queue(queue) else {
                    return;
                };
                let pairing = self.tables.queues[queue as usize].pairing(operation);
                pairing.queued(Queued {
                    number: None,
                    handle,
                    value,
                    at,
                    observed_ticks: None,
                });
            }
            Note::Executed {
                queue,
                operation,
                handle,
                value,
                observed,
                end,
            } => {
                if let Some(queue) = self.tables.queue(queue) {
                    self.executed(queue, operation, (handle, value), (observed, end), end);
                }
            }
            Note::CpuSignal {
                fence,
                value,
                at,
                done,
            } => {
                let fence = self.tables.fence_of_id(fence);
                self.push(at, What::CpuSignal { fence, value, done });
            }
            Note::MonitoredValue { fence, value, at } => {
                let fence = self.tables.fence_of_id(fence);
                self.push(at, What::MonitoredValue { fence, value });
            }
            Note::CpuWait {
                fence,
                value,
                began,
                woke,
                is_satisfied,
            } => {
                let wait = CpuWait {
                    fence: self.tables.fence_of_id(fence),
                    value,
                    began,
                    woke,
                    is_satisfied,
                };
                self.push(began, What::CpuWait(wait));
            }
            Note::Interrupt {
                node_ordinal,
                kind,
                fences,
                at,
                done,
            } => {
                let what = What::Interrupt {
                    node_ordinal,
                    kind,
                    fences,
                    done,
                };
                self.push(at, what);
            }
            Note::Preemption { node_ordinal, at } => {
                self.push(at, What::Preemption { node_ordinal });
            }
            Note::Recovery {
                node_ordinal,
                step,
                at,
            } => {
                let step = step.to_owned();
                self.push(at, What::Recovery { node_ordinal, step });
            }
        }
    }

    fn submission(&mut self, submission: &Submission) {
        let Some(queue) = self.tables.queue(submission.queue) else {
            return;
        };
        let traced = &mut self.tables.queues[queue as usize];
        for (number, command) in submission.numbered() {
            traced.pairing(command.operation).queued(Queued {
                number: Some(number),
                handle: command.handle,
                value: command.value,
                at: submission.at,
                observed_ticks: None,
            });
        }
    }

    fn log(&mut self, piece: &LogPiece) {
        let Some(queue) = self.tables.queue(piece.queue) else {
            return;
        };
        let (operation, from) = match piece.kind {
            LogType::Waits => (Operation::Wait, LostFrom::WaitLog(queue)),
            LogType::Signals => (Operation::Signal, LostFrom::SignalLog(queue)),
            LogType::WaitsQueued => (Operation::Wait, LostFrom::WaitQueuedLog(queue)),
        };
        let count = piece.read.lost + piece.read.refused;
        if count > 0 {
            // LG-12.
            self.push(piece.read_ns, What::Lost(Lost { from, count }));
        }
        if piece.kind == LogType::WaitsQueued {
            let pairing = self.tables.queues[queue as usize].pairing(operation);
            for entry in &piece.read.entries {
                pairing.observed(entry.native_fence, entry.fence_value, entry.observed_ticks);
            }
            return;
        }
        self.tables.queues[queue as usize]
            .pairing(operation)
            .lost(count);
        let clock = self.clocks.get(piece.queue.node_ordinal as usize).copied();
        for entry in &piece.read.entries {
            let named = (entry.native_fence, entry.fence_value);
            let times = (entry.observed_ticks, entry.end_ticks);
            let latest = latest(clock, entry).min(piece.read_ns);
            self.executed(queue, operation, named, times, latest);
        }
    }

    /// A wait or a signal was executed, with its times as they were logged.
    fn executed(
        &mut self,
        queue: u32,
        operation: Operation,
        (handle, value): (u32, u64),
        (observed, end): (u64, u64),
        latest_ns: u64,
    ) {
        let traced = &mut self.tables.queues[queue as usize];
        let process = traced.name.process;
        let mut passed = Vec::new();
        let pairing = traced.pairing(operation);
        let queued = pairing.executed((handle, value), latest_ns, &mut passed);
        for lost in passed {
            self.open(queue, operation, &lost, true);
        }
        let command = Command {
            queue,
            operation,
            fence: self.tables.fence_of_handle(process, handle),
            value,
            queued: queued.map(|queued| queued.at),
            observed: (operation == Operation::Wait).then_some(observed),
            end: Some(end),
            is_lost: false,
        };
        self.push(0, What::Command(command));
    }

    /// A command of whose end nothing is known.
    fn open(&mut self, queue: u32, operation: Operation, queued: &Queued, is_lost: bool) {
        let process = self.tables.queues[queue as usize].name.process;
        let command = Command {
            queue,
            operation,
            fence: self.tables.fence_of_handle(process, queued.handle),
            value: queued.value,
            queued: Some(queued.at),
            observed: queued.observed_ticks,
            end: None,
            is_lost,
        };
        self.push(0, What::Command(command));
    }

    /// Commands that are not done.
    fn rest(&mut self) {
        for queue in 0..self.tables.queues.len() as u32 {
            for operation in [Operation::Wait, Operation::Signal] {
                let traced = &mut self.tables.queues[queue as usize];
                let rest: Vec<_> = traced.pairing(operation).rest().collect();
                for open in rest {
                    self.open(queue, operation, &open, false);
                }
            }
        }
    }
}

fn clocks(collected: &Collector) -> Vec<GpuClock> {
    let of_node = |(ordinal, node): (u32, &NodeClock)| {
        let slices = collected.slices.iter();
        let exchanges: Vec<_> = slices
            // One that the driver cut has told nothing: what stands there is of an earlier one.
            .filter(|(of, slice)| *of == ordinal && slice.reason != SliceReason::Cut)
            .map(|(_, slice)| Exchange {
                submitted_ns: slice.submitted_ns,
                begin_ticks: slice.begin_ticks,
                end_ticks: slice.end_ticks,
                seen_ns: slice.seen_ns,
            })
            .collect();
        GpuClock::new(node.frequency, node.readings, &exchanges)
    };
    (0..).zip(&collected.clocks).map(of_node).collect()
}

/// The latest that an entry's command can have ended.
fn latest(clock: Option<GpuClock>, entry: &LogEntry) -> u64 {
    clock.map_or(u64::MAX, |clock| {
        clock.ns(entry.end_ticks).saturating_add(clock.max_error_ns)
    })
}
