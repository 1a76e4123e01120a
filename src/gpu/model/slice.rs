//! The slice: adopt | execute | adopt, until the lanes vote for an end.
//!
//! As `shaders/engine/slice.glsl`; `|` is a meeting of all lanes. `end`, `record_base` and
//! `record_room` are written in the control part only; `raised`, `progress` and `backward` are
//! changed in the execution only, atomically, and reset in the control part.
//!
//! The parts are put together twice: [`run_slice`] steps the lanes by turns on one thread, which
//! meet by themselves then; in [`run_lane`] each lane is a thread, as loom needs it.

use super::clock::Ticks;
use super::cross_doorbell::begin_hearing;
use super::dispatch::begin_round;
use super::lane::{Globals, Lane, PacketRegisters, QueueRegisters, RAISES, Resolved, Shared};
use super::leader::Leader;
use super::meeting::Meeting;
use super::transfer::NO_CLAIM;
use super::violation::Checked;
use crate::abi::{
    EngineControl, EngineReport, MAX_HW_QUEUES, QueueDescriptor, SLICE_SLOTS, SliceArgs,
    SliceReason, SliceResult,
};
use crate::sync::plain::lock;

impl Globals<'_> {
    /// What every invocation reads first, of the slice whose arguments lie in slot `slot`.
    pub(super) fn read(&mut self, slot: u64) -> Checked<()> {
        self.report_va = self.peek(self.control_va + EngineControl::REPORT_VA)?;
        if self.doorbells {
            let page = self.control_va + EngineControl::CROSS_DOORBELLS_VA;
            self.doorbells_va = self.peek(page)?;
        }
        self.clock_is_short = self.peek(self.control_va + EngineControl::CLOCK_BITS)? == 32;
        let args = self.control_va + EngineControl::slice_args(slot);
        self.run_list_va = self.control_va + EngineControl::run_list(slot, 0);
        let queues = self.peek(args + SliceArgs::QUEUE_COUNT)? as u32;
        self.queue_count = queues.min(MAX_HW_QUEUES as u32);
        Ok(())
    }
}

impl<'a> Lane<'a> {
    /// One that has nothing in registers, of so many queues.
    pub(super) fn without_queue(
        g: &'a Globals<'a>,
        s: &'a Shared,
        (id, places): (u32, u32),
        ticks: Ticks,
        turn: u32,
    ) -> Self {
        Self {
            g,
            s,
            id,
            places,
            cursor: 0,
            quantum: 0,
            began: ticks.0,
            ticks,
            iterations: 0,
            turn,
            transfer_bytes: 0,
            is_here: false,
            stepped: false,
            rounds: 0,
            holding: false,
            leaves: false,
            fruitless: 0,
            ordered: false,
            stored: false,
            for_engine: false,
            backward: 0,
            q: QueueRegisters::NONE,
            p: PacketRegisters::default(),
            c_wait: Resolved::default(),
            c_signal: Resolved::default(),
            c_progress: Resolved::default(),
            i: Vec::with_capacity(RAISES),
            line: id.into(),
            bounds: None,
        }
    }

