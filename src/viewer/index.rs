//! Index: a trace, sorted for looking at it. Made once for a trace; a picture then costs what is seen in it.

use super::extremes::Extremes;
use super::rows::{Intervals, Piece, Rows};
use super::stack::{Given, Stack};
use crate::trace::{
    CpuWait, Lost, LostFrom, NO_CPU_WAITER, Operation, Releaser, Slice, Trace, What,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Rows that a lane has at most.
pub const MOST_ROWS: usize = 8;

/// See the file's head.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// By node.
    pub(super) engines: BTreeMap<u32, Engine>,
    /// As [`Trace::queues`].
    pub(super) queues: Vec<Queue>,
    pub(super) cpu: Cpu,
    /// As [`Trace::fences`].
    pub(super) fences: Vec<Values>,
    /// By when they begin.
    pub(super) arrows: Vec<Arrow>,
    /// The greatest end of the arrows until each.
    pub(super) arrow_ends: Vec<u64>,
    /// Of no lane.
    pub(super) marks: Marks,
    /// Events that were lost.
    pub(super) lost: u64,
    /// When something happened first, and last.
    pub(super) span: (u64, u64),
    /// Whether all queues of programs are of one process.
    pub(super) is_of_one_process: bool,
    /// Whether a queue was given a dispatch.
    pub(super) has_dispatches: bool,
}

/// A node's engine.
#[derive(Clone, Debug, Default)]
pub(super) struct Engine {
    pub(super) slices: Intervals,
    pub(super) marks: Marks,
}

/// A queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    pub(super) stack: Stack,
    pub(super) marks: Marks,
}

/// What threads did.
#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    pub(super) rows: Rows,
    pub(super) marks: Marks,
}

/// Moments of a lane, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    pub(super) marks: Vec<Mark>,
    kinds: Extremes,
}

impl Marks {
    fn push(&mut self, mark: Mark) {
        self.marks.push(mark);
    }

    fn seal(&mut self) {
        self.kinds = Extremes::new(self.marks.iter().map(|mark| Some(mark.kind as u64)));
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Whether some of them are more than interrupts.
    pub(super) fn have_names(&self) -> bool {
        let gravest = self.gravest(0..usize::MAX);
        gravest.is_some_and(|kind| kind > MarkKind::Interrupt)
    }

    /// How many come before a time.
    pub(super) fn before(&self, time: u64) -> usize {
        self.marks.partition_point(|mark| mark.at < time)
    }

    /// The gravest kind of a range of them.
    pub(super) fn gravest(&self, range: Range<usize>) -> Option<MarkKind> {
        let (_, most) = self.kinds.of(range)?;
        MarkKind::ALL.into_iter().find(|kind| *kind as u64 == most)
    }
}

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) at: u64,
    /// Its place among the events.
    pub(super) event: usize,
    pub(super) kind: MarkKind,
}

/// Of what a mark is, the gravest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MarkKind {
    Interrupt,
    Preemption,
    Lost,
    Recovery,
}

impl MarkKind {
    const ALL: [Self; 4] = [
        Self::Interrupt,
        Self::Preemption,
        Self::Lost,
        Self::Recovery,
    ];
}

/// A fence's values, as they changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub(super) current: Steps,
    pub(super) monitored: Steps,
}

/// Values from some times on.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    pub(super) steps: Vec<(u64, u64)>,
    /// Without those of nobody who waits.
    pub(super) extremes: Extremes,
}

impl Steps {
    fn new(mut steps: Vec<(u64, u64)>) -> Self {
        steps.sort_by_key(|(at, _)| *at);
        let extremes = Extremes::new(steps.iter().map(|(_, value)| waited_for(*value)));
        Self { steps, extremes }
    }

    /// How many come until a time, with it.
    pub(super) fn until(&self, time: u64) -> usize {
        self.steps.partition_point(|(at, _)| *at <= time)
    }

