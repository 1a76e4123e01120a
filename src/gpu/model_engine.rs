//! Model engine: an engine that is a thread, or one for each of its lanes, or none.
//!
//! It executes the instruction set of the shader, over memory in which a wrong access is found: the
//! oracle for what the shader does, and the double that takes its place where there is no device.

use super::model::{
    Arrival, Checked, CutPlan, Globals, Job, Meeting, MemoryObserver, ModelClock, ModelMemory,
    MonotonicClock, Passes, Shared, run_epilogue, run_lane, run_slice,
};
use super::slice_layout::SliceLayout;
use super::{
    AddressSpace, ClockReading, Engine, EngineAddress, EngineCaps, EngineLost, GpuVa, KernelError,
    Kernels, LocalMemory, MapError, ModelDispatch, SliceWork,
};
use crate::abi::SLICE_SLOTS;
use crate::shared::{Providers, Region};
use crate::supply::start_thread;
use crate::sync::{Arc, Condvar, Mutex, lock, monotonic_ns, plain, sleep, sleep_until, thread};
use std::time::{Duration, Instant};

/// Which threads execute a model's slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelThreads {
    /// One of the engine's own, which steps the lanes by turns.
    One,
    /// One for each lane.
    OneALane,
    /// None: whoever waits for a slice, or asks whether it has ended, executes it there. So all
    /// that happens can be on one thread, and no time goes into handing over to another.
    Callers,
}

impl Default for ModelThreads {
    fn default() -> Self {
        if cfg!(loom) {
            Self::OneALane
        } else {
            Self::One
        }
    }
}

/// How a model engine is made.
#[derive(Clone, Debug)]
pub struct ModelOptions {
    /// Lanes, as invocations of the shader's workgroup.
    pub lanes: u32,
    /// Steps of each lane between two adoptions.
    pub rounds: u32,
    /// Iterations that a queue keeps its lane.
    pub quantum: u32,
    /// Whether it knows stalls, as [`ShaderTuning::stalls`](super::ShaderTuning::stalls).
    pub stalls: bool,
    /// What the engine reads for its clock, in nanoseconds.
    pub clock: Arc<dyn ModelClock>,
    /// Bits of the clock that are real: 64, or 32 as on lavapipe.
    pub clock_bits: u64,
    /// Slices that end without a vote; none does where the lanes are threads.
    pub cut: CutPlan,
    /// Which threads execute the slices.
    pub threads: ModelThreads,
    /// When the host sees the CurrentValues that the engine stores.
    pub current_values: Arrival,
    /// Called after every access to memory, on the engine's thread.
    pub observer: Option<Arc<dyn MemoryObserver>>,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            lanes: 8,
            rounds: 32,
            quantum: 8,
            stalls: false,
            clock: Arc::new(MonotonicClock),
            clock_bits: 64,
            cut: CutPlan::Never,
            threads: ModelThreads::default(),
            current_values: Arrival::AtOnce,
            observer: None,
        }
    }
}

/// Slices between the node and the engine's threads.
#[derive(Debug, Default)]
struct Turns {
    /// Where the control block lies, once attached.
    control: u64,
    /// The first slice since then.
    first: u64,
    started: u64,
    /// What a slice is to do, and the kernels that it has, by slot.
    works: [(SliceWork, Kernels); SLICE_SLOTS as usize],
    kernels: Kernels,
    ended: u64,
    /// Threads that have left the slice under way.
    left: u32,
    /// A caller executes a slice.
    taken: bool,
    lost: bool,
    stops: bool,
}

impl Turns {
    /// The next slice, up to `slice`, if it was started and nobody executes it.
    fn next(&self, slice: u64) -> Option<u64> {
        let next = self.ended + 1;
        (!self.taken && !self.lost && next <= slice.min(self.started)).then_some(next)
    }
}

