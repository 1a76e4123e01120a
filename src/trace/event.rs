//! Event: what a trace holds, in nanoseconds since it began.
//!
//! One clock for all: CLOCK_MONOTONIC of the machine. What engines timed was brought to it, and may be off by what
//! [`Trace::clocks`] says for the engine's node. Where a trace is of several adapters, their nodes are counted through
//! ([`Trace::adapters`]), and so every `node_ordinal` here.

use super::{AdapterName, CpuWait, Dispatch, FenceName, GpuClock, QueueName};
use crate::abi::SliceReason;
use serde::{Deserialize, Serialize};

/// What a queue was asked to do with a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Operation {
    /// Wait until CurrentValue is at least the value.
    Wait,
    /// Store the value.
    Signal,
}

impl Operation {
    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Signal => "signal",
        }
    }
}

/// A wait or a signal of a queue: FENCE_WAIT_QUEUED or FENCE_SIGNAL_QUEUED, and what was logged of its execution
/// (LG-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Index into [`Trace::queues`].
    pub queue: u32,
    /// What.
    pub operation: Operation,
    /// Index into [`Trace::fences`].
    pub fence: u32,
    /// The value.
    pub value: u64,
    /// When its user queued it, by the CPU; none of one that was queued before the recording.
    pub queued: Option<u64>,
    /// When the engine first saw the wait unsatisfied; of one that was satisfied then, its end. None of a signal, and of
    /// a wait that no log tells of.
    pub observed: Option<u64>,
    /// When it was done; none of one that was not yet, or whose entry was lost.
    pub end: Option<u64>,
    /// It was done, and its entry was overwritten before anybody read it.
    pub is_lost: bool,
}

/// The first of the times that are known, and the last.
pub(super) fn span(times: [Option<u64>; 3]) -> (u64, u64) {
    let known = || times.into_iter().flatten();
    (known().min().unwrap_or(0), known().max().unwrap_or(0))
}

impl Command {
    /// The first of its times, and the last.
    #[must_use]
    pub fn span(&self) -> (u64, u64) {
        span([self.queued, self.observed, self.end])
    }
}

/// A slice of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// The engine's node.
    pub node_ordinal: u32,
    /// Its number.
    pub number: u64,
    /// Why it ended, as [`SliceReason`] numbers it.
    pub reason: u64,
    /// When it was submitted, by the CPU.
    pub submitted: u64,
    /// Its start, by the engine.
    pub begin: u64,
    /// Its end, by the engine.
    pub end: u64,
    /// When the CPU saw that it had ended.
    pub seen: u64,
}

impl Slice {
    /// For people.
    #[must_use]
    pub fn reason_name(&self) -> &'static str {
        match SliceReason::from_word(self.reason) {
            Some(SliceReason::Cut) => "cut by the driver",
            Some(SliceReason::Budget) => "time spent",
            Some(SliceReason::Idle) => "idle",
            Some(SliceReason::Interrupt) => "interrupt",
            Some(SliceReason::Request) => "asked to end",
            Some(SliceReason::Transfer) => "a transfer comes",
            Some(SliceReason::Dispatch) => "a dispatch comes",
            None => "unknown",
        }
    }
}

/// What an engine interrupted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum InterruptKind {
    /// Native fences were signalled beyond their MonitoredValues.
    NativeFenceSignaled,
    /// A monitored fence was signalled.
    MonitoredFenceSignaled,
    /// A command of a kernel-mode queue has completed.
    DmaCompleted,
    /// An engine has let go of what it was handed.
    DmaPreempted,
    /// Nothing on the GPU refers to a context any more.
    SuspendContextCompleted,
    /// CurrentValues are to be read again.
    ResampleFences,
    /// A queue was stopped at a packet.
    HwQueueFaulted,
    /// Nothing refers to destroyed objects any more.
    ObjectsRetired,
    /// An engine asks to be let go, or runs on.
    EngineParking,
    /// An engine executes no more.
    EngineLost,
}

impl InterruptKind {
    /// For people, and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NativeFenceSignaled => "native fence signaled",
            Self::MonitoredFenceSignaled => "monitored fence signaled",
            Self::DmaCompleted => "DMA completed",
            Self::DmaPreempted => "DMA preempted",
            Self::SuspendContextCompleted => "suspend context completed",
            Self::ResampleFences => "resample fences",
            Self::HwQueueFaulted => "hardware queue faulted",
            Self::ObjectsRetired => "objects retired",
            Self::EngineParking => "engine parking",
            Self::EngineLost => "engine lost",
        }
    }
}

/// Of what events were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LostFrom {
    /// The log of waits of a queue was overrun (LG-12); index into [`Trace::queues`].
    WaitLog(u32),
    /// That of signals.
    SignalLog(u32),
    /// The verbose log.
    VerboseLog(u32),
    /// The recorder was full.
    Notes,
    /// More slices of a node ended than are kept.
    Slices(u32),
    /// The trace had as many events as it may.
    Trace,
}

