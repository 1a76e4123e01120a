//! The leader: lane 0, which alone does the control part.
//!
//! As the `k_…` of `shaders/engine/slice.glsl`: it publishes the records that lanes stored, adopts
//! posts, and votes for an end.

use super::adopt::adopt;
use super::cross_doorbell::{prepare_hearing, say_what_was_taken, take_window};
use super::dispatch::{DISPATCH_PASSES, DISPATCH_PATIENCE, ROUND_PASSES, end_round, forget_names};
use super::dispatch_table::DispatchTable;
use super::epilogue::HandedOver;
use super::lane::{Globals, Lane, RAISES, Shared};
use super::raise::store_record;
use super::stall::begin_stalls;
use super::transfer::NO_CLAIM;
use super::violation::Checked;
use crate::abi::{
    Delivery, EngineControl, EngineReport, InterruptRecord, MAILBOX_CAPACITY, RECORD_RING_CAPACITY,
    SliceArgs, SliceReason, SliceResult,
};
use crate::sync::plain::lock;

/// Posts taken in one control part.
const ADOPTIONS: u32 = 32;

/// What lane 0 remembers between control parts: `k_…`.
#[derive(Debug)]
pub(super) struct Leader<'a> {
    g: &'a Globals<'a>,
    s: &'a Shared,
    record_write: u64,
    record_read: u64,
    mailbox_read: u64,
    /// Fence slot at which a rescan stands.
    rescan: u64,
    /// 0: none under way.
    rescan_end: u64,
    rescan_seen: u64,
    collapsed: u64,
    backward: u64,
    /// Ticks of the last step of any lane.
    last_step: u64,
    /// Ticks that the slices before stayed for a ring, without a step since.
    stayed: u64,
    /// Ticks without a step after which a slice is idle.
    idle_window: u64,
    /// The same while a queue waits for another adapter.
    awaited_window: u64,
    /// The same, or none in a slice that only looks.
    window: u64,
    idle_iterations: u32,
    /// Steps that came after a look that had found nothing.
    answers: u64,
    /// Parts of transfers.
    parts: u64,
    dispatches: u64,
    /// A table of the slice was of a kernel that schedules itself.
    schedules_itself: bool,
    /// Executions for which a dispatch stood, whatever others did.
    held_back: u64,
    /// Of the rounds before.
    before_passes: u64,
    /// Of the rounds before.
    before_iterations: u64,
    /// A record was published, or lost.
    raised: bool,
    /// Which ends the slice.
    interrupts: bool,
    passes: u64,
    /// Queues of the lane that has most.
    most_places: u32,
    /// Of an iteration, besides its rounds and adoptions.
    fixed_passes: u64,
    began: u64,
    request: u64,
    pass_budget: u64,
    time_budget: u64,
}

impl<'a> Leader<'a> {
    pub(super) fn begin(g: &'a Globals<'a>, s: &'a Shared, slot: u64, began: u64) -> Checked<Self> {
        let report = g.report_va;
        let args = g.control_va + EngineControl::slice_args(slot);
        let most_places = g.queue_count.div_ceil(g.lanes);
        let idle_window = g.peek(args + SliceArgs::IDLE_WINDOW)?;
        // The one before found nothing to do: look once and leave, but stay after a step, since
        // what came once comes again, and a running engine is quicker than the way to start one.
        let only_looks = g.peek(report + EngineReport::LAST_REASON)? == SliceReason::Idle as u64;
        s.raised.set(0);
        s.progress.set(0);
        s.backward.set(0);
        s.end.set(SliceReason::Cut as u64);
        s.claim[1].set(NO_CLAIM);
        if !g.dispatches {
            *lock(&s.table) = DispatchTable::default();
        }
        if g.stalls {
            begin_stalls(g, s)?;
        }
        let mut leader = Self {
            g,
            s,
            record_write: g.peek(report + EngineReport::RECORD_WRITE)?,
            record_read: g.peek(g.control_va + EngineControl::RECORD_READ)?,
            mailbox_read: g.peek(report + EngineReport::MAILBOX_READ)?,
            rescan_seen: g.peek(report + EngineReport::RESCAN_SEEN)?,
            collapsed: g.peek(report + EngineReport::COLLAPSED)?,
            backward: g.peek(report + EngineReport::BACKWARD_SIGNALS)?,
            rescan: 0,
            rescan_end: 0,
            last_step: began,
            stayed: g.peek(report + EngineReport::STAYED)?,
            idle_window,
            awaited_window: g.peek(g.control_va + EngineControl::CROSS_DOORBELL_WINDOW)?,
            window: if only_looks { 0 } else { idle_window },
            idle_iterations: 0,
            answers: 0,
            parts: 0,
            raised: g.dispatches && g.round != 0 && lock(&s.table).raised,
            interrupts: g.peek(args + SliceArgs::DELIVERY)? != Delivery::Polled as u64,
            passes: u64::from(most_places) + if g.dispatches { ROUND_PASSES } else { 0 },
            most_places,
            fixed_passes: 1
                + u64::from(most_places) * if g.dispatches { 2 } else { 1 }
                + RAISES as u64
                + 1
                + u64::from(g.stalls),
            began,
            request: g.peek(args + SliceArgs::REQUEST)?,
            pass_budget: g.peek(args + SliceArgs::PASS_BUDGET)?,
            time_budget: g.peek(args + SliceArgs::TIME_BUDGET)?,
            dispatches: 0,
            schedules_itself: false,
            held_back: 0,
            before_passes: 0,
            before_iterations: 0,
        };
        if g.dispatches && g.round != 0 {
            leader.go_on_counting(slot)?;
        }
        Ok(leader)
    }

