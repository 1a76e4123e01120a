//! Kernel taker: a model engine that takes kernels as a test says, and is lost when it says so.

use native_fence::gpu::{
    AddressSpace, Engine, EngineAddress, EngineCaps, EngineLost, GpuVa, KernelError, Kernels,
    MapError, ModelEngine, ModelOptions, SliceWork,
};
use native_fence::shared::{Providers, Region};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

type Takes = dyn Fn(&ModelEngine, &Kernels) -> Result<(), KernelError> + Send + Sync;

/// See the file's head.
pub(crate) struct KernelTaker {
    model: ModelEngine,
    takes: Box<Takes>,
    is_lost: Arc<AtomicBool>,
}

impl KernelTaker {
    /// One that takes kernels by this, which may give them to the model.
    pub(crate) fn new(
        takes: impl Fn(&ModelEngine, &Kernels) -> Result<(), KernelError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            model: ModelEngine::new(ModelOptions::default()),
            takes: Box::new(takes),
            is_lost: Arc::default(),
        }
    }

    /// Set when it is to be lost.
    pub(crate) fn is_lost(&self) -> &Arc<AtomicBool> {
        &self.is_lost
    }

    fn check(&self) -> Result<(), EngineLost> {
        if self.is_lost.load(Ordering::Acquire) {
            return Err(EngineLost);
        }
        Ok(())
    }
}

impl fmt::Debug for KernelTaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelTaker").finish_non_exhaustive()
    }
}

impl AddressSpace for KernelTaker {
    fn providers(&self) -> &Arc<Providers> {
        self.model.providers()
    }

    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError> {
        self.model.map(region)
    }
}

impl Engine for KernelTaker {
    fn caps(&self) -> EngineCaps {
        self.model.caps()
    }

    fn attach(&mut self, control: GpuVa, before: u64) -> Result<(), MapError> {
        self.model.attach(control, before)
    }

    fn prepare_doorbells(&self) -> Result<(), MapError> {
        self.model.prepare_doorbells()
    }

    fn prepare_verbose(&self) -> Result<(), MapError> {
        self.model.prepare_verbose()
    }

    fn set_kernels(&self, kernels: &Kernels) -> Result<(), KernelError> {
        (self.takes)(&self.model, kernels)
    }

    fn cuts_slices(&self) -> bool {
        self.model.cuts_slices()
    }

    fn start(&self, slice: u64, work: SliceWork) -> Result<(), EngineLost> {
        self.check()?;
        self.model.start(slice, work)
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        let ended = self.model.wait(slice, timeout);
        self.check()?;
        ended
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        self.check()?;
        self.model.has_ended(slice)
    }

    fn abandon(&self, slice: u64) {
        self.model.abandon(slice);
    }

    fn base_ticks(&self) -> u64 {
        self.model.base_ticks()
    }

    fn clock_bits(&self) -> u64 {
        self.model.clock_bits()
    }

    fn ticks_in(&self, time: Duration) -> u64 {
        self.model.ticks_in(time)
    }
}
