//! Made driver: the driver of a Vulkan device, over the engines that the device gives.

use crate::abi::Home;
use crate::gpu::{
    CommandEngine, Crowd, Engine, EngineCaps, EngineUnit, Injection, Node, NodePolicy,
    ProcessEngine, ProcessError, ShaderEngine, ShaderTuning, SpareEngines, engine_program,
};
use crate::kmd::{CommandDriver, Ddi, Driver, DriverOptions};
use crate::os::FenceMemory;
use crate::place::{Opened, Place};
use crate::shared::{NoLocalMemory, Providers};
use crate::sync::Arc;
use crate::vulkan::{
    self, AdapterInfo, InstanceOptions, MakeInstance, MemoryPlacement, SystemMemory,
};
use crate::{AdapterOptions, EngineKind, OpenError};
use std::sync::Weak;

/// See the file's head.
pub(crate) struct MadeDriver {
    pub(crate) ddi: Arc<dyn Ddi>,
    /// The same, where it is the one over nodes.
    pub(crate) driver: Weak<Driver>,
    /// Of one without native fences.
    pub(crate) bare_device: Option<Arc<vulkan::Device>>,
    /// Where fences are made if nothing else is asked.
    pub(crate) fence_memory: FenceMemory,
}

impl MadeDriver {
    pub(crate) fn at(place: Place<'_>, options: &AdapterOptions) -> Result<Self, OpenError> {
        place
            .info()
            .must_be_answered()
            .map_err(OpenError::BringUp)?;
        let missing: Vec<String> = vulkan::gaps(place.info())
            .into_iter()
            .map(|gap| gap.sentence.to_string())
            .collect();
        if !missing.is_empty() || options.engine == EngineKind::CommandBuffers {
            return Self::without_native_fences(place, &missing, options);
        }
        let info = place.info();
        let unit = place.unit(options)?;
        let engines = match unit {
            EngineUnit::Process => engines_in_processes(info, options)?,
            EngineUnit::Queue | EngineUnit::Device | EngineUnit::Instance => {
                engines_here(place, options)?
            }
        };
        let room = unit.room(info, options.nodes.get());
        let nodes = nodes(engines.all, options.policy, Crowd::new(room))?;
        let recovers = options.tdr.recovers();
        let spares = options.spares.for_unit(unit);
        let spares = recovers.then(|| SpareEngines::new(spares, engines.spare));
        let driver = DriverOptions {
            shared_device: unit == EngineUnit::Queue,
            ..options.driver.clone()
        };
        let driver = Driver::with_spares(nodes, driver, spares);
        let fence_memory = options.fence_memory.unwrap_or_else(|| {
            match driver.providers().host_stores_seen_in() {
                Home::CachedSystem => FenceMemory::System,
                Home::LocalHostVisible | Home::Local => FenceMemory::Local,
            }
        });
        Ok(Self {
            driver: Arc::downgrade(&driver),
            ddi: driver,
            bare_device: None,
            fence_memory,
        })
    }

    fn without_native_fences(
        place: Place<'_>,
        missing: &[String],
        options: &AdapterOptions,
    ) -> Result<Self, OpenError> {
        let info = place.info();
        let gap = format!("{} lacks what they need: {}", info.name, missing.join(" "));
        let driver = DriverOptions {
            without_native_fences: (!missing.is_empty()).then_some(gap),
            // By the description that was given, which may have less than the device.
            no_64_bit_atomics: options.driver.no_64_bit_atomics
                || !EngineCaps::of(info).has_64_bit_atomics,
            ..options.driver.clone()
        };
        let (device, ddi) = if vulkan::has_command_engines(info) {
            let (device, engines) = command_engines(place, options)?;
            let look = options.policy.wait_spin;
            let ddi: Arc<dyn Ddi> = CommandDriver::new(engines, driver, look);
            (device, ddi)
        } else {
            let ddi: Arc<dyn Ddi> = Driver::with_options(Vec::new(), driver);
            (place.bare_device()?, ddi)
        };
        Ok(Self {
            ddi,
            driver: Weak::new(),
            bare_device: Some(device),
            fence_memory: FenceMemory::default(),
        })
    }
}

/// A node for each engine.
pub(crate) fn nodes(
    engines: Vec<Box<dyn Engine>>,
    policy: NodePolicy,
    crowd: Crowd,
) -> Result<Vec<Node>, OpenError> {
    let crowd = Arc::new(crowd);
    let nodes = engines.into_iter().zip(0..).map(|(engine, ordinal)| {
        Node::new(ordinal, engine, policy, Arc::clone(&crowd))
            .map_err(|error| OpenError::Engine(error.to_string()))
    });
    nodes.collect()
}

