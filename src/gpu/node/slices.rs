//! Slices of a node: submitting them, and letting the engine go when nothing can run.

use super::inner::{Inner, Life};
use super::{Node, NodeCounters, NodeError, SliceInFlight};
use crate::abi::{Delivery, DoorbellStatus, EngineControl, SLICE_SLOTS, SliceArgs, SliceReason};
use crate::gpu::{QueueScan, SliceReport, SliceWork};
use crate::sync::{Arc, MutexGuard, lock};
use std::time::Duration;

/// What ends one slice.
#[derive(Clone, Copy, Debug)]
struct SliceLimits {
    passes: u64,
    ticks: u64,
    idle_ticks: u64,
}

/// Loop passes of a slice on a driver that does not cut loops: the time is what ends it there, and
/// this if its clock stands still.
pub(super) const MOST_PASSES: u64 = 4_000_000;

/// A slice that looks for the driver's cut ends by this where there is none: some 25,000
/// iterations without a queue.
const CALIBRATION_PASSES: u64 = 300_000;
const CALIBRATION_TIME: Duration = Duration::from_millis(200);

/// Of slices that stay for answers in vain, one in so many stays long.
const VAIN_SLICES: u64 = 16;

/// What a driver that counts passes counts at least of an iteration without a queue: the slice's
/// loop, the adoptions' and the rounds'. Queues add to it what the slice's vote counts.
const LEAST_PASSES_OF_AN_ITERATION: u64 = 3;

/// A thread that waits for a slice looks so often whether its engine was given up, of which nothing tells
/// it: the slice may never end.
const GIVEN_UP_AGAIN: Duration = Duration::from_millis(10);

impl Node {
    /// How many loop passes the driver lets a slice take: lavapipe up to 22 ends every loop
    /// silently after some 65,000 in all (`vulkan-facts.md`). One slice without queues runs to the
    /// cut; half of it is the budget.
    pub(super) fn calibrate_passes(&self) -> Result<u64, NodeError> {
        let mut inner = lock(&self.inner);
        let calibration = SliceLimits {
            passes: CALIBRATION_PASSES,
            ticks: inner.engine.ticks_in(CALIBRATION_TIME),
            idle_ticks: u64::MAX,
        };
        self.submit_with(&mut inner, calibration);
        let slice = inner.submitted;
        inner.engine.wait(slice, None)?;
        let (reason, result) = inner.reader.slice_result(slice);
        inner.serviced = slice;
        inner.counters = NodeCounters::default();
        let cut = reason == SliceReason::Cut;
        // One that ran out of time before its passes, on a busy machine, shows that many at least.
        Ok(if cut || result.passes < CALIBRATION_PASSES {
            (result.iterations * LEAST_PASSES_OF_AN_ITERATION / 2).max(1)
        } else {
            MOST_PASSES
        })
    }

    /// Submits the next slice.
    pub(super) fn submit(&self, inner: &mut Inner) {
        let limits = SliceLimits {
            passes: self.pass_budget,
            ticks: inner.engine.ticks_in(self.policy.slice_time),
            idle_ticks: inner.engine.ticks_in(self.window(inner)),
        };
        if inner.rings() {
            // Of another adapter's engines nobody counts who runs; of this one's the device may have no room for all.
            let window = if self.crowd.is_crowded() {
                Duration::ZERO
            } else {
                self.policy.doorbell_window
            };
            let word = EngineControl::CROSS_DOORBELL_WINDOW;
            self.control
                .host()
                .word(word)
                .put(inner.engine.ticks_in(window));
        }
        self.submit_with(inner, limits);
    }

    /// How long the next slice may find nothing (`decisions.md` 24). To stay for the answer of
    /// another engine is worth it where both have a core: if they have not, because others of the
    /// machine's use them, the answer comes only when this one leaves. Which it is shows in whether
    /// answers come; now and then it is tried again.
    fn window(&self, inner: &Inner) -> Duration {
        let has_company = self.crowd.has_company();
        if !has_company {
            self.policy.idle_window
        } else if self.crowd.is_crowded() || !inner.habits.vain.is_multiple_of(VAIN_SLICES) {
            self.policy.crowded_window
        } else {
            self.policy.company_window
        }
    }

