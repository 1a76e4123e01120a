//! The bench itself, on the model or on a Vulkan device.

use super::left_out::opened_or_left_out;
use super::{DdiSpy, EngineSpy, Waiter, memory, model_is_asked_for, until};
use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::gpu::{
    CommandEngine, Crowd, Engine, EngineState, EngineUnit, Injection, ModelEngine, ModelMemory,
    ModelOptions, Node, NodePolicy, ShaderEngine, ShaderTuning, SharedQueue, SpareEngines,
    with_host_stores_tried,
};
use native_fence::kmd::{
    CommandDriver, Ddi, Driver, DriverOptions, MonitoredValueUpdate, NodeCounters, VidSchCaps,
};
use native_fence::os::{Features, NativeFence, Record};
use native_fence::shared::{Block, Providers};
use native_fence::vulkan::{
    AdapterInfo, DeviceLoss, Instance, InstanceOptions, Timeline, choose, memory_providers,
    validation,
};
use native_fence::{
    Adapter, CommandList, Device, Fence, FenceMemory, HwQueue, HwQueueOptions, LocalProvider,
    MemoryOptions, TdrLevel, TdrPolicy, Timeout,
};
use std::sync::{Arc, Mutex};

/// See the module's page. Declared before all that is made from it, so that it goes last; then the
/// validation layers must have had nothing to say.
pub(crate) struct Bench {
    pub(crate) device: Device,
    pub(crate) spy: Arc<DdiSpy>,
    /// The first queue of engines that execute command buffers.
    queue: Option<SharedQueue>,
    /// When its Vulkan device is lost, if it can be.
    loss: Option<Arc<DeviceLoss>>,
    /// Under the spy, if its engines are shaders or models.
    driver: Option<Arc<Driver>>,
    /// The first engine, of most tests the only one.
    pub(crate) engine: Arc<EngineSpy>,
    pub(crate) engines: Vec<Arc<EngineSpy>>,
    pub(crate) adapter: Adapter,
    info: Option<AdapterInfo>,
    /// Records that the test is about; there shall be no other.
    expected: Mutex<Vec<Record>>,
    _messages: NoMessages,
}

struct NoMessages;

impl Drop for NoMessages {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(validation::messages(), Vec::<String>::new());
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // No bug check, and no call at a wrong level.
            let expected = self.expected.get_mut().unwrap();
            assert_eq!(self.adapter.os().records(), *expected);
        }
        // The adapter's last act is to wait for its slices.
        for engine in &self.engines {
            engine.keep_ends(false);
        }
    }
}

fn devices(
    count: u32,
    unit: Option<EngineUnit>,
    memory: MemoryOptions,
) -> Option<(Vec<Box<dyn Engine>>, AdapterInfo)> {
    tuned_devices(count, unit, memory, ShaderTuning::default())
}

pub(super) fn tuned_devices(
    count: u32,
    unit: Option<EngineUnit>,
    memory: MemoryOptions,
    tuning: ShaderTuning,
) -> Option<(Vec<Box<dyn Engine>>, AdapterInfo)> {
    let (queues, providers, info) = queues(None, count, unit, memory, None)?;
    let engine = |queue| -> Box<dyn Engine> {
        let engine = ShaderEngine::new(queue, tuning).unwrap();
        Box::new(engine.with_providers(&providers))
    };
    Some((queues.into_iter().map(engine).collect(), info))
}

/// A queue for each engine, and memory that they share; of the device of that name, or the best, which may be lost.
fn queues(
    name: Option<&str>,
    count: u32,
    unit: Option<EngineUnit>,
    memory: MemoryOptions,
    injection: Option<&Injection>,
) -> Option<(Vec<SharedQueue>, Arc<Providers>, AdapterInfo)> {
    let validation = validation::asked_for_by_environment();
    let opened = Instance::new(InstanceOptions { validation }).map(|instance| {
        let adapters = instance.adapters();
        let info = choose(&adapters, name).unwrap().clone();
        let unit = unit.unwrap_or_else(|| EngineUnit::default_for(&info));
        let queues = unit.open_lossy_queues(&instance, &info, count, validation, injection);
        let queues = queues.unwrap();
        let first = Arc::clone(queues[0].lock().unwrap().device());
        let providers = memory_providers(&instance, &first, unit.sharers(), memory).unwrap();
        let is_forced = memory.local == LocalProvider::OneDevice;
        let providers = with_host_stores_tried(providers, &queues[0], is_forced).unwrap();
        (queues, Arc::new(providers), info)
    });
    opened_or_left_out(opened)
}