/// Engines that execute command buffers, and the device of the first.
fn command_engines(
    place: Place<'_>,
    options: &AdapterOptions,
) -> Result<(Arc<vulkan::Device>, Vec<CommandEngine>), OpenError> {
    let opened = Opened::at(place, options)?;
    let providers = opened.providers;
    let engine = |queue| {
        CommandEngine::new(queue, &providers).map_err(|error| OpenError::Engine(error.to_string()))
    };
    let engines = opened.queues.into_iter().map(engine);
    Ok((opened.device, engines.collect::<Result<_, _>>()?))
}

/// Engines.
struct Engines {
    all: Vec<Box<dyn Engine>>,
    /// What makes the next one of their kind, or says as a sentence why not.
    spare: Box<MakeSpare>,
}

type MakeSpare = dyn Fn() -> Result<Box<dyn Engine>, String> + Send + Sync;

/// Engines of this process.
fn engines_here(place: Place<'_>, options: &AdapterOptions) -> Result<Engines, OpenError> {
    let Opened {
        queues, providers, ..
    } = Opened::for_shaders(place, options)?;
    let all = queues
        .into_iter()
        .zip(0..)
        .map(|(queue, ordinal)| -> Result<Box<dyn Engine>, OpenError> {
            let engine = ShaderEngine::new(queue, options.tuning);
            let engine = match &options.injection {
                Some(injection) => {
                    engine.and_then(|engine| engine.with_injection(injection, ordinal))
                }
                None => engine,
            };
            let engine = engine.map_err(|error| OpenError::Engine(format!("{error:#}")))?;
            Ok(Box::new(engine.with_providers(&providers)))
        })
        .collect::<Result<_, _>>()?;
    let (connect, info) = (place.instance().maker(), place.info().clone());
    let (validation, tuning) = (options.validation, options.tuning);
    let injection = options.injection.clone();
    let spare = move || {
        spare_engine(
            connect,
            &info,
            &providers,
            validation,
            tuning,
            injection.as_ref(),
        )
        .map_err(|error| format!("{error:#}"))
    };
    Ok(Engines {
        all,
        spare: Box::new(spare),
    })
}

/// Engines in processes of their own, to which files of memory pass and nothing else.
fn engines_in_processes(
    info: &AdapterInfo,
    options: &AdapterOptions,
) -> Result<Engines, OpenError> {
    let memory = options.memory;
    if memory.placement == MemoryPlacement::LocalForced {
        return Err(vulkan::MemoryError::NoLocalMemory(NoLocalMemory::OtherProcess).into());
    }
    if memory.system == SystemMemory::Exported {
        let why = vulkan::TrialError::NotOffered(NoLocalMemory::OtherProcess);
        let tried = vec![("vulkan-system", why)];
        return Err(vulkan::MemoryError::NoSystemMemory(tried).into());
    }
    if options.injection.is_some() {
        return Err(ProcessError::Injection.into());
    }
    let program = options.engine_program.clone();
    let program = program.map_or_else(engine_program, Ok);
    let program = program.map_err(ProcessError::from)?;
    let (info, validation, tuning) = (info.clone(), options.validation, options.tuning);
    let engine = move || -> Result<Box<dyn Engine>, ProcessError> {
        let engine = ProcessEngine::new(&program, &info, validation, tuning)?;
        Ok(Box::new(engine))
    };
    let all = (0..options.nodes.get()).map(|_| engine());
    let all = all.collect::<Result<_, _>>()?;
    let spare = move || engine().map_err(|error| error.to_string());
    Ok(Engines {
        all,
        spare: Box::new(spare),
    })
}

/// An engine of a device and an instance of its own, whatever the others are made of: it takes the place of
/// one that still runs, and shares nothing with that.
fn spare_engine(
    connect: MakeInstance,
    info: &AdapterInfo,
    providers: &Arc<Providers>,
    validation: bool,
    tuning: ShaderTuning,
    injection: Option<&Arc<Injection>>,
) -> anyhow::Result<Box<dyn Engine>> {
    let instance = connect(InstanceOptions { validation })?;
    let loss = injection.map(|injection| injection.take_spare());
    let queue = EngineUnit::open_own(&instance, info, loss.clone())?;
    let engine = ShaderEngine::new(queue, tuning)?.with_providers(providers);
    Ok(Box::new(match injection.zip(loss) {
        Some((injection, loss)) => engine.with_injection_to_come(injection, loss)?,
        None => engine,
    }))
}
