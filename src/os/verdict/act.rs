//! Act: what the operating system does by its verdicts (TD-15).
//!
//! One thread at a time acts, and holds no lock while it does; who comes meanwhile leaves word, and the thread
//! looks once more. What one verdict does may make another certain: a queue that is stopped never signals. So
//! it looks until nothing is done; each time a queue is stopped, or it ends.

use super::judge::{QueueVerdict, Verdict, judge, youngest};
use crate::abi::FenceId;
use crate::kmd::HwQueueHandle;
use crate::os::adapter_state::AdapterState;
use crate::os::listener;
use crate::os::queue_stop::QueueStop;
use crate::os::verdict::graph::WaitGraph;
use crate::os::wait_cell::WaitError;
use crate::sync::Ordering;
use crate::sync::plain::{AtomicU64, Mutex, lock};
use std::collections::BTreeSet;

/// Certain verdicts that are kept, the last of them.
const MOST_VERDICTS: usize = 64;

#[derive(Debug, Default)]
struct Turn {
    is_taken: bool,
    again: bool,
}

/// What was found so far, and whose turn it is.
#[derive(Debug, Default)]
pub(in crate::os) struct Verdicts {
    turn: Mutex<Turn>,
    lost_notifications: AtomicU64,
    certain: Mutex<Vec<QueueVerdict>>,
}

impl Verdicts {
    /// Whether the caller is to act; else somebody does, and looks again.
    fn begin(&self) -> bool {
        let mut turn = lock(&self.turn);
        turn.again = true;
        !std::mem::replace(&mut turn.is_taken, true)
    }

    /// Whether to look once more; else the turn is over.
    fn goes_on(&self) -> bool {
        let mut turn = lock(&self.turn);
        turn.is_taken = std::mem::take(&mut turn.again);
        turn.is_taken
    }

    fn note(&self, verdict: &QueueVerdict) {
        let mut certain = lock(&self.certain);
        if certain.len() == MOST_VERDICTS {
            certain.remove(0);
        }
        certain.push(verdict.clone());
    }

    fn woken(&self, waiters: usize) {
        self.lost_notifications
            .fetch_add(waiters as u64, Ordering::Relaxed);
    }
}

impl AdapterState {
    /// Why queues make no progress (TD-15): each that has work and makes none, in the order of their handles.
    /// What is certain is acted by: waits fail, and who was not woken is.
    ///
    /// An engine that has a queue at work is asked whether it answers, and this sleeps until it does, or its time
    /// for that is over: it is nothing for a waker to call. One that cannot be asked is not called hung: where
    /// the driver resets no engines, as with TdrLevel Off, or a thread does not come out of it.
    pub fn verdicts(&self) -> Vec<QueueVerdict> {
        let mut verdicts = Vec::new();
        listener::as_told(|| verdicts = self.look());
        self.judge();
        // Not queues alone wait for what was reached.
        for fence in self.all_fences() {
            self.verdicts.woken(fence.wake_reached());
        }
        verdicts
    }

    /// The last verdicts by which a wait has failed, at most 64, oldest first.
    #[must_use]
    pub fn certain_verdicts(&self) -> Vec<QueueVerdict> {
        lock(&self.verdicts.certain).clone()
    }

    /// Waiters whose value was reached and whom nobody had told of it, when somebody looked. An interrupt
    /// that was on its way then may have come for some of them.
    #[must_use]
    pub fn lost_notifications(&self) -> u64 {
        self.verdicts.lost_notifications.load(Ordering::Relaxed)
    }

    /// Something has happened that may make a verdict certain. The caller holds no lock.
    pub(in crate::os) fn judge(&self) {
        if self.life.end().is_some() || !self.acts_on_verdicts() || !self.verdicts.begin() {
            return;
        }
        while self.verdicts.goes_on() {
            listener::as_told(|| while self.act_once() {});
        }
    }

    /// What is judged is collected when all were asked: a queue may have gone on meanwhile.
    fn look(&self) -> Vec<QueueVerdict> {
        let at_work = self.wait_graph(&|_| true, false).nodes_at_work();
        let asked = at_work.into_iter();
        let silent: BTreeSet<_> = asked.filter(|node| !self.engine_answers(*node)).collect();
        judge(&self.wait_graph(&|node| !silent.contains(&node), true))
    }

    fn engine_answers(&self, node: u32) -> bool {
        let Some(tdr) = self.ddi().tdr() else {
            return true;
        };
        self.query_engine_status(tdr, node).unwrap_or(true)
    }

    /// Whether a queue was stopped.
    fn act_once(&self) -> bool {
        let graph = self.wait_graph(&|_| true, false);
        let mut has_stopped = false;
        for verdict in judge(&graph) {
            let queue = verdict.hw_queue;
            let stop = match &verdict.verdict {
                Verdict::Waiting { .. } | Verdict::Hung => None,
                Verdict::LostNotification => {
                    self.wake_lost(&graph, queue);
                    None
                }
                Verdict::Orphaned => Some(QueueStop::Orphaned),
                Verdict::Deadlocked { cycle } => {
                    let is_youngest = youngest(&graph, cycle) == Some(queue);
                    is_youngest.then_some(QueueStop::Deadlocked)
                }
            };
            if let Some(stop) = stop {
                self.verdicts.note(&verdict);
                has_stopped |= self.stop_queue(queue, stop);
            }
        }
        has_stopped
    }

    fn wake_lost(&self, graph: &WaitGraph, queue: HwQueueHandle) {
        let wait = graph.queues.get(&queue).and_then(|queue| queue.stands_at);
        if let Some(wait) = wait {
            self.verdicts.woken(self.wake_reached(wait.fence));
        }
    }

    fn wake_reached(&self, id: FenceId) -> usize {
        if let Some(fence) = self.fence(id) {
            return fence.wake_reached();
        }
        let mut monitored = self.monitored.all().into_iter();
        let fence = monitored.find(|fence| fence.id() == id);
        fence.map_or(0, |fence| fence.wake_reached())
    }

    /// Whether it was there and ran.
    fn stop_queue(&self, queue: HwQueueHandle, stop: QueueStop) -> bool {
        let error = WaitError::QueueStopped(stop);
        if let Some(queue) = self.queue(queue) {
            let ran = queue.error().is_none();
            queue.fail(error);
            return ran;
        }
        if let Some(queue) = self.kernel_queues.of_handle(queue) {
            let ran = queue.error().is_none();
            queue.fail(error);
            // As of one that faults: what its last command stored (MF-07).
            self.monitored.look_at_those_of(queue.process());
            return ran;
        }
        false
    }
}