    fn submit_with(&self, inner: &mut Inner, limits: SliceLimits) {
        if inner.life != Life::Up {
            return;
        }
        let slice = inner.submitted + 1;
        // Who is about to use a new context waits for its completion.
        let has_paging = inner.run_list.has_paging();
        let delivery = if has_paging || self.crowd.has_waiting() {
            Delivery::Event
        } else {
            self.policy.delivery
        };
        if delivery == Delivery::Polled {
            inner.last_polled = slice;
        }
        let choice = inner.choose();
        let queues = inner.run_list.write(self.control.host(), slice, choice);
        let at = EngineControl::slice_args(slice);
        for (offset, value) in [
            (SliceArgs::SLICE, slice),
            (SliceArgs::QUEUE_COUNT, queues),
            (SliceArgs::BASE_TICKS, inner.engine.base_ticks()),
            (SliceArgs::TIME_BUDGET, limits.ticks),
            (SliceArgs::PASS_BUDGET, limits.passes),
            (SliceArgs::IDLE_WINDOW, limits.idle_ticks),
            (SliceArgs::REQUEST, inner.requests),
            (SliceArgs::DELIVERY, delivery as u64),
        ] {
            self.control.host().word(at + offset).put(value);
        }
        inner.reader.clear_slice_result(slice);
        inner.submitted = slice;
        inner.slice_book.submits(slice);
        inner.counters.slices += 1;
        let transfers = inner.habits.transfers();
        inner.for_paging[(slice % SLICE_SLOTS) as usize] = has_paging && !transfers;
        let verbose = inner.run_list.active().any(|queue| queue.is_verbose());
        let work = SliceWork {
            queues,
            transfers: transfers || has_paging,
            verbose,
            dispatches: inner.habits.dispatches(),
            schedules_itself: inner.habits.schedules_itself() && !verbose,
            doorbells: inner.rings(),
        };
        if inner.engine.start(slice, work).is_err() {
            self.lose_device(inner);
        }
    }

    /// Submits what can go on, or begins to let the engine go.
    pub(super) fn supply(&self, inner: &mut Inner) {
        Self::leave_drained(inner);
        let scan = QueueScan::of(inner.run_list.active());
        let has_work = scan.runnable || scan.blocked;
        if inner.habits.answered || !has_work {
            inner.habits.vain = 0;
        } else if inner.habits.last_reason == SliceReason::Idle {
            inner.habits.vain += 1;
        }
        if scan.runnable {
            // A slice that was not ended by its work had more to do than its time: keep two in
            // flight.
            let busy = matches!(
                inner.habits.last_reason,
                SliceReason::Budget | SliceReason::Cut
            );
            // Where a packet keeps its context on the engine, that is known when its slice has ended.
            let ahead = busy && !inner.one_context;
            self.run_on(inner, if ahead { 2 } else { 1 });
        } else if inner.submitted == inner.serviced {
            // A slice that did not end as idle may have released a queue that it did not look at
            // again: the engine finds that out sooner than the OS, where it has room to look.
            let looked = inner.habits.last_reason == SliceReason::Idle;
            if scan.blocked && !looked && !self.crowd.is_crowded() {
                self.run_on(inner, 1);
            } else {
                self.begin_parking(inner);
            }
        }
    }

    /// Keeps `depth` slices in flight, so that the GPU does not idle between them.
    pub(super) fn run_on(&self, inner: &mut Inner, depth: u64) {
        // From Parking back to Running, and whoever stored something before it is seen by the
        // slice that is submitted now.
        let _ = self.word.wake();
        inner.parking.over();
        if !inner.self_service && depth > 1 {
            inner.self_service = true;
            for queue in inner.run_list.self_serving() {
                queue.set_connected(DoorbellStatus::Connected);
            }
        }
        while inner.submitted - inner.serviced < depth && inner.life == Life::Up {
            self.submit(inner);
        }
    }

    pub(super) fn request_end(&self, inner: &mut Inner) {
        inner.requests += 1;
        self.control
            .host()
            .word(EngineControl::REQUEST)
            .publish(inner.requests);
    }

    /// Asks the slices in flight to end and waits until they have, and nothing refers to what was
    /// taken away before. By this thread, so that it depends on nobody else's wake-up; gives the
    /// reports that it took.
    pub(super) fn drain_slices<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> Vec<SliceReport> {
        let last = inner.submitted;
        if inner.serviced < last {
            self.request_end(&mut inner);
        }
        let mut reports = Vec::new();
        // An engine that is given up meanwhile ends its slices when it will, and another one knows
        // nothing of them.
        let engine = Arc::clone(&inner.engine);
        while inner.serviced < last && inner.runs(&engine) {
            let slice = SliceInFlight::new(inner.serviced + 1, &engine);
            drop(inner);
            let report = self.wait_and_service(&slice, Some(GIVEN_UP_AGAIN));
            if !report.is_empty() {
                reports.push(report);
            }
            inner = lock(&self.inner);
        }
        reports
    }

    pub(super) fn lose(&self, inner: &mut Inner) {
        if !matches!(inner.life, Life::Up | Life::Replaced) {
            return;
        }
        inner.life = Life::Lost;
        inner.serviced = inner.submitted;
        inner.mappings.keep();
        inner.beside.keep();
        if self.word.lose() {
            self.crowd.leave();
        }
        self.end_waiting(inner);
        inner.parking.asked = false;
        // From now on slices count as ended, and what they knew is used for others: also where no engine comes after, of fences
        // and of slots that are given out again. There of one that is lost for certain nothing comes any more.
        let is_in_doubt = inner.device_lost && !inner.is_surely_lost();
        if self.is_replaceable() || is_in_doubt {
            self.cut_off(inner);
        }
        if !self.is_replaceable() {
            for queue in inner.run_list.queues() {
                queue.set_status(DoorbellStatus::DisconnectedAbort);
            }
        }
        // The interrupt thread tells the OS. It may wait for the next slice, or for this one, which
        // could not be started.
        for slice in [inner.submitted, inner.submitted + 1] {
            inner.engine.abandon(slice);
        }
    }
}
