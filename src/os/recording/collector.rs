//! Collector: what makes a trace of notes, entries of logs, and slices.
//!
//! A command's note is taken before its entry: it was given before the engine could see the command, so in each round the
//! logs are read first and the notes taken after that; only then are the entries looked at.

use super::pairing::Queued;
use super::tables::Tables;
use crate::abi::{LogEntry, LogType};
use crate::kmd::EndedSlice;
use crate::os::adapter_state::AdapterState;
use crate::os::log_buffer::LogRead;
use crate::os::queue_record::QueueRecord;
use crate::sync::{Arc, monotonic_ns};
use crate::trace::{
    Command, CpuWait, Event, Exchange, GpuClock, Lost, LostFrom, Note, Operation, Reading, Slice,
    Trace, What,
};

/// See the file's head.
#[derive(Debug)]
pub(super) struct Collector {
    adapter: Arc<AdapterState>,
    most_events: usize,
    began_ns: u64,
    nodes: Vec<NodeClock>,
    tables: Tables,
    /// With engines' times in their ticks.
    events: Vec<Event>,
    /// Events that there was no room for.
    dropped: u64,
}

/// What is known of an engine's clock.
#[derive(Debug, Default)]
struct NodeClock {
    frequency: u64,
    readings: Option<(Reading, Reading)>,
    /// For what cannot wait until the end.
    now: GpuClock,
}

impl Collector {
    pub(super) fn new(adapter: Arc<AdapterState>, most_events: usize) -> Self {
        let nodes = adapter.ddi().node_count();
        let mut collector = Self {
            adapter,
            most_events,
            began_ns: monotonic_ns(),
            nodes: (0..nodes).map(|_| NodeClock::default()).collect(),
            tables: Tables::default(),
            events: Vec::new(),
            dropped: 0,
        };
        collector.read_clocks();
        for node in &mut collector.nodes {
            node.now = GpuClock::new(node.frequency, node.readings, &[]);
        }
        collector
    }

    /// Reads each engine's clock beside the CPU's.
    fn read_clocks(&mut self) {
        for (node_ordinal, node) in (0..).zip(&mut self.nodes) {
            let Ok(read) = self.adapter.ddi().calibrate_gpu_clock(node_ordinal, 0) else {
                continue;
            };
            let last = Reading {
                ticks: read.gpu_clock_counter,
                monotonic_ns: read.cpu_clock_counter,
                max_deviation_ns: read.max_deviation_ns,
            };
            let first = node.readings.map_or(last, |(first, _)| first);
            node.frequency = read.gpu_frequency;
            node.readings = Some((first, last));
        }
    }

    fn follow(&mut self, record: &Arc<QueueRecord>) {
        // Refused by nobody: this thread runs within no turn. One that is gone has nothing to tell.
        if record.follow().is_ok() {
            let name = super::queue_name(record.handle(), record.process(), false);
            let queue = self.tables.queue(name);
            self.tables.queues[queue as usize].record = Some(Arc::clone(record));
        }
    }

    /// One round.
    pub(super) fn collect(&mut self) {
        // Those that may be gone by now, and those that were made while the recording began.
        let mut queues = self.adapter.recording.take_queues();
        queues.extend(self.adapter.all_queues());
        for record in queues {
            self.follow(&record);
        }
        self.take_slices(true);
        let read = self.read_logs();
        self.take_notes();
        for (queue, kind, reads) in read {
            for read in reads {
                self.take_log(queue, kind, &read);
            }
        }
    }

    fn push(&mut self, at: u64, what: What) {
        if self.events.len() < self.most_events {
            self.events.push(Event { at, what });
        } else {
            self.dropped += 1;
        }
    }

    fn push_lost(&mut self, from: LostFrom, count: u64) {
        if count > 0 {
            // Whatever room there is.
            let what = What::Lost(Lost { from, count });
            let at = monotonic_ns();
            self.events.push(Event { at, what });
        }
    }

    fn take_slices(&mut self, go_on: bool) {
        for node_ordinal in 0..self.nodes.len() as u32 {
            let ended = self.adapter.ddi().take_ended_slices(node_ordinal, go_on);
            for slice in &ended.slices {
                self.learn(node_ordinal, slice);
                self.push(
                    slice.submitted_ns,
                    What::Slice(Slice {
                        node_ordinal,
                        number: slice.number,
                        reason: slice.reason as u64,
                        submitted: slice.submitted_ns,
                        begin: slice.begin_ticks,
                        end: slice.end_ticks,
                        seen: slice.seen_ns,
                    }),
                );
            }
            self.push_lost(LostFrom::Slices(node_ordinal), ended.lost);
        }
    }

