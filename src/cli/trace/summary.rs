//! What was recorded, in numbers.

use super::file::Format;
use crate::cli::paint::{BOLD, RED, painted};
use crate::trace::{ClockSource, LostFrom, Operation, Trace, What};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// See the file's head.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    schema: u32,
    file: PathBuf,
    bytes: u64,
    length_ns: u64,
    /// Their names, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    adapters: Vec<String>,
    queues: usize,
    fences: usize,
    commands: u64,
    waits: u64,
    signals: u64,
    /// Waits that were let go by a signal that is in the trace.
    releases: usize,
    dispatches: u64,
    slices: u64,
    interrupts: u64,
    cpu_waits: u64,
    lost: Vec<LostEvents>,
    clocks: Vec<Clock>,
}

#[derive(Debug, Serialize)]
struct LostEvents {
    from: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct Clock {
    /// Where there are several, whose node it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    adapter: Option<usize>,
    node_ordinal: u32,
    #[serde(skip)]
    node: String,
    source: ClockSource,
    max_error_ns: u64,
}

impl Summary {
    pub(super) fn of(trace: &Trace, file: &Path, bytes: u64) -> Self {
        let count = |is: &dyn Fn(&What) -> bool| {
            let events = trace.events.iter();
            events.filter(|event| is(&event.what)).count() as u64
        };
        let of = |wanted: Operation| {
            count(&|what| matches!(what, What::Command(c) if c.operation == wanted))
        };
        let (waits, signals) = (of(Operation::Wait), of(Operation::Signal));
        Self {
            schema: 1,
            file: file.to_owned(),
            bytes,
            length_ns: trace.length,
            adapters: trace.adapters.iter().map(|a| a.name.clone()).collect(),
            queues: trace.queues.len(),
            fences: trace.fences.len(),
            commands: waits + signals,
            waits,
            signals,
            releases: trace.releases().len(),
            dispatches: count(&|what| matches!(what, What::Dispatch(_))),
            slices: count(&|what| matches!(what, What::Slice(_))),
            interrupts: count(&|what| matches!(what, What::Interrupt { .. })),
            cpu_waits: count(&|what| matches!(what, What::CpuWait(_))),
            lost: lost(trace),
            clocks: (0..)
                .zip(&trace.clocks)
                .filter(|(_, clock)| clock.source != ClockSource::None)
                .map(|(node, clock)| {
                    let of = trace.adapter_of_node(node);
                    Clock {
                        adapter: of.map(|(adapter, _)| adapter),
                        node_ordinal: of.map_or(node, |(_, ordinal)| ordinal),
                        node: trace.node_name(node),
                        source: clock.source,
                        max_error_ns: clock.max_error_ns,
                    }
                })
                .collect(),
        }
    }

    pub(super) fn text(&self, format: Format, colour: bool) -> String {
        let mut text = String::new();
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let (ms, kib) = (self.length_ns as f64 / 1e6, self.bytes as f64 / 1024.0);
        let _ = writeln!(
            text,
            "{}: {ms:.1} ms, {} waits and {} signals of {} queues and {} fences, {kib:.0} KiB",
            painted(&self.file.display().to_string(), BOLD, colour),
            self.waits,
            self.signals,
            self.queues,
            self.fences,
        );
        let _ = writeln!(
            text,
            "{} waits were let go by signals that are shown; {} dispatches, {} slices, {} interrupts, {} waits of the CPU",
            self.releases, self.dispatches, self.slices, self.interrupts, self.cpu_waits
        );
        for clock in &self.clocks {
            let how = match clock.source {
                ClockSource::Calibrated => {
                    "read by the driver beside the CPU's, and borne out by its slices"
                }
                ClockSource::Unchecked => "read by the driver beside the CPU's",
                ClockSource::Exchanged | ClockSource::None => {
                    "between submissions and ends of its slices"
                }
            };
            let _ = writeln!(
                text,
                "times of the engine of {} are right to {} ({how})",
                clock.node,
                duration(clock.max_error_ns)
            );
        }
        for lost in &self.lost {
            let line = format!("{} events were lost: {}", lost.count, lost.from);
            let _ = writeln!(text, "{}", painted(&line, RED, colour));
        }
        if format == Format::Chrome {
            let _ = writeln!(text, "open it at https://ui.perfetto.dev");
        }
        text
    }
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn duration(ns: u64) -> String {
    if ns < 1000 {
        format!("{ns} ns")
    } else {
        format!("{:.1} us", ns as f64 / 1000.0)
    }
}

fn lost(trace: &Trace) -> Vec<LostEvents> {
    let mut all: Vec<LostEvents> = Vec::new();
    for lost in trace.lost() {
        let queue = |index: u32| {
            let queue = trace.queues[index as usize];
            let node = trace.node_name(queue.node_ordinal);
            format!("queue {} of {node}", queue.number)
        };
        let from = match lost.from {
            LostFrom::WaitLog(index) => format!("the log of waits of {} was overrun", queue(index)),
            LostFrom::SignalLog(index) => {
                format!("the log of signals of {} was overrun", queue(index))
            }
            LostFrom::VerboseLog(index) => {
                format!("the verbose log of {} was overrun", queue(index))
            }
            LostFrom::Notes => String::from("more was queued at a time than could be noted"),
            LostFrom::Slices(node) => {
                let node = trace.node_name(node);
                format!("more slices of {node} ended than are kept")
            }
            LostFrom::Trace => String::from("the trace is as long as it may be"),
        };
        match all.iter_mut().find(|known| known.from == from) {
            Some(known) => known.count += lost.count,
            None => all.push(LostEvents {
                from,
                count: lost.count,
            }),
        }
    }
    all
}