#[derive(Debug)]
struct Inner {
    memory: Arc<ModelMemory>,
    options: ModelOptions,
    shared: Shared,
    meeting: Meeting,
    turns: Mutex<Turns>,
    changed: Condvar,
}

/// The engine.
#[derive(Debug)]
pub struct ModelEngine {
    inner: Arc<Inner>,
    providers: Arc<Providers>,
    workers: Vec<thread::JoinHandle<()>>,
}

impl ModelEngine {
    /// An engine of its own address space.
    #[must_use]
    pub fn new(options: ModelOptions) -> Self {
        let lanes = options.lanes.max(1);
        Self {
            inner: Arc::new(Inner {
                memory: Arc::new(ModelMemory::new(
                    options.observer.clone(),
                    options.current_values,
                )),
                options: ModelOptions { lanes, ..options },
                shared: Shared::new(),
                meeting: Meeting::new(lanes),
                turns: Mutex::new(Turns::default()),
                changed: Condvar::new(),
            }),
            providers: Arc::default(),
            workers: Vec::new(),
        }
    }

    /// Executes the slices up to `slice` that were started, where callers do that.
    fn execute_here(&self, slice: u64) {
        let inner = &self.inner;
        if inner.options.threads != ModelThreads::Callers {
            return;
        }
        loop {
            let mut turns = lock(&inner.turns);
            let Some(next) = turns.next(slice) else {
                return;
            };
            turns.taken = true;
            drop(turns);
            let lost = LostAtEnd(inner);
            let ran = inner.run(0, next);
            if ran.and_then(|()| inner.leave(next)).is_ok() {
                // It ended as it should: what follows is not the end of the engine.
                std::mem::forget(lost);
            }
            lock(&inner.turns).taken = false;
            inner.changed.notify_all();
        }
    }

    /// The engine's memory, whose violations a test asks for after the engine was given away.
    #[must_use]
    pub fn memory(&self) -> &Arc<ModelMemory> {
        &self.inner.memory
    }
}

/// Marks the engine lost when one of its threads ends, or a caller's slice by a panic.
struct LostAtEnd<'a>(&'a Inner);

impl Drop for LostAtEnd<'_> {
    fn drop(&mut self) {
        lock(&self.0.turns).lost = true;
        self.0.changed.notify_all();
    }
}

impl Inner {
    /// Threads that have a part of each slice.
    fn workers(&self) -> u32 {
        match self.options.threads {
            ModelThreads::OneALane => self.options.lanes,
            ModelThreads::One | ModelThreads::Callers => 1,
        }
    }

    /// Runs what worker `worker` has of a slice: its lane, or all, round by round.
    fn run(&self, worker: u32, slice: u64) -> Checked<()> {
        let (control, (work, kernels)) = {
            let turns = lock(&self.turns);
            let work = &turns.works[(slice % SLICE_SLOTS) as usize];
            (turns.control, work.clone())
        };
        let version = kernels.version();
        self.run_round(worker, slice, (control, work), (0, version))?;
        if !work.dispatches {
            return Ok(());
        }
        let layout = SliceLayout::of(work.schedules_itself);
        for round in 1..=layout.rounds {
            for _ in 0..layout.depth {
                self.run_table(worker, slice, (control, work), &kernels)?;
            }
            let is_last = round == layout.rounds;
            if plain::lock(&self.shared.between).engine_comes(is_last) {
                self.run_round(worker, slice, (control, work), (round, version))?;
            }
        }
        Ok(())
    }

    /// Runs the table that stands there, if it has not run, and its epilogue. The first worker does, and the others wait
    /// for it.
    fn run_table(
        &self,
        worker: u32,
        slice: u64,
        (control, work): (u64, SliceWork),
        kernels: &Kernels,
    ) -> Checked<()> {
        // All have left the round.
        self.meet()?;
        if worker == 0 && plain::lock(&self.shared.between).take_table() {
            self.run_kernels(kernels)?;
            let globals = self.globals(slice, control, work, (0, kernels.version()));
            run_epilogue(globals, &self.shared, slice % SLICE_SLOTS)?;
        }
        self.meet()
    }

