//! Gated bench: an adapter on a real Vulkan device for a contract test, with a spy under the OS and a
//! gate at the engine.
//!
//! Validation is on where `NFENCE_VALIDATION=1` asks for it; a message fails the test at its end.
#![allow(dead_code, reason = "each test file uses a part")]

use super::gated_engine::{Gate, GatedEngine};
use super::interrupt_spy::InterruptSpy;
use native_fence::gpu::{EngineUnit, Node, NodePolicy, ShaderEngine, ShaderTuning};
use native_fence::kmd::{Driver, NodeCounters};
use native_fence::os::NativeFence;
use native_fence::vulkan::{Instance, InstanceOptions, choose, validation};
use native_fence::{Adapter, Device, Fence, HwQueue, WaitError};
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// See the module's page. Declared before all that is made from it, so that it goes last.
pub(crate) struct Bench {
    pub(crate) device: Device,
    pub(crate) spy: Arc<InterruptSpy>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) adapter: Adapter,
    instance: Arc<Instance>,
    messages: NoMessages,
}

/// The last to go: the layer must have nothing to say about the end either.
struct NoMessages;

impl Bench {
    /// With the default policy.
    pub(crate) fn new() -> Self {
        Self::with_policy(NodePolicy::default())
    }

    /// With slices that end as `policy` says.
    pub(crate) fn with_policy(policy: NodePolicy) -> Self {
        let instance = Instance::new(InstanceOptions::default()).unwrap();
        let adapters = instance.adapters();
        let info = choose(&adapters, None).unwrap();
        let queue = EngineUnit::default_for(info)
            .open_queue(&instance, info, false)
            .unwrap();
        let engine = ShaderEngine::new(queue, ShaderTuning::default()).unwrap();
        let (engine, gate) = GatedEngine::new(engine);
        let node = Node::new(0, Box::new(engine), policy).unwrap();
        let spy = InterruptSpy::new(Driver::new(vec![node]));
        let adapter = Adapter::with_driver(spy.clone());
        Self {
            device: adapter.create_device(),
            spy,
            gate,
            adapter,
            instance,
            messages: NoMessages,
        }
    }

    /// A fence that starts at `initial`.
    pub(crate) fn fence(&self, initial: u64) -> Fence {
        self.device.create_fence(initial).unwrap()
    }

    /// A queue with its doorbell connected.
    pub(crate) fn queue(&self) -> HwQueue {
        self.device.create_hw_queue().unwrap()
    }

    /// Counters of the engine.
    pub(crate) fn counters(&self) -> NodeCounters {
        self.adapter.node_counters()
    }

    /// Native-fence-signaled interrupts that reached the OS.
    pub(crate) fn interrupts(&self) -> u64 {
        self.adapter.os().interrupts().native_fence_signaled()
    }

    /// Does what wakes the engine, and waits until it has parked again. It is parked before: a new
    /// bench's engine is, and each of these leaves it so.
    pub(crate) fn then_parked<T>(&self, act: impl FnOnce() -> T) -> T {
        let before = self.counters().parks;
        let result = act();
        self.until_parked_since(before);
        result
    }

    /// Waits until the engine has parked once more than `before`.
    pub(crate) fn until_parked_since(&self, before: u64) {
        until("the engine parks", || self.counters().parks > before);
    }
}

impl Drop for NoMessages {
    fn drop(&mut self) {
        if !thread::panicking() {
            assert_eq!(validation::messages(), Vec::<String>::new());
        }
    }
}

/// The OS's object of a fence.
pub(crate) fn native(fence: &Fence) -> &NativeFence {
    fence.object().fence()
}

/// MonitoredValue of a fence, as it stands in memory.
pub(crate) fn monitored_value(fence: &Fence) -> u64 {
    native(fence).monitored_value()
}

/// Waits for what must come.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        thread::yield_now();
    }
}

/// Waits until a queue has completed its submission `value`, without a CPU waiter: nothing but
/// memory is read.
pub(crate) fn until_completed(queue: &HwQueue, value: u64) {
    until("the queue completes", || {
        queue.progress_fence().current_value() >= value
    });
}

/// A thread that waits for a value of a fence. A wait that fails of itself ends by the time-out.
pub(crate) fn waiter<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    fence: &'scope Fence,
    value: u64,
) -> ScopedJoinHandle<'scope, Result<(), WaitError>> {
    scope.spawn(move || fence.wait(value, PATIENCE))
}

/// As [`waiter`], and returns when the waiter stands in the list: the MonitoredValue is `expected`.
pub(crate) fn armed_waiter<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    fence: &'scope Fence,
    value: u64,
    expected: u64,
) -> ScopedJoinHandle<'scope, Result<(), WaitError>> {
    let waiter = waiter(scope, fence, value);
    until("the waiter's MonitoredValue", || {
        monitored_value(fence) == expected
    });
    waiter
}
