//! Wait graph: which queue stands at which wait, and who can signal what is waited for.

use super::signallers::Signallers;
use crate::abi::FenceId;
use crate::kmd::HwQueueHandle;
use std::collections::{BTreeMap, BTreeSet};

/// The wait that a queue stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) fence: FenceId,
    pub(super) value: u64,
    /// When it was first seen unsatisfied: of two waits the younger has more ticks, where engines have one
    /// clock, as those of one adapter do (choice). No circle that is certain has queues of both kinds, whose
    /// clocks are others: a user-mode queue waits for no monitored fence.
    pub(super) since: u64,
    /// The value is there, or the fence is always signaled.
    pub(super) is_reached: bool,
    /// Its queue does not look by itself: somebody stands in the fence's list for it.
    pub(super) is_awaited: bool,
    /// The engine still has something of the queue, which moves its progress and signals, though the OS holds back what is
    /// behind the wait.
    pub(super) has_in_flight: bool,
}

/// A queue of either kind.
#[derive(Clone, Debug)]
pub(super) struct QueueSeen {
    pub(super) queue: HwQueueHandle,
    /// It executes nothing any more.
    pub(super) is_stopped: bool,
    /// It has something queued.
    pub(super) has_work: bool,
    /// Its engine answers.
    pub(super) answers: bool,
    pub(super) stands_at: Option<Standing>,
    /// Signals that are queued, behind the wait that it stands at. Any words of a user: for suspicions.
    pub(super) queued_signals: Vec<(FenceId, u64)>,
}

impl QueueSeen {
    /// Whether it could make a step now: where it makes none, the reason is its engine.
    pub(super) fn is_at_work(&self) -> bool {
        !self.is_stopped && self.has_work && self.stands_at.is_none()
    }
}

/// A snapshot.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitGraph {
    pub(super) queues: BTreeMap<HwQueueHandle, QueueSeen>,
    /// Of every fence that a queue stands at.
    pub(super) fences: BTreeMap<FenceId, Signallers>,
}

impl WaitGraph {
    pub(super) fn add(&mut self, queue: QueueSeen) {
        self.queues.insert(queue.queue, queue);
    }

    /// Nodes with a queue that is at work: of these it matters whether the engine answers.
    pub(super) fn nodes_at_work(&self) -> BTreeSet<u32> {
        let at_work = self.queues.values().filter(|queue| queue.is_at_work());
        at_work.map(|queue| queue.queue.node_ordinal).collect()
    }

    /// Who can signal the fence of a wait.
    pub(super) fn signallers(&self, wait: &Standing) -> Option<&Signallers> {
        self.fences.get(&wait.fence)
    }
}

/// A queue that waits for the next one of a circle, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleLink {
    /// Which queue.
    pub hw_queue: HwQueueHandle,
    /// The fence that it stands at, which the next one would signal.
    pub fence: FenceId,
    /// The value that it waits for.
    pub value: u64,
}

/// Queues that wait for each other in a circle, the last for the first; the first is the one with the least
/// handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(pub Vec<CycleLink>);

impl Cycle {
    pub(super) fn of(mut links: Vec<CycleLink>) -> Self {
        let least = (0..links.len()).min_by_key(|place| links[*place].hw_queue);
        links.rotate_left(least.unwrap_or_default());
        Self(links)
    }

    /// Whether a queue is in it.
    #[must_use]
    pub fn has(&self, hw_queue: HwQueueHandle) -> bool {
        self.0.iter().any(|link| link.hw_queue == hw_queue)
    }
}
