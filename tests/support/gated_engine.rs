//! Gated engine: the shader engine of a real device behind a gate.
//!
//! While the gate is closed, slices are in flight and do not end, as when the device is busy with
//! long ones: the test decides when they go on, so what happens meanwhile is a fact and not a
//! matter of time. While submissions are stopped, a thread that submits stays inside the call.
#![allow(dead_code, reason = "each test file uses a part")]

use native_fence::gpu::{
    AddressSpace, Engine, EngineCaps, EngineLost, EngineMapping, GpuVa, MapError, ShaderEngine,
};
use native_fence::shared::Region;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct State {
    /// Slices that may still pass; all where `None`.
    permits: Option<u64>,
    /// Submissions are stopped, and the threads inside one.
    stopped: bool,
    inside: u64,
    lost: bool,
    /// Slices in flight that have not passed, with the length of their run lists.
    held: VecDeque<(u64, u64)>,
    /// The thread that submitted, by slice.
    submitters: Vec<ThreadId>,
}

/// What opens and closes.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

/// Opens the gate when it is dropped, also by a test that fails.
#[derive(Debug)]
pub(crate) struct Closed(Arc<Gate>);

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
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
    pub(crate) fn held(&self) -> usize {
        self.lock().held.len()
    }

    /// Slices that this thread has submitted.
    pub(crate) fn submitted_here(&self) -> usize {
        let here = thread::current().id();
        self.lock()
            .submitters
            .iter()
            .filter(|thread| **thread == here)
            .count()
    }

    /// The engine is lost: slices that have not passed never end.
    pub(crate) fn lose(&self) {
        self.change(|state| state.lost = true);
    }
}

impl Closed {
    /// Lets that many more slices pass.
    pub(crate) fn let_pass(&self, slices: u64) {
        self.0
            .change(|state| state.permits = state.permits.map(|permits| permits + slices));
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

/// The engine.
#[derive(Debug)]
pub(crate) struct GatedEngine {
    engine: ShaderEngine,
    gate: Arc<Gate>,
}

impl GatedEngine {
    pub(crate) fn new(engine: ShaderEngine) -> (Self, Arc<Gate>) {
        let gate = Arc::<Gate>::default();
        let gated = Self {
            engine,
            gate: Arc::clone(&gate),
        };
        (gated, gate)
    }

    /// Starts what may pass.
    fn pump(&self, state: &mut State) -> Result<(), EngineLost> {
        while state.permits != Some(0) && !state.lost {
            let Some((slice, queues)) = state.held.pop_front() else {
                break;
            };
            state.permits = state.permits.map(|permits| permits - 1);
            self.engine.start(slice, queues)?;
        }
        Ok(())
    }

    /// Whether the slice has passed, as it stands now.
    fn has_passed(&self, state: &mut State, slice: u64) -> Result<bool, EngineLost> {
        self.pump(state)?;
        let held = state.held.iter().any(|(held, _)| *held <= slice);
        if held && state.lost {
            return Err(EngineLost);
        }
        Ok(!held)
    }
}

impl AddressSpace for GatedEngine {
    fn map(&self, region: &Arc<Region>) -> Result<EngineMapping, MapError> {
        self.engine.map(region)
    }
}

impl Engine for GatedEngine {
    fn caps(&self) -> EngineCaps {
        self.engine.caps()
    }

    fn attach(&mut self, control: GpuVa) -> Result<(), MapError> {
        self.engine.attach(control)
    }

    fn start(&self, slice: u64, queues: u64) -> Result<(), EngineLost> {
        let mut state = self.gate.lock();
        state.inside += 1;
        self.gate.changed.notify_all();
        while state.stopped {
            state = self
                .gate
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.inside -= 1;
        state.submitters.push(thread::current().id());
        state.held.push_back((slice, queues));
        self.pump(&mut state)
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.gate.lock();
        while !self.has_passed(&mut state, slice)? {
            let left = deadline.map_or(Duration::from_secs(60), |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Ok(false);
            }
            state = self
                .gate
                .changed
                .wait_timeout(state, left)
                .map_or_else(|e| e.into_inner().0, |pair| pair.0);
        }
        drop(state);
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        self.engine.wait(slice, left)
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        let passed = self.has_passed(&mut self.gate.lock(), slice)?;
        Ok(passed && self.engine.has_ended(slice)?)
    }

    fn abandon(&self, slice: u64) {
        self.engine.abandon(slice);
    }

    fn base_ticks(&self) -> u64 {
        self.engine.base_ticks()
    }

    fn clock_bits(&self) -> u64 {
        self.engine.clock_bits()
    }

    fn ticks_in(&self, time: Duration) -> u64 {
        self.engine.ticks_in(time)
    }
}
