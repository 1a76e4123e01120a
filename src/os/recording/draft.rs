//! Draft: a trace of what was collected, whole or cut by cut.
//!
//! The notes come first, and then the entries, queue by queue in the order in which they were read: so each entry finds
//! the command that it is of (`pairing`). Engines' times are brought to the CPU's clock last.

use super::super::log_buffer::LogRead;
use super::collector::{Collected, LogPiece, NodeClock};
use super::pairing::Queued;
use super::tables::Tables;
use crate::abi::{LogEntry, LogOperation, LogType, SliceReason};
use crate::kmd::EndedSlice;
use crate::trace::{
    Command, CpuWait, Event, Exchange, GpuClock, Lost, LostFrom, Note, Operation, QueueId,
    QueuedKind, Slice, Submission, Trace, What,
};

/// Slices of a node by which its clock is borne out, from one cut to the next: the latest.
const MOST_EXCHANGES: usize = 1024;

/// A trace in the making, with engines' times in their ticks.
#[derive(Debug, Default)]
pub(super) struct Draft {
    tables: Tables,
    /// Of each node.
    exchanges: Vec<Vec<Exchange>>,
    clocks: Vec<GpuClock>,
    events: Vec<Event>,
}

impl Draft {
    /// The trace of what was collected since the last cut, or since the beginning. Commands that are not done are in it,
    /// and are again in the next.
    pub(super) fn cut(&mut self, collected: Collected, about: Vec<(String, String)>) -> Trace {
        let (began_ns, ended_ns) = collected.span;
        self.take_in(collected);
        let mut trace = Trace {
            about,
            began_ns,
            length: ended_ns - began_ns,
            adapters: Vec::new(),
            queues: self.tables.queues.iter().map(|q| q.name).collect(),
            fences: self.tables.fences.clone(),
            clocks: self.clocks.clone(),
            events: std::mem::take(&mut self.events),
        };
        for event in &mut trace.events {
            event.bring_over(&trace.queues, &trace.clocks, began_ns);
        }
        trace.events.sort_by_key(|event| event.at);
        trace
    }