    /// Of an engine whose clock nobody can read, the first slice tells.
    fn learn(&mut self, node_ordinal: u32, slice: &EndedSlice) {
        let node = &mut self.nodes[node_ordinal as usize];
        if node.readings.is_none() && node.now == GpuClock::default() {
            node.frequency = 1_000_000_000;
            node.now = GpuClock::new(node.frequency, None, &[exchange(slice)]);
        }
    }

    fn read_logs(&mut self) -> Vec<(u32, LogType, Vec<LogRead>)> {
        let mut all = Vec::new();
        for (number, queue) in (0..).zip(&mut self.tables.queues) {
            let Some(record) = &queue.record else {
                continue;
            };
            // Before the read: what comes after it is nothing.
            let is_gone = record.is_gone();
            for kind in LogType::ALL {
                let reads = record.read_followed(kind);
                if !reads.is_empty() {
                    all.push((number, kind, reads));
                }
            }
            if is_gone {
                queue.record = None;
            }
        }
        all
    }

    /// Takes those that there are now.
    fn take_notes(&mut self) {
        let recorder = Arc::clone(self.adapter.recording.recorder());
        for _ in 0..recorder.len() {
            let Some(note) = recorder.next() else {
                break;
            };
            self.take_note(note);
        }
        self.push_lost(LostFrom::Notes, recorder.take_lost());
    }

