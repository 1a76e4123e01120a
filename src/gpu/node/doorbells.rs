//! Doorbells of a node: which queues run, and what wakes the engine.

use super::inner::Life;
use super::{Node, NodeError};
use crate::abi::DoorbellStatus;
use crate::gpu::{EngineLost, QueueSlot, SliceReport, Wake};
use crate::sync::{Arc, lock};

impl Node {
    /// Connects a queue's doorbell: it is in the run list from the next slice on, and what is in
    /// its ring already is executed.
    ///
    /// # Errors
    /// A full run list, a queue that was stopped, a lost engine.
    pub fn connect(&self, queue: &Arc<QueueSlot>) -> Result<(), NodeError> {
        let mut inner = lock(&self.inner);
        if inner.life != Life::Up {
            return Err(EngineLost.into());
        }
        // A queue that was stopped never runs again (HQ-01).
        if queue.status() == DoorbellStatus::DisconnectedAbort || queue.fault().is_some() {
            return Err(NodeError::QueueAborted);
        }
        if !inner.run_list.add(queue) {
            return Err(NodeError::RunListFull);
        }
        // Always right: the user calls, and finds the engine running or not.
        queue.set_status(DoorbellStatus::ConnectedNotify);
        // Slices in flight do not know the queue; let them end.
        self.request_end(&mut inner);
        drop(inner);
        let _ = self.wake();
        Ok(())
    }

    /// Disconnects a queue's doorbell: when this returns, no slice refers to the queue, and what it
    /// has not executed stays in its ring. Slices that ended for it may have something to report.
    #[must_use]
    pub fn disconnect(&self, queue: &QueueSlot, status: DoorbellStatus) -> Vec<SliceReport> {
        let mut inner = lock(&self.inner);
        let was_stopped = queue.status() == DoorbellStatus::DisconnectedAbort;
        if !was_stopped {
            queue.set_status(status);
        }
        inner.run_list.remove(queue.number);
        self.leave_waits(&mut inner);
        // Also a queue that left the list before may be in that of a slice in flight.
        let mut reports = self.drain_slices(inner);
        if let Some(parking) = lock(&self.inner).parking.news.take() {
            reports.push(SliceReport {
                parking: Some(parking),
                ..SliceReport::default()
            });
        }
        // A fault of the last slice, whose record may have found no room.
        let is_told = |report: &SliceReport| report.faulted.iter().any(|(n, _)| *n == queue.number);
        if let Some(fault) = queue.fault()
            && !was_stopped
            && !reports.iter().any(is_told)
        {
            reports.push(SliceReport {
                faulted: vec![(queue.number, fault)],
                ..SliceReport::default()
            });
        }
        reports
    }

    /// Takes a queue that was stopped out of the run list. Slices in flight may still look at it,
    /// so its memory stays until [`Node::disconnect`].
    pub fn abort(&self, queue: &QueueSlot) {
        let mut inner = lock(&self.inner);
        queue.set_status(DoorbellStatus::DisconnectedAbort);
        inner.run_list.remove(queue.number);
    }

    /// `NotifyWorkSubmission`: a ring's write index was stored. A slice that has ended meanwhile
    /// may be reported.
    #[must_use]
    pub fn work_submitted(&self) -> Option<SliceReport> {
        match self.wake() {
            Wake::Seen => self.poll(),
            Wake::MustSubmit | Wake::Lost => None,
        }
    }

    /// New work found the engine running: if the slice in flight has ended and its report was not
    /// taken yet, takes it here, rather than let the work wait for a thread to wake up.
    fn poll(&self) -> Option<SliceReport> {
        self.try_service(self.oldest_in_flight()?)
    }
}
