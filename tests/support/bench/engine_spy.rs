//! Engine spy: an engine, whose memory and whose starts a test sees, and whose slices it can keep
//! back at either end.
//!
//! While its gate is closed, slices are in flight and do not end, as when the device is busy with
//! long ones. While its ends are kept, slices run and end as ever, but nobody is told: no report is
//! taken and no interrupt comes. So what happens meanwhile is a fact and not a matter of time.

use native_fence::abi::Home;
use native_fence::gpu::{
    AddressSpace, ClockReading, Engine, EngineAddress, EngineCaps, EngineLost, GpuVa, KernelError,
    Kernels, MapError, SliceWork,
};
use native_fence::shared::{Block, Providers, Region};
use std::collections::VecDeque;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// A region that the engine got an address for.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    pub(crate) name: &'static str,
    pub(crate) home: Home,
    pub(crate) bytes: usize,
    pub(crate) va: GpuVa,
    pub(crate) host: Block,
}

type StartHook = Box<dyn FnMut(u64) + Send>;

#[derive(Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "what a test has switched, one a name"
)]
struct State {
    mapped: Vec<Mapped>,
    on_start: Option<StartHook>,
    /// Slices that may still pass the gate; all where `None`.
    permits: Option<u64>,
    /// Submissions are stopped, and the threads inside one.
    stopped: bool,
    inside: u64,
    lost: bool,
    /// Slices in flight that have not passed, with the length of their run lists.
    at_gate: VecDeque<(u64, SliceWork)>,
    /// The thread that submitted, by slice.
    submitters: Vec<ThreadId>,
    /// What each slice was to do.
    works: Vec<SliceWork>,
    /// No slice is submitted any more.
    abandoned: bool,
    keeps_ends: bool,
}

/// See the file's head.
pub(crate) struct EngineSpy {
    /// Written when the node attaches it, and ended when the node lets go of it.
    engine: RwLock<Option<Box<dyn Engine>>>,
    providers: Arc<Providers>,
    state: Mutex<State>,
    changed: Condvar,
}

/// Opens the gate when it is dropped, also by a test that fails.
pub(crate) struct Closed(Arc<EngineSpy>);

/// What the node owns: the engine ends with it.
#[derive(Debug)]
struct Handle(Arc<EngineSpy>);

/// The engine while somebody uses it.
struct Running<'a>(RwLockReadGuard<'a, Option<Box<dyn Engine>>>);

const ENDED: &str = "the node has ended its engine";

impl Deref for Running<'_> {
    type Target = dyn Engine;

    fn deref(&self) -> &Self::Target {
        self.0.as_deref().expect(ENDED)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // By itself: it waits for what still runs.
        let engine = self.0.engine.write().unwrap().take();
        drop(engine);
    }
}

impl fmt::Debug for EngineSpy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineSpy").finish_non_exhaustive()
    }
}

