//! Interrupts of a node: who waits for the end of a slice, and the service routine.

use super::inner::{Inner, Life};
use super::{Node, retirement};
use crate::abi::{EngineReport, SLICE_SLOTS, SliceReason};
use crate::gpu::{EngineLost, HeldEngine, QueueFault, SliceReport};
use crate::sync::{Arc, Ordering, lock};
use std::time::{Duration, Instant};

/// A slice that was submitted, and the engine that it was submitted to.
#[derive(Clone, Debug)]
pub struct SliceInFlight {
    slice: u64,
    engine: Arc<HeldEngine>,
}

impl SliceInFlight {
    pub(super) fn new(slice: u64, engine: &Arc<HeldEngine>) -> Self {
        Self {
            slice,
            engine: Arc::clone(engine),
        }
    }

    /// Sleeps until it has ended, or for so long; whether it has.
    pub(super) fn has_ended_within(&self, timeout: Duration) -> bool {
        self.engine.wait(self.slice, Some(timeout)) == Ok(true)
    }
}

/// Slices that have not ended by then when a node is stopped do not end.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(2);

impl Node {
    /// For the interrupt thread: sleeps until the next slice has ended, and takes its report.
    /// `None` when the node has stopped, or `engine` is not the node's any more: then the thread lets go of
    /// that engine, which may last as long as what still runs on it.
    ///
    /// It waits for a slice that may not be submitted yet, so that whoever submits it wakes nobody:
    /// a wake-up costs the waker up to 50 µs where a processor must be got out of its sleep. The
    /// end of the slice wakes this thread, by the driver.
    #[must_use]
    pub fn next_report(&self, engine: &Arc<HeldEngine>) -> Option<SliceReport> {
        loop {
            let slice = {
                let mut inner = lock(&self.inner);
                if !Arc::ptr_eq(&inner.engine, engine) {
                    return None;
                }
                match inner.life {
                    Life::Up | Life::Replaced => inner.serviced + 1,
                    Life::Lost => {
                        inner.life = Life::LossTold;
                        // Nothing that runs on the device counts any more, but what it has told.
                        inner.left_records.get_or_insert_with(Instant::now);
                        let taken = inner.retirement.take(u64::MAX);
                        let retired = retirement::objects(&taken);
                        inner.retirement.keep_mapped(taken);
                        return Some(SliceReport {
                            lost: true,
                            retired,
                            ..SliceReport::default()
                        });
                    }
                    Life::LossTold | Life::Stopping => return None,
                }
            };
            let slice = SliceInFlight::new(slice, engine);
            let report = self.wait_and_service(&slice, None);
            // Another thread was quicker, and tells what there was to tell.
            if !report.is_empty() {
                return Some(report);
            }
        }
    }

    /// The engine that the node has now.
    #[must_use]
    pub fn engine(&self) -> Arc<HeldEngine> {
        Arc::clone(&lock(&self.inner).engine)
    }

    /// Sleeps until a slice has ended, or for so long, and takes its report.
    pub(super) fn wait_and_service(
        &self,
        slice: &SliceInFlight,
        timeout: Option<Duration>,
    ) -> SliceReport {
        let ended = slice.engine.wait(slice.slice, timeout);
        self.service(slice, ended)
    }

    /// For a thread that will look at the slices in flight for a while: the oldest of them. `None`
    /// when there is none, or when another thread looks already; else the caller says
    /// [`Node::end_look`] afterwards.
    #[must_use]
    pub fn begin_look(&self) -> Option<SliceInFlight> {
        let mut inner = lock(&self.inner);
        let slice = inner.oldest_in_flight().filter(|_| !inner.looked_at)?;
        inner.looked_at = true;
        Some(slice)
    }

    /// See [`Node::begin_look`].
    pub fn end_look(&self) {
        lock(&self.inner).looked_at = false;
    }

    /// Takes the report of `slice` if that has ended, without sleeping; `None` if it has not.
    pub fn try_service(&self, slice: &SliceInFlight) -> Option<SliceReport> {
        let ended = slice.engine.has_ended(slice.slice);
        (ended != Ok(false)).then(|| self.service(slice, ended))
    }

    /// Takes the records that were published since, though their slice has not ended: what a
    /// thread that watches does. Costs a load where there are none.
    pub fn take_records(&self) -> Option<SliceReport> {
        let written = self
            .report
            .host()
            .word(EngineReport::RECORD_WRITE)
            .observe();
        // A hint: the report of the slice's end covers what is missed here.
        if written == self.records_taken.load(Ordering::Relaxed) {
            return None;
        }
        let mut guard = lock(&self.inner);
        let inner = &mut *guard;
        if inner.is_lost() {
            // What it knew is retired already, and its waits end by the loss.
            return None;
        }
        let mut report = SliceReport::default();
        self.read_records(inner, &mut report);
        (!report.is_empty()).then_some(report)
    }

    fn read_records(&self, inner: &mut Inner, report: &mut SliceReport) {
        self.records_taken
            .store(inner.reader.take_records(report), Ordering::Relaxed);
        // What an engine left behind that is gone may be among them: it was written before the retirement of all that
        // this engine knew was told (IN-05). Of a record of its successor's that is too early, which accuses nobody.
        let left = inner.left_records.take();
        if report.collapsed || !report.raised.is_empty() {
            report.taken = Some(left.unwrap_or_else(Instant::now));
        }
        Self::complete_faults(inner, report);
        inner.counters.records += (report.raised.len() + report.faulted.len()) as u64;
    }

