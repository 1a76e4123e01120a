//! Shader engine: an engine that is a compute shader on a Vulkan device.
//!
//! A slice is one submission of one dispatch of one workgroup, recorded once for each slice slot:
//! between a barrier against the slice before, which two submissions of a queue do not have by
//! themselves, and a barrier to the host, which a semaphore alone does not give
//! (`decisions.md` 3). A timeline counts the slices that ended.

use super::compiled_aside::CompiledAside;
use super::long_kernels::LongKernels;
use super::shader_clock::ShaderClock;
use super::shader_dispatches::{Dispatches, engine_push, warm};
use super::slice_kind::SliceKind;
use super::{
    AddressSpace, ClockReading, CutOff, Engine, EngineAddress, EngineCaps, EngineLost,
    EngineMemory, GpuVa, Injection, KernelCapability, KernelError, Kernels, MapError, ShaderTuning,
    SharedQueue, SliceWork,
};
use crate::abi::SLICE_SLOTS;
use crate::shared::{Block, Mapping, Providers, Region, RegionError};
use crate::sync::{Arc, Mutex, lock};
use crate::vulkan::{
    AdapterKind, CommandBuffer, CommandRecorder, ComputePipeline, Device, DeviceLoss,
    DeviceOptions, Driver, RegionImport, Reuse, SLICE_BEGIN, SLICE_END, SubmitError, Timeline,
    WaitOutcome,
};
use std::sync::OnceLock;
use std::time::Duration;

/// What slices are made of, but for those that make dispatches.
#[derive(Debug)]
struct Slices {
    /// By kind.
    pipelines: Vec<ComputePipeline>,
    /// By kind and slice slot.
    commands: Vec<CommandBuffer>,
    verbose: OnceLock<Verbose>,
}

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
    /// What slices are made of.
    plain: Slices,
    /// The same where they ring for other adapters: once a fence of its has a doorbell (XA-10).
    ringing: OnceLock<Slices>,
    /// Once it has had a kernel.
    dispatches: Mutex<Option<Dispatches>>,
    control: GpuVa,
    tuning: ShaderTuning,
    queue: SharedQueue,
    timeline: Timeline,
    lanes: u32,
    kernels: Option<LongKernels>,
    /// Of an engine that is kept warm for a node in whose way something is put.
    loss: Option<Arc<DeviceLoss>>,
    clock: ShaderClock,
    providers: Arc<Providers>,
    device: Arc<Device>,
}