/// Runs a body on the model, in which a wrong access to memory is found, and on the device.
pub(crate) fn on_every_bench(policy: NodePolicy, body: impl Fn(&Bench)) {
    on_benches_of(1, policy, body);
}

/// The same with several engines, each a node.
pub(crate) fn on_benches_of(engines: u32, policy: NodePolicy, body: impl Fn(&Bench)) {
    on_benches_with(engines, policy, &DriverOptions::default(), body);
}

/// The same with a driver that is asked for other caps.
pub(crate) fn on_benches_with(
    engines: u32,
    policy: NodePolicy,
    options: &DriverOptions,
    body: impl Fn(&Bench),
) {
    on_tuned_benches(engines, policy, options, false, body);
}

/// The same with engines that know stalls.
pub(crate) fn on_stalling_benches(engines: u32, policy: NodePolicy, body: impl Fn(&Bench)) {
    on_tuned_benches(engines, policy, &DriverOptions::default(), true, body);
}

fn on_models(
    engines: u32,
    policy: NodePolicy,
    options: &DriverOptions,
    stalls: bool,
    body: impl Fn(&Bench),
) {
    let model = ModelOptions {
        stalls,
        ..ModelOptions::default()
    };
    let models = (0..engines).map(|_| ModelEngine::new(model.clone()));
    let models: Vec<_> = models.collect();
    let memories = models.iter().map(|model| Arc::clone(model.memory()));
    let memories: Vec<_> = memories.collect();
    let boxed = |model| -> Box<dyn Engine> { Box::new(model) };
    body(&Bench::over(
        models.into_iter().map(boxed).collect(),
        None,
        policy,
        FenceMemory::System,
        options,
    ));
    for memory in memories {
        assert_eq!(memory.violations(), []);
    }
}

fn on_tuned_benches(
    engines: u32,
    policy: NodePolicy,
    options: &DriverOptions,
    stalls: bool,
    body: impl Fn(&Bench),
) {
    if model_is_asked_for() {
        on_models(engines, policy, options, stalls, &body);
    }
    let (memory, fences) = memory::asked_for();
    let tuning = ShaderTuning {
        stalls,
        ..ShaderTuning::default()
    };
    if let Some((engines, info)) = tuned_devices(engines, None, memory, tuning) {
        println!("on the shader");
        body(&Bench::over(engines, Some(info), policy, fences, options));
    }
}

/// Runs a body where monitored fences are, and maybe native ones: beside the benches of
/// [`on_benches_with`], on engines that execute command buffers, which have no native ones.
pub(crate) fn on_monitored_benches_with(
    engines: u32,
    policy: NodePolicy,
    options: &DriverOptions,
    body: impl Fn(&Bench),
) {
    on_benches_with(engines, policy, options, &body);
    if let Some(bench) = Bench::over_command_buffers(engines, policy, options) {
        println!("on command buffers");
        body(&bench);
    }
}

/// The same with the driver's defaults.
pub(crate) fn on_monitored_benches(engines: u32, policy: NodePolicy, body: impl Fn(&Bench)) {
    on_monitored_benches_with(engines, policy, &DriverOptions::default(), body);
}

impl Bench {
    fn over(
        engines: Vec<Box<dyn Engine>>,
        info: Option<AdapterInfo>,
        policy: NodePolicy,
        fences: FenceMemory,
        options: &DriverOptions,
    ) -> Self {
        let tdr = TdrPolicy::default();
        Self::watched(engines, info, policy, fences, options, (None, tdr))
    }

    /// One whose OS judges nobody: queues stand at their waits, whoever is left to signal.
    pub(crate) fn of_programs(
        engines: Vec<Box<dyn Engine>>,
        info: Option<AdapterInfo>,
        fences: FenceMemory,
    ) -> Self {
        let (policy, options) = (NodePolicy::default(), DriverOptions::default());
        let tdr = TdrPolicy {
            level: TdrLevel::Off,
            ..TdrPolicy::default()
        };
        Self::watched(engines, info, policy, fences, &options, (None, tdr))
    }