    fn take_note(&mut self, note: Note) {
        match note {
            Note::Queued {
                queue,
                operation,
                handle,
                value,
                number,
                at,
            } => {
                // While there is a name for it.
                let _ = self.fence(queue.process, handle);
                let queue = self.tables.queue(queue);
                let pairing = self.tables.queues[queue as usize].pairing(operation);
                pairing.queued(Queued {
                    number,
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
                let queue = self.tables.queue(queue);
                self.executed(queue, operation, (handle, value), (observed, end), end);
            }
            Note::CpuSignal { fence, value, at } => {
                let fence = self.tables.fence_of_id(fence);
                self.push(at, What::CpuSignal { fence, value });
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
            } => self.push(
                at,
                What::Interrupt {
                    node_ordinal,
                    kind,
                    fences,
                    done,
                },
            ),
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

    fn fence(&mut self, process: u64, handle: u32) -> u32 {
        self.tables.fence_of_handle(&self.adapter, process, handle)
    }

    fn take_log(&mut self, queue: u32, kind: LogType, read: &LogRead) {
        let lost = read.lost + read.refused;
        if lost > 0 {
            self.overrun(queue, kind, lost);
        }
        let node = self.tables.queues[queue as usize].name.node_ordinal;
        let clock = self.nodes.get(node as usize).map(|node| node.now);
        for entry in &read.entries {
            let named = (entry.native_fence, entry.fence_value);
            match kind {
                LogType::WaitsQueued => {
                    let pairing = self.tables.queues[queue as usize].pairing(Operation::Wait);
                    pairing.observed(entry.native_fence, entry.fence_value, entry.observed_ticks);
                }
                LogType::Waits | LogType::Signals => {
                    let ended = latest(clock, entry);
                    let times = (entry.observed_ticks, entry.end_ticks);
                    self.executed(queue, operation(kind), named, times, ended);
                }
            }
        }
    }

    /// A log was overrun: a mark, and the values of all fences that the queue's device can signal are looked at, since a
    /// signal that released a waiter may be among what was lost (IN-09, LG-12).
    fn overrun(&mut self, queue: u32, kind: LogType, lost: u64) {
        let traced = &mut self.tables.queues[queue as usize];
        let process = crate::kmd::ProcessId(traced.name.process);
        let from = match kind {
            LogType::Waits => LostFrom::WaitLog(queue),
            LogType::Signals => LostFrom::SignalLog(queue),
            LogType::WaitsQueued => LostFrom::WaitQueuedLog(queue),
        };
        if kind != LogType::WaitsQueued {
            traced.pairing(operation(kind)).lost(lost);
        }
        self.push_lost(from, lost);
        for fence in self.adapter.fences_of(process) {
            fence.resample();
        }
    }

    /// A wait or a signal was executed, with its times as they were logged.
    fn executed(
        &mut self,
        queue: u32,
        operation: Operation,
        (handle, value): (u32, u64),
        (observed, end): (u64, u64),
        ended_ns: u64,
    ) {
        let process = self.tables.queues[queue as usize].name.process;
        let mut passed = Vec::new();
        let pairing = self.tables.queues[queue as usize].pairing(operation);
        let queued = pairing.executed((handle, value), ended_ns, &mut passed);
        for lost in passed {
            self.push_open(queue, operation, &lost, true);
        }
        let fence = self.fence(process, handle);
        let command = Command {
            queue,
            operation,
            fence,
            value,
            queued: queued.map(|queued| queued.at),
            observed: (operation == Operation::Wait).then_some(observed),
            end: Some(end),
            is_lost: false,
        };
        self.push(0, What::Command(command));
    }

    /// A command of whose end nothing is known.
    fn push_open(&mut self, queue: u32, operation: Operation, queued: &Queued, is_lost: bool) {
        let process = self.tables.queues[queue as usize].name.process;
        let command = Command {
            queue,
            operation,
            fence: self.fence(process, queued.handle),
            value: queued.value,
            queued: Some(queued.at),
            observed: queued.observed_ticks,
            end: None,
            is_lost,
        };
        self.push(0, What::Command(command));
    }

    /// The trace: nothing is noted any more.
    pub(super) fn finish(mut self, about: Vec<(String, String)>) -> Trace {
        self.collect();
        self.take_slices(false);
        self.read_clocks();
        for queue in &self.tables.queues {
            if let Some(record) = &queue.record {
                record.follow_no_more();
            }
        }
        for queue in 0..self.tables.queues.len() as u32 {
            for operation in [Operation::Wait, Operation::Signal] {
                let rest: Vec<_> = self.tables.queues[queue as usize]
                    .pairing(operation)
                    .rest()
                    .collect();
                for open in rest {
                    self.push_open(queue, operation, &open, false);
                }
            }
        }
        let dropped = std::mem::take(&mut self.dropped);
        self.push_lost(LostFrom::Trace, dropped);
        let ended_ns = monotonic_ns();
        let clocks = self.clocks();
        let began_ns = self.began_ns;
        let mut trace = Trace {
            about,
            began_ns,
            length: ended_ns - began_ns,
            queues: self.tables.queues.iter().map(|q| q.name).collect(),
            fences: self.tables.fences,
            clocks,
            events: self.events,
        };
        for event in &mut trace.events {
            event.bring_over(&trace.queues, &trace.clocks, began_ns);
        }
        trace.events.sort_by_key(|event| event.at);
        trace
    }

    fn clocks(&self) -> Vec<GpuClock> {
        let of_node = |(ordinal, node): (u32, &NodeClock)| {
            let exchanges: Vec<_> = self
                .events
                .iter()
                .filter_map(|event| match &event.what {
                    What::Slice(slice) if slice.node_ordinal == ordinal => Some(Exchange {
                        submitted_ns: slice.submitted,
                        begin_ticks: slice.begin,
                        end_ticks: slice.end,
                        seen_ns: slice.seen,
                    }),
                    _ => None,
                })
                .collect();
            GpuClock::new(node.frequency, node.readings, &exchanges)
        };
        (0..).zip(&self.nodes).map(of_node).collect()
    }
}

fn operation(kind: LogType) -> Operation {
    match kind {
        LogType::Waits | LogType::WaitsQueued => Operation::Wait,
        LogType::Signals => Operation::Signal,
    }
}

fn exchange(slice: &EndedSlice) -> Exchange {
    Exchange {
        submitted_ns: slice.submitted_ns,
        begin_ticks: slice.begin_ticks,
        end_ticks: slice.end_ticks,
        seen_ns: slice.seen_ns,
    }
}

/// The latest that an entry's command can have ended.
fn latest(clock: Option<GpuClock>, entry: &LogEntry) -> u64 {
    match clock {
        Some(clock) if clock != GpuClock::default() => {
            clock.ns(entry.end_ticks).saturating_add(clock.max_error_ns)
        }
        _ => monotonic_ns(),
    }
}