    /// A round counts on from the ones before: the OS sees one slice.
    fn go_on_counting(&mut self, slot: u64) -> Checked<()> {
        let result = self.g.report_va + EngineReport::slice_result(slot);
        let before = |offset| self.g.peek(result + offset);
        self.before_passes = before(SliceResult::PASSES)?;
        self.before_iterations = before(SliceResult::ITERATIONS)?;
        self.answers = before(SliceResult::ANSWERS)?;
        let done = before(SliceResult::DONE)?;
        let (scheduled, given_up) = lock(&self.s.between).counts();
        (self.parts, self.dispatches) = (done & 0xffff_ffff, (done >> 32) + scheduled - given_up);
        self.schedules_itself =
            before(SliceResult::STANDS_AT)? & SliceResult::SCHEDULES_ITSELF != 0;
        self.began = before(SliceResult::BEGIN_TICKS)?;
        Ok(())
    }

    /// Takes what signals of kernels raised before the lanes met. True if any did, and whether one had no room, which
    /// takes all with it.
    fn take_what_kernels_raised(&mut self) -> (bool, bool) {
        let finished = std::mem::take(&mut *lock(&self.s.finished));
        self.passes += finished.logged;
        self.s.backward.add(finished.backward);
        let lost = finished.had_no_room;
        self.record_write += if lost { 0 } else { finished.raised };
        (finished.raised != 0, lost)
    }

    fn record_ring_has(&mut self, records: u64) -> Checked<bool> {
        let unread = |leader: &Self| leader.record_write.wrapping_sub(leader.record_read);
        if unread(self).wrapping_add(records) > RECORD_RING_CAPACITY {
            self.record_read = self
                .g
                .observe(self.g.control_va + EngineControl::RECORD_READ)?;
        }
        // A read index that cannot be is taken for a full ring.
        Ok(unread(self).wrapping_add(records) <= RECORD_RING_CAPACITY)
    }