    fn run_kernels(&self, kernels: &Kernels) -> Checked<()> {
        let released = plain::lock(&self.shared.released).clone();
        let clock = (self.options.clock.as_ref(), self.options.clock_bits == 32);
        for (number, job) in released.iter().enumerate() {
            let code = kernels.get(job.kernel);
            let of_kernel = released.iter().filter(|other| other.kernel == job.kernel);
            let together = of_kernel.map(Job::workgroups).sum();
            // Of no workgroups nothing runs.
            if let Some(model) = code.and_then(|code| code.model())
                && job.workgroups() > 0
            {
                let dispatch = ModelDispatch::new(job, together, &self.memory, clock)?;
                model.run(&dispatch)?;
                plain::lock(&self.shared.released)[number].signals = dispatch.into_signals();
            }
        }
        Ok(())
    }

    /// Waits for the other workers, if there are any.
    fn meet(&self) -> Checked<()> {
        match self.options.threads {
            ModelThreads::OneALane => self.meeting.meet(),
            ModelThreads::One | ModelThreads::Callers => Ok(()),
        }
    }

    fn run_round(
        &self,
        worker: u32,
        slice: u64,
        (control, work): (u64, SliceWork),
        round: (u64, u64),
    ) -> Checked<()> {
        let slot = slice % SLICE_SLOTS;
        let globals = self.globals(slice, control, work, round);
        if self.options.threads == ModelThreads::OneALane {
            run_lane(globals, &self.shared, slot, worker, &self.meeting)
        } else {
            run_slice(globals, &self.shared, slot)
        }
    }

    fn globals(&self, slice: u64, control: u64, work: SliceWork, round: (u64, u64)) -> Globals<'_> {
        let options = &self.options;
        let passes = if options.threads == ModelThreads::OneALane {
            CutPlan::Never.passes(slice)
        } else {
            options.cut.passes(slice)
        };
        let (memory, clock) = (&self.memory, options.clock.as_ref());
        let passes = Passes::new(passes);
        Globals::new(memory, clock, passes, control, options, work, round)
    }

    /// A thread of the engine.
    fn work(&self, worker: u32) {
        // Whatever ends the thread, nobody waits for it in vain.
        let _lost = LostAtEnd(self);
        let mut slice = 1;
        while self.begins(&mut slice) {
            // What was violated is recorded; an engine that did it executes no more.
            let ran = self.run(worker, slice);
            if let Err(violation) = ran.and_then(|()| self.leave(slice)) {
                self.meeting.break_up(violation);
                return;
            }
            slice += 1;
        }
    }

    /// Sleeps until the slice is started and the one before it has ended; false when the engine
    /// stops.
    fn begins(&self, slice: &mut u64) -> bool {
        let mut turns = lock(&self.turns);
        loop {
            *slice = (*slice).max(turns.first);
            if turns.started >= *slice && turns.ended + 1 >= *slice {
                return true;
            }
            if turns.stops {
                return false;
            }
            turns = sleep(&self.changed, turns);
        }
    }

    /// The slice has ended when all threads have left it.
    fn leave(&self, slice: u64) -> Checked<()> {
        let mut turns = lock(&self.turns);
        turns.left += 1;
        if turns.left == self.workers() {
            turns.left = 0;
            self.memory.write_back()?;
            turns.ended = slice;
            drop(turns);
            self.changed.notify_all();
        }
        Ok(())
    }
}

impl AddressSpace for ModelEngine {
    fn providers(&self) -> &Arc<Providers> {
        &self.providers
    }

    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError> {
        self.inner.memory.map(region)
    }
}

