//! Suspension of a node's contexts: their queues leave the GPU, and come back (PR-09).
//!
//! The OS suspends a context before it moves or frees what the context uses, or destroys it. The engine
//! has no call for it: the context's queues are in no list of a slice that is submitted from now on, and
//! the slices in flight, which may know them, are asked to end. When the last of these has ended, its
//! report says that the context has departed. Nobody waits for it meanwhile.
//!
//! A queue goes on from what the last slice saved of it: one that stood at a wait is taken out without the
//! condition holding, waits for the same value when it is back, and logs when it was first seen there
//! (PR-02). No flag or kind of packet keeps a queue in (PR-10).
//!
//! What must meet what. A queue that is suspended stays in the run list: its doorbell stays connected, and
//! its user reads what users of queues beside it read. So who rings either calls, or rang before the
//! engine began to park: of both, resume comes before the engine's word is woken, or after the caller has
//! woken it, and the slice that is submitted then sees the write index.

use super::inner::Inner;
use super::{Node, NodeError};
use crate::gpu::{Departure, EngineLost, QueueSlot, SliceReport};
use crate::sync::lock;

/// How a context was suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "slices may still refer to a context whose suspension is pending"]
pub enum Suspension {
    /// `STATUS_SUCCESS`: it was suspended before, and nothing refers to it.
    Done,
    /// `STATUS_PENDING`: a report tells when nothing refers to it any more.
    Pending,
}

/// What is on its way from the GPU, with the last slice that may refer to it.
#[derive(Debug, Default)]
pub(super) struct Departures(Vec<(u64, Departure)>);

impl Departures {
    fn add(&mut self, last: u64, departure: Departure) {
        self.0.push((last, departure));
    }

    /// Takes those that no slice refers to any more, where `serviced` was the last that ended.
    #[must_use]
    pub(super) fn take(&mut self, serviced: u64) -> Vec<Departure> {
        let gone = self.0.extract_if(.., |(last, _)| *last <= serviced);
        gone.map(|(_, departure)| departure).collect()
    }

    /// The newest fence of a context that is on its way is this one: whether one was.
    fn renew(&mut self, of: u32, newest: u64) -> bool {
        for (_, departure) in &mut self.0 {
            match departure {
                Departure::Context { context, fence } if *context == of => {
                    *fence = newest;
                    return true;
                }
                Departure::Context { .. } | Departure::Preemption { .. } => {}
            }
        }
        false
    }

    /// The context is back: nothing is told of what it was suspended with.
    fn forget(&mut self, of: u32) {
        self.0.retain(|(_, departure)| match departure {
            Departure::Context { context, .. } => *context != of,
            Departure::Preemption { .. } => true,
        });
    }
}

impl Node {
    /// Suspends a context. What there is to be told at once comes with the answer.
    ///
    /// # Errors
    /// A lost engine: nobody knows what still runs there.
    pub fn suspend_context(
        &self,
        context: u32,
        fence: u64,
    ) -> Result<(Suspension, SliceReport), NodeError> {
        let mut inner = lock(&self.inner);
        if !self.goes_on(&inner) {
            return Err(EngineLost.into());
        }
        let last = inner.submitted;
        if !inner.run_list.suspend(context, last) {
            let is_pending = inner.departures.renew(context, fence);
            let suspension = if is_pending {
                Suspension::Pending
            } else {
                Suspension::Done
            };
            return Ok((suspension, SliceReport::default()));
        }
        let departure = Departure::Context { context, fence };
        Ok((Suspension::Pending, self.depart(&mut inner, departure)))
    }

    /// The context's queues are in slices again.
    pub fn resume_context(&self, context: u32) {
        let mut inner = lock(&self.inner);
        inner.departures.forget(context);
        if inner.run_list.resume(context) {
            // Slices in flight do not know the queues.
            self.request_end(&mut inner);
            drop(inner);
            let _ = self.wake();
        }
    }

    /// Gives a context a priority, from the next slice on (PR-08).
    pub fn set_priority(&self, context: u32, priority: i32) {
        lock(&self.inner).run_list.set_priority(context, priority);
    }

    /// From the next slice on the engine has one context at a time, and the parts of a divided packet run
    /// back to back (PR-11).
    pub fn keep_contexts_apart(&self) {
        lock(&self.inner).one_context = true;
    }

    /// Keeps queues from the engine until [`Node::release`]. As [`Node::suspend_context`].
    ///
    /// # Errors
    /// A lost engine.
    pub fn hold<'a>(
        &self,
        queues: impl Iterator<Item = &'a QueueSlot>,
        request: u64,
    ) -> Result<SliceReport, NodeError> {
        let mut inner = lock(&self.inner);
        if !self.goes_on(&inner) {
            return Err(EngineLost.into());
        }
        let last = inner.submitted;
        for queue in queues {
            inner.run_list.hold(queue.number, last);
        }
        Ok(self.depart(&mut inner, Departure::Preemption { request }))
    }

    /// A queue that was held is in slices again.
    pub fn release(&self, queue: &QueueSlot) {
        let mut inner = lock(&self.inner);
        if inner.run_list.release(queue.number) {
            self.request_end(&mut inner);
            drop(inner);
            let _ = self.wake();
        }
    }

    /// Queues are in no list any more: what is told now, or when the slices in flight have ended. A parked
    /// engine stops waiting for what they stand at.
    fn depart(&self, inner: &mut Inner, departure: Departure) -> SliceReport {
        let last = inner.submitted;
        let mut report = SliceReport::default();
        if inner.is_lost() {
            // Nobody knows what still runs there, until another engine takes its place.
            inner.departures.add(u64::MAX, departure);
        } else if inner.serviced < last {
            self.request_end(inner);
            inner.departures.add(last, departure);
        } else {
            report.departed.push(departure);
        }
        self.leave_waits(inner);
        report.parking = inner.parking.news.take();
        report
    }
}
