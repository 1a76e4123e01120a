//! Bench: an adapter with a spy between OS and driver and a held engine under it.
#![allow(dead_code, reason = "each test file uses a part")]

use super::held_engine::{HeldEngine, Holder};
use super::spy_ddi::SpyDdi;
use native_fence::gpu::{
    Engine, EngineUnit, ModelEngine, ModelOptions, Node, NodePolicy, ShaderEngine, ShaderTuning,
};
use native_fence::kmd::Driver;
use native_fence::vulkan::{self, Instance, InstanceOptions};
use native_fence::{Adapter, Fence};
use std::sync::Arc;

/// What a body gets.
pub(crate) struct Bench {
    pub(crate) adapter: Adapter,
    pub(crate) spy: Arc<SpyDdi>,
    pub(crate) holder: Arc<Holder>,
}

impl Bench {
    fn over(engine: Box<dyn Engine>, policy: NodePolicy) -> Self {
        let (engine, holder) = HeldEngine::new(engine);
        let node = Node::new(0, Box::new(engine), policy).unwrap();
        let spy = SpyDdi::new(Driver::new(vec![node]));
        Self {
            adapter: Adapter::with_driver(spy.clone()),
            spy,
            holder,
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // The adapter's last act is to wait for its slices.
        self.holder.hold(false);
    }
}

fn shader_engine() -> Option<Box<dyn Engine>> {
    let validation = vulkan::validation::asked_for_by_environment();
    let opened = Instance::new(InstanceOptions { validation }).map(|instance| {
        let adapters = instance.adapters();
        let info = vulkan::choose(&adapters, None).unwrap();
        let queue = EngineUnit::default_for(info)
            .open_queue(&instance, info, validation)
            .unwrap();
        ShaderEngine::new(queue, ShaderTuning::default()).unwrap()
    });
    match opened {
        Ok(engine) => Some(Box::new(engine)),
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

/// Runs a body on the model and on the device; then nothing may have been said by the layers.
pub(crate) fn on_every_bench(policy: NodePolicy, body: impl Fn(&Bench)) {
    println!("on the model");
    let model = ModelEngine::new(ModelOptions::default());
    let memory = Arc::clone(model.memory());
    let bench = Bench::over(Box::new(model), policy);
    body(&bench);
    drop(bench);
    assert_eq!(memory.violations(), []);
    if let Some(engine) = shader_engine() {
        println!("on the shader");
        body(&Bench::over(engine, policy));
    }
    nothing_said();
}

/// The validation layers have said nothing.
pub(crate) fn nothing_said() {
    assert_eq!(vulkan::validation::messages(), Vec::<String>::new());
}

/// Stores CurrentValue as an engine would: into the memory, with no call.
pub(crate) fn store_current_value(fence: &Fence) -> impl Fn(u64) + Send + Sync + 'static {
    let (region, offset) = fence.object().fence().current_value_place();
    let block = native_fence::shared::Block::whole(&region.map().unwrap());
    move |value| block.word(offset).publish(value)
}

/// This thread's number, for [`until_it_sleeps`].
pub(crate) fn thread_number() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Waits until a thread of this process sleeps.
pub(crate) fn until_it_sleeps(thread: i32) {
    let path = format!("/proc/self/task/{thread}/stat");
    loop {
        let stat = std::fs::read_to_string(&path).unwrap();
        // The state follows the name, which stands in parentheses.
        if stat.rsplit(") ").next().unwrap().starts_with('S') {
            return;
        }
        std::thread::yield_now();
    }
}