/// Events were lost, and so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Of what.
    pub from: LostFrom,
    /// How many.
    pub count: u64,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A wait or a signal of a queue.
    Command(Command),
    /// A dispatch of a queue.
    Dispatch(Dispatch),
    /// A slice of an engine.
    Slice(Slice),
    /// An interrupt, and the deferred call that followed it at once, until `done`.
    Interrupt {
        /// The engine's node, where it is one's.
        node_ordinal: Option<u32>,
        /// Why.
        kind: InterruptKind,
        /// Fences that it named.
        fences: u32,
        /// When the deferred call had ended.
        done: u64,
    },
    /// The CPU stored a value, between the event's time and `done`.
    CpuSignal {
        /// Index into [`Trace::fences`].
        fence: u32,
        /// The value.
        value: u64,
        /// When it was there.
        done: u64,
    },
    /// A MonitoredValue was posted.
    MonitoredValue {
        /// Index into [`Trace::fences`].
        fence: u32,
        /// The value.
        value: u64,
    },
    /// The CPU waited.
    CpuWait(CpuWait),
    /// The OS asked an engine to let go of what it was handed.
    Preemption {
        /// The engine's node.
        node_ordinal: u32,
    },
    /// A step of the recovery of an engine was begun.
    Recovery {
        /// The engine's node.
        node_ordinal: u32,
        /// Which, by its name.
        step: String,
    },
    /// Events were lost.
    Lost(Lost),
}

/// Something that happened, and when it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Nanoseconds since the trace began.
    pub at: u64,
    /// What.
    pub what: What,
}

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The device and what was done, for people: names and values.
    pub about: Vec<(String, String)>,
    /// CLOCK_MONOTONIC when it began: what 0 is.
    pub began_ns: u64,
    /// Nanoseconds from there to its end.
    pub length: u64,
    /// Where several adapters were recorded, those; else none.
    pub adapters: Vec<AdapterName>,
    /// How each node's times were had, by ordinal.
    pub clocks: Vec<GpuClock>,
    /// Queues, in the order in which they were met.
    pub queues: Vec<QueueName>,
    /// Fences, in the order in which they were met.
    pub fences: Vec<FenceName>,
    /// In the order of [`Event::at`].
    pub events: Vec<Event>,
}

impl Trace {
    /// Its waits and signals, with their place among the events.
    pub fn commands(&self) -> impl Iterator<Item = (usize, &Command)> {
        self.events
            .iter()
            .enumerate()
            .filter_map(|(index, event)| match &event.what {
                What::Command(command) => Some((index, command)),
                What::Dispatch(_)
                | What::Slice(_)
                | What::Interrupt { .. }
                | What::CpuSignal { .. }
                | What::MonitoredValue { .. }
                | What::CpuWait(_)
                | What::Preemption { .. }
                | What::Recovery { .. }
                | What::Lost(_) => None,
            })
    }

    /// Where events were lost.
    pub fn lost(&self) -> impl Iterator<Item = &Lost> {
        self.events.iter().filter_map(|event| match &event.what {
            What::Lost(lost) => Some(lost),
            _ => None,
        })
    }
}

impl Event {
    /// The last of its times.
    #[must_use]
    pub fn latest(&self) -> u64 {
        match &self.what {
            What::Command(command) => command.span().1,
            What::Dispatch(dispatch) => dispatch.span().1,
            What::Slice(slice) => slice.seen,
            What::Interrupt { done, .. } | What::CpuSignal { done, .. } => *done,
            What::CpuWait(wait) => wait.woke,
            What::MonitoredValue { .. }
            | What::Preemption { .. }
            | What::Recovery { .. }
            | What::Lost(_) => self.at,
        }
    }

    /// Brings the times of an event that was collected to the trace's clock: those of engines from their ticks, and all to
    /// when the trace began.
    pub(crate) fn bring_over(&mut self, queues: &[QueueName], clocks: &[GpuClock], began_ns: u64) {
        let since = |ns: u64| ns.saturating_sub(began_ns);
        let of_engine = |node: u32, ticks: u64| {
            let clock = clocks.get(node as usize);
            since(clock.map_or(ticks, |clock| clock.ns(ticks)))
        };
        let executed = |queue: u32, time: u64| match queues.get(queue as usize) {
            Some(queue) if !queue.is_kernel_mode => of_engine(queue.node_ordinal, time),
            _ => since(time),
        };
        let own = self.at;
        self.at = since(own);
        match &mut self.what {
            What::Command(command) => {
                let executed = |time| executed(command.queue, time);
                command.queued = command.queued.map(since);
                command.observed = command.observed.map(executed);
                command.end = command.end.map(executed);
                self.at = command.span().0;
            }
            What::Dispatch(dispatch) => {
                let executed = |time| executed(dispatch.queue, time);
                dispatch.queued = dispatch.queued.map(since);
                dispatch.began = dispatch.began.map(executed);
                dispatch.end = dispatch.end.map(executed);
                if !dispatch.is_logged {
                    // What was done before it was queued says nothing of it.
                    dispatch.began = dispatch.began.max(dispatch.queued);
                }
                self.at = dispatch.span().0;
            }
            What::Slice(slice) => {
                slice.submitted = since(slice.submitted);
                slice.begin = of_engine(slice.node_ordinal, slice.begin);
                slice.end = of_engine(slice.node_ordinal, slice.end);
                slice.seen = since(slice.seen);
            }
            What::Interrupt { done, .. } | What::CpuSignal { done, .. } => *done = since(*done),
            What::CpuWait(wait) => {
                wait.began = since(wait.began);
                wait.woke = since(wait.woke);
            }
            What::MonitoredValue { .. }
            | What::Preemption { .. }
            | What::Recovery { .. }
            | What::Lost(_) => {}
        }
    }
}
