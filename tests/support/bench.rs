//! Bench: an adapter on the real device, with a spy between the OS and the driver and another
//! between the node and its engine.
//!
//! The spies see what passes and let tests act at exact places: inside a DDI, before an interrupt
//! reaches the OS, before a slice starts. They add nothing and hold nothing back by themselves.

#![allow(dead_code, reason = "each test program uses its own part")]

use super::engine_spy::EngineSpy;
use super::log_spy::Spy;
use native_fence::gpu::{EngineState, Node, NodePolicy, ShaderEngine, ShaderTuning};
use native_fence::kmd::Driver;
use native_fence::vulkan::{self, AdapterInfo, DeviceOptions, Instance, InstanceOptions};
use native_fence::{Adapter, Device, Fence};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No wait of a test that passes comes near it.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) struct Bench {
    pub(crate) info: AdapterInfo,
    pub(crate) spy: Arc<Spy>,
    pub(crate) engine: Arc<EngineSpy>,
    pub(crate) adapter: Adapter,
    pub(crate) device: Device,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_policy(NodePolicy::default())
    }

    pub(crate) fn with_policy(policy: NodePolicy) -> Self {
        let instance = Instance::new(InstanceOptions::default()).unwrap();
        let adapters = instance.adapters();
        let info = vulkan::choose(&adapters, None).unwrap().clone();
        let device = vulkan::Device::open(&instance, &info, DeviceOptions { queues: 1 }).unwrap();
        let engine = ShaderEngine::new(device.queue(0).unwrap(), ShaderTuning::default()).unwrap();
        let engine = EngineSpy::over(engine);
        let node = Node::new(0, engine.boxed(), policy).unwrap();
        let spy = Spy::over(Driver::new(vec![node]));
        let adapter = Adapter::with_driver(Arc::clone(&spy) as _);
        Self {
            info,
            spy,
            engine,
            device: adapter.create_device(),
            adapter,
        }
    }

    pub(crate) fn fence(&self) -> Fence {
        self.device.create_fence(0).unwrap()
    }

    /// Waits until the engine sleeps: whatever was submitted before has run or stands at a wait
    /// that was looked at, and no slice is in flight. The last interrupt may still be on its way.
    pub(crate) fn until_parked(&self) {
        until("the engine parks", || {
            self.spy.driver.engine_state(0) == Some(EngineState::Parked)
        });
    }

    pub(crate) fn parks(&self) -> u64 {
        self.adapter.node_counters().parks
    }
}

/// A thread that waits for `value`, once its MonitoredValue stands.
pub(crate) fn waiter(fence: &Fence, value: u64) -> JoinHandle<()> {
    numbered_waiter(fence, value).0
}

/// As [`waiter`], with the thread's number for [`until_it_sleeps`].
pub(crate) fn numbered_waiter(fence: &Fence, value: u64) -> (JoinHandle<()>, i32) {
    let waits = fence.clone();
    let (tell, number) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero().get())
            .unwrap();
        waits.wait(value, LONG).unwrap();
    });
    let native = fence.object().fence();
    until("the waiter stands", || {
        native.monitored_value() < value || thread.is_finished()
    });
    (thread, number.recv().unwrap())
}

/// Waits until a thread of this process sleeps.
pub(crate) fn until_it_sleeps(thread: i32) {
    let path = format!("/proc/self/task/{thread}/stat");
    until("a thread sleeps", || {
        let stat = std::fs::read_to_string(&path).unwrap();
        // The state follows the name, which stands in parentheses.
        stat.rsplit(") ").next().unwrap().starts_with('S')
    });
}

/// Waits for what no event tells of.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "in vain: {what}");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// How every test ends.
pub(crate) fn assert_no_validation_message() {
    assert_eq!(vulkan::validation::messages(), Vec::<String>::new());
}

/// Set when dropped, so that a thread that goes on until then ends with a test that fails as well.
pub(crate) struct Ended<'a>(pub(crate) &'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
