//! Judge: what a snapshot of the wait graph says of each queue. Pure.
//!
//! A queue is able if it may go on by itself or by somebody who is: it stands at no wait, or its value is
//! reached, or a process may signal the fence, or the queue whose progress it carries is able. Every other
//! queue will never go on, and so never signals: those are followed from wait to wait until one comes round
//! (Deadlocked) or nobody is left (Orphaned). An engine that answers nothing makes no queue unable: a reset
//! brings it back.

use super::graph::{Cycle, CycleLink, QueueSeen, Standing, WaitGraph};
use crate::kmd::HwQueueHandle;
use std::collections::BTreeSet;

/// Why a queue makes no progress (TD-15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Somebody can still signal, however long it takes.
    Waiting {
        /// Queues have signals for each other queued behind their waits, and so wait in a circle unless
        /// somebody else signals, who may.
        suspicion: Option<Cycle>,
    },
    /// It waits in a circle, or for a queue that does, and nobody outside can signal: the youngest wait of the
    /// circle fails.
    Deadlocked {
        /// The circle.
        cycle: Cycle,
    },
    /// Nobody is left who can reach the value: its wait fails, and so do those for its progress.
    Orphaned,
    /// It stands at no wait, and its engine answers nothing.
    Hung,
    /// The value is reached, and nobody was woken: it is.
    LostNotification,
}

/// A queue that makes no progress, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueVerdict {
    /// Which queue, of either kind.
    pub hw_queue: HwQueueHandle,
    /// Why.
    pub verdict: Verdict,
}

/// Of each queue that has work and makes no progress, in the order of their handles.
#[must_use]
pub(super) fn judge(graph: &WaitGraph) -> Vec<QueueVerdict> {
    let able = able(graph);
    let running = graph.queues.values().filter(|queue| !queue.is_stopped);
    let judged = running.filter_map(|queue| {
        let verdict = match &queue.stands_at {
            None if queue.is_at_work() && !queue.answers => Verdict::Hung,
            None => return None,
            Some(wait) if wait.is_reached && wait.is_awaited => Verdict::LostNotification,
            Some(_) if able.contains(&queue.queue) => Verdict::Waiting {
                suspicion: suspicion(graph, queue),
            },
            Some(_) => never(graph, queue),
        };
        let hw_queue = queue.queue;
        Some(QueueVerdict { hw_queue, verdict })
    });
    judged.collect()
}

/// The youngest wait of a circle: its queue. Of several of one age, that of the greatest handle.
#[must_use]
pub(super) fn youngest(graph: &WaitGraph, cycle: &Cycle) -> Option<HwQueueHandle> {
    let age = |link: &&CycleLink| {
        let wait = graph.queues.get(&link.hw_queue)?.stands_at?;
        Some((wait.since, link.hw_queue))
    };
    cycle.0.iter().max_by_key(age).map(|link| link.hw_queue)
}

/// Queues that may go on: grows until nothing is added.
fn able(graph: &WaitGraph) -> BTreeSet<HwQueueHandle> {
    let mut able = BTreeSet::new();
    loop {
        let goes_on = |queue: &&QueueSeen| {
            !able.contains(&queue.queue)
                && !queue.is_stopped
                && queue.stands_at.as_ref().is_none_or(|wait| {
                    wait.is_reached
                        || wait.has_in_flight
                        || may_be_signalled(graph, wait, |by| able.contains(&by))
                })
        };
        let more: Vec<_> = graph.queues.values().filter(goes_on).collect();
        if more.is_empty() {
            return able;
        }
        able.extend(more.into_iter().map(|queue| queue.queue));
    }
}

fn may_be_signalled(
    graph: &WaitGraph,
    wait: &Standing,
    is_able: impl Fn(HwQueueHandle) -> bool,
) -> bool {
    graph.signallers(wait).is_some_and(|by| {
        !by.processes.is_empty() || by.is_open_elsewhere || by.queue.is_some_and(is_able)
    })
}

fn link(queue: &QueueSeen) -> Option<CycleLink> {
    let wait = queue.stands_at.as_ref()?;
    Some(CycleLink {
        hw_queue: queue.queue,
        fence: wait.fence,
        value: wait.value,
    })
}

/// Of a queue that will never go on: from wait to wait, each of which one queue at most could end.
fn never(graph: &WaitGraph, queue: &QueueSeen) -> Verdict {
    let mut path: Vec<CycleLink> = Vec::new();
    let mut next = Some(queue);
    while let Some(link) = next.filter(|queue| !queue.is_stopped).and_then(link) {
        if let Some(begin) = path.iter().position(|on| on.hw_queue == link.hw_queue) {
            return Verdict::Deadlocked {
                cycle: Cycle::of(path.split_off(begin)),
            };
        }
        path.push(link);
        let by = graph.fences.get(&link.fence).and_then(|by| by.queue);
        next = by.and_then(|by| graph.queues.get(&by));
    }
    Verdict::Orphaned
}

/// A circle through a queue, of queues that stand at waits and have queued what the one before waits for.
fn suspicion(graph: &WaitGraph, queue: &QueueSeen) -> Option<Cycle> {
    let mut path = Vec::new();
    let mut seen = BTreeSet::new();
    comes_round(graph, queue, queue.queue, &mut path, &mut seen).then(|| Cycle::of(path))
}

fn comes_round(
    graph: &WaitGraph,
    queue: &QueueSeen,
    begin: HwQueueHandle,
    path: &mut Vec<CycleLink>,
    seen: &mut BTreeSet<HwQueueHandle>,
) -> bool {
    let stands = queue.stands_at.as_ref().filter(|wait| !wait.is_reached);
    let (Some(wait), Some(link)) = (stands, link(queue)) else {
        return false;
    };
    if queue.is_stopped || wait.has_in_flight || !seen.insert(queue.queue) {
        return false;
    }
    path.push(link);
    let by = graph.signallers(wait).and_then(|by| by.queue);
    let would = |other: &&QueueSeen| {
        let signals = &other.queued_signals;
        let has_queued = |(fence, value): &(_, u64)| *fence == wait.fence && *value >= wait.value;
        by == Some(other.queue) || signals.iter().any(has_queued)
    };
    for other in graph.queues.values().filter(would) {
        if other.queue == begin || comes_round(graph, other, begin, path, seen) {
            return true;
        }
    }
    path.pop();
    false
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
