//! Unwatched: an adapter over a model's engine that nobody finds hung, since queues stand at waits for as long as they like.

use native_fence::gpu::{Crowd, ModelEngine, ModelMemory, ModelOptions, Node, NodePolicy};
use native_fence::kmd::Driver;
use native_fence::os::Features;
use native_fence::{Adapter, TdrLevel, TdrPolicy};
use std::sync::Arc;

/// One, and the memory of its engine, which notes what none may do.
pub(crate) fn adapter() -> (Adapter, Arc<ModelMemory>) {
    let engine = ModelEngine::new(ModelOptions::default());
    let memory = Arc::clone(engine.memory());
    let (policy, crowd) = (NodePolicy::default(), Arc::new(Crowd::new(1)));
    let node = Node::new(0, Box::new(engine), policy, crowd).expect("a node over the model");
    let tdr = TdrPolicy {
        level: TdrLevel::Off,
        ..TdrPolicy::default()
    };
    let driver = Driver::new(vec![node]);
    let adapter = Adapter::with_driver_watched(driver, Features::default(), tdr);
    (adapter.expect("the driver is right"), memory)
}