    fn begin(g: &'a Globals<'a>, s: &'a Shared, id: u32, slot: u64) -> Checked<Self> {
        let args = g.control_va + EngineControl::slice_args(slot);
        // The OS may have read its clock long before the slice in flight ended, or the round before this one.
        let slot_before = if g.round != 0 {
            slot
        } else {
            slot + SLICE_SLOTS - 1
        };
        let before = g.report_va + EngineReport::slice_result(slot_before);
        let base_ticks = g
            .peek(args + SliceArgs::BASE_TICKS)?
            .max(g.peek(before + SliceResult::END_TICKS)?)
            .max(if g.round != 0 {
                lock(&s.between).ticks()
            } else {
                0
            });
        let places = if id < g.queue_count {
            (g.queue_count - id).div_ceil(g.lanes)
        } else {
            0
        };
        let turn = (g.peek(args + SliceArgs::SLICE)? + g.round) as u32 % g.lanes;
        let mut lane = Self::without_queue(g, s, (id, places), Ticks(base_ticks), turn);
        lane.ticks.now(g);
        // A queue that is not in registers is looked at once in any case: its handle may have been
        // closed since, which its look does not show.
        for place in 0..places {
            let ordinal = lane.ordinal_of(place);
            let at = g.peek(g.run_list_va + u64::from(ordinal) * 8)?;
            let ring_control = g.peek(at + QueueDescriptor::RING_CONTROL_VA)?;
            let [next_va, next_value] = &s.next_look[ordinal as usize];
            let (va, value) = match g.round {
                0 => (ring_control, 0),
                _ => (next_va.get(), next_value.get()),
            };
            s.look_va[ordinal as usize].set(va);
            s.look_value[ordinal as usize].set(value);
            s.rings.close(ordinal, None);
            next_va.set(va);
            next_value.set(value);
        }
        if places != 0 {
            // Slices begin at the lane's queues by turns, or one that ends every slice starved the
            // others.
            lane.cursor = (g.peek(args + SliceArgs::SLICE)? + g.round) as u32 % places;
        }
        Ok(lane)
    }

    /// Has its first queue in registers. A round looks at those of many first that can go on, or whose turn it is.
    fn begin_queue(&mut self) -> Checked<()> {
        let favours = lock(&self.s.table).favours();
        let favoured = favours.filter(|ordinal| {
            self.g.dispatches && *ordinal < self.g.queue_count && ordinal % self.g.lanes == self.id
        });
        if let Some(ordinal) = favoured {
            self.cursor = ordinal / self.g.lanes;
        }
        let any = self.places == 1 || self.places != 0 && self.g.round == 0;
        if any || favoured.is_some() {
            self.load_queue(self.ordinal_of(self.cursor))?;
        }
        Ok(())
    }

    /// An execution up to its rounds.
    fn begin_execution(&mut self) -> Checked<()> {
        if self.g.doorbells {
            self.open_rung_queues()?;
        }
        self.choose_queue()?;
        self.begin_rounds()
    }

    /// What an execution leaves for the control part.
    fn end_execution(&mut self) -> Checked<()> {
        if self.g.stalls {
            self.do_stall()?;
        }
        self.claim_transfer();
        self.stand_at_dispatch()?;
        if self.g.dispatches {
            self.tell_of_more()?;
        }
        self.raise_what_was_noted()?;
        if self.stepped {
            self.s.progress.raise_to(self.rounds + 1);
        }
        if self.backward != 0 {
            self.s.backward.add(self.backward);
            self.backward = 0;
        }
        self.iterations += 1;
        Ok(())
    }
}

/// Runs a slice whose arguments lie in slot `slot`, the lanes by turns. An access that is no
/// engine's ends it at once.
pub(in crate::gpu) fn run_slice(mut globals: Globals<'_>, s: &Shared, slot: u64) -> Checked<()> {
    globals.read(slot)?;
    let g = &globals;
    if g.doorbells {
        begin_hearing(g, s)?;
        // meet
    }
    let mut lanes = (0..g.lanes)
        .map(|id| Lane::begin(g, s, id, slot))
        .collect::<Checked<Vec<_>>>()?;
    if g.dispatches {
        begin_round(g, s)?;
        // meet
    }
    lanes.iter_mut().try_for_each(Lane::begin_queue)?;
    let mut leader = Leader::begin(g, s, slot, lanes[0].ticks.0)?;
    let reason = loop {
        let vote = leader.control(&mut lanes[0])?;
        if g.transfers && lanes[0].iterations != 0 {
            lanes.iter_mut().try_for_each(Lane::prepare_part)?;
        }
        // meet
        if g.dispatches && lanes[0].iterations == 0 {
            leader.begin_round()?;
        }
        for lane in &mut lanes {
            lane.stepped = false;
        }
        if g.transfers && s.claim_made(lanes[0].iterations) != NO_CLAIM {
            do_part(g, &lanes)?;
            // meet
            let mut passes = 0;
            for lane in &mut lanes {
                passes = lane.end_part()?;
            }
            leader.count_part(passes);
        }
        if vote != SliceReason::Cut {
            break vote;
        }
        execute(g, &mut lanes)?;
        // meet
        if g.passes.end_loop() {
            break SliceReason::Cut;
        }
    };
    for lane in &mut lanes {
        lane.save_queue()?;
    }
    leader.end(&mut lanes[0], slot, reason)
}

