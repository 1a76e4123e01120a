//! Shader engine: an engine that is a compute shader on a Vulkan device.
//!
//! A slice is one submission of one dispatch of one workgroup, recorded once for each slice slot:
//! between a barrier against the slice before, which two submissions of a queue do not have by
//! themselves, and a barrier to the host, which a semaphore alone does not give
//! (`decisions.md` 3). A timeline counts the slices that ended.

use super::compiled_aside::CompiledAside;
use super::long_kernels::LongKernels;
use super::shader_clock::ShaderClock;
use super::shader_dispatches::{Dispatches, engine_push};
use super::slice_kind::SliceKind;
use super::{
    AddressSpace, CutOff, Engine, EngineAddress, EngineCaps, EngineLost, EngineMemory, GpuVa,
    Injection, KernelError, Kernels, MapError, ShaderTuning, SharedQueue, SliceWork,
};
use crate::abi::SLICE_SLOTS;
use crate::shared::{Block, Mapping, Providers, Region, RegionError};
use crate::sync::{Arc, Mutex, lock, thread};
use crate::vulkan::{
    AdapterKind, CommandBuffer, CommandRecorder, ComputePipeline, Device, DeviceLoss,
    DeviceOptions, Driver, RegionImport, Reuse, SLICE_BEGIN, SLICE_END, SubmitError, Timeline,
    WaitOutcome,
};
use std::sync::OnceLock;
use std::time::Duration;

/// Times that a slice is submitted to a driver that has no memory for it.
const SUBMISSION_TRIES: u32 = 1000;

/// What verbose slices are made of.
#[derive(Debug)]
struct Verbose {
    /// By slice slot.
    commands: Vec<CommandBuffer>,
    _pipeline: ComputePipeline,
}

/// The engine.
#[derive(Debug)]
pub struct ShaderEngine {
    /// By kind and slice slot.
    commands: Vec<CommandBuffer>,
    /// By slice slot.
    verbose: OnceLock<Verbose>,
    /// Once it has had a kernel.
    dispatches: Mutex<Option<Dispatches>>,
    control: GpuVa,
    tuning: ShaderTuning,
    queue: SharedQueue,
    timeline: Timeline,
    /// By kind.
    pipelines: Vec<ComputePipeline>,
    lanes: u32,
    kernels: Option<LongKernels>,
    /// Of an engine that is kept warm for a node in whose way something is put.
    loss: Option<Arc<DeviceLoss>>,
    clock: ShaderClock,
    providers: Arc<Providers>,
    device: Arc<Device>,
}

impl ShaderEngine {
    /// Makes an engine of a queue of a device.
    ///
    /// # Errors
    /// When the device cannot run the tuning, or the driver does not take the shader.
    pub fn new(queue: SharedQueue, tuning: ShaderTuning) -> anyhow::Result<Self> {
        use anyhow::Context;
        let device = Arc::clone(lock(&queue).device());
        let lanes = tuning.lanes_of(device.adapter())?;
        let pipeline = |kind: usize| {
            SliceKind::of(kind)
                .pipeline(&device, lanes, tuning)
                .context("the driver does not take the engine's shader")
        };
        let pipelines = (0..SliceKind::COUNT)
            .map(pipeline)
            .collect::<Result<_, _>>()?;
        let timeline = Timeline::new(&device, 0).context("no timeline for the engine")?;
        Ok(Self {
            commands: Vec::new(),
            verbose: OnceLock::new(),
            dispatches: Mutex::default(),
            control: GpuVa(0),
            tuning,
            queue,
            timeline,
            pipelines,
            lanes,
            kernels: None,
            loss: None,
            clock: ShaderClock::of(device.adapter()),
            providers: Arc::default(),
            device,
        })
    }

    /// The same, which shares memory of these providers, and not only pages of the host: who opens
    /// it has tried them on its device.
    #[must_use]
    pub fn with_providers(self, providers: &Arc<Providers>) -> Self {
        Self {
            providers: Arc::clone(providers),
            ..self
        }
    }

    /// The same, of a node in whose way an injection puts something.
    ///
    /// # Errors
    /// When the driver does not take the kernel.
    pub fn with_injection(
        self,
        injection: &Arc<Injection>,
        node_ordinal: u32,
    ) -> anyhow::Result<Self> {
        let kernels = LongKernels::new(&self.device, injection, Some(node_ordinal))?;
        Ok(Self {
            kernels: Some(kernels),
            ..self
        })
    }

    /// The same, of an engine that is kept warm: the injection is in the way of the node whose engine's
    /// place it takes. `loss` is what its device was opened with.
    ///
    /// # Errors
    /// When the driver does not take the kernel.
    pub fn with_injection_to_come(
        self,
        injection: &Arc<Injection>,
        loss: Arc<DeviceLoss>,
    ) -> anyhow::Result<Self> {
        let kernels = LongKernels::new(&self.device, injection, None)?;
        Ok(Self {
            kernels: Some(kernels),
            loss: Some(loss),
            ..self
        })
    }

