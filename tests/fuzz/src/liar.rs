//! Liar: an engine that executes nothing, and writes to its memory what a case says.
//!
//! Its slices end when the case says. The thread that the driver has for interrupts sleeps to the
//! end: reports are taken on the case's thread, by calls that take them.

use native_fence::gpu::{
    AddressSpace, CutOff, Engine, EngineAddress, EngineCaps, EngineLost, EngineMemory, GpuVa,
    LocalMemory, MapError, SliceWork,
};
use native_fence::shared::{Block, Providers, Region, RegionError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

#[derive(Debug, Default)]
struct State {
    mapped: Vec<(&'static str, Block)>,
    started: u64,
    ended: u64,
    stops: bool,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
    /// The case's thread.
    owner: ThreadId,
    providers: Arc<Providers>,
}

/// See the file's head.
#[derive(Clone, Debug)]
pub(crate) struct Liar(Arc<Inner>);

impl Liar {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            state: Mutex::default(),
            changed: Condvar::new(),
            owner: thread::current().id(),
            providers: Arc::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Regions of a name that the engine has had an address for, oldest first.
    pub(crate) fn named(&self, name: &str) -> Vec<Block> {
        let state = self.lock();
        let named = state.mapped.iter().filter(|mapped| mapped.0 == name);
        named.map(|mapped| mapped.1.clone()).collect()
    }

    /// The oldest slice in flight ends, if there is one.
    pub(crate) fn end_slice(&self) {
        let mut state = self.lock();
        state.ended = (state.ended + 1).min(state.started);
    }

    /// Slices that were submitted.
    pub(crate) fn submitted(&self) -> u64 {
        self.lock().started
    }
}

/// It has nothing of any region.
#[derive(Debug)]
struct Nothing;

impl EngineMemory for Nothing {
    fn cut_off(&self, _: CutOff) -> Result<bool, RegionError> {
        Ok(true)
    }
}

impl AddressSpace for Liar {
    fn providers(&self) -> &Arc<Providers> {
        &self.0.providers
    }

    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError> {
        let mut state = self.lock();
        state.mapped.push((region.name(), region.host()?));
        Ok(EngineAddress {
            va: GpuVa((state.mapped.len() as u64) << 32),
            memory: Box::new(Nothing),
        })
    }
}

impl Engine for Liar {
    fn caps(&self) -> EngineCaps {
        EngineCaps {
            addresses: (GpuVa(1 << 32), GpuVa(u64::MAX)),
            has_64_bit_atomics: true,
            local_storage: LocalMemory::SameAsSystem,
            scheduling_lanes: u32::MAX,
        }
    }

    fn attach(&mut self, _: GpuVa, _: u64) -> Result<(), MapError> {
        Ok(())
    }

    fn prepare_doorbells(&self) -> Result<(), MapError> {
        Ok(())
    }

    fn prepare_verbose(&self) -> Result<(), MapError> {
        Ok(())
    }

    fn cuts_slices(&self) -> bool {
        false
    }

    fn start(&self, slice: u64, _: SliceWork) -> Result<(), EngineLost> {
        self.lock().started = slice;
        Ok(())
    }

    fn wait(&self, slice: u64, _: Option<Duration>) -> Result<bool, EngineLost> {
        let mut state = self.lock();
        if thread::current().id() == self.0.owner {
            // Whoever drains its slices asked them to end.
            state.ended = state.ended.max(slice.min(state.started));
            return Ok(true);
        }
        while !state.stops {
            let woken = self.0.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        Ok(true)
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        Ok(self.lock().ended >= slice)
    }

    fn abandon(&self, _: u64) {
        self.lock().stops = true;
        self.0.changed.notify_all();
    }

    fn base_ticks(&self) -> u64 {
        0
    }

    fn clock_bits(&self) -> u64 {
        64
    }

    fn ticks_in(&self, time: Duration) -> u64 {
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }
}