    /// The same, whose engines are reset if there are others to take their places.
    pub(super) fn watched(
        engines: Vec<Box<dyn Engine>>,
        info: Option<AdapterInfo>,
        policy: NodePolicy,
        fences: FenceMemory,
        options: &DriverOptions,
        (spares, tdr): (Option<Arc<SpareEngines>>, TdrPolicy),
    ) -> Self {
        let engines: Vec<_> = engines.into_iter().map(EngineSpy::over).collect();
        // Room for all: how long an engine stays shall not depend on the machine.
        let crowd = Arc::new(Crowd::new(engines.len() as u32));
        let nodes = engines.iter().zip(0..).map(|(engine, ordinal)| {
            Node::new(ordinal, engine.boxed(), policy, Arc::clone(&crowd)).unwrap()
        });
        let driver = Driver::with_spares(nodes.collect(), options.clone(), spares);
        let spy = DdiSpy::over(Arc::clone(&driver) as _);
        let features = Features::default();
        let adapter = Adapter::with_driver_watched(Arc::clone(&spy) as _, features, tdr).unwrap();
        Self {
            device: Device::with_fences_in(adapter.os(), fences),
            spy,
            queue: None,
            loss: None,
            driver: Some(driver),
            engine: Arc::clone(&engines[0]),
            engines,
            adapter,
            info,
            expected: Mutex::default(),
            _messages: NoMessages,
        }
    }

    /// On the device, if there is one, with engines that execute command buffers.
    pub(crate) fn over_command_buffers(
        engines: u32,
        policy: NodePolicy,
        options: &DriverOptions,
    ) -> Option<Self> {
        Self::over_command_buffers_of(None, engines, policy, options)
    }

    /// The same of a device by its name, or of the best.
    pub(crate) fn over_command_buffers_of(
        name: Option<&str>,
        engines: u32,
        policy: NodePolicy,
        options: &DriverOptions,
    ) -> Option<Self> {
        Self::over_lossy_command_buffers(name, engines, policy, options, None)
    }

    /// The same with one engine, whose Vulkan device can be lost ([`Bench::lose_device`]).
    pub(crate) fn over_command_buffers_to_lose(
        name: Option<&str>,
        options: &DriverOptions,
    ) -> Option<Self> {
        let (policy, injection) = (NodePolicy::default(), Injection::new(1).unwrap());
        Self::over_lossy_command_buffers(name, 1, policy, options, Some(&injection))
    }

    fn over_lossy_command_buffers(
        name: Option<&str>,
        engines: u32,
        policy: NodePolicy,
        options: &DriverOptions,
        injection: Option<&Injection>,
    ) -> Option<Self> {
        let (memory, _) = memory::asked_for();
        let (queues, providers, info) = queues(name, engines, None, memory, injection)?;
        let engine = |queue| CommandEngine::new(queue, &providers).unwrap();
        let first = Arc::clone(&queues[0]);
        let engines = queues.into_iter().map(engine).collect();
        let driver = CommandDriver::new(engines, options.clone(), policy.wait_spin);
        let spy = DdiSpy::over(driver);
        let adapter = Adapter::with_driver(Arc::clone(&spy) as _).unwrap();
        Some(Self {
            device: adapter.create_device(),
            spy,
            queue: Some(first),
            loss: injection.map(|injection| injection.device_loss(0)),
            driver: None,
            // Nothing runs on it.
            engine: EngineSpy::over(Box::new(ModelEngine::new(ModelOptions::default()))),
            engines: Vec::new(),
            adapter,
            info: Some(info),
            expected: Mutex::default(),
            _messages: NoMessages,
        })
    }

    /// Loses the Vulkan device: each of its calls that can say so says it from now on. A queue of the bench's device
    /// finds out.
    pub(crate) fn lose_device(&self) {
        let mut finds_out = self.device.create_kernel_queue().unwrap();
        let loss = self.loss.as_ref().expect("a device that can be lost");
        loss.lose();
        // It may be told before it has submitted.
        let _ = finds_out.submit(CommandList::new().nop());
        until("the device is lost", || {
            self.device.execution_state() != DeviceExecutionState::ACTIVE
        });
    }

    /// Keeps the first engine that executes command buffers from what it is handed from now on, until
    /// the timeline is 1: the device's queue begins submissions in their order.
    pub(crate) fn hold_engine(&self) -> Timeline {
        let mut queue = self.queue.as_ref().unwrap().lock().unwrap();
        let gate = Timeline::new(queue.device(), 0).unwrap();
        let begun = Timeline::new(queue.device(), 0).unwrap();
        queue
            .submit_one(None, Some((&gate, 1)), (&begun, 1))
            .unwrap();
        gate
    }

