//! Turns by native fences: what the engine logged of two hardware queues.

use crate::sync::monotonic_ns;
use crate::trace::{Operation, Trace};
use crate::workload::PATIENCE;
use crate::workload::turns::{HANDOFFS, Take, Taker, must_be_known};
use crate::{Adapter, CommandList, Fence, HwQueue, RecordingOptions};
use anyhow::Context;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

const ROUNDS: u64 = HANDOFFS as u64 / 2;

/// See the file's head.
pub struct TurnTaker {
    /// What the parties signal, each its own.
    fences: [Fence; 2],
    queues: [HwQueue; 2],
    value: u64,
    adapter: Adapter,
}

impl TurnTaker {
    /// Two queues of an engine.
    ///
    /// # Errors
    /// Fences or queues could not be made.
    pub fn new(adapter: Adapter) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        Ok(Self {
            fences: [device.create_fence(0)?, device.create_fence(0)?],
            queues: [device.create_hw_queue()?, device.create_hw_queue()?],
            value: 0,
            adapter,
        })
    }
}

impl Taker for TurnTaker {
    fn how(&self) -> &'static str {
        "Two hardware queues of one engine, whose packets were written before: a turn is from the end of a queue's wait to \
         the end of its signal, both by the engine's log, which is read meanwhile."
    }

    fn take(&mut self) -> anyhow::Result<Take> {
        let recording = self.adapter.record(&RecordingOptions::default())?;
        let before = self.value;
        let mut lists = [CommandList::new(), CommandList::new()];
        for value in before + 1..=before + ROUNDS {
            let [first, second] = &mut lists;
            let [there, back] = &self.fences;
            first.signal(there, value).wait(back, value);
            second.wait(there, value).signal(back, value);
        }
        self.value += ROUNDS;
        let [first, second] = &mut self.queues;
        second.queue_commands(&lists[1])?;
        let end = first.queue_commands(&lists[0])?;
        let began_ns = monotonic_ns();
        second.ring_doorbell()?;
        first.ring_doorbell()?;
        first
            .progress_fence()
            .wait(end, PATIENCE)
            .context("the hand-offs did not end")?;
        let seen_ns = monotonic_ns();
        let trace = recording.stop(Vec::new());
        let clock = trace.clocks.first().copied().unwrap_or_default();
        must_be_known(&clock)?;
        Ok(Take {
            began_ns,
            moments: moments(&trace, before + 1..=before + ROUNDS)?,
            seen_ns,
            max_error_ns: clock.max_error_ns,
        })
    }
}

/// Of a trace of the two queues, in which each value is signalled and waited for once by each.
fn moments(trace: &Trace, values: RangeInclusive<u64>) -> anyhow::Result<Vec<(u64, u64)>> {
    use Operation::{Signal, Wait};
    let ends: BTreeMap<_, _> = trace
        .commands()
        .filter_map(|(_, command)| {
            let what = (command.operation, command.queue, command.value);
            Some((what, trace.began_ns + command.end?))
        })
        .collect();
    // Nobody can signal before the first queue has.
    let signals = ends.iter().filter(|((what, ..), _)| *what == Signal);
    let first = signals.min_by_key(|(_, end)| **end);
    let ((_, first, _), _) = first.context("no signal is in the log")?;
    let mut queues = ends.keys().map(|(_, queue, _)| queue);
    let second = queues
        .find(|queue| *queue != first)
        .context("the log is of one queue")?;
    let end = |operation: Operation, queue: &u32, value: u64| {
        let end = ends.get(&(operation, *queue, value)).copied();
        end.with_context(|| format!("the {} of {value} is not in the log", operation.name()))
    };
    let mut moments = Vec::new();
    for value in values.clone() {
        let passed = end(Signal, first, value)?;
        // The first turn is got with the doorbell.
        let got = if value == *values.start() {
            passed
        } else {
            end(Wait, first, value - 1)?
        };
        moments.push((got, passed));
        moments.push((end(Wait, second, value)?, end(Signal, second, value)?));
    }
    let last = end(Wait, first, *values.end())?;
    moments.push((last, last));
    Ok(moments)
}
