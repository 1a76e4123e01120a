//! Interrupts of a node: who waits for the end of a slice, and the service routine.

use super::Node;
use super::inner::{Inner, Life};
use crate::abi::SliceReason;
use crate::gpu::{EngineLost, QueueFault, SliceReport};
use crate::sync::{lock, thread};
use std::time::Instant;

impl Node {
    /// For the interrupt thread: sleeps until the next slice has ended, and takes its report.
    /// `None` when the node has stopped.
    ///
    /// It waits for a slice that may not be submitted yet, so that whoever submits it wakes nobody:
    /// a wake-up costs the waker up to 50 µs where a processor must be got out of its sleep. The
    /// end of the slice wakes this thread, by the driver.
    #[must_use]
    pub fn next_report(&self) -> Option<SliceReport> {
        loop {
            let slice = {
                let mut inner = lock(&self.inner);
                match inner.life {
                    Life::Up => inner.serviced + 1,
                    Life::Lost => {
                        inner.life = Life::LossTold;
                        return Some(SliceReport {
                            lost: true,
                            ..SliceReport::default()
                        });
                    }
                    Life::LossTold | Life::Stopping => return None,
                }
            };
            let ended = self.engine.wait(slice, None);
            let report = self.service(slice, ended);
            // Another thread was quicker, and tells what there was to tell.
            if !report.is_empty() {
                return Some(report);
            }
        }
    }

    /// For a thread that will wait for something that slices in flight may do, before it does: looks
    /// whether that is `done`, and takes the reports of slices that end meanwhile. True when it is
    /// done; false after the policy's time, at the deadline, when no slice is in flight, or when
    /// another thread looks already.
    ///
    /// A wait that ends here costs the engine nothing: it need not interrupt, and goes on. To put
    /// a thread to sleep and wake it up costs more than a short slice takes.
    pub fn look(
        &self,
        done: &dyn Fn() -> bool,
        deadline: Option<Instant>,
        deliver: &dyn Fn(SliceReport),
    ) -> bool {
        if self.policy.wait_spin.is_zero() {
            return false;
        }
        let Some(mut slice) = self.begin_assisting() else {
            return false;
        };
        let patience = Instant::now() + self.policy.wait_spin;
        let end = deadline.map_or(patience, |deadline| deadline.min(patience));
        let mut is_done = done();
        while !is_done && Instant::now() < end {
            let ended = self.engine.has_ended(slice);
            is_done = done();
            if ended == Ok(false) {
                // The thread that runs the slice, where the device is a CPU, may need this
                // processor.
                thread::yield_now();
                continue;
            }
            deliver(self.service(slice, ended));
            match self.oldest_in_flight() {
                Some(next) => slice = next,
                None => break,
            }
        }
        lock(&self.inner).assisted = false;
        is_done
    }

    /// For a thread that waits for something that slices in flight may do: sleeps until they end,
    /// beside the interrupt thread, and hands over the reports that it comes to take, until it is
    /// `done`, the deadline is reached or no slice is in flight. One thread at a time; others, and
    /// this one afterwards, sleep until a report releases them. It saves a thread switch
    /// (`decisions.md` 11).
    pub fn assist(
        &self,
        done: &dyn Fn() -> bool,
        deadline: Option<Instant>,
        deliver: &dyn Fn(SliceReport),
    ) {
        let Some(mut slice) = self.begin_assisting() else {
            return;
        };
        while !done() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let ended = self.engine.wait(slice, left);
            if done() || ended == Ok(false) {
                break;
            }
            deliver(self.service(slice, ended));
            match self.oldest_in_flight() {
                Some(next) => slice = next,
                None => break,
            }
        }
        lock(&self.inner).assisted = false;
    }

    fn begin_assisting(&self) -> Option<u64> {
        let mut inner = lock(&self.inner);
        if inner.serviced == inner.submitted || inner.life != Life::Up || inner.assisted {
            return None;
        }
        inner.assisted = true;
        Some(inner.serviced + 1)
    }

    pub(super) fn oldest_in_flight(&self) -> Option<u64> {
        let inner = lock(&self.inner);
        let in_flight = inner.serviced < inner.submitted && inner.life == Life::Up;
        in_flight.then_some(inner.serviced + 1)
    }

    /// A waiter that may be assisting is done by other means than a slice: ends the slice that it
    /// sleeps for.
    pub fn hurry(&self) {
        let mut inner = lock(&self.inner);
        if inner.assisted {
            self.request_end(&mut inner);
        }
    }

    /// Takes the report of all slices up to `slice`, which has ended, and decides what comes next:
    /// the fence interrupt's service routine.
    pub(super) fn service(&self, slice: u64, ended: Result<bool, EngineLost>) -> SliceReport {
        let mut guard = lock(&self.inner);
        let inner = &mut *guard;
        let mut report = SliceReport::default();
        if ended.is_err() {
            self.lose(inner);
            return report;
        }
        // Ended, and the news of nobody else; an abandoned slice was never submitted.
        let is_news = inner.serviced < slice && slice <= inner.submitted;
        if ended != Ok(true) || !is_news {
            return report;
        }
        for ended in inner.serviced + 1..=slice {
            let (reason, _) = inner.reader.slice_result(ended);
            inner.last_reason = reason;
            inner.counters.interrupts += u64::from(reason == SliceReason::Interrupt);
            inner.counters.cut += u64::from(reason == SliceReason::Cut);
        }
        inner.serviced = slice;
        report.slice_ended = true;
        // The GPU first: the next slice runs while this one's report is worked on.
        self.supply(inner);
        report.faulted.append(&mut inner.unsaved_faults);
        inner.reader.take_records(&mut report);
        Self::complete_faults(inner, &mut report);
        inner.counters.records += (report.raised.len() + report.faulted.len()) as u64;
        report.resample = inner.mailbox.unacknowledged();
        if inner.serviced == inner.submitted {
            Self::adopt_posts(inner);
        }
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
        for queue in inner.run_list.queues() {
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
    /// flight.
    pub fn stop(&self) {
        let mut inner = lock(&self.inner);
        self.request_end(&mut inner);
        if inner.life == Life::Up {
            inner.life = Life::Stopping;
        }
        let last = inner.submitted;
        drop(inner);
        if last > 0 {
            // Slices end by themselves; an error means that nothing runs any more.
            let _ = self.engine.wait(last, None);
        }
        self.engine.abandon(last + 1);
    }
}