/// The part of a transfer, the lanes by turns, pass by pass.
fn do_part(g: &Globals<'_>, lanes: &[Lane<'_>]) -> Checked<()> {
    let mut goes_on = true;
    for pass in 0.. {
        for lane in lanes {
            goes_on = lane.share_pass(pass)?;
        }
        if g.passes.end_loop() || !goes_on {
            break;
        }
    }
    if !goes_on {
        lanes.iter().for_each(Lane::end_share);
    }
    Ok(())
}

/// One execution, the lanes by turns: round by round, as a subgroup does it.
fn execute(g: &Globals<'_>, lanes: &mut [Lane<'_>]) -> Checked<()> {
    for lane in lanes.iter_mut() {
        lane.begin_execution()?;
    }
    for _ in 0..g.rounds {
        let mut any = false;
        for lane in lanes.iter_mut() {
            any |= lane.step_round()?;
        }
        // The pass in which it is left counts too, as lavapipe counts.
        if g.passes.end_loop() || !any {
            break;
        }
    }
    lanes.iter_mut().try_for_each(Lane::end_execution)
}

/// Runs lane `id` of a slice, each lane a thread. No loop of it is cut.
pub(in crate::gpu) fn run_lane(
    mut globals: Globals<'_>,
    s: &Shared,
    slot: u64,
    id: u32,
    meeting: &Meeting,
) -> Checked<()> {
    globals.read(slot)?;
    let g = &globals;
    if g.doorbells {
        if id == 0 {
            begin_hearing(g, s)?;
        }
        meeting.meet()?;
    }
    let mut lane = Lane::begin(g, s, id, slot)?;
    if g.dispatches {
        if id == 0 {
            begin_round(g, s)?;
        }
        meeting.meet()?;
    }
    lane.begin_queue()?;
    let mut leader = match id {
        0 => Some(Leader::begin(g, s, slot, lane.ticks.0)?),
        _ => None,
    };
    let reason = loop {
        if let Some(leader) = &mut leader {
            leader.control(&mut lane)?;
        }
        if g.transfers && lane.iterations != 0 {
            lane.prepare_part()?;
        }
        meeting.meet()?;
        let end = SliceReason::from_word(s.end.get()).unwrap_or(SliceReason::Cut);
        if g.dispatches
            && lane.iterations == 0
            && let Some(leader) = &leader
        {
            leader.begin_round()?;
        }
        lane.stepped = false;
        if g.transfers && s.claim_made(lane.iterations) != NO_CLAIM {
            let mut pass = 0;
            while lane.share_pass(pass)? {
                pass += 1;
            }
            lane.end_share();
            meeting.meet()?;
            let passes = lane.end_part()?;
            if let Some(leader) = &mut leader {
                leader.count_part(passes);
            }
        }
        if end != SliceReason::Cut {
            break end;
        }
        lane.begin_execution()?;
        for _ in 0..g.rounds {
            if !lane.step_round()? {
                break;
            }
        }
        lane.end_execution()?;
        meeting.meet()?;
    };
    lane.save_queue()?;
    match leader {
        Some(mut leader) => leader.end(&mut lane, slot, reason),
        None => Ok(()),
    }
}
