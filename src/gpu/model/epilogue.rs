//! The epilogue of a kernel that schedules itself: the engine's step, done by the last workgroup of a table.
//!
//! As `shaders/engine/epilogue.glsl`, which says what is done and what is left to the engine. The model's kernels have no
//! workgroups: the engine's first worker does it, once the kernels of the table have run, and one lane of it serves all
//! queues.

use super::clock::Ticks;
use super::dispatch::{forget_names, name_job, newer_state};
use super::dispatch_table::{DispatchTable, Job};
use super::lane::{Globals, Lane, Shared};
use super::violation::Checked;
use crate::abi::{Dispatch, EngineControl, Opcode, QueueState};
use crate::sync::plain::lock;

/// Times that the queues are looked at.
const PASSES: u32 = 4;

/// What the engine knew in its last round.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandedOver {
    pub(super) request: u64,
    pub(super) mailbox_read: u64,
    pub(super) rescan_seen: Option<u64>,
    pub(super) began: u64,
    pub(super) time_budget: u64,
    pub(super) ticks: Ticks,
}

/// What the last workgroup of a table does.
#[derive(Clone, Copy, Debug)]
enum Scheduling {
    /// Nothing.
    None,
    /// The engine's step, and the next table, of this process.
    On(u64, HandedOver),
    /// It marks its jobs as done.
    Ends,
}

/// What runs between two rounds of the engine: `DispatchRound`.
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the shader's words, one a name"
)]
pub(in crate::gpu) struct Between {
    scheduling: Scheduling,
    /// A table waits for its turn.
    stands: bool,
    /// The last table that was made has run.
    ran: bool,
    /// The engine comes at its next place.
    engine: bool,
    /// The slice goes on.
    goes: bool,
    scheduled: u64,
    given_up: u64,
}

impl Default for Between {
    fn default() -> Self {
        Self::of_engine(false)
    }
}

impl Between {
    /// A table, or none, that is followed by the engine.
    pub(super) fn of_engine(goes: bool) -> Self {
        Self {
            scheduling: Scheduling::None,
            stands: goes,
            ran: false,
            engine: goes,
            goes,
            scheduled: 0,
            given_up: 0,
        }
    }

    /// One whose kernel schedules itself.
    pub(super) fn of_kernel(process: u64, known: HandedOver) -> Self {
        Self {
            scheduling: Scheduling::On(process, known),
            engine: false,
            ..Self::of_engine(true)
        }
    }

    /// As its turn comes: whether there is a table.
    pub(in crate::gpu) fn take_table(&mut self) -> bool {
        std::mem::take(&mut self.stands)
    }

    /// Whether the engine comes at its place: the last of the slice, or one before.
    pub(in crate::gpu) fn engine_comes(&self, is_last: bool) -> bool {
        if is_last { self.goes } else { self.engine }
    }

    /// When the last epilogue read the clock.
    pub(super) fn ticks(&self) -> u64 {
        match self.scheduling {
            Scheduling::On(_, known) => known.ticks.0,
            Scheduling::None | Scheduling::Ends => 0,
        }
    }

    /// As the engine comes: whether the table of so many jobs that stands there has run.
    pub(super) fn give_up(&mut self, jobs: u64) -> bool {
        let has_run = self.ran || matches!(self.scheduling, Scheduling::None);
        self.given_up = if has_run { 0 } else { jobs };
        has_run
    }

    /// Dispatches that epilogues have made since the engine's last round, and that were given up.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.scheduled, self.given_up)
    }
}

impl HandedOver {
    /// Whether the OS wants something of the engine, or the slice's time is over.
    fn engine_is_wanted(&self, g: &Globals<'_>, now: u64) -> Checked<bool> {
        let control = |offset| g.observe(g.control_va + offset);
        Ok(control(EngineControl::REQUEST)? != self.request
            || control(EngineControl::MAILBOX_WRITE)? != self.mailbox_read
            || Some(control(EngineControl::RESCAN)?) != self.rescan_seen
            || now - self.began >= self.time_budget)
    }
}

/// What the engine is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Nothing,
    /// Tables go on until it comes.
    Soon,
    /// The next table is the last.
    Now,
}