    /// Publishes what the lanes raised; then adopts, which may raise in turn. True if anything was.
    pub(super) fn publish_and_adopt(&mut self, is_first: bool) -> Checked<bool> {
        let (g, s) = (self.g, self.s);
        let published = self.record_write;
        let mut lost = false;
        if s.raised.get() != 0 {
            lost = s.record_room.get() == 0;
            self.record_write += if lost { 0 } else { s.raised.get() };
        }
        let mut raised = s.raised.get() != 0;
        s.raised.set(0);
        if g.dispatches && g.round != 0 && is_first {
            (raised, lost) = self.take_what_kernels_raised();
        }

        let written = g.observe(g.control_va + EngineControl::MAILBOX_WRITE)?;
        let rescan = g.observe(g.control_va + EngineControl::RESCAN)?;
        if rescan != self.rescan_seen && self.rescan_end == 0 {
            self.rescan = 0;
            self.rescan_end = g.peek(g.control_va + EngineControl::FENCE_SLOTS)?;
            self.rescan_seen = rescan;
            if self.rescan_end == 0 {
                g.publish(g.report_va + EngineReport::RESCAN_SEEN, self.rescan_seen)?;
            }
        }
        let taken = self.mailbox_read;
        for _ in 0..ADOPTIONS {
            let scans = self.rescan_end != 0;
            if !scans && self.mailbox_read == written {
                // The pass in which it is left counts too, as lavapipe counts.
                let _ = g.passes.end_loop();
                break;
            }
            let mut slot = self.rescan;
            if !scans {
                let place = self.mailbox_read % MAILBOX_CAPACITY * 8;
                slot = g.peek(g.control_va + EngineControl::MAILBOX + place)?;
            }
            if let Some((fence_id, value)) = adopt(g, slot as u32)? {
                raised = true;
                if self.record_ring_has(1)? {
                    let record = InterruptRecord {
                        fence_id,
                        value,
                        hw_queue: u64::from(InterruptRecord::NO_QUEUE),
                        log_number: 0,
                    };
                    store_record(g, self.record_write, &record)?;
                    self.record_write += 1;
                } else {
                    lost = true;
                }
            }
            if scans {
                self.rescan += 1;
                if self.rescan >= self.rescan_end {
                    self.rescan_end = 0;
                    g.publish(g.report_va + EngineReport::RESCAN_SEEN, self.rescan_seen)?;
                }
            } else {
                self.mailbox_read = self.mailbox_read.wrapping_add(1);
            }
            self.passes += 1;
            if g.passes.end_loop() {
                break;
            }
        }
        if lost {
            self.collapsed += 1;
            g.publish(g.report_va + EngineReport::COLLAPSED, self.collapsed)?;
        }
        if self.record_write != published {
            g.publish(g.report_va + EngineReport::RECORD_WRITE, self.record_write)?;
        }
        if self.mailbox_read != taken {
            g.publish(g.report_va + EngineReport::MAILBOX_READ, self.mailbox_read)?;
        }
        let room = self.record_ring_has(u64::from(g.lanes) * RAISES as u64)?;
        s.record_room.set(u64::from(room));
        s.record_base.set(self.record_write);
        Ok(raised)
    }

    /// Votes: the reason why the slice ends now, or `Cut` for none. What counts as a pass, and
    /// what an idle end promises, is said in `shaders/engine/slice.glsl`.
    fn vote(&mut self, lane: &mut Lane<'_>, raised: bool) -> Checked<SliceReason> {
        let (g, s) = (self.g, self.s);
        let ticks = lane.ticks.now(g);
        self.passes += self.fixed_passes + s.progress.get().max(u64::from(g.patience()));
        let stepped = s.progress.get() != 0;
        if stepped {
            // The vote before the first execution counts as one.
            self.answers += u64::from(self.idle_iterations > 1);
            self.last_step = ticks;
            self.idle_iterations = 0;
            self.stayed = 0;
            self.window = self.idle_window;
        } else {
            self.idle_iterations += 1;
        }
        s.progress.set(0);
        let whole_look = self.most_places + 1;
        let stands_at_transfer = !g.transfers && s.claim_made(lane.iterations) != NO_CLAIM;
        s.claim[(lane.iterations & 1) as usize].set(NO_CLAIM);
        let mut table = lock(&s.table);
        let stands_at_dispatch = table.has_dispatches();
        if stands_at_dispatch {
            self.held_back += 1;
            self.passes += if g.dispatches { DISPATCH_PASSES } else { 0 };
        }
        // Once, at the first end that comes, for a table that another slice has kept back.
        let first = g.dispatches && table.kept_back && !table.jobs.is_empty();
        // What other queues can do before it, they have done; or some go on for ever.
        let most = 2 * u64::from(whole_look) + DISPATCH_PATIENCE;
        let held_back = g.dispatches && !first && table.more && self.held_back <= most;
        table.more = false;
        drop(table);
        // A lane may stay with a queue that stands there, and look at no other.
        let found_nothing = self.idle_iterations > whole_look && !stands_at_dispatch;
        let spent = self.passes >= self.pass_budget || ticks - self.began >= self.time_budget;
        let window = take_window(s, self.window, self.awaited_window);
        let stays = window > self.window;
        let stood = (ticks - self.last_step).wrapping_add(self.stayed);
        self.raised |= raised;
        let reason = if lane.iterations == 0 {
            // Every slice executes at least once: one request after another would starve the
            // queues.
            SliceReason::Cut
        } else if self.raised && self.interrupts && !first {
            SliceReason::Interrupt
        } else if g.observe(g.control_va + EngineControl::REQUEST)? != self.request && !first {
            SliceReason::Request
        } else if stands_at_transfer {
            SliceReason::Transfer
        } else if stands_at_dispatch && !held_back && !(g.dispatches && spent && g.round != 0) {
            SliceReason::Dispatch
        } else if found_nothing && (stood >= window || spent && !stays) {
            SliceReason::Idle
        } else if spent && lane.iterations > u64::from(whole_look) {
            SliceReason::Budget
        } else {
            SliceReason::Cut
        };
        if reason != SliceReason::Cut {
            // The next slice goes on staying.
            let is_stay = reason == SliceReason::Budget && found_nothing;
            self.stayed = if is_stay { stood } else { 0 };
        }
        Ok(reason)
    }

