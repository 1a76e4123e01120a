//! Collector: what a recording keeps, as it comes.
//!
//! Engines and programs go on meanwhile, on the same memory and maybe the same cores. So a round copies and looks at
//! nothing: notes, entries of logs, slices. What belongs to what is found when somebody wants a trace (`draft`).

use super::super::adapter_state::AdapterState;
use super::super::log_buffer::LogRead;
use super::super::queue_record::QueueRecord;
use super::{TracedFence, queue_id};
use crate::abi::{LOG_BUFFER_ENTRIES, LogType, TRACED_LOG_ENTRIES};
use crate::kmd::{EndedSlice, HwQueueHandle, ProcessId};
use crate::sync::{Arc, monotonic_ns};
use crate::trace::{Lost, LostFrom, Note, QueueId, Reading, Submission};
use std::collections::HashMap;

/// Notes of one piece of memory: none is moved when more come.
const CHUNK: usize = 1 << 14;

/// Memory of the logs of one kind of all queues, about. One queue alone fills more in a millisecond than each of many; and
/// logs that do not stay in the caches cost an engine on the CPU more than it costs to be read (with 1 MiB each, signals of
/// 64 queues took 1.4 times as long).
const ALL_LOGS: u64 = TRACED_LOG_ENTRIES;
/// And of each at least: what comes in some rounds to one of many queues.
const LEAST_ENTRIES: u64 = 8 * LOG_BUFFER_ENTRIES;

/// What was read of one log at one time.
#[derive(Debug)]
pub(super) struct LogPiece {
    pub(super) queue: QueueId,
    pub(super) kind: LogType,
    pub(super) read: LogRead,
    /// When it was read: all of it had ended before.
    pub(super) read_ns: u64,
}

/// What is known of an engine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeClock {
    pub(super) frequency: u64,
    pub(super) readings: Option<(Reading, Reading)>,
}

/// What came since somebody took what had come.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// When the recording began, and when this was taken.
    pub(super) span: (u64, u64),
    pub(super) clocks: Vec<NodeClock>,
    /// All queues that came to be followed, whose they are, and whether they are of kernel mode.
    pub(super) queues: Vec<(QueueId, u64, bool)>,
    pub(super) notes: Vec<Vec<Note>>,
    pub(super) submissions: Vec<Submission>,
    pub(super) logs: Vec<LogPiece>,
    pub(super) slices: Vec<(u32, EndedSlice)>,
    /// Marks, and when they were made.
    pub(super) lost: Vec<(u64, Lost)>,
    /// Entries of logs for which there was no room, after all that is in `logs`.
    pub(super) skipped: HashMap<(QueueId, LogType), u64>,
    /// What handles named that were opened.
    pub(super) names: HashMap<(u64, u32), TracedFence>,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Collector {
    adapter: Arc<AdapterState>,
    most_events: usize,
    began_ns: u64,
    /// Whose logs are read.
    followed: HashMap<HwQueueHandle, Arc<QueueRecord>>,
    collected: Collected,
    kept: usize,
    /// From now on nothing is kept.
    is_full: bool,
    dropped: u64,
}

impl Collector {
    pub(super) fn new(adapter: Arc<AdapterState>, most_events: usize) -> Self {
        let nodes = adapter.ddi().node_count();
        let mut collector = Self {
            adapter,
            most_events,
            began_ns: monotonic_ns(),
            followed: HashMap::new(),
            collected: Collected {
                clocks: vec![NodeClock::default(); nodes as usize],
                ..Collected::default()
            },
            kept: 0,
            is_full: false,
            dropped: 0,
        };
        collector.read_clocks();
        collector
    }

    /// Has the recorder take notes from now on, and makes known what is there already.
    pub(super) fn begin(&mut self) {
        // Logs are read from a moment before the first note: each command that is noted has its entry read.
        for record in self.adapter.all_queues() {
            self.follow(record);
        }
        self.adapter.recording.recorder().start();
        self.adapter.name_all();
        for queue in self.adapter.kernel_queues.all() {
            let (id, process) = (queue_id(queue.handle()), queue.process());
            self.collected.queues.push((id, process.0, true));
        }
        self.collect();
    }

    /// Reads each engine's clock beside the CPU's.
    fn read_clocks(&mut self) {
        for (node_ordinal, node) in (0..).zip(&mut self.collected.clocks) {
            let Ok(read) = self.adapter.ddi().calibrate_gpu_clock(node_ordinal, 0) else {
                continue;
            };
            let last = Reading {
                ticks: read.gpu_clock_counter,
                monotonic_ns: read.cpu_clock_counter,
                max_deviation_ns: read.max_deviation_ns,
            };
            let first = node.readings.map_or(last, |(first, _)| first);
            node.readings = Some((first, last));
        }
    }

    /// Reads this queue's logs from now on.
    fn follow(&mut self, record: Arc<QueueRecord>) {
        let handle = record.handle();
        if record.is_gone() && !record.is_followed() {
            return;
        }
        // Refused by nobody: this thread runs within no turn.
        if record.follow().is_ok() {
            let process = record.process().0;
            self.collected
                .queues
                .push((queue_id(handle), process, false));
            self.followed.insert(handle, record);
        }
    }