    /// What was recorded for each slice slot; a test decodes it.
    #[must_use]
    pub fn commands(&self) -> &[CommandBuffer] {
        &self.commands
    }

    /// The same of slices that make dispatches; none before the engine has had a kernel.
    #[must_use]
    pub fn dispatching(&self) -> Vec<CommandBuffer> {
        let dispatches = lock(&self.dispatches);
        let commands = dispatches.as_ref().map(Dispatches::commands);
        commands.unwrap_or_default().to_vec()
    }

    /// Has the driver compile what `before` has not for a device of its own, behind whose queue nobody stands. lavapipe
    /// compiles a shader when its queue first runs it, for seconds, and keeps what it compiled on the disk, where this
    /// engine's device finds it.
    fn compile_aside(
        &self,
        kernels: &Kernels,
        before: Option<&Dispatches>,
    ) -> Result<(), KernelError> {
        fn refused(error: &dyn std::fmt::Display) -> KernelError {
            KernelError::Refused(error.to_string())
        }
        let (adapter, tuning) = (self.device.adapter(), self.tuning);
        let driver = (adapter.uuid, adapter.driver_uuid);
        let kernels = before.map_or_else(|| kernels.clone(), |before| before.unknown(kernels));
        let codes = kernels.iter().map(|(_, code)| code.spirv());
        let mut shaders = codes.fold(CompiledAside::default(), |shaders, code| {
            shaders.with(&(driver, code))
        });
        if before.is_none() {
            let engine = (self.lanes, tuning.rounds, tuning.quantum, tuning.stalls);
            shaders = shaders.with(&(driver, engine));
        }
        if shaders.are_known() {
            return Ok(());
        }
        let options = DeviceOptions {
            queues: 1,
            loss: None,
        };
        let device = Device::open(self.device.instance(), adapter, options);
        let device = device.map_err(|error| refused(&error))?;
        let make = |kind: SliceKind| kind.pipeline(&device, self.lanes, tuning);
        let kinds = SliceKind::DISPATCHES
            .into_iter()
            .filter(|_| before.is_none());
        let engines: anyhow::Result<Vec<_>> = kinds.map(make).collect();
        let engines = engines.map_err(|error| refused(&format_args!("{error:#}")))?;
        let aside = Dispatches::new(&device, engines, GpuVa(0), &kernels, None)?;
        let queue = Arc::new(Mutex::new(device.queue(0).ok_or(KernelError::Lost)?));
        aside.warm(&queue, None)?;
        // What is not compiled yet is when the device has gone.
        drop((aside, queue, device));
        shaders.note();
        Ok(())
    }

    /// The kind that does no more than a slice needs: lanes switch between queues where there are more than lanes.
    fn kind(&self, work: SliceWork) -> usize {
        SliceKind::number(work.queues > u64::from(self.lanes), work.transfers)
    }

    /// The commands of slices of a pipeline, by slice slot.
    fn record_slots(&self, pipeline: &ComputePipeline) -> Result<Vec<CommandBuffer>, MapError> {
        (0..SLICE_SLOTS)
            .map(|slot| self.record(pipeline, slot))
            .collect()
    }

    fn record(&self, pipeline: &ComputePipeline, slot: u64) -> Result<CommandBuffer, MapError> {
        let no_memory = |error: crate::vulkan::OutOfMemory| MapError::Refused(error.to_string());
        CommandRecorder::begin(&self.device, Reuse::Simultaneous)
            .map_err(no_memory)?
            .barrier(SLICE_BEGIN)
            .bind(pipeline)
            .push(&engine_push(self.control, slot, [0; 7]))
            .dispatch(1, 1, 1)
            .barrier(SLICE_END)
            .end()
            .map_err(no_memory)
    }
}

/// A region that the device imported.
#[derive(Debug)]
struct Imported {
    import: RegionImport,
    /// Nobody's but the engine's, where it is pages of the host.
    mapping: Arc<Mapping>,
}

impl EngineMemory for Imported {
    /// Where the device is the CPU, by the CPU's page tables. Another device has pinned the pages, and goes
    /// on in them.
    fn can_be_cut_off(&self) -> bool {
        let is_cpu = self.import.device().adapter().kind == AdapterKind::Cpu;
        is_cpu && self.mapping.region().exported().is_none()
    }

    fn cut_off(&self, cut: CutOff) -> Result<bool, RegionError> {
        let is_cut_off = self.can_be_cut_off() && self.mapping.cut_off(cut.is_at_once())?;
        if is_cut_off {
            cut.take_packets(&Block::whole(&self.mapping));
        }
        Ok(is_cut_off)
    }
}