    fn take_in(&mut self, collected: Collected) {
        self.tables.named(collected.names);
        for (id, process, is_kernel_mode) in collected.queues {
            self.tables.enter(id, process, is_kernel_mode);
        }
        self.take_clocks(&collected.clocks, &collected.slices);
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
            self.push(slice.submitted_ns, what);
        }
        for note in collected.notes.into_iter().flatten() {
            self.note(note);
        }
        for submission in &collected.submissions {
            self.submission(submission);
        }
        for piece in collected.logs {
            self.log(&piece);
        }
        for ((queue, kind), entries) in collected.skipped {
            self.skipped(queue, kind, entries);
        }
        // What was to tell of their ends may be among the notes that were lost.
        let is_doubtful = |lost: &Lost| matches!(lost.from, LostFrom::Notes | LostFrom::Trace);
        let are_doubtful = collected.lost.iter().any(|(_, lost)| is_doubtful(lost));
        for (at, lost) in collected.lost {
            self.push(at, What::Lost(lost));
        }
        self.rest(are_doubtful);
    }

    /// By the slices of before, too.
    fn take_clocks(&mut self, clocks: &[NodeClock], slices: &[(u32, EndedSlice)]) {
        self.exchanges.resize(clocks.len(), Vec::new());
        // One that the driver cut has told nothing: what stands there is of an earlier one.
        let told = slices
            .iter()
            .filter(|(_, slice)| slice.reason != SliceReason::Cut);
        for (node_ordinal, slice) in told {
            if let Some(exchanges) = self.exchanges.get_mut(*node_ordinal as usize) {
                exchanges.push(Exchange {
                    submitted_ns: slice.submitted_ns,
                    begin_ticks: slice.begin_ticks,
                    end_ticks: slice.end_ticks,
                    seen_ns: slice.seen_ns,
                });
            }
        }
        let each = clocks.iter().zip(&mut self.exchanges);
        self.clocks = each
            .map(|(node, exchanges)| {
                let clock = GpuClock::new(node.frequency, node.readings, exchanges);
                exchanges.drain(..exchanges.len().saturating_sub(MOST_EXCHANGES));
                clock
            })
            .collect();
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
                waiter,
                end,
            } => {
                let wait = CpuWait {
                    fence: self.tables.fence_of_id(fence),
                    value,
                    began,
                    woke,
                    waiter,
                    end,
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
        for numbered in submission.numbered() {
            let command = numbered.command;
            match command.kind {
                QueuedKind::Fence(operation) => traced.pairing(operation).queued(Queued {
                    number: Some(numbered.next[operation as usize]),
                    handle: command.handle,
                    value: command.value,
                    at: submission.at,
                    observed_ticks: None,
                }),
                QueuedKind::Dispatch => traced.dispatches.queued(numbered, submission.at),
            }
        }
    }

    fn log(&mut self, piece: &LogPiece) {
        let Some(queue) = self.tables.queue(piece.queue) else {
            return;
        };
        let (operation, from) = match piece.kind {
            LogType::Waits => (Operation::Wait, LostFrom::WaitLog(queue)),
            LogType::Signals => (Operation::Signal, LostFrom::SignalLog(queue)),
            LogType::Verbose => (Operation::Wait, LostFrom::VerboseLog(queue)),
        };
        let count = piece.read.lost + piece.read.refused;
        if count > 0 {
            // LG-12.
            self.push(piece.read_ns, What::Lost(Lost { from, count }));
        }
        if piece.kind == LogType::Verbose {
            self.verbose_log(queue, &piece.read);
            return;
        }
        self.tables.queues[queue as usize]
            .pairing(operation)
            .lost(count);
        let clock = self.clocks.get(piece.queue.node_ordinal as usize).copied();
        for entry in &piece.read.entries {
            let named = (entry.native_fence, entry.fence_value);
            let times = (entry.observed_ticks, entry.end_ticks);
            // An engine that has seen a wait has seen what was queued before that alone.
            let seen = match operation {
                Operation::Wait => entry.observed_ticks,
                Operation::Signal => entry.end_ticks,
            };
            let latest = latest(clock, seen).min(piece.read_ns);
            self.executed(queue, operation, named, times, latest);
        }
    }

    fn verbose_log(&mut self, queue: u32, read: &LogRead) {
        let traced = &mut self.tables.queues[queue as usize];
        let is_wait = |entry: &&LogEntry| entry.operation == LogOperation::WaitQueued as u32;
        for entry in read.entries.iter().filter(is_wait) {
            let pairing = traced.pairing(Operation::Wait);
            pairing.observed(entry.native_fence, entry.fence_value, entry.observed_ticks);
        }
        for dispatch in traced.dispatches.logged(queue, read) {
            self.push(0, What::Dispatch(dispatch));
        }
    }

    /// Entries were read and not kept, which the trace has a mark of: their commands are done.
    fn skipped(&mut self, queue: QueueId, kind: LogType, entries: u64) {
        let operation = match kind {
            LogType::Waits => Operation::Wait,
            LogType::Signals => Operation::Signal,
            LogType::Verbose => return,
        };
        if let Some(queue) = self.tables.queue(queue) {
            self.tables.queues[queue as usize]
                .pairing(operation)
                .lost(entries);
        }
    }

    /// A wait or a signal was executed, with its times as they were logged.
    fn executed(
        &mut self,
        queue: u32,
        operation: Operation,
        (handle, value): (u32, u64),
        (observed, end): (u64, u64),
        seen_ns: u64,
    ) {
        let traced = &mut self.tables.queues[queue as usize];
        let process = traced.name.process;
        let mut passed = Vec::new();
        let pairing = traced.pairing(operation);
        let (number, queued) = pairing.executed((handle, value), seen_ns, &mut passed);
        if let Some(number) = number {
            let first = match operation {
                Operation::Wait => observed,
                Operation::Signal => end,
            };
            traced.dispatches.beside(operation, number, (first, end));
        }
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

    /// Commands whose entries were lost, and those that are not done. Of those that have no number, which the OS executes, it
    /// is not known where notes were lost.
    fn rest(&mut self, are_doubtful: bool) {
        for queue in 0..self.tables.queues.len() as u32 {
            for operation in [Operation::Wait, Operation::Signal] {
                let traced = &mut self.tables.queues[queue as usize];
                let pairing = traced.pairing(operation);
                let mut passed = pairing.passed();
                if are_doubtful {
                    passed.extend(pairing.without_number());
                }
                let rest: Vec<_> = pairing.rest().copied().collect();
                for lost in passed {
                    self.open(queue, operation, &lost, true);
                }
                for open in rest {
                    self.open(queue, operation, &open, false);
                }
            }
            let traced = &mut self.tables.queues[queue as usize];
            let done = [Operation::Wait, Operation::Signal].map(|kind| traced.pairing(kind).next());
            for dispatch in traced.dispatches.rest(queue, done) {
                self.push(0, What::Dispatch(dispatch));
            }
        }
    }
}

/// The latest that it can have been at a time of an engine.
fn latest(clock: Option<GpuClock>, ticks: u64) -> u64 {
    clock.map_or(u64::MAX, |clock| {
        clock.ns(ticks).saturating_add(clock.max_error_ns)
    })
}
