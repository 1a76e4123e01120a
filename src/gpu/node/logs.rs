//! Logs of a node's queues, which move while their queues run (LG-07).

use super::inner::{Inner, Life};
use super::{Node, NodeError};
use crate::abi::{DoorbellStatus, LogType};
use crate::gpu::{EngineBlock, EngineLost, QueueSlot, SliceReport};
use crate::sync::{Arc, lock};

impl Node {
    /// Sets one of a queue's logs, whose indices are 0. When this returns, no slice writes to the one
    /// before, and all that was written there can be read; what is logged from now on is in the new
    /// one, from its first entry on. Slices that ended for it may have something to report.
    ///
    /// A queue that runs is out of the run list meanwhile: a slice knows a queue by its descriptor,
    /// which it reads when it takes the queue up and not again, and writes back what it has of it when
    /// it ends. So the slices that may know it end first, and the next ones know the new log and the
    /// index that goes with it. What rang meanwhile is seen by them: they are submitted afterwards.
    ///
    /// Connecting, disconnecting and this exclude each other for one queue.
    ///
    /// A log that only verbose slices write is written from the next slice on.
    ///
    /// # Errors
    /// An engine that cannot prepare verbose slices, or [`EngineLost`], where the queue has such a log: nobody knows what still runs on the engine, so
    /// the one before stays its log.
    pub fn set_log(
        &self,
        queue: &Arc<QueueSlot>,
        log: LogType,
        buffer: EngineBlock,
        entries: u64,
    ) -> (Vec<SliceReport>, Result<(), NodeError>) {
        if log == LogType::Verbose {
            // Not while the engine is made ready to ring: both make slices that do both.
            let _turn = lock(&self.registering);
            if let Err(error) = self.engine().prepare_verbose() {
                return (Vec::new(), Err(error.into()));
            }
        }
        self.change_log(queue, log, || queue.set_log(log, buffer, entries))
    }

    /// Takes one of a queue's logs away that it can run without. When this returns, no slice writes to
    /// it, and all that was written there can be read.
    ///
    /// # Errors
    /// [`EngineLost`]: it stays.
    pub fn remove_log(
        &self,
        queue: &Arc<QueueSlot>,
        log: LogType,
    ) -> (Vec<SliceReport>, Result<(), NodeError>) {
        self.change_log(queue, log, || queue.remove_log(log))
    }

    /// `change` runs when no slice knows the queue.
    fn change_log(
        &self,
        queue: &Arc<QueueSlot>,
        log: LogType,
        change: impl FnOnce() -> Option<EngineBlock>,
    ) -> (Vec<SliceReport>, Result<(), NodeError>) {
        let _connection = queue.hold_connection();
        let mut inner = lock(&self.inner);
        let runs = inner.run_list.contains(queue.number);
        let mut reports = Vec::new();
        // One that was stopped has left the list without waiting, and what knew it may still run.
        if inner.serviced < inner.run_list.last_to_know(queue.number, inner.submitted) {
            if runs {
                inner.run_list.begin_to_pause(queue.number);
            }
            reports = self.drain_slices(inner);
            inner = lock(&self.inner);
            if runs {
                self.end_pause(&mut inner, queue);
            }
        }
        if inner.life != Life::Up && queue.has_log(log) {
            return (reports, Err(EngineLost.into()));
        }
        // No slice in flight knows the queue.
        let before = change();
        if runs {
            self.request_end(&mut inner);
        }
        drop(inner);
        if runs {
            let _ = self.wake();
        }
        // Unmapping takes time.
        drop(before);
        (reports, Ok(()))
    }

    /// No slice knows a queue that paused: it is in the list again, if it may run.
    fn end_pause(&self, inner: &mut Inner, queue: &Arc<QueueSlot>) {
        // It may have been stopped meanwhile, and is out of the list then for good.
        let goes_on = self.goes_on(inner)
            && queue.status() != DoorbellStatus::DisconnectedAbort
            && queue.fault().is_none();
        if goes_on {
            // The engine may have parked meanwhile, and changed the doorbells of its list alone.
            // Whoever rings after this calls; who rang before is seen by the next slice.
            if !inner.run_list.is_taken(queue.number) {
                queue.set_connected(DoorbellStatus::ConnectedNotify);
            }
            queue.meet_doorbell();
            let is_back = inner.run_list.add(queue);
            debug_assert!(is_back, "a place was kept for it");
        } else {
            inner.run_list.stays_out(queue.number);
        }
    }
}