impl AddressSpace for ShaderEngine {
    fn providers(&self) -> &Arc<Providers> {
        &self.providers
    }

    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError> {
        let mapping = region.map()?;
        let import = RegionImport::new(&self.device, &mapping)
            .map_err(|error| MapError::Refused(error.to_string()))?;
        let va = GpuVa(import.gpu_va());
        if !self.caps().holds(va, region.len() as u64) {
            return Err(MapError::Address(va.0));
        }
        let memory = Box::new(Imported { import, mapping });
        Ok(EngineAddress { va, memory })
    }
}

impl Engine for ShaderEngine {
    fn caps(&self) -> EngineCaps {
        EngineCaps::of(self.device.adapter())
    }

    fn serve(&mut self, node_ordinal: u32) {
        if let (Some(kernels), Some(loss)) = (&mut self.kernels, &self.loss) {
            kernels.serve(node_ordinal, loss);
        }
    }

    fn attach(&mut self, control: GpuVa, _: u64) -> Result<(), MapError> {
        self.control = control;
        // Recorded for another control block.
        self.verbose = OnceLock::new();
        let commands = self
            .pipelines
            .iter()
            .map(|pipeline| self.record_slots(pipeline));
        let commands: Result<Vec<_>, _> = commands.collect();
        self.commands = commands?.into_iter().flatten().collect();
        if let Some(dispatches) = &mut *lock(&self.dispatches) {
            dispatches
                .record(&self.device, control)
                .map_err(|error| MapError::Refused(error.to_string()))?;
        }
        Ok(())
    }

    fn set_kernels(&self, kernels: &Kernels) -> Result<(), KernelError> {
        // Made without the lock, which a slice's start takes. Callers take turns.
        let before = lock(&self.dispatches).clone();
        if before.is_none() && kernels.is_empty() {
            return Ok(());
        }
        let make = |kind: SliceKind| kind.pipeline(&self.device, self.lanes, self.tuning);
        let engines = if let Some(before) = &before {
            before.engines()
        } else {
            let made = SliceKind::DISPATCHES.into_iter().map(make);
            let made: anyhow::Result<Vec<_>> = made.collect();
            made.map_err(|error| KernelError::Refused(format!("{error:#}")))?
        };
        let before = before.as_ref();
        if self.device.adapter().driver == Driver::Lavapipe {
            self.compile_aside(kernels, before)?;
        }
        let made = Dispatches::new(&self.device, engines, self.control, kernels, before)?;
        made.warm(&self.queue, before)?;
        *lock(&self.dispatches) = Some(made);
        Ok(())
    }

    fn prepare_verbose(&self) -> Result<(), MapError> {
        if self.verbose.get().is_none() {
            let pipeline = SliceKind::VERBOSE
                .pipeline(&self.device, self.lanes, self.tuning)
                .map_err(|error| MapError::Refused(format!("{error:#}")))?;
            let verbose = Verbose {
                commands: self.record_slots(&pipeline)?,
                _pipeline: pipeline,
            };
            // Who came second has made one for nothing.
            self.verbose.get_or_init(|| verbose);
        }
        Ok(())
    }

    fn start(&self, slice: u64, work: SliceWork) -> Result<(), EngineLost> {
        let slot = (slice % SLICE_SLOTS) as usize;
        let mut dispatches = lock(&self.dispatches);
        if let (Some(dispatches), true) = (&mut *dispatches, work.dispatches) {
            // Another slice tries again.
            let _no_memory = dispatches.choose_kernels(&self.device, self.control, slice);
        }
        let commands = match (&*dispatches, self.verbose.get()) {
            (Some(dispatches), _) if work.dispatches => dispatches.commands_of(work, slot),
            (_, Some(verbose)) if work.verbose => &verbose.commands[slot],
            _ => &self.commands[self.kind(work) * SLICE_SLOTS as usize + slot],
        };
        let mut queue = lock(&self.queue);
        if let Some(kernels) = &self.kernels {
            kernels.submit(&mut queue);
        }
        // A driver that is short of memory for a moment has not lost the device.
        for _ in 0..SUBMISSION_TRIES {
            match queue.submit_one(Some(commands), None, (&self.timeline, slice)) {
                Ok(()) => return Ok(()),
                Err(SubmitError::OutOfMemory) => thread::yield_now(),
                Err(_) => break,
            }
        }
        Err(EngineLost)
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        match self.timeline.wait(slice, timeout) {
            Ok(WaitOutcome::Reached) => Ok(true),
            Ok(WaitOutcome::TimedOut) => Ok(false),
            Err(_) => Err(EngineLost),
        }
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        match self.timeline.value() {
            Ok(value) => Ok(value >= slice),
            Err(_) => Err(EngineLost),
        }
    }

    fn abandon(&self, slice: u64) {
        // By the queue where it can be: the validation layers hold up waits that a host's signal
        // ends.
        let by_queue = lock(&self.queue).submit_one(None, None, (&self.timeline, slice));
        // One that is not forward was started, and is its device's to end.
        if let Err(SubmitError::DeviceLost | SubmitError::OutOfMemory) = by_queue {
            self.timeline.end_waits(slice);
        }
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
}