    /// What the value is at a time, where it is known.
    pub(super) fn at(&self, time: u64) -> Option<u64> {
        let last = self.until(time).checked_sub(1)?;
        Some(self.steps[last].1)
    }
}

/// From a signal to a wait that it released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) left: u64,
    pub(super) arrived: u64,
}

impl Index {
    /// Of a trace, as [`Trace::read`] gives it: what its events name is there.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let mut index = Self {
            queues: vec![Queue::default(); trace.queues.len()],
            ..Self::default()
        };
        // Kernel-mode queues are the operating system's.
        let of_programs = trace.queues.iter().filter(|queue| !queue.is_kernel_mode);
        let processes: BTreeSet<u64> = of_programs.map(|queue| queue.process).collect();
        index.is_of_one_process = processes.len() < 2;
        for queue in &trace.queues {
            index.engines.entry(queue.node_ordinal).or_default();
        }
        let mut slices: BTreeMap<u32, Vec<(usize, Slice)>> = BTreeMap::new();
        let mut given: Vec<Vec<Given>> = vec![Vec::new(); trace.queues.len()];
        let mut cpu = Vec::new();
        let mut current = vec![Vec::new(); trace.fences.len()];
        let mut monitored = vec![Vec::new(); trace.fences.len()];
        for (event, seen) in trace.events.iter().enumerate() {
            let at = seen.at;
            let mark = |kind| Mark { at, event, kind };
            match &seen.what {
                What::Command(command) => {
                    given[command.queue as usize].push(Given::command(event, command));
                    if let (Operation::Signal, Some(end)) = (command.operation, command.end) {
                        current[command.fence as usize].push((end, command.value));
                    }
                }
                What::Dispatch(dispatch) => {
                    given[dispatch.queue as usize].push(Given::dispatch(event, dispatch));
                    index.has_dispatches = true;
                }
                What::Slice(slice) => {
                    let of_node = slices.entry(slice.node_ordinal).or_default();
                    of_node.push((event, *slice));
                }
                What::Interrupt {
                    node_ordinal, done, ..
                } => {
                    let mark = mark(MarkKind::Interrupt);
                    index.marks_of(*node_ordinal).push(mark);
                    cpu.push((piece(at, *done, event), true));
                }
                What::CpuSignal { fence, value, done } => {
                    cpu.push((piece(at, *done, event), true));
                    current[*fence as usize].push((*done, *value));
                }
                What::CpuWait(CpuWait { began, woke, .. }) => {
                    cpu.push((piece(*began, *woke, event), false));
                }
                What::MonitoredValue { fence, value } => {
                    monitored[*fence as usize].push((at, *value));
                }
                What::Preemption { node_ordinal } => {
                    let mark = mark(MarkKind::Preemption);
                    index.marks_of(Some(*node_ordinal)).push(mark);
                }
                What::Recovery { node_ordinal, .. } => {
                    let mark = mark(MarkKind::Recovery);
                    index.marks_of(Some(*node_ordinal)).push(mark);
                }
                What::Lost(Lost { from, .. }) => {
                    index.lost_of(*from).push(mark(MarkKind::Lost));
                }
            }
        }
        for (queue, given) in index.queues.iter_mut().zip(given) {
            queue.stack = Stack::new(given.into_iter());
        }
        for (node, mut of_node) in slices {
            of_node.sort_by_key(|(_, slice)| slice.begin);
            let engine = index.engines.entry(node).or_default();
            for (event, slice) in of_node {
                let piece = piece(slice.begin, slice.end, event);
                engine.slices.push(piece, false);
            }
        }
        cpu.sort_by_key(|(piece, _)| piece.begin);
        index.cpu.rows = Rows::new(cpu.into_iter(), MOST_ROWS);
        let values = current.into_iter().zip(monitored);
        index.fences = values
            .map(|(current, monitored)| Values {
                current: Steps::new(current),
                monitored: Steps::new(monitored),
            })
            .collect();
        index.add_arrows(trace);
        let of_engines = index.engines.values_mut().map(|engine| &mut engine.marks);
        let of_queues = index.queues.iter_mut().map(|queue| &mut queue.marks);
        let others = [&mut index.cpu.marks, &mut index.marks];
        of_engines
            .chain(of_queues)
            .chain(others)
            .for_each(Marks::seal);
        index.span = span(trace);
        index.lost = trace
            .lost()
            .fold(0, |all, lost| all.saturating_add(lost.count));
        index
    }

    fn marks_of(&mut self, node: Option<u32>) -> &mut Marks {
        match node {
            Some(node) => &mut self.engines.entry(node).or_default().marks,
            None => &mut self.cpu.marks,
        }
    }

    fn lost_of(&mut self, from: LostFrom) -> &mut Marks {
        match from {
            LostFrom::WaitLog(queue) | LostFrom::SignalLog(queue) | LostFrom::VerboseLog(queue) => {
                &mut self.queues[queue as usize].marks
            }
            LostFrom::Slices(node) => &mut self.engines.entry(node).or_default().marks,
            LostFrom::Notes | LostFrom::Trace => &mut self.marks,
        }
    }

    fn add_arrows(&mut self, trace: &Trace) {
        for release in trace.releases() {
            let (Releaser::Command(from) | Releaser::CpuSignal(from)) = release.signal;
            let ends = (done(trace, from), done(trace, release.wait));
            if let (Some(left), Some(arrived)) = ends {
                self.arrows.push(Arrow {
                    from,
                    to: release.wait,
                    left,
                    arrived,
                });
            }
        }
        self.arrows
            .sort_by_key(|arrow| arrow.left.min(arrow.arrived));
        let mut most = 0;
        let ends = self.arrows.iter().map(|arrow| {
            most = most.max(arrow.left).max(arrow.arrived);
            most
        });
        self.arrow_ends = ends.collect();
    }

    /// Arrows of which something may lie in a range of time.
    pub(super) fn arrows_between(&self, (from, to): (u64, u64)) -> &[Arrow] {
        let first = self.arrow_ends.partition_point(|end| *end < from);
        let begins = |arrow: &Arrow| arrow.left.min(arrow.arrived) <= to;
        let last = self.arrows.partition_point(begins);
        self.arrows.get(first..last).unwrap_or(&[])
    }
}

