//! The two engines on which behaviour is tested: the model and the shader on a Vulkan device.
//!
//! Without a device the shader's half is left out with a printed line; `NFENCE_REQUIRE_DEVICE` set
//! makes that a failure.
#![allow(dead_code, reason = "each test file uses a part")]

#[allow(clippy::duplicate_mod, reason = "a test may use engines and bench")]
#[path = "memory.rs"]
pub(crate) mod memory;
#[allow(clippy::duplicate_mod, reason = "a test may use engines and bench")]
#[path = "model_asked_for.rs"]
mod model_asked_for;

use model_asked_for::model_is_asked_for;
use native_fence::gpu::{CutPlan, ModelEngine, ModelMemory, ModelOptions, NodePolicy};
#[allow(unused_imports, reason = "each test file uses a part")]
pub(crate) use native_fence::soak::Random;
use native_fence::{Adapter, AdapterOptions, TdrPolicy};
use std::sync::Arc;
use std::time::Duration;

/// An adapter over the model, and the memory that knows what the model did wrong.
#[must_use]
pub(crate) fn model_with(options: ModelOptions) -> (Adapter, Arc<ModelMemory>) {
    let engine = ModelEngine::new(options);
    let memory = Arc::clone(engine.memory());
    let adapter = Adapter::with_engines(vec![Box::new(engine)], NodePolicy::default())
        .expect("the model has what it needs");
    (adapter, memory)
}

/// An adapter over the model.
#[must_use]
pub(crate) fn model() -> (Adapter, Arc<ModelMemory>) {
    model_with(ModelOptions::default())
}

/// A model every slice of which is cut somewhere within `most` loop passes.
#[must_use]
pub(crate) fn model_cut(seed: u64, most: u64) -> (Adapter, Arc<ModelMemory>) {
    model_with(ModelOptions {
        cut: CutPlan::Random { seed, most },
        ..ModelOptions::default()
    })
}

/// What watches engines that are well: one may have no core for seconds on a busy machine.
#[must_use]
pub(crate) fn patient() -> TdrPolicy {
    TdrPolicy {
        delay: Duration::from_secs(600),
        ..TdrPolicy::default()
    }
}

/// An adapter over the shader engine on the best device, if there is one.
///
/// # Panics
/// When there is none and `NFENCE_REQUIRE_DEVICE` is set.
#[must_use]
pub(crate) fn shader() -> Option<Adapter> {
    let (memory, fence_memory) = memory::asked_for();
    let options = AdapterOptions {
        memory,
        fence_memory: Some(fence_memory),
        tdr: patient(),
        ..AdapterOptions::default()
    };
    match Adapter::open(&options) {
        Ok(adapter) => match adapter.os().native_fence_caps() {
            Ok(_) => Some(adapter),
            Err(error) => {
                no_device(&error);
                None
            }
        },
        Err(error) => {
            no_device(&error);
            None
        }
    }
}

fn no_device(error: &dyn std::error::Error) {
    assert!(
        std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none(),
        "NFENCE_REQUIRE_DEVICE is set, and no device has native fences: {error}"
    );
    println!("left out on the shader: {error}");
}

/// Every engine that there is, by name.
#[must_use]
pub(crate) fn engines() -> Vec<(&'static str, Adapter)> {
    let mut engines = vec![("model", model().0)];
    engines.extend(shader().map(|adapter| ("shader", adapter)));
    engines
}

/// Runs a test's body on every engine, each with a fresh adapter; a violation of the model fails.
pub(crate) fn on_every_engine(body: impl Fn(&Adapter)) {
    if model_is_asked_for() {
        let (adapter, memory) = model();
        body(&adapter);
        drop(adapter);
        assert_eq!(memory.violations(), [], "on the model");
    }
    if let Some(adapter) = shader() {
        println!("on the shader");
        body(&adapter);
    }
}

/// Cases of a random test: `NFENCE_RANDOM_CASES`, or `usual`.
#[must_use]
pub(crate) fn random_cases(usual: u64) -> u64 {
    std::env::var("NFENCE_RANDOM_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(usual)
}
