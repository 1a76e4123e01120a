//! Whether a running shader sees what the host stores, which is tried where it matters: on every device here, and with a
//! host whose stores go elsewhere.
//!
//! Open: a device that has a cache of its own over system memory. No CPU driver does.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod left_out;
    pub(crate) mod until;
}

use native_fence::abi::WordGroup;
use native_fence::gpu::{EngineUnit, HOST_STORES_BYTES, SharedQueue, sees_host_stores};
use native_fence::shared::{Block, Mapping, Region};
use native_fence::vulkan::{Instance, InstanceOptions, choose, validation};
use std::sync::Arc;
use support::left_out::opened_or_left_out;
use support::until::until;

fn queue() -> Option<SharedQueue> {
    let validation = validation::asked_for_by_environment();
    let instance = opened_or_left_out(Instance::new(InstanceOptions { validation }))?;
    let adapters = instance.adapters();
    let info = choose(&adapters, None).unwrap();
    let unit = EngineUnit::default_for(info);
    let queues = unit.open_queues(&instance, info, 1, validation).unwrap();
    queues.into_iter().next()
}

/// Two mappings of a page, and one of another.
fn mappings() -> [Arc<Mapping>; 3] {
    let page = || Region::for_words(WordGroup::CurrentValues, HOST_STORES_BYTES).unwrap();
    let shared = page();
    [
        shared.map().unwrap(),
        shared.map().unwrap(),
        page().map().unwrap(),
    ]
}

/// A device that is the CPU sees the host's stores through another mapping of the page, and not those to another page.
///
/// Kills `every-device-sees-host-stores` and `no-device-sees-host-stores`.
#[test]
fn a_running_shader_sees_the_stores_that_reach_it_and_no_others() {
    let Some(queue) = queue() else {
        return;
    };
    let [shaders, hosts, another] = mappings();
    if native_fence::vulkan::AdapterKind::Cpu == queue.lock().unwrap().device().adapter().kind {
        // A machine that has no core for both tries again.
        until("its stores are seen", || {
            sees_host_stores(&queue, &shaders, &Block::whole(&hosts)).unwrap()
        });
    }
    let elsewhere = sees_host_stores(&queue, &shaders, &Block::whole(&another)).unwrap();
    assert!(!elsewhere, "nobody stored to the shader's page");
}