    /// So many of the records that were taken are told to nobody.
    pub fn keep_records(&self, records: u64) {
        if records > 0 {
            lock(&self.inner).counters.kept_records += records;
        }
    }

    /// The oldest slice that was submitted and whose report was not taken.
    #[must_use]
    pub fn oldest_in_flight(&self) -> Option<SliceInFlight> {
        lock(&self.inner).oldest_in_flight()
    }

    /// Takes the report of all slices up to `slice`, which has ended, and decides what comes next:
    /// the fence interrupt's service routine.
    fn service(&self, slice: &SliceInFlight, ended: Result<bool, EngineLost>) -> SliceReport {
        let SliceInFlight { slice, engine } = slice;
        let slice = *slice;
        let mut guard = lock(&self.inner);
        let inner = &mut *guard;
        let mut report = SliceReport::default();
        // Of an engine that was given up nothing is news (TD-23).
        if !Arc::ptr_eq(&inner.engine, engine) {
            return report;
        }
        if ended.is_err() {
            self.lose_device(inner);
            return report;
        }
        // Ended, and the news of nobody else; an abandoned slice was never submitted.
        let is_news = inner.serviced < slice && slice <= inner.submitted;
        if ended != Ok(true) || !is_news {
            return report;
        }
        // One that came upon a paging packet has left it to the next.
        let has_paging = inner.run_list.has_paging();
        for ended in inner.serviced + 1..=slice {
            let (reason, result) = inner.reader.slice_result(ended);
            let for_paging = has_paging || inner.for_paging[(ended % SLICE_SLOTS) as usize];
            inner.habits.learn(reason, &result, for_paging);
            inner.slice_book.ended(ended, reason, &result);
            inner.counters.interrupts += u64::from(reason == SliceReason::Interrupt);
            // The engine's word, which may be anything.
            inner.counters.iterations = inner.counters.iterations.wrapping_add(result.iterations);
            inner.counters.cut += u64::from(reason == SliceReason::Cut);
        }
        inner.serviced = slice;
        report.departed = inner.departures.take(slice);
        // The GPU first: the next slice runs while this one's report is worked on.
        self.supply(inner);
        report.parking = inner.parking.news.take();
        report.faulted.append(&mut inner.unsaved_faults);
        self.read_records(inner, &mut report);
        report.resample = inner.mailbox.unacknowledged();
        if inner.serviced == inner.submitted {
            Self::adopt_posts(inner);
        }
        // After the records of the slices that ended were read: none names them later.
        let retired = inner.retirement.take(slice);
        drop(guard);
        report.retired = retirement::objects(&retired);
        report
    }

    /// A record tells less of a fault than the saved state, which its slice leaves at its end; and
    /// it may be among those that found no room. A record of the slice still in flight is told
    /// with the report of that slice.
    fn complete_faults(inner: &mut Inner, report: &mut SliceReport) {
        if report.faulted.is_empty() && !report.collapsed {
            return;
        }
        let in_flight = inner.serviced < inner.submitted;
        for queue in inner.run_list.with_leaving() {
            let is_its = |told: &(u32, QueueFault)| told.0 == queue.number;
            let told = report.faulted.iter().position(is_its);
            match (queue.fault(), told) {
                (Some(saved), Some(told)) => report.faulted[told].1 = saved,
                (Some(saved), None) => report.faulted.push((queue.number, saved)),
                (None, Some(told)) if in_flight => {
                    inner.unsaved_faults.push(report.faulted.remove(told));
                }
                (None, _) => {}
            }
        }
    }

    /// Stops: no slice is submitted any more, and the interrupt thread ends. Waits for the slices in
    /// flight; but an engine that can be given up is, if they do not end. Whether they have ended.
    #[must_use]
    pub fn stop(&self) -> bool {
        let is_replaceable = self.is_replaceable();
        let deadline = is_replaceable.then(|| Instant::now() + GIVEN_UP_AFTER);
        let has_ended = self.stop_until(deadline);
        if !has_ended {
            self.give_up();
        }
        has_ended
    }

    /// The same, and leaves slices that have not ended by then to themselves, and the interrupt
    /// thread with them.
    pub fn stop_until(&self, deadline: Option<Instant>) -> bool {
        let mut inner = lock(&self.inner);
        // One that is lost, and could be replaced, may run for ever: nobody waits for it.
        if inner.is_lost() && self.is_replaceable() {
            return false;
        }
        self.request_end(&mut inner);
        if matches!(inner.life, Life::Up | Life::Replaced) {
            inner.life = Life::Stopping;
        }
        let (last, engine) = (inner.submitted, Arc::clone(&inner.engine));
        // An engine that has taken another's place has executed none of the slices before.
        let in_flight = inner.serviced < last;
        drop(inner);
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // Slices end by themselves. An error is a loss, after which the engine's own end waits for what runs.
        let has_ended = !in_flight
            || match engine.wait(last, left) {
                Ok(has_ended) => has_ended,
                Err(_) => !self.is_replaceable(),
            };
        if has_ended {
            engine.abandon(last + 1);
        }
        has_ended
    }
}