    /// One round.
    pub(super) fn collect(&mut self) {
        // Those that may be gone by now, and those that were made while the recording began.
        let mut queues = self.adapter.recording.take_queues();
        queues.extend(self.adapter.all_queues());
        queues.retain(|record| !self.followed.contains_key(&record.handle()));
        for record in queues {
            self.follow(record);
        }
        let entries = log_entries(self.followed.len());
        for record in self.followed.values() {
            // Of those that have been enlarged it is a load.
            record.enlarge_logs(entries);
        }
        self.take_slices(true);
        self.read_logs();
        self.take_notes();
    }

    /// Whether there is room for so many more. Once there is none there is no more: a trace is cut, and has no holes.
    fn has_room(&mut self, events: usize) -> bool {
        self.is_full |= self.kept + events > self.most_events;
        if self.is_full {
            self.dropped += events as u64;
        } else {
            self.kept += events;
        }
        !self.is_full
    }

    fn mark(&mut self, from: LostFrom, count: u64) {
        if count == 0 {
            return;
        }
        // Round after round the same: one mark, where it began.
        let mut marks = self.collected.lost.iter_mut();
        if let Some((_, lost)) = marks.find(|(_, lost)| lost.from == from) {
            lost.count += count;
        } else {
            let lost = Lost { from, count };
            self.collected.lost.push((monotonic_ns(), lost));
        }
    }

    fn take_slices(&mut self, go_on: bool) {
        for node_ordinal in 0..self.collected.clocks.len() as u32 {
            let ended = self.adapter.ddi().take_ended_slices(node_ordinal, go_on);
            self.collected.clocks[node_ordinal as usize].frequency = ended.ticks_per_second;
            if self.has_room(ended.slices.len()) {
                let slices = ended.slices.into_iter();
                let slices = slices.map(|slice| (node_ordinal, slice));
                self.collected.slices.extend(slices);
            }
            self.mark(LostFrom::Slices(node_ordinal), ended.lost);
        }
    }

    fn read_logs(&mut self) {
        let mut gone = Vec::new();
        let mut overrun = Vec::new();
        let mut pieces = Vec::new();
        for (handle, record) in &self.followed {
            // Before the read: what comes after it is nothing.
            if record.is_gone() {
                gone.push(*handle);
            }
            for kind in LogType::ALL {
                for read in record.read_followed(kind) {
                    if read.lost > 0 {
                        overrun.push(record.process());
                    }
                    pieces.push(LogPiece {
                        queue: queue_id(*handle),
                        kind,
                        read,
                        read_ns: monotonic_ns(),
                    });
                }
            }
        }
        for handle in gone {
            // While its user holds it, it is found again; there is nothing to follow any more.
            if let Some(record) = self.followed.remove(&handle) {
                record.follow_no_more();
            }
        }
        for piece in pieces {
            let overrun = piece.read.lost + piece.read.refused;
            let entries = piece.read.entries.len();
            if self.has_room(entries) {
                self.collected.logs.push(piece);
            } else {
                let of_log = (piece.queue, piece.kind);
                *self.collected.skipped.entry(of_log).or_default() += entries as u64 + overrun;
                self.dropped += overrun;
            }
        }
        overrun.sort_unstable();
        overrun.dedup();
        for process in overrun {
            self.look_at_fences_of(process);
        }
    }

    /// A log was overrun: a signal that released a waiter may be among what was lost (IN-09).
    fn look_at_fences_of(&self, process: ProcessId) {
        for fence in self.adapter.fences_of(process) {
            fence.resample();
        }
    }

    /// Takes the notes that there are now.
    fn take_notes(&mut self) {
        let recorder = Arc::clone(self.adapter.recording.recorder());
        for _ in 0..recorder.notes() {
            let Some(note) = recorder.next() else {
                break;
            };
            if !self.has_room(1) {
                continue;
            }
            match self.collected.notes.last_mut() {
                Some(chunk) if chunk.len() < CHUNK => chunk.push(note),
                _ => {
                    let mut chunk = Vec::with_capacity(CHUNK);
                    chunk.push(note);
                    self.collected.notes.push(chunk);
                }
            }
        }
        for _ in 0..recorder.submissions() {
            let Some(told) = recorder.next_submission() else {
                break;
            };
            if self.has_room(told.commands.len()) {
                // In memory of its own, no more than it needs: what was told goes back.
                self.collected.submissions.push(told.clone());
            }
            recorder.give_back(told);
        }
        self.mark(LostFrom::Notes, recorder.take_lost());
    }

    /// The last round: nothing is noted any more.
    pub(super) fn end(&mut self) {
        self.collect();
        self.take_slices(false);
        for record in self.followed.values() {
            record.follow_no_more();
            // Those of a queue that was destroyed are nobody's.
            let _ = record.trace(|| self.adapter.tracing());
        }
    }

    /// What has come; from here on there is room for as much again.
    pub(super) fn take(&mut self) -> Collected {
        self.read_clocks();
        let dropped = std::mem::take(&mut self.dropped);
        self.mark(LostFrom::Trace, dropped);
        (self.kept, self.is_full) = (0, false);
        let next = Collected {
            clocks: self.collected.clocks.clone(),
            ..Collected::default()
        };
        let mut collected = std::mem::replace(&mut self.collected, next);
        collected.names = self.adapter.recording.take_names();
        collected.span = (self.began_ns, monotonic_ns());
        collected
    }
}

/// Entries of each log where so many queues are recorded.
fn log_entries(queues: usize) -> u64 {
    (ALL_LOGS / queues.max(1) as u64).max(LEAST_ENTRIES)
}