impl Engine for ModelEngine {
    fn caps(&self) -> EngineCaps {
        EngineCaps {
            addresses: ModelMemory::ADDRESSES,
            has_64_bit_atomics: true,
            local_storage: LocalMemory::SameAsSystem,
            scheduling_lanes: u32::MAX,
        }
    }

    fn attach(&mut self, control: GpuVa, before: u64) -> Result<(), MapError> {
        let mut turns = lock(&self.inner.turns);
        turns.control = control.0;
        (turns.started, turns.ended, turns.first) = (before, before, before + 1);
        drop(turns);
        // Its threads are there once it was attached before.
        if self.inner.options.threads == ModelThreads::Callers || !self.workers.is_empty() {
            return Ok(());
        }
        for worker in 0..self.inner.workers() {
            let inner = Arc::clone(&self.inner);
            let thread = start_thread("nf-model", move || inner.work(worker))
                .map_err(|error| MapError::Refused(format!("no thread for the model: {error}")))?;
            self.workers.push(thread);
        }
        Ok(())
    }

    fn prepare_doorbells(&self) -> Result<(), MapError> {
        Ok(())
    }

    fn prepare_verbose(&self) -> Result<(), MapError> {
        Ok(())
    }

    fn set_kernels(&self, kernels: &Kernels) -> Result<(), KernelError> {
        if kernels.iter().any(|(_, code)| code.model().is_none()) {
            return Err(KernelError::NoModel);
        }
        lock(&self.inner.turns).kernels = kernels.clone();
        Ok(())
    }

    fn cuts_slices(&self) -> bool {
        self.inner.options.cut != CutPlan::Never
    }

    fn start(&self, slice: u64, work: SliceWork) -> Result<(), EngineLost> {
        let mut turns = lock(&self.inner.turns);
        if turns.lost {
            return Err(EngineLost);
        }
        turns.started = slice;
        turns.works[(slice % SLICE_SLOTS) as usize] = (work, turns.kernels.clone());
        drop(turns);
        self.inner.changed.notify_all();
        Ok(())
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.execute_here(slice);
        let mut turns = lock(&self.inner.turns);
        loop {
            if turns.lost {
                return Err(EngineLost);
            }
            if turns.ended >= slice {
                return Ok(true);
            }
            if self.inner.options.threads == ModelThreads::Callers && turns.next(slice).is_some() {
                drop(turns);
                self.execute_here(slice);
                turns = lock(&self.inner.turns);
                continue;
            }
            match sleep_until(&self.inner.changed, turns, deadline) {
                Some(woken) => turns = woken,
                None => return Ok(false),
            }
        }
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        self.execute_here(slice);
        let turns = lock(&self.inner.turns);
        if turns.lost {
            return Err(EngineLost);
        }
        Ok(turns.ended >= slice)
    }

    fn abandon(&self, slice: u64) {
        let mut turns = lock(&self.inner.turns);
        turns.ended = turns.ended.max(slice);
        drop(turns);
        self.inner.changed.notify_all();
    }

    fn base_ticks(&self) -> u64 {
        match self.inner.options.clock_bits {
            64 => 0,
            _ => self.inner.options.clock.ticks(),
        }
    }

    fn clock_bits(&self) -> u64 {
        self.inner.options.clock_bits
    }

    fn ticks_in(&self, time: Duration) -> u64 {
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    fn read_clocks(&self) -> Option<ClockReading> {
        let before = monotonic_ns();
        let ticks = self.inner.options.clock.ticks();
        let after = monotonic_ns();
        Some(ClockReading {
            ticks,
            monotonic_ns: u64::midpoint(before, after),
            max_deviation_ns: after - before,
        })
    }
}

impl Drop for ModelEngine {
    fn drop(&mut self) {
        lock(&self.inner.turns).stops = true;
        self.inner.changed.notify_all();
        for worker in self.workers.drain(..) {
            if worker.join().is_err() {
                eprintln!("native-fence: the model engine's thread panicked");
            }
        }
    }
}