    /// The records so far, which the test is about: any other fails it in the end.
    pub(crate) fn take_records(&self) -> Vec<Record> {
        let records = self.adapter.os().records();
        self.expected.lock().unwrap().clone_from(&records);
        records
    }

    /// On a model, which knows what it did wrong.
    pub(crate) fn on_model(options: ModelOptions, policy: NodePolicy) -> (Self, Arc<ModelMemory>) {
        let model = ModelEngine::new(options);
        let memory = Arc::clone(model.memory());
        let bench = Self::over(
            vec![Box::new(model)],
            None,
            policy,
            FenceMemory::System,
            &DriverOptions::default(),
        );
        (bench, memory)
    }

    /// On a model, for random programs.
    pub(crate) fn of_programs_on_model(options: ModelOptions) -> (Self, Arc<ModelMemory>) {
        let model = ModelEngine::new(options);
        let memory = Arc::clone(model.memory());
        let bench = Self::of_programs(vec![Box::new(model)], None, FenceMemory::System);
        (bench, memory)
    }

    /// On the device with so many engines, if there is one, for random programs.
    pub(crate) fn of_programs_on_device(engines: u32) -> Option<Self> {
        let (memory, fences) = memory::asked_for();
        let (engines, info) = devices(engines, None, memory)?;
        Some(Self::of_programs(engines, Some(info), fences))
    }

    /// On the device with so many engines, if there is one.
    pub(crate) fn on_device(engines: u32, policy: NodePolicy) -> Option<Self> {
        let (memory, fences) = memory::asked_for();
        let (engines, info) = devices(engines, None, memory)?;
        Some(Self::over(
            engines,
            Some(info),
            policy,
            fences,
            &DriverOptions::default(),
        ))
    }

    /// On the device, with the default policy.
    pub(crate) fn new() -> Self {
        Self::with_policy(NodePolicy::default())
    }

    /// On the device, with slices that end as `policy` says.
    pub(crate) fn with_policy(policy: NodePolicy) -> Self {
        Self::of(1, None, policy)
    }

    /// On the device, with so many engines of a unit, the default one where `None`.
    pub(crate) fn of(engines: u32, unit: Option<EngineUnit>, policy: NodePolicy) -> Self {
        let (memory, fences) = memory::asked_for();
        let (engines, info) = devices(engines, unit, memory).expect("a Vulkan device");
        Self::over(
            engines,
            Some(info),
            policy,
            fences,
            &DriverOptions::default(),
        )
    }

    /// On the device, with so many engines of the default unit, over this memory.
    pub(crate) fn with_memory(engines: u32, memory: MemoryOptions, fences: FenceMemory) -> Self {
        let (engines, info) = devices(engines, None, memory).expect("a Vulkan device");
        Self::over(
            engines,
            Some(info),
            NodePolicy::default(),
            fences,
            &DriverOptions::default(),
        )
    }

    /// The device's description.
    pub(crate) fn info(&self) -> &AdapterInfo {
        self.info.as_ref().expect("not on the model")
    }

    /// A fence that starts at `initial`.
    pub(crate) fn fence(&self, initial: u64) -> Fence {
        self.device.create_fence(initial).unwrap()
    }

    /// A queue of a node, with its doorbell connected.
    pub(crate) fn queue_on(&self, node_ordinal: u32) -> HwQueue {
        let options = HwQueueOptions {
            node_ordinal,
            ..HwQueueOptions::default()
        };
        self.device.create_hw_queue_with(options).unwrap()
    }

    /// Posts a fence's MonitoredValue as it stands, as the OS does to arm it again.
    pub(crate) fn repost(&self, fence: &Fence) {
        let (region, offset) = native(fence).monitored_value_place();
        let words = Block::whole(&region.map().unwrap());
        let word = words.word(offset);
        let update = MonitoredValueUpdate {
            fence: native(fence).id(),
            value: word.observe(),
            word,
        };
        self.spy.update_monitored_values(&[update]).unwrap();
    }

    pub(crate) fn is_model(&self) -> bool {
        self.info.is_none()
    }

    /// Counters of one engine.
    pub(crate) fn counters_of(&self, node_ordinal: u32) -> NodeCounters {
        self.spy.driver().node_counters(node_ordinal).unwrap()
    }

