//! How the engine's shader may be specialised, on the device that there is.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/until.rs"]
mod until;

use native_fence::gpu::{NodePolicy, ShaderTuning};
use native_fence::vulkan::{self, AdapterInfo, Instance, InstanceOptions, validation};
use native_fence::{Adapter, AdapterOptions, CommandList, HwQueue, OpenError};
use std::sync::Arc;
use std::time::Duration;
use until::{LONG, until};

/// More than the iterations in which an engine finds that it is idle.
const FENCES: usize = 32;

fn first_adapter() -> Option<(Arc<Instance>, AdapterInfo)> {
    let instance = Instance::new(InstanceOptions {
        validation: validation::asked_for_by_environment(),
    });
    let found = instance.ok().and_then(|instance| {
        let adapters = instance.adapters();
        let info = vulkan::choose(&adapters, None).ok()?.clone();
        vulkan::has_native_fences(&info).then_some((instance, info))
    });
    if found.is_none() {
        assert!(
            std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none(),
            "NFENCE_REQUIRE_DEVICE is set, and no device has native fences"
        );
        println!("left out: no device has native fences");
    }
    found
}

fn open(instance: &Arc<Instance>, info: &AdapterInfo, lanes: u32) -> Result<Adapter, OpenError> {
    let tuning = ShaderTuning {
        lanes: Some(lanes),
        ..ShaderTuning::default()
    };
    let options = AdapterOptions {
        tuning,
        ..AdapterOptions::default()
    };
    Adapter::open_on(instance, info, &options)
}

/// Whole subgroups, one and two, pass signals on, with more queues than lanes; two are refused where the driver
/// ends loops.
#[test]
fn an_engine_of_whole_subgroups_runs() {
    let Some((instance, info)) = first_adapter() else {
        return;
    };
    let subgroup = info.features.subgroup_size;
    for lanes in [subgroup, 2 * subgroup] {
        let opened = open(&instance, &info, lanes);
        if lanes > subgroup && info.ends_loops() {
            let refusal = opened.unwrap_err().to_string();
            assert!(
                refusal.contains(&format!("take {subgroup}, or Mesa 23")),
                "{refusal}"
            );
            continue;
        }
        let device = opened.unwrap().create_device();
        let queues = 2 * lanes + 1;
        let fences: Vec<_> = (0..=queues)
            .map(|_| device.create_fence(0).unwrap())
            .collect();
        let mut made: Vec<_> = fences
            .windows(2)
            .map(|pair| {
                let mut queue = device.create_hw_queue().unwrap();
                let mut list = CommandList::new();
                list.wait(&pair[0], 1).signal(&pair[1], 1);
                queue.submit(&list).unwrap();
                queue
            })
            .collect();
        fences[0].signal(1).unwrap();
        fences[queues as usize].wait(1, LONG).unwrap();
        for queue in &mut made {
            queue.progress_fence().wait(1, LONG).unwrap();
        }
    }
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// Anything else is refused before the driver sees it, with a sentence that says what to take.
///
/// Mutant: `tuning-takes-any-lanes`.
#[test]
fn an_engine_of_other_lanes_is_refused_and_told_why() {
    let Some((instance, info)) = first_adapter() else {
        return;
    };
    let subgroup = info.features.subgroup_size;
    let most = info.features.workgroup_lanes / subgroup * subgroup;
    let mut refused = vec![0, most + subgroup];
    if subgroup > 1 {
        refused.extend([1, subgroup + 1]);
    }
    for lanes in refused {
        let error = open(&instance, &info, lanes).unwrap_err().to_string();
        assert!(error.contains(&format!("{lanes} lanes are")), "{error}");
    }
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// Iterations of an engine that comes to so many fences in a row, all reached, and of a slice or two beside.
fn iterations_of(instance: &Arc<Instance>, info: &AdapterInfo, resolves: bool) -> u64 {
    let options = AdapterOptions {
        tuning: ShaderTuning {
            resolves: Some(resolves),
            ..ShaderTuning::default()
        },
        policy: NodePolicy {
            // Nobody comes late here.
            idle_window: Duration::ZERO,
            company_window: Duration::ZERO,
            ..NodePolicy::default()
        },
        ..AdapterOptions::default()
    };
    let adapter = Adapter::open_on(instance, info, &options).unwrap();
    let device = adapter.create_device();
    let fences: Vec<_> = (0..FENCES)
        .map(|_| device.create_fence(1).unwrap())
        .collect();
    let mut queue = device.create_hw_queue().unwrap();
    let mut list = CommandList::new();
    for fence in &fences {
        list.wait(fence, 1);
    }
    let complete = |queue: &mut HwQueue, list: &CommandList| {
        let value = queue.submit(list).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
    };
    let before = adapter.node_counters();
    complete(&mut queue, &list);
    // What its slices have done is counted by the next time that the engine parks.
    let parks = adapter.node_counters().parks;
    complete(&mut queue, CommandList::new().nop());
    until("it parks", || adapter.node_counters().parks > parks);
    let logged = queue.read_wait_log().unwrap().entries.len();
    assert_eq!(logged, FENCES, "each wait was executed");
    adapter.node_counters().iterations - before.iterations
}

/// A lane that resolves in the midst of an iteration goes through fences that it does not know in one; another comes to
/// one in each.
///
/// Kills `no-lane-resolves-on-its-way`.
#[test]
fn a_lane_that_resolves_on_its_way_needs_no_iteration_for_each_fence() {
    let Some((instance, info)) = first_adapter() else {
        return;
    };
    let each = iterations_of(&instance, &info, false);
    assert!(each >= FENCES as u64, "{each} iterations");
    let at_once = iterations_of(&instance, &info, true);
    assert!(at_once < FENCES as u64, "{at_once} iterations");
    assert_eq!(validation::messages(), Vec::<String>::new());
}
