//! Doorbells of a node: which queues run, and what wakes the engine.
//!
//! A doorbell is taken away for another queue in three steps (HQ-13). First nobody but the OS changes the
//! queue's status any more; then the OS says DISCONNECTED_RETRY in it; then the node touches the doorbell
//! and looks at the ring, and the queue leaves the run list when it has executed what is there. Why no
//! command is lost: the user stores the write index, touches the doorbell, reads the status; the OS stores
//! the status before the node touches the doorbell and reads the write index. If the user's touch comes
//! first, its packets are seen here, and the queue stays until they are executed, at whatever waits it
//! stands meanwhile: to the engine, and to who waits in a parked engine's stead, it is a queue like any
//! other. If it comes second, the user reads DISCONNECTED_RETRY and connects.

use super::inner::{Inner, Life};
use super::{Node, NodeError};
use crate::abi::DoorbellStatus;
use crate::gpu::{EngineLost, QueueSlot, QueueStanding, SliceReport, Wake};
use crate::sync::{Arc, lock};

impl Node {
    /// Connects a queue's doorbell: it is in the run list from the next slice on, and what is in
    /// its ring already is executed.
    ///
    /// # Errors
    /// A full run list, a queue that was stopped, a lost engine.
    pub fn connect(&self, queue: &Arc<QueueSlot>) -> Result<(), NodeError> {
        self.connect_with(queue, false)
    }

    /// The same without a doorbell of the engine's: producers call always, and the engine looks then.
    ///
    /// # Errors
    /// As [`Node::connect`].
    pub fn connect_by_call(&self, queue: &Arc<QueueSlot>) -> Result<(), NodeError> {
        self.connect_with(queue, true)
    }

    fn connect_with(&self, queue: &Arc<QueueSlot>, by_call: bool) -> Result<(), NodeError> {
        let _connection = queue.hold_connection();
        let mut inner = lock(&self.inner);
        self.check_runs(&inner, queue)?;
        // Its engine may be another than the one that it was made for.
        Self::place(&inner, queue);
        if !inner.run_list.add(queue) {
            return Err(NodeError::RunListFull);
        }
        inner.run_list.is_connected(queue.number, by_call);
        queue.set_withdrawn(false);
        // Always right: the user calls, and finds the engine running or not.
        queue.set_status(DoorbellStatus::ConnectedNotify);
        // Slices in flight do not know the queue; let them end.
        self.request_end(&mut inner);
        drop(inner);
        let _ = self.wake();
        Ok(())
    }

    /// Takes a queue's doorbell from its user and leaves the ring to the engine: what is in it is
    /// executed, whether or not it was connected before. Waits for nothing. A queue that has executed all
    /// and is in no run list takes no place in one: places are few, and those of all processes. It is
    /// withdrawn again when its user has queued more.
    ///
    /// Of the user's "write index, ring, status" and "status, the word of the rings, write index" here
    /// one sees the other: who rang before is seen by the slice that is submitted now or by the look at
    /// the rings before the engine parks, and who rings later reads DISCONNECTED_RETRY.
    ///
    /// # Errors
    /// As [`Node::connect`].
    pub fn withdraw(&self, queue: &Arc<QueueSlot>) -> Result<(), NodeError> {
        let _connection = queue.hold_connection();
        let mut inner = lock(&self.inner);
        self.check_runs(&inner, queue)?;
        let is_known = inner.run_list.contains(queue.number);
        queue.set_withdrawn(true);
        queue.set_status(DoorbellStatus::DisconnectedRetry);
        queue.meet_doorbell();
        if !is_known && Self::has_executed_all(&inner, queue) {
            return Ok(());
        }
        Self::place(&inner, queue);
        if !inner.run_list.add(queue) {
            return Err(NodeError::RunListFull);
        }
        // Whoever was about to take it for another queue leaves it in the list.
        inner.run_list.is_connected(queue.number, false);
        if !is_known {
            self.request_end(&mut inner);
        }
        drop(inner);
        let _ = self.wake();
        Ok(())
    }

    /// Of a queue that is in no list; `false` too where a slice in flight may know it, so that what it
    /// has saved is no more than a hint.
    fn has_executed_all(inner: &Inner, queue: &QueueSlot) -> bool {
        let last = inner.run_list.last_to_know(queue.number, inner.submitted);
        last <= inner.serviced && Self::is_done(queue)
    }

    fn is_done(queue: &QueueSlot) -> bool {
        let standing = QueueStanding::of(&queue.state(), || queue.write_index());
        matches!(standing, QueueStanding::Idle | QueueStanding::Faulted)
    }