    /// A queue with its doorbell connected.
    pub(crate) fn queue(&self) -> HwQueue {
        self.device.create_hw_queue().unwrap()
    }

    /// A wait that stands in the list until its value comes; the time-out ends one that was lost.
    pub(crate) fn waiter(&self, fence: &Fence, value: u64) -> Waiter {
        self.waiter_with(fence, value, super::LONG)
    }

    #[allow(clippy::unused_self, reason = "it is done on the bench")]
    pub(crate) fn waiter_with(
        &self,
        fence: &Fence,
        value: u64,
        timeout: impl Into<Timeout>,
    ) -> Waiter {
        Waiter::standing(fence, value, timeout)
    }

    /// Counters of the engines together.
    pub(crate) fn counters(&self) -> NodeCounters {
        self.adapter.node_counters()
    }

    /// Native-fence-signaled interrupts that reached the OS.
    pub(crate) fn interrupts(&self) -> u64 {
        self.adapter.os().interrupts().native_fence_signaled()
    }

    /// The driver, which knows whether an engine is parked.
    pub(crate) fn parking_driver(&self) -> Arc<Driver> {
        Arc::clone(self.driver.as_ref().expect("engines that park"))
    }

    /// Whether a node's engine is parked now.
    pub(crate) fn is_parked(&self, node_ordinal: u32) -> bool {
        self.parking_driver().engine_state(node_ordinal) == Some(EngineState::Parked)
    }

    /// Waits until the engines are parked: what was submitted before has been executed or stands at a
    /// wait that was looked at, no slice is in flight, and what was posted before is adopted by the
    /// next one. Save areas are initialised: no queue comes to them for that later. The last interrupt may still be on its way: [`Bench::until_told`].
    pub(crate) fn until_parked(&self) {
        until("the engines park", || {
            let all_parked = || {
                let mut nodes = 0..self.engines.len() as u32;
                nodes.all(|node| self.is_parked(node))
            };
            // All at one time: one may bring another back that was seen parked before.
            let slices = self.counters().slices;
            all_parked()
                && self.spy.has_initialised()
                && all_parked()
                && self.counters().slices == slices
        });
    }

    /// Waits until the engine is parked and the OS has handled all that it raised, or been kept
    /// from it: then what was not raised is not raised any more. Not with the optimized cap, whose
    /// interrupts never say how many records they stand for: wait there for what they do.
    pub(crate) fn until_told(&self) {
        self.until_parked();
        // After it parked nothing is counted; counted and parked are of one critical section.
        let records = self.counters().records;
        let caps = self.adapter.os().vidsch_caps();
        let optimized = VidSchCaps::OPTIMIZED_NATIVE_FENCE_SIGNALED_INTERRUPT;
        assert!(!caps.has(optimized));
        // Where a waker has gone on there may be more by now.
        until("the OS is told", || {
            let kept = self.counters().kept_records;
            self.spy.records() + kept >= records || self.spy.has_collapsed()
        });
    }

    /// Waits until the save areas of all contexts are initialised, and gives the last submission id of a node:
    /// each of them has taken one.
    pub(crate) fn initialised(&self, node_ordinal: u32) -> u64 {
        until("the save areas are initialised", || {
            self.spy.has_initialised() && self.spy.has_paged()
        });
        until("all have completed", || {
            let (submitted, completed) = self.adapter.os().submission_ids(node_ordinal);
            submitted == completed
        });
        self.adapter.os().submission_ids(node_ordinal).0
    }

    /// Does something, and waits until the engine is parked after it.
    pub(crate) fn then_parked<T>(&self, act: impl FnOnce() -> T) -> T {
        let result = act();
        self.until_parked();
        result
    }
}

/// Submits one list and waits until it is completed, without a CPU waiter.
pub(crate) fn complete(queue: &mut HwQueue, list: &CommandList) {
    let value = queue.submit(list).unwrap();
    until_completed(queue, value);
}

/// Waits until a queue has completed its submission `value`, without a CPU waiter: nothing but
/// memory is read.
pub(crate) fn until_completed(queue: &HwQueue, value: u64) {
    until("the queue completes", || {
        queue.progress_fence().current_value() >= value
    });
}

/// The OS's object of a fence.
pub(crate) fn native(fence: &Fence) -> &NativeFence {
    fence.object().fence()
}

/// MonitoredValue of a fence, as it stands in memory.
pub(crate) fn monitored_value(fence: &Fence) -> u64 {
    native(fence).monitored_value()
}
