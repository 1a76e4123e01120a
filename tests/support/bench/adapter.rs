//! The bench itself, on the model or on a Vulkan device.

use super::{DdiSpy, EngineSpy, Waiter, until};
use native_fence::gpu::{
    Crowd, Engine, EngineState, EngineUnit, ModelEngine, ModelOptions, Node, NodePolicy,
    ShaderEngine, ShaderTuning,
};
use native_fence::kmd::{Ddi, Driver, MonitoredValueUpdate, NodeCounters};
use native_fence::os::NativeFence;
use native_fence::shared::Block;
use native_fence::vulkan::{AdapterInfo, Instance, InstanceOptions, choose, validation};
use native_fence::{Adapter, CommandList, Device, Fence, HwQueue, HwQueueOptions, Timeout};
use std::sync::Arc;

/// See the module's page. Declared before all that is made from it, so that it goes last; then the
/// validation layers must have had nothing to say.
pub(crate) struct Bench {
    pub(crate) device: Device,
    pub(crate) spy: Arc<DdiSpy>,
    /// The first engine, of most tests the only one.
    pub(crate) engine: Arc<EngineSpy>,
    pub(crate) engines: Vec<Arc<EngineSpy>>,
    pub(crate) adapter: Adapter,
    info: Option<AdapterInfo>,
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
        // The adapter's last act is to wait for its slices.
        for engine in &self.engines {
            engine.keep_ends(false);
        }
    }
}

fn devices(count: u32, unit: Option<EngineUnit>) -> Option<(Vec<Box<dyn Engine>>, AdapterInfo)> {
    let validation = validation::asked_for_by_environment();
    let opened = Instance::new(InstanceOptions { validation }).map(|instance| {
        let adapters = instance.adapters();
        let info = choose(&adapters, None).unwrap().clone();
        let unit = unit.unwrap_or_else(|| EngineUnit::default_for(&info));
        let queues = unit.open_queues(&instance, &info, count, validation);
        let engine = |queue| -> Box<dyn Engine> {
            Box::new(ShaderEngine::new(queue, ShaderTuning::default()).unwrap())
        };
        (queues.unwrap().into_iter().map(engine).collect(), info)
    });
    match opened {
        Ok(devices) => Some(devices),
        Err(error) => {
            assert!(
                std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none(),
                "NFENCE_REQUIRE_DEVICE is set, and there is no device: {error}"
            );
            println!("left out on the shader: {error}");
            None
        }
    }
}

/// Runs a body on the model, in which a wrong access to memory is found, and on the device.
pub(crate) fn on_every_bench(policy: NodePolicy, body: impl Fn(&Bench)) {
    on_benches_of(1, policy, body);
}

/// The same with several engines, each a node.
pub(crate) fn on_benches_of(engines: u32, policy: NodePolicy, body: impl Fn(&Bench)) {
    println!("on the model");
    let models = (0..engines).map(|_| ModelEngine::new(ModelOptions::default()));
    let models: Vec<_> = models.collect();
    let memories = models.iter().map(|model| Arc::clone(model.memory()));
    let memories: Vec<_> = memories.collect();
    let boxed = |model| -> Box<dyn Engine> { Box::new(model) };
    body(&Bench::over(
        models.into_iter().map(boxed).collect(),
        None,
        policy,
    ));
    for memory in memories {
        assert_eq!(memory.violations(), []);
    }
    if let Some((engines, info)) = devices(engines, None) {
        println!("on the shader");
        body(&Bench::over(engines, Some(info), policy));
    }
}

impl Bench {
    fn over(engines: Vec<Box<dyn Engine>>, info: Option<AdapterInfo>, policy: NodePolicy) -> Self {
        let engines: Vec<_> = engines.into_iter().map(EngineSpy::over).collect();
        // Room for all: how long an engine stays shall not depend on the machine.
        let crowd = Arc::new(Crowd::new(engines.len() as u32));
        let nodes = engines.iter().zip(0..).map(|(engine, ordinal)| {
            Node::new(ordinal, engine.boxed(), policy, Arc::clone(&crowd)).unwrap()
        });
        let spy = DdiSpy::over(Driver::new(nodes.collect()));
        let adapter = Adapter::with_driver(Arc::clone(&spy) as _);
        Self {
            device: adapter.create_device(),
            spy,
            engine: Arc::clone(&engines[0]),
            engines,
            adapter,
            info,
            _messages: NoMessages,
        }
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
        let (engines, info) = devices(engines, unit).expect("a Vulkan device");
        Self::over(engines, Some(info), policy)
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

    /// Counters of one engine.
    pub(crate) fn counters_of(&self, node_ordinal: u32) -> NodeCounters {
        self.spy.driver.node_counters(node_ordinal).unwrap()
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

    /// Waits until the engines are parked: what was submitted before has been executed or stands at a
    /// wait that was looked at, no slice is in flight, and what was posted before is adopted by the
    /// next one. The last interrupt may still be on its way: [`Bench::until_told`].
    pub(crate) fn until_parked(&self) {
        until("the engines park", || {
            let all_parked = || {
                let mut nodes = 0..self.engines.len() as u32;
                nodes.all(|node| self.spy.driver.engine_state(node) == Some(EngineState::Parked))
            };
            // All at one time: one may bring another back that was seen parked before.
            let slices = self.counters().slices;
            all_parked() && all_parked() && self.counters().slices == slices
        });
    }

    /// Waits until the engine is parked and the OS has handled all that it raised, or been kept
    /// from it: then what was not raised is not raised any more.
    pub(crate) fn until_told(&self) {
        self.until_parked();
        // After it parked nothing is counted; counted and parked are of one critical section.
        let records = self.counters().records;
        // A NULL array does not say how many records it stands for.
        until("the OS is told", || {
            let told = self.spy.records();
            told == records || self.spy.payloads().iter().any(|told| told.fences.is_none())
        });
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