impl Slices {
    /// Without commands, which are for a control block.
    fn new(
        device: &Arc<Device>,
        lanes: u32,
        tuning: ShaderTuning,
        doorbells: bool,
    ) -> anyhow::Result<Self> {
        let kinds = (0..SliceKind::COUNT).map(SliceKind::of);
        let pipelines = kinds.map(|kind| kind.pipeline(device, lanes, tuning, doorbells));
        Ok(Self {
            pipelines: pipelines.collect::<Result<_, _>>()?,
            commands: Vec::new(),
            verbose: OnceLock::new(),
        })
    }
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
        let plain = Slices::new(&device, lanes, tuning, false)
            .context("the driver does not take the engine's shader")?;
        let timeline = Timeline::new(&device, 0).context("no timeline for the engine")?;
        Ok(Self {
            plain,
            ringing: OnceLock::new(),
            dispatches: Mutex::default(),
            control: GpuVa(0),
            tuning,
            queue,
            timeline,
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
        &self.plain.commands
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
            let resolves = tuning.resolves_on(adapter);
            let tuned = (tuning.rounds, tuning.quantum, resolves, tuning.stalls);
            let engine = (self.lanes, tuned, self.rings());
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
        let make = |kind: SliceKind| kind.pipeline(&device, self.lanes, tuning, self.rings());
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

    /// The engine's shaders of slices that make dispatches.
    fn dispatching_engines(&self, doorbells: bool) -> Result<Vec<ComputePipeline>, KernelError> {
        let make =
            |kind: SliceKind| kind.pipeline(&self.device, self.lanes, self.tuning, doorbells);
        let made = SliceKind::DISPATCHES.into_iter().map(make);
        let made: anyhow::Result<Vec<_>> = made.collect();
        made.map_err(|error| KernelError::Refused(format!("{error:#}")))
    }

    /// The kind that does no more than a slice needs: lanes switch between queues where there are more than lanes.
    fn kind(&self, work: SliceWork) -> usize {
        SliceKind::number(work.queues > u64::from(self.lanes), work.transfers)
    }

    /// Whether its slices ring for other adapters from now on.
    fn rings(&self) -> bool {
        self.ringing.get().is_some()
    }

    /// The commands of slices of each kind, for the control block that it is attached to.
    fn record_kinds(&self, pipelines: &[ComputePipeline]) -> Result<Vec<CommandBuffer>, MapError> {
        let slots = pipelines.iter().map(|pipeline| self.record_slots(pipeline));
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        Ok(slots.into_iter().flatten().collect())
    }

    fn make_verbose(&self, doorbells: bool) -> Result<Verbose, MapError> {
        let pipeline = SliceKind::VERBOSE
            .pipeline(&self.device, self.lanes, self.tuning, doorbells)
            .map_err(|error| MapError::Refused(format!("{error:#}")))?;
        Ok(Verbose {
            commands: self.record_slots(&pipeline)?,
            _pipeline: pipeline,
        })
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
        is_cpu && self.mapping.region().device_memory().is_none()
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

    fn failure(&self) -> Option<String> {
        Some(self.device.failure()?.to_string())
    }

    fn is_surely_lost(&self) -> bool {
        self.device
            .failure()
            .is_some_and(|failure| failure.is_loss())
    }

    fn serve(&mut self, node_ordinal: u32) {
        if let (Some(kernels), Some(loss)) = (&mut self.kernels, &self.loss) {
            kernels.serve(node_ordinal, loss);
        }
    }

    fn attach(&mut self, control: GpuVa, _: u64) -> Result<(), MapError> {
        self.control = control;
        // All that was recorded is for another control block.
        self.plain.verbose = OnceLock::new();
        self.plain.commands = self.record_kinds(&self.plain.pipelines)?;
        if let Some(mut ringing) = self.ringing.take() {
            ringing.verbose = OnceLock::new();
            ringing.commands = self.record_kinds(&ringing.pipelines)?;
            self.ringing.get_or_init(|| ringing);
        }
        if let Some(dispatches) = &mut *lock(&self.dispatches) {
            dispatches
                .record(&self.device, control)
                .map_err(|error| MapError::Refused(error.to_string()))?;
        }
        Ok(())
    }

    fn set_kernels(&self, kernels: &Kernels) -> Result<(), KernelError> {
        kernels.declare_only(&KernelCapability::all_of(self.device.adapter()))?;
        // Made without the lock, which a slice's start takes. Callers take turns.
        let before = lock(&self.dispatches).clone();
        if before.is_none() && kernels.is_empty() {
            return Ok(());
        }
        let engines = match &before {
            Some(before) => before.engines(),
            None => self.dispatching_engines(self.rings())?,
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
        let flavours = [(Some(&self.plain), false), (self.ringing.get(), true)];
        for (slices, doorbells) in flavours {
            if let Some(slices) = slices
                && slices.verbose.get().is_none()
            {
                let verbose = self.make_verbose(doorbells)?;
                // Who came second has made one for nothing.
                slices.verbose.get_or_init(|| verbose);
            }
        }
        Ok(())
    }

    fn prepare_doorbells(&self) -> Result<(), MapError> {
        if self.rings() {
            return Ok(());
        }
        let refused = |error: &dyn std::fmt::Display| MapError::Refused(format!("{error:#}"));
        let ringing = Slices::new(&self.device, self.lanes, self.tuning, true);
        let mut ringing = ringing.map_err(|error| refused(&error))?;
        ringing.commands = self.record_kinds(&ringing.pipelines)?;
        if self.plain.verbose.get().is_some() {
            ringing.verbose = self.make_verbose(true)?.into();
        }
        warm(&self.queue, ringing.pipelines.iter()).map_err(|error| refused(&error))?;
        // Without the lock, which a slice's start takes. Callers take turns.
        let before = lock(&self.dispatches).clone();
        if let Some(before) = before {
            let engines = self.dispatching_engines(true);
            let engines = engines.map_err(|error| refused(&error))?;
            let made = before.with_engines(&self.device, engines, self.control);
            let made = made.map_err(|error| refused(&error))?;
            made.warm(&self.queue, Some(&before))
                .map_err(|error| refused(&error))?;
            *lock(&self.dispatches) = Some(made);
        }
        self.ringing.get_or_init(|| ringing);
        Ok(())
    }

    fn start(&self, slice: u64, work: SliceWork) -> Result<(), EngineLost> {
        let slot = (slice % SLICE_SLOTS) as usize;
        let mut dispatches = lock(&self.dispatches);
        if let (Some(dispatches), true) = (&mut *dispatches, work.dispatches) {
            // Another slice tries again.
            let _no_memory = dispatches.choose_kernels(&self.device, self.control, slice);
        }
        let ringing = self.ringing.get().filter(|_| work.doorbells);
        let slices = ringing.unwrap_or(&self.plain);
        let commands = match (&*dispatches, slices.verbose.get()) {
            (Some(dispatches), _) if work.dispatches => dispatches.commands_of(work, slot),
            (_, Some(verbose)) if work.verbose => &verbose.commands[slot],
            _ => &slices.commands[self.kind(work) * SLICE_SLOTS as usize + slot],
        };
        let mut queue = lock(&self.queue);
        if let Some(kernels) = &self.kernels {
            kernels.submit(&mut queue);
        }
        // A driver that is short of memory for a moment has not lost the device.
        let submitted = queue.submit_one_patiently(Some(commands), (&self.timeline, slice));
        submitted.map_err(|_| EngineLost)
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        let Some(timeout) = timeout else {
            let ended = self.timeline.wait_for_submission(slice);
            return ended.map(|()| true).map_err(|_| EngineLost);
        };
        match self.timeline.wait(slice, Some(timeout)) {
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
        let is_refused = |error| {
            matches!(
                error,
                SubmitError::DeviceLost | SubmitError::OutOfMemory | SubmitError::Unknown { .. }
            )
        };
        if by_queue.is_err_and(is_refused) {
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

    fn read_clocks(&self) -> Option<ClockReading> {
        ShaderClock::read(&self.device)
    }
}