    /// The control part: publish, adopt, vote; why the slice ends now, or `Cut`.
    pub(super) fn control(&mut self, lane: &mut Lane<'_>) -> Checked<SliceReason> {
        let raised = self.publish_and_adopt(lane.iterations == 0)?;
        if self.g.doorbells {
            prepare_hearing(self.g, self.s, lane.iterations)?;
        }
        let vote = self.vote(lane, raised)?;
        if vote == SliceReason::Cut && lane.iterations == 1 {
            lock(&self.s.table).forget_who_let_come_first();
        }
        self.s.end.set(vote as u64);
        Ok(vote)
    }

    /// After the first meeting of a round.
    pub(super) fn begin_round(&self) -> Checked<()> {
        forget_names(self.g)
    }

    /// A part of a transfer was done, in so many passes.
    pub(super) fn count_part(&mut self, passes: u64) {
        self.passes += passes;
        self.parts += 1;
    }

    /// The slice's result, after the lane's queue is saved.
    pub(super) fn end(
        &mut self,
        lane: &mut Lane<'_>,
        slot: u64,
        reason: SliceReason,
    ) -> Checked<()> {
        let (g, s) = (self.g, self.s);
        let report = g.report_va;
        // A loop that the driver cut left records unpublished: the next slice's control part
        // cannot know them, so the OS is told to look at every waiter.
        if s.raised.get() != 0 {
            g.publish(report + EngineReport::COLLAPSED, self.collapsed + 1)?;
        }
        if g.doorbells {
            // Nor does it know which numbers were taken, and would take them again.
            say_what_was_taken(g, s)?;
        }
        g.put(
            report + EngineReport::BACKWARD_SIGNALS,
            self.backward + s.backward.get(),
        )?;
        let result = report + EngineReport::slice_result(slot);
        g.put(
            result + SliceResult::PASSES,
            self.before_passes + self.passes,
        )?;
        let iterations = self.before_iterations + lane.iterations;
        g.put(result + SliceResult::ITERATIONS, iterations)?;
        g.put(result + SliceResult::BEGIN_TICKS, self.began)?;
        g.put(result + SliceResult::END_TICKS, lane.ticks.now(g))?;
        g.put(result + SliceResult::ANSWERS, self.answers)?;
        let had_dispatches = lock(&s.table).has_dispatches();
        let interrupts = self.raised && self.interrupts;
        let known = HandedOver {
            request: self.request,
            mailbox_read: self.mailbox_read,
            // A rescan that is under way is the engine's to end.
            rescan_seen: (self.rescan_end == 0).then_some(self.rescan_seen),
            began: self.began,
            time_budget: self.time_budget,
            ticks: lane.ticks,
        };
        let (made, schedules_itself) = end_round(g, s, reason, (self.raised, interrupts), known)?;
        self.dispatches += made;
        self.schedules_itself |= schedules_itself;
        let done = self.parts | self.dispatches << 32;
        g.put(result + SliceResult::DONE, done)?;
        let stands = |stands, at| if stands { at } else { 0 };
        let claim = s.claim_made(lane.iterations);
        let at_transfer = stands(claim != NO_CLAIM, SliceResult::TRANSFER);
        let at_dispatch = stands(had_dispatches, SliceResult::DISPATCH);
        let itself = stands(self.schedules_itself, SliceResult::SCHEDULES_ITSELF);
        g.put(
            result + SliceResult::STANDS_AT,
            at_transfer | at_dispatch | itself,
        )?;
        g.put(report + EngineReport::STAYED, self.stayed)?;
        g.put(report + EngineReport::LAST_REASON, reason as u64)?;
        g.publish(result + SliceResult::REASON, reason as u64)
    }
}
