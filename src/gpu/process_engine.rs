//! Process engine: an engine that is a shader in a process of its own, which the system can kill.
//!
//! All that it shares with this process are files of memory, which the child maps for itself, and a socket
//! (`gpu::engine_protocol`). To cut it off from memory is to kill it: then nothing of it runs any more, not
//! even a shader that never ends, and its processor is won back.

use super::engine_link::EngineLink;
use super::engine_protocol::{Opening, Request};
use super::kernel_file::file_of;
use super::shader_clock::ShaderClock;
use super::{
    AddressSpace, CutOff, Engine, EngineAddress, EngineCaps, EngineLost, EngineMemory, GpuVa,
    KernelCapability, KernelError, Kernels, MapError, NoEngineProgram, ShaderTuning, SliceWork,
};
use crate::shared::{NoLocalMemory, Providers, Region, RegionError, SystemPages};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::vulkan::AdapterInfo;
use std::path::Path;
use std::time::Duration;

/// See the file's head.
#[derive(Debug)]
pub struct ProcessEngine {
    link: Arc<EngineLink>,
    /// What the child has.
    kernels: Mutex<Kernels>,
    caps: EngineCaps,
    /// Of the child's device.
    capabilities: Vec<KernelCapability>,
    clock: ShaderClock,
    providers: Arc<Providers>,
}

/// Why there is no such engine.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// There is none.
    #[error(transparent)]
    NoProgram(#[from] NoEngineProgram),
    /// Kernels and losses are put in the way of engines of this process alone.
    #[error("an injection is for engines of this process: choose another unit, or kill theirs")]
    Injection,
    /// The program could not be started.
    #[error("the program {program} could not be started for an engine: {source}")]
    Start {
        /// Which.
        program: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// It makes no engine.
    #[error("the program {program} makes no engine of {device}: {why}")]
    Open {
        /// Which.
        program: String,
        /// The device's name.
        device: String,
        /// The program's word.
        why: MapError,
    },
}

impl ProcessEngine {
    /// Starts `program`, and has it make an engine of the device that this describes.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn new(
        program: &Path,
        info: &AdapterInfo,
        validation: bool,
        tuning: ShaderTuning,
    ) -> Result<Self, ProcessError> {
        let name = || program.display().to_string();
        let link = EngineLink::start(program).map_err(|source| ProcessError::Start {
            program: name(),
            source,
        })?;
        let opening = Opening::new(info, validation, tuning);
        // What it can share is files of memory, and nothing that a device of this process made.
        let local = Err(NoLocalMemory::OtherProcess);
        let engine = Self {
            link,
            kernels: Mutex::default(),
            caps: EngineCaps::of(info),
            capabilities: KernelCapability::all_of(info),
            clock: ShaderClock::of(info),
            providers: Arc::new(Providers::new(Arc::new(SystemPages), local)),
        };
        let opened = engine.link.open(&Request::Open(opening));
        opened.map_err(|why| ProcessError::Open {
            program: name(),
            device: info.name.clone(),
            why,
        })?;
        Ok(engine)
    }
}

/// What the child has of a region.
#[derive(Debug)]
struct ChildMemory {
    link: Arc<EngineLink>,
    memory: u64,
}

impl EngineMemory for ChildMemory {
    fn cut_off(&self, _: CutOff) -> Result<bool, RegionError> {
        Ok(self.link.end())
    }
}

impl Drop for ChildMemory {
    fn drop(&mut self) {
        self.link.unmap(self.memory);
    }
}

impl AddressSpace for ProcessEngine {
    fn providers(&self) -> &Arc<Providers> {
        &self.providers
    }

    /// Where it is lost it has nothing, and refuses nothing: an engine that takes its place maps all anew.
    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError> {
        if region.device_memory().is_some() {
            return Err(MapError::OfDevice(region.name()));
        }
        let Ok(mapped) = self.link.map(region) else {
            return Ok(EngineAddress::gone());
        };
        let (memory, va) = mapped.map_err(MapError::Refused)?;
        let memory = Box::new(ChildMemory {
            link: Arc::clone(&self.link),
            memory,
        });
        if !self.caps.holds(GpuVa(va), region.len() as u64) {
            // The engine there has looked at it already: the process says what cannot be.
            self.link.end();
            return Ok(EngineAddress::gone());
        }
        let va = GpuVa(va);
        Ok(EngineAddress { va, memory })
    }
}

impl Engine for ProcessEngine {
    fn caps(&self) -> EngineCaps {
        self.caps
    }

    fn attach(&mut self, control: GpuVa, before: u64) -> Result<(), MapError> {
        self.link.attach(control.0, before)
    }

    fn prepare_doorbells(&self) -> Result<(), MapError> {
        self.link.prepare_doorbells()
    }

    fn prepare_verbose(&self) -> Result<(), MapError> {
        self.link.prepare_verbose()
    }

    fn set_kernels(&self, kernels: &Kernels) -> Result<(), KernelError> {
        // Here, where the error still has its name: a child says it in words.
        kernels.declare_only(&self.capabilities)?;
        // One that has them is not asked: who puts a spare into an engine's place waits for no other answer than
        // those that come at once.
        if lock(&self.kernels).are(kernels) {
            return Ok(());
        }
        let file = file_of(kernels).map_err(|error| KernelError::Refused(error.to_string()))?;
        let taken = self.link.set_kernels(&file);
        let taken = taken.map_err(|_| KernelError::Lost)?;
        taken.map_err(KernelError::Refused)?;
        lock(&self.kernels).clone_from(kernels);
        Ok(())
    }

    fn start(&self, slice: u64, work: SliceWork) -> Result<(), EngineLost> {
        self.link
            .start_slice(&Request::Start { slice, work }, slice)
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        self.link.wait(slice, timeout)
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        self.link.has_ended(slice)
    }

    fn abandon(&self, slice: u64) {
        self.link.abandon(slice);
    }

    fn base_ticks(&self) -> u64 {
        self.clock.base_ticks()
    }

    fn clock_bits(&self) -> u64 {
        self.clock.bits
    }

    fn ticks_in(&self, time: Duration) -> u64 {
        self.clock.ticks_in(time)
    }

    fn process_id(&self) -> Option<u32> {
        Some(self.link.process_id())
    }
}

impl Drop for ProcessEngine {
    /// Nobody waits for what it runs.
    fn drop(&mut self) {
        self.link.end();
    }
}
