//! Adapter: a Vulkan device whose engines execute hardware queues.
//!
//! The one place that puts the rooms together: a device of `vulkan`, an engine and a node of `gpu`,
//! the driver of `kmd`, the operating system of `os`, and what the user side starts from.

use crate::gpu::{
    Crowd, Engine, EngineUnit, EngineUnitError, Injection, NodeCounters, NodePolicy, ProcessError,
    ShaderTuning, SparePolicy,
};
use crate::kmd::{Ddi, Driver, DriverOptions};
use crate::made_driver::{MadeDriver, nodes};
use crate::os::{
    self, Features, FenceMemory, RecordError, Recording, RecordingOptions, Recordings, TdrPolicy,
    Tracing,
};
use crate::place::Place;
use crate::shared::Providers;
use crate::sync::Arc;
use crate::umd::Device;
use crate::vulkan::{self, AdapterInfo, Instance, InstanceOptions, MemoryOptions};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Weak;

/// Why no adapter came up.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No loader, no driver, or the device could not be opened.
    #[error(transparent)]
    BringUp(#[from] vulkan::BringUpError),
    /// No device of that name.
    #[error(transparent)]
    Choice(#[from] vulkan::ChoiceError),
    /// What the driver says of itself cannot be.
    #[error(transparent)]
    Start(#[from] os::StartError),
    /// No memory that the engines can share, or not what was asked for.
    #[error(transparent)]
    Memory(#[from] vulkan::MemoryError),
    /// The engine's queue could not be had.
    #[error(transparent)]
    Unit(#[from] EngineUnitError),
    /// An engine in a process of its own could not be made.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The engine could not be made.
    #[error("the engine could not be made: {0}")]
    Engine(String),
    /// Engines on a program's device are queues of it.
    #[error(
        "engines on a program's device are queues of it, and no {} each: leave the unit open, or open the \
         adapter by its name", .0.name()
    )]
    UnitOfProgram(EngineUnit),
}

/// What executes the packets of an adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// A compute shader, which compares fence values: native fences, and monitored ones beside them.
    #[default]
    Shader,
    /// Command buffers of the device's queue, as before WDDM 3.2: monitored fences and kernel-mode
    /// queues alone. What a device is opened with that lacks something which native fences need.
    CommandBuffers,
}

/// How an adapter is opened.
#[derive(Clone, Debug)]
pub struct AdapterOptions {
    /// Part of the name of the wanted device; the best one where `None`.
    pub device: Option<String>,
    /// Khronos validation layers, core and synchronization.
    pub validation: bool,
    /// What executes packets.
    pub engine: EngineKind,
    /// Engines, each a node of the adapter.
    pub nodes: NonZeroU32,
    /// What an engine is made of; the default for the device where `None`.
    pub unit: Option<EngineUnit>,
    /// The program `nfence`, which engines in processes of their own are: where `None` the one that runs,
    /// if it is that, else the one beside it or in PATH.
    pub engine_program: Option<PathBuf>,
    /// Which memory is used for what.
    pub memory: MemoryOptions,
    /// Where [`Device::create_fence`] makes fences. Where `None`, in system memory; but in local memory where running
    /// engines see only there what the host stores ([`Providers::host_stores_seen_in`]), which is tried on a device that
    /// has a heap of its own.
    pub fence_memory: Option<FenceMemory>,
    /// How the engines' slices end.
    pub policy: NodePolicy,
    /// How the engines' shader is specialised.
    pub tuning: ShaderTuning,
    /// Features that the OS enables.
    pub features: Features,
    /// Caps that the driver makes use of.
    pub driver: DriverOptions,
    /// How engines are watched and recovered.
    pub tdr: TdrPolicy,
    /// When engines are made that take the place of those that are given up.
    pub spares: SparePolicy,
    /// What is put in the engines' way; none but where recovery is tried.
    pub injection: Option<Arc<Injection>>,
}

impl Default for AdapterOptions {
    fn default() -> Self {
        Self {
            device: None,
            validation: false,
            engine: EngineKind::default(),
            nodes: NonZeroU32::MIN,
            unit: None,
            engine_program: None,
            memory: MemoryOptions::default(),
            fence_memory: None,
            policy: NodePolicy::default(),
            tuning: ShaderTuning::default(),
            features: Features::default(),
            driver: DriverOptions::default(),
            tdr: TdrPolicy::default(),
            spares: SparePolicy::default(),
            injection: None,
        }
    }
}

/// An adapter that came up.
#[derive(Clone, Debug)]
pub struct Adapter {
    os: Arc<os::Adapter>,
    info: Option<AdapterInfo>,
    /// The device of an adapter without native fences.
    bare_device: Option<Arc<vulkan::Device>>,
    fence_memory: FenceMemory,
    /// None of an adapter over another driver.
    driver: Weak<Driver>,
}

impl Adapter {
    /// Opens the best device there is: a GPU before lavapipe before `SwiftShader`.
    ///
    /// # Errors
    /// [`OpenError`], each with what to do.
    pub fn open_best() -> Result<Self, OpenError> {
        Self::open(&AdapterOptions::default())
    }

    /// Opens a device.
    ///
    /// # Errors
    /// [`OpenError`], each with what to do.
    pub fn open(options: &AdapterOptions) -> Result<Self, OpenError> {
        let instance = Instance::new(InstanceOptions {
            validation: options.validation,
        })?;
        let adapters = instance.adapters();
        let info = vulkan::choose(&adapters, options.device.as_deref())?;
        Self::open_on(&instance, info, options)
    }

    /// Opens a device of an instance, with an engine for each node. One that lacks something which
    /// native fences need is opened too (FQ-04), with engines that execute command buffers, or where
    /// it lacks even what these need without any node: [`os::AdapterState::native_fence_caps`] says what
    /// it lacks, as everything that is refused for it does.
    ///
    /// # Errors
    /// [`OpenError`], each with what to do.
    pub fn open_on(
        instance: &Arc<Instance>,
        info: &AdapterInfo,
        options: &AdapterOptions,
    ) -> Result<Self, OpenError> {
        Self::open_at(Place::Anew(instance, info), options)
    }

    /// Opens an adapter on a device that the program made for itself ([`vulkan::Device::import`]): its engines are
    /// the queues that were handed over, by turns where they are fewer, and everything that they execute runs on
    /// that device.
    ///
    /// An engine that is given up, or lost with the device, has its place taken by one on a device of its own, where
    /// recovery is on ([`TdrPolicy`]): the program's device is not made anew. Where local memory is that device's alone
    /// ([`LocalProvider::OneDevice`](crate::LocalProvider::OneDevice)) no other can take over, and the adapter stops.
    ///
    /// # Errors
    /// [`OpenError`], each with what to do. No queue is left where none was handed over, or another adapter has
    /// them.
    pub fn open_on_device(
        device: &Arc<vulkan::Device>,
        options: &AdapterOptions,
    ) -> Result<Self, OpenError> {
        vulkan::choose(
            std::slice::from_ref(device.adapter()),
            options.device.as_deref(),
        )?;
        Self::open_at(Place::On(device), options)
    }

    fn open_at(place: Place<'_>, options: &AdapterOptions) -> Result<Self, OpenError> {
        let made = MadeDriver::at(place, options)?;
        let adapter = Self::with_driver_watched(made.ddi, options.features, options.tdr)?;
        Ok(Self {
            info: Some(place.info().clone()),
            bare_device: made.bare_device,
            fence_memory: made.fence_memory,
            driver: made.driver,
            ..adapter
        })
    }

    /// The driver alone that [`Adapter::open_on`] would put under the OS, and where it would have fences made: for
    /// who puts something of his own between the two, as a conformance suite does.
    ///
    /// # Errors
    /// As [`Adapter::open_on`].
    pub fn driver_of(
        instance: &Arc<Instance>,
        info: &AdapterInfo,
        options: &AdapterOptions,
    ) -> Result<(Arc<dyn Ddi>, FenceMemory), OpenError> {
        let made = MadeDriver::at(Place::Anew(instance, info), options)?;
        Ok((made.ddi, made.fence_memory))
    }

    /// An adapter over any engines, models among them, each a node.
    ///
    /// # Errors
    /// When an engine's blocks cannot be had.
    pub fn with_engines(
        engines: Vec<Box<dyn Engine>>,
        policy: NodePolicy,
    ) -> Result<Self, OpenError> {
        let nodes = nodes(engines, policy, Crowd::on_cores())?;
        Self::with_driver(Driver::new(nodes))
    }

    /// An adapter over any driver: how a conformance suite puts another implementation, or a
    /// spying one, under the OS.
    ///
    /// # Errors
    /// What the driver says of itself cannot be.
    pub fn with_driver(driver: Arc<dyn Ddi>) -> Result<Self, OpenError> {
        Self::with_driver_and(driver, Features::default())
    }

    /// The same with features of the OS that are switched.
    ///
    /// # Errors
    /// What the driver says of itself cannot be, with these features.
    pub fn with_driver_and(driver: Arc<dyn Ddi>, features: Features) -> Result<Self, OpenError> {
        Self::with_driver_watched(driver, features, TdrPolicy::default())
    }

    /// The same, whose engines are watched and recovered as `tdr` says, if the driver can.
    ///
    /// # Errors
    /// As [`Adapter::with_driver_and`].
    pub fn with_driver_watched(
        driver: Arc<dyn Ddi>,
        features: Features,
        tdr: TdrPolicy,
    ) -> Result<Self, OpenError> {
        Ok(Self {
            os: os::Adapter::start_watched(driver, features, tdr)?,
            info: None,
            bare_device: None,
            fence_memory: FenceMemory::default(),
            driver: Weak::new(),
        })
    }

    /// The Vulkan device, if there is one under it.
    #[must_use]
    pub fn info(&self) -> Option<&AdapterInfo> {
        self.info.as_ref()
    }

    /// The Vulkan device of an adapter without native fences, its first engine's if it has one; engines
    /// of the other kind have theirs for themselves.
    #[must_use]
    pub fn bare_device(&self) -> Option<&Arc<vulkan::Device>> {
        self.bare_device.as_ref()
    }

    /// Removes the adapter, as when its device is pulled out: its devices are lost, and so is what they could signal, on
    /// other adapters too (XA-11). Everything that does not need it goes on. Another one of the same device can be opened.
    pub fn remove(&self) {
        self.os.remove();
    }

    /// Whether an engine stands ready to take the place of one that is given up ([`SparePolicy::Kept`]).
    #[must_use]
    pub fn has_spare(&self) -> bool {
        let driver = self.driver.upgrade();
        driver.is_some_and(|driver| driver.has_spare())
    }

    /// Engines that were given up and have not ended: in the background, or never.
    #[must_use]
    pub fn engines_given_up(&self) -> u64 {
        let driver = self.driver.upgrade();
        driver.map_or(0, |driver| driver.given_up())
    }

    /// The OS's adapter: caps, counters, the driver.
    #[must_use]
    pub fn os(&self) -> &Arc<os::Adapter> {
        &self.os
    }

    /// Who provides the memory that engines and host share, and what is not offered.
    #[must_use]
    pub fn providers(&self) -> &Providers {
        self.os.ddi().providers()
    }

    /// Where [`Device::create_fence`] makes fences.
    #[must_use]
    pub fn fence_memory(&self) -> FenceMemory {
        self.fence_memory
    }

    /// The process that a node's engine is in now, where that is not this one: another engine that takes
    /// its place is in another.
    #[must_use]
    pub fn engine_process(&self, node_ordinal: u32) -> Option<u32> {
        let driver = self.driver.upgrade()?;
        driver.node(node_ordinal).ok()?.engine().process_id()
    }

    /// Why the engine of a node was last lost: what its Vulkan device answered to which call. `None` of one that never was,
    /// nor of one in a process of its own. Of an adapter without native fences, whose engines are of one device, what that
    /// was last told.
    #[must_use]
    pub fn engine_failure(&self, node_ordinal: u32) -> Option<String> {
        if let Some(device) = &self.bare_device {
            return Some(device.failure()?.to_string());
        }
        let driver = self.driver.upgrade()?;
        driver.node(node_ordinal).ok()?.failure()
    }

    /// Counters of all engines together; [`Ddi::node_counters`] has those of each.
    #[must_use]
    pub fn node_counters(&self) -> NodeCounters {
        let ddi = self.os.ddi();
        let counters = (0..ddi.node_count()).filter_map(|node| ddi.node_counters(node));
        counters.fold(NodeCounters::default(), NodeCounters::plus)
    }

    /// Sets how much is traced: the logs of all queues, those that are there and those to come, are
    /// enlarged or brought back (LG-07), and further ones made or taken away (LG-11).
    ///
    /// # Errors
    /// As [`os::AdapterState::set_tracing`].
    pub fn set_tracing(&self, tracing: Tracing) -> Result<(), os::OsError> {
        self.os.set_tracing(tracing)
    }

    /// Records all that happens on the adapter from now on, until the recording is stopped. The logs of all queues are
    /// enlarged meanwhile, as for [`Adapter::set_tracing`], which is not called beside it.
    ///
    /// # Errors
    /// [`os::RecordError`]: it is being recorded already; as [`Adapter::set_tracing`].
    pub fn record(&self, options: &RecordingOptions) -> Result<Recording, RecordError> {
        Recording::start(&self.os, options)
    }

    /// The same of several adapters, for one trace.
    ///
    /// # Errors
    /// As [`Adapter::record`]; then none is recorded.
    pub fn record_together(
        adapters: &[Self],
        options: &RecordingOptions,
    ) -> Result<Recordings, RecordError> {
        let named = adapters.iter().map(|adapter| {
            let name = adapter.info().map_or("model", |info| info.name.as_str());
            (name.to_owned(), &adapter.os)
        });
        Recordings::start(&named.collect::<Vec<_>>(), options)
    }

    /// Opens the adapter for a process: a device, with handles of its own.
    #[must_use]
    pub fn create_device(&self) -> Device {
        Device::with_fences_in(&self.os, self.fence_memory)
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use crate::CommandList;
    use crate::gpu::{Crowd, ModelEngine, ModelOptions, Node, NodePolicy};
    use crate::kmd::Driver;
    use crate::supply::THREADS;
    use crate::sync::plain::{Mutex, lock};
    use std::any::Any;
    use std::pin::Pin;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::task::{Context, Wake, Waker};
    use std::thread;
    use std::time::{Duration, Instant};

    const LONG: Duration = Duration::from_secs(20);

    /// Has all that there is of an adapter, and drops it where it is woken: once nobody else has anything of it, and
    /// no thread is left that could stop it.
    struct DropsAll {
        all: Mutex<Option<Box<dyn Any + Send>>>,
        may_drop: Mutex<Receiver<()>>,
        dropped_on: Mutex<Sender<String>>,
    }

    impl Wake for DropsAll {
        fn wake(self: Arc<Self>) {
            // Nobody comes where the thread that submits has woken it itself.
            let _ = lock(&self.may_drop).recv_timeout(Duration::from_secs(1));
            let all = lock(&self.all).take();
            THREADS.refuse(1);
            drop(all);
            let thread = thread::current().name().unwrap_or_default().to_owned();
            let _ = lock(&self.dropped_on).send(thread);
        }
    }

    fn threads_of_ours() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
        let ours = names.filter(|name| name.as_ref().is_ok_and(|name| name.starts_with("nf-")));
        ours.count()
    }

    /// On which thread it was dropped.
    fn drop_where_it_is_woken() -> String {
        let engine = Box::new(ModelEngine::new(ModelOptions::default()));
        let node = Node::new(0, engine, NodePolicy::default(), Arc::new(Crowd::new(1)));
        let adapter = Adapter::with_driver(Driver::new(vec![node.unwrap()])).unwrap();
        let device = adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let queue = Arc::new(Mutex::new(device.create_hw_queue().unwrap()));
        let (may_drop, dropped_on) = (channel(), channel());
        let drops_all = Arc::new(DropsAll {
            all: Mutex::new(None),
            may_drop: Mutex::new(may_drop.1),
            dropped_on: Mutex::new(dropped_on.0),
        });
        let waker = Waker::from(Arc::clone(&drops_all));
        let mut wait = fence.wait_async(1);
        let polled = Pin::new(&mut wait).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        let all = (wait, adapter, device, Arc::clone(&queue));
        *lock(&drops_all.all) = Some(Box::new(all));
        let mut list = CommandList::new();
        lock(&queue).submit(list.signal(&fence, 1)).unwrap();
        drop((queue, fence));
        let _ = may_drop.0.send(());
        dropped_on.1.recv_timeout(LONG).unwrap()
    }

    /// Where the system has no thread that could stop an adapter whose last reference a waker drops, on a thread of
    /// its driver, it is stopped all the same: its threads end when they come back.
    ///
    /// Kills `an-adapter-runs-on-without-a-thread`.
    #[test]
    fn nf_22_an_adapter_is_stopped_where_no_thread_is_left_for_it() {
        let begun = Instant::now();
        while !drop_where_it_is_woken().starts_with("nf-irq") {
            assert!(begun.elapsed() < LONG, "no task is woken by an interrupt");
        }
        let refused_to = THREADS.refused_to().unwrap();
        assert!(refused_to.ends_with("/nf-stop"), "{refused_to}");
        let begun = Instant::now();
        while threads_of_ours() > 0 {
            assert!(begun.elapsed() < LONG, "a thread of the driver stays");
            thread::sleep(Duration::from_millis(1));
        }
    }
}