impl Lane<'_> {
    /// One queue that can go on; whether nothing more comes of it here, and what the engine is asked for.
    fn serve_queue(&mut self, ordinal: u32) -> Checked<(bool, Asked)> {
        self.load_queue(ordinal)?;
        self.for_engine = false;
        self.begin_rounds()?;
        for _ in 0..self.g.rounds {
            let goes_on = self.step_round()?;
            if self.g.passes.end_loop() || !goes_on {
                break;
            }
        }
        let opcode = Opcode::from_bits(self.p.control & 0xff);
        let served = if self.for_engine {
            (true, Asked::Now)
        } else if self.is_at_dispatch() {
            let goes = self.prepare_dispatch()?;
            (true, if goes { Asked::Nothing } else { Asked::Soon })
        } else if self.p.fetched && opcode.is_some_and(Opcode::is_transfer) {
            (true, Asked::Soon)
        } else {
            (false, Asked::Nothing)
        };
        self.save_queue()?;
        Ok(served)
    }

    /// Serves all queues that can go on, and those that these let go.
    fn serve_queues(&mut self) -> Checked<Asked> {
        let queues = self.g.queue_count;
        let mut stood = vec![false; queues as usize];
        let mut asked = Asked::Nothing;
        for _ in 0..PASSES {
            self.stored = false;
            for ordinal in 0..queues {
                let [va, value] = &self.s.next_look[ordinal as usize];
                if !stood[ordinal as usize] && self.g.observe(va.get())? >= value.get() {
                    let (ends, asks) = self.serve_queue(ordinal)?;
                    stood[ordinal as usize] = ends;
                    asked = asked.max(asks);
                }
                if self.g.passes.end_loop() && ordinal + 1 < queues {
                    asked = Asked::Now;
                    break;
                }
            }
            if self.g.passes.end_loop() || !self.stored {
                break;
            }
        }
        Ok(asked)
    }
}

/// Marks jobs as done, but for those whose kernel has signalled, which are the engine's to finish, and those that a cut loop
/// has not come to.
fn mark_as_done(g: &Globals<'_>, jobs: Vec<Job>) -> Checked<Vec<Job>> {
    let (mut left, done): (Vec<_>, Vec<_>) =
        jobs.into_iter().partition(|job| !job.signals.is_empty());
    let mut done = done.into_iter();
    for job in done.by_ref() {
        let newer = newer_state(g, &job)?;
        g.publish(newer + QueueState::TRANSFERRED, Dispatch::RELEASED)?;
        if g.passes.end_loop() {
            break;
        }
    }
    left.extend(done);
    Ok(left)
}

/// After the kernels of a table that schedules itself, of the slice in slot `slot`: makes the next one.
pub(in crate::gpu) fn run_epilogue(mut globals: Globals<'_>, s: &Shared, slot: u64) -> Checked<()> {
    let scheduling = lock(&s.between).scheduling;
    if matches!(scheduling, Scheduling::None) {
        return Ok(());
    }
    globals.read(slot)?;
    globals.epilogue = true;
    globals.verbose = false;
    globals.doorbells = false;
    let g = &globals;
    lock(&s.between).ran = true;
    let released = std::mem::take(&mut *lock(&s.released));
    let left = mark_as_done(g, released)?;
    if left.is_empty() {
        forget_names(g)?;
    }
    let mut asked = Asked::Now;
    if let Scheduling::On(process, mut known) = scheduling {
        let now = known.ticks.now(g);
        if left.is_empty() && !known.engine_is_wanted(g, now)? {
            *lock(&s.own_table) = DispatchTable::of_epilogue(process);
            let mut lane = Lane::without_queue(g, s, (0, g.queue_count), known.ticks, 0);
            asked = lane.serve_queues()?;
            known.ticks = lane.ticks;
        }
        lock(&s.between).scheduling = Scheduling::On(process, known);
    }
    let jobs = std::mem::take(&mut lock(&s.own_table).jobs);
    if let Some(first) = jobs.first() {
        name_job(g, first)?;
    }
    let mut between = lock(&s.between);
    between.scheduled += jobs.len() as u64;
    between.stands = !jobs.is_empty();
    between.ran = jobs.is_empty();
    between.engine |= asked != Asked::Nothing || jobs.is_empty();
    if asked == Asked::Now {
        between.scheduling = Scheduling::Ends;
    }
    drop(between);
    *lock(&s.released) = if left.is_empty() { jobs } else { left };
    Ok(())
}