    fn check_runs(&self, inner: &Inner, queue: &QueueSlot) -> Result<(), NodeError> {
        if !self.goes_on(inner) {
            return Err(EngineLost.into());
        }
        // A queue that was stopped never runs again (HQ-01).
        if queue.status() == DoorbellStatus::DisconnectedAbort || queue.fault().is_some() {
            return Err(NodeError::QueueAborted);
        }
        Ok(())
    }

    /// Whether queues of the run list are executed, now or when another engine has taken the place of a lost
    /// one.
    pub(super) fn goes_on(&self, inner: &Inner) -> bool {
        match inner.life {
            Life::Up | Life::Replaced => true,
            Life::Lost | Life::LossTold => self.is_replaceable(),
            Life::Stopping => false,
        }
    }

    /// Whether a queue is connected by calls alone.
    #[must_use]
    pub fn is_by_call(&self, queue: &QueueSlot) -> bool {
        let inner = lock(&self.inner);
        inner.run_list.contains(queue.number) && inner.run_list.is_by_call(queue.number)
    }

    /// A queue that was connected by calls has got a doorbell of the engine's. `false` where it is not
    /// connected any more.
    #[must_use]
    pub fn give_doorbell(&self, queue: &QueueSlot) -> bool {
        let _connection = queue.hold_connection();
        let mut inner = lock(&self.inner);
        let is_by_call =
            inner.run_list.contains(queue.number) && inner.run_list.is_by_call(queue.number);
        if is_by_call {
            // Its producers call on until the engine is self-serving again.
            inner.run_list.is_connected(queue.number, false);
        }
        is_by_call
    }

    /// The first step of taking a queue's doorbell away: from now on nobody but the OS changes its
    /// status, and [`Node::end_taking`] follows when the OS has. `false` where it is not connected.
    #[must_use]
    pub fn begin_taking(&self, queue: &QueueSlot) -> bool {
        let _connection = queue.hold_connection();
        let mut inner = lock(&self.inner);
        queue.is_connected() && inner.run_list.begin_to_take(queue.number)
    }

    /// The last step: the queue leaves the run list when it has executed what was rung for.
    pub fn end_taking(&self, queue: &QueueSlot) {
        let _connection = queue.hold_connection();
        let mut inner = lock(&self.inner);
        queue.meet_doorbell();
        inner.run_list.let_go(queue.number);
        Self::leave_drained(&mut inner);
        let remains = inner.run_list.contains(queue.number);
        drop(inner);
        if remains {
            // What was rung for is looked at: by a slice in flight, by who is about to park, or by one
            // that is submitted now.
            let _ = self.wake();
        }
    }

    /// Queues whose doorbell is gone and that have executed all leave the list.
    pub(super) fn leave_drained(inner: &mut Inner) {
        let last = inner.submitted;
        inner.run_list.leave_drained(last, Self::is_done);
        inner.run_list.forget_drained(inner.serviced);
    }

    /// Disconnects a queue's doorbell: when this returns, no slice refers to the queue, and what it
    /// has not executed stays in its ring. Slices that ended for it may have something to report.
    #[must_use]
    pub fn disconnect(&self, queue: &QueueSlot, status: DoorbellStatus) -> Vec<SliceReport> {
        let _connection = queue.hold_connection();
        let mut inner = lock(&self.inner);
        let was_stopped = queue.status() == DoorbellStatus::DisconnectedAbort;
        if !was_stopped {
            queue.set_status(status);
        }
        // Also a queue that left the list before may be in that of a slice in flight.
        let last = inner.run_list.last_to_know(queue.number, inner.submitted);
        inner.run_list.begin_to_leave(queue.number);
        self.leave_waits(&mut inner);
        let mut reports = Vec::new();
        if inner.serviced < last {
            reports = self.drain_slices(inner);
        } else {
            drop(inner);
        }
        let mut inner = lock(&self.inner);
        inner.run_list.has_left(queue.number);
        let news = inner.parking.news.take();
        drop(inner);
        if let Some(parking) = news {
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
    /// so its memory stays until [`Node::disconnect`], and its logs until [`Node::set_log`] has
    /// returned.
    pub fn abort(&self, queue: &QueueSlot) {
        let mut inner = lock(&self.inner);
        queue.set_status(DoorbellStatus::DisconnectedAbort);
        let last = inner.submitted;
        inner.run_list.stop(queue.number, last);
    }

    /// `NotifyWorkSubmission`: a ring's write index was stored. A slice that has ended meanwhile
    /// may be reported.
    #[must_use]
    pub fn work_submitted(&self) -> Option<SliceReport> {
        match self.wake() {
            Wake::Seen => self.poll(),
            Wake::MustSubmit(_) | Wake::Lost => None,
        }
    }

    /// New work found the engine running: if the slice in flight has ended and its report was not
    /// taken yet, takes it here, rather than let the work wait for a thread to wake up.
    fn poll(&self) -> Option<SliceReport> {
        self.try_service(&self.oldest_in_flight()?)
    }
}