/// From when to when something happened in a trace.
fn span(trace: &Trace) -> (u64, u64) {
    let begin = trace.events.iter().map(|event| event.at).min();
    let ends = trace.events.iter().map(|event| match &event.what {
        What::Command(command) => command.span().1,
        What::Dispatch(dispatch) => dispatch.span().1,
        What::Slice(slice) => slice.end.max(slice.seen),
        What::Interrupt { done, .. } | What::CpuSignal { done, .. } => *done,
        What::CpuWait(wait) => wait.woke,
        _ => event.at,
    });
    let end = ends.max().unwrap_or(0).min(trace.length);
    let begin = begin.unwrap_or(0).min(end);
    if begin < end {
        (begin, end)
    } else {
        (0, trace.length)
    }
}

/// When a signal or a wait was done.
pub(super) fn done(trace: &Trace, event: usize) -> Option<u64> {
    match &trace.events.get(event)?.what {
        What::Command(command) => command.end,
        What::CpuSignal { done, .. } => Some(*done),
        What::CpuWait(wait) => Some(wait.woke),
        _ => None,
    }
}

/// A value, but for the MonitoredValue of a fence for which nobody waits.
pub(super) fn waited_for(monitored: u64) -> Option<u64> {
    (monitored != NO_CPU_WAITER).then_some(monitored)
}

fn piece(begin: u64, end: u64, event: usize) -> Piece {
    Piece {
        begin,
        end: end.max(begin),
        item: event,
    }
}