impl EngineSpy {
    pub(super) fn over(engine: Box<dyn Engine>) -> Arc<Self> {
        Arc::new(Self {
            providers: Arc::clone(engine.providers()),
            engine: RwLock::new(Some(engine)),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    pub(super) fn boxed(self: &Arc<Self>) -> Box<dyn Engine> {
        Box::new(Handle(Arc::clone(self)))
    }

    fn engine(&self) -> Running<'_> {
        Running(self.engine.read().unwrap())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// All regions, oldest first.
    pub(crate) fn mapped(&self) -> Vec<Mapped> {
        self.lock().mapped.clone()
    }

    /// The regions of a name, oldest first.
    pub(crate) fn named(&self, name: &str) -> Vec<Mapped> {
        let mut found = self.lock().mapped.clone();
        found.retain(|region| region.name == name);
        found
    }

    /// Calls `hook` before each slice that is started from now on, under the node's lock.
    pub(crate) fn on_start(&self, hook: impl FnMut(u64) + Send + 'static) {
        self.lock().on_start = Some(Box::new(hook));
    }

    /// Slices that start from now on pass only by [`Closed::let_pass`].
    pub(crate) fn close(self: &Arc<Self>) -> Closed {
        self.change(|state| state.permits = Some(0));
        Closed(Arc::clone(self))
    }

    /// Threads that submit from now on stay inside the call until the guard is dropped.
    pub(crate) fn stop_submissions(self: &Arc<Self>) -> Closed {
        self.change(|state| state.stopped = true);
        Closed(Arc::clone(self))
    }

    /// Threads inside a stopped submission.
    pub(crate) fn inside(&self) -> u64 {
        self.lock().inside
    }

    /// Slices in flight that have not passed the gate.
    pub(crate) fn at_gate(&self) -> usize {
        self.lock().at_gate.len()
    }

    /// Slices that this thread has submitted.
    pub(crate) fn submitted_here(&self) -> usize {
        let here = thread::current().id();
        let state = self.lock();
        state.submitters.iter().filter(|by| **by == here).count()
    }

    /// The engine is lost: slices that have not passed never end, and none is started.
    pub(crate) fn lose(&self) {
        self.change(|state| state.lost = true);
    }

    /// Tells nobody from now on that a slice has ended, or tells everybody.
    pub(crate) fn keep_ends(&self, keeps: bool) {
        self.change(|state| state.keeps_ends = keeps);
    }

    /// What the slices submitted since the last call were to do, oldest first.
    pub(crate) fn take_works(&self) -> Vec<SliceWork> {
        std::mem::take(&mut self.lock().works)
    }

    /// The last slice that was submitted: they are numbered from 1.
    pub(crate) fn submitted(&self) -> u64 {
        self.lock().submitters.len() as u64
    }

    /// Whether a slice has really ended.
    pub(crate) fn has_really_ended(&self, slice: u64) -> bool {
        self.engine().has_ended(slice).unwrap()
    }

    /// Sleeps until a slice has really ended.
    pub(crate) fn wait_really(&self, slice: u64) {
        let limit = Some(super::LONG);
        assert_eq!(self.engine().wait(slice, limit), Ok(true));
    }

    /// Starts what may pass.
    fn pump(&self, state: &mut State) -> Result<(), EngineLost> {
        while state.permits != Some(0) && !state.lost {
            let Some((slice, work)) = state.at_gate.pop_front() else {
                break;
            };
            state.permits = state.permits.map(|permits| permits - 1);
            self.engine().start(slice, work)?;
        }
        Ok(())
    }

    /// Whether the end of the slice may be told once it has come: it was submitted and has passed,
    /// and ends are told.
    fn is_told(&self, state: &mut State, slice: u64) -> Result<bool, EngineLost> {
        self.pump(state)?;
        let submitted = state.submitters.len() as u64;
        if slice + state.at_gate.len() as u64 <= submitted {
            return Ok(!state.keeps_ends);
        }
        // As a driver that does not tell of a loss who waits for what was never submitted.
        if state.lost && slice <= submitted {
            return Err(EngineLost);
        }
        Ok(state.abandoned)
    }
}

impl Closed {
    /// Lets that many more slices pass. Those at the gate have passed on return.
    pub(crate) fn let_pass(&self, slices: u64) {
        self.0.change(|state| {
            state.permits = state.permits.map(|permits| permits + slices);
            // Who waits for the slice is told of a loss, if there is one.
            let _ = self.0.pump(state);
        });
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.permits = None;
            state.stopped = false;
        });
    }
}

impl AddressSpace for Handle {
    fn providers(&self) -> &Arc<Providers> {
        &self.0.providers
    }

    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError> {
        let mapping = self.0.engine().map(region)?;
        self.0.lock().mapped.push(Mapped {
            name: region.name(),
            home: region.home(),
            bytes: region.len(),
            va: mapping.va,
            host: region.host()?,
        });
        Ok(mapping)
    }
}

impl Engine for Handle {
    fn attach(&mut self, control: GpuVa, before: u64) -> Result<(), MapError> {
        let mut engine = self.0.engine.write().unwrap();
        engine.as_mut().expect(ENDED).attach(control, before)
    }

    fn start(&self, slice: u64, work: SliceWork) -> Result<(), EngineLost> {
        let spy = &self.0;
        let mut state = spy.lock();
        if state.lost {
            return Err(EngineLost);
        }
        if let Some(hook) = state.on_start.as_mut() {
            hook(slice);
        }
        state.inside += 1;
        while state.stopped {
            state = spy
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.inside -= 1;
        state.submitters.push(thread::current().id());
        state.works.push(work);
        state.at_gate.push_back((slice, work));
        let passed = spy.pump(&mut state);
        drop(state);
        spy.changed.notify_all();
        passed
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        let spy = &self.0;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let left = || deadline.map(|end| end.saturating_duration_since(Instant::now()));
        loop {
            let mut state = spy.lock();
            while !spy.is_told(&mut state, slice)? {
                let woken = match left() {
                    None => spy.changed.wait(state),
                    Some(Duration::ZERO) => return Ok(false),
                    Some(left) => match spy.changed.wait_timeout(state, left) {
                        Ok((state, _)) => Ok(state),
                        Err(error) => Err(PoisonError::new(error.into_inner().0)),
                    },
                };
                state = woken.unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            let ended = spy.engine().wait(slice, left())?;
            if !ended || !spy.lock().keeps_ends {
                return Ok(ended);
            }
        }
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        let told = self.0.is_told(&mut self.0.lock(), slice)?;
        Ok(told && self.0.has_really_ended(slice))
    }

    fn abandon(&self, slice: u64) {
        self.0.change(|state| state.abandoned = true);
        self.0.engine().abandon(slice);
    }

    fn prepare_doorbells(&self) -> Result<(), MapError> {
        self.0.engine().prepare_doorbells()
    }

    fn prepare_verbose(&self) -> Result<(), MapError> {
        self.0.engine().prepare_verbose()
    }

    fn set_kernels(&self, kernels: &Kernels) -> Result<(), KernelError> {
        self.0.engine().set_kernels(kernels)
    }

    fn caps(&self) -> EngineCaps {
        self.0.engine().caps()
    }

    fn base_ticks(&self) -> u64 {
        self.0.engine().base_ticks()
    }

    fn clock_bits(&self) -> u64 {
        self.0.engine().clock_bits()
    }

    fn ticks_in(&self, time: Duration) -> u64 {
        self.0.engine().ticks_in(time)
    }

    fn read_clocks(&self) -> Option<ClockReading> {
        self.0.engine().read_clocks()
    }
}
