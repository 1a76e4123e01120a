//! Engines that can never run at the same time: one VkQueue, one thread of the driver, one core.
//!
//! The driver reads its number of threads from the environment, and threads inherit the cores that
//! they may use, so the work is done by a process of its own: this test, started once more.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/engines.rs"]
mod engines;
#[path = "support/respawned.rs"]
mod respawned;

use engines::Random;
use native_fence::gpu::EngineUnit;
use native_fence::vulkan::validation;
use native_fence::{Adapter, AdapterOptions, CommandList, Fence, HwQueue, HwQueueOptions};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::num::NonZeroU32;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);
const QUEUES: u64 = 24;
const STEPS: usize = 600;

/// From now on this process, and every thread that it starts, has one core.
fn pin_to_one_core() {
    let cores = sched_getaffinity(None).unwrap();
    let core = (0..CpuSet::MAX_CPU)
        .find(|core| cores.is_set(*core))
        .unwrap();
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one).unwrap();
    assert_eq!(std::thread::available_parallelism().unwrap().get(), 1);
}

/// Steps in an order that solves them: each waits for some before it and signals a fence of its own.
/// Nobody else knows the order; the queues are rung by turns of chance.
fn run(nodes: NonZeroU32, random: &mut Random) {
    let adapter = Adapter::open(&AdapterOptions {
        nodes,
        unit: Some(EngineUnit::Queue),
        validation: validation::asked_for_by_environment(),
        tdr: engines::patient(),
        ..AdapterOptions::default()
    })
    .unwrap();
    let device = adapter.create_device();
    let queue = |number: u64| {
        let options = HwQueueOptions {
            node_ordinal: (number % u64::from(nodes.get())) as u32,
            ..HwQueueOptions::default()
        };
        (
            device.create_hw_queue_with(options).unwrap(),
            CommandList::new(),
        )
    };
    let mut queues: Vec<(HwQueue, CommandList)> = (0..QUEUES).map(queue).collect();
    let fences: Vec<Fence> = (0..STEPS)
        .map(|_| device.create_fence(0).unwrap())
        .collect();
    for step in 0..STEPS {
        let list = &mut queues[random.below(QUEUES) as usize].1;
        for _ in 0..random.below(3) {
            // Near ones, so that queues stand at waits most of the time.
            let back = 1 + random.below(30) as usize;
            if let Some(before) = step.checked_sub(back) {
                list.wait(&fences[before], 1);
            }
        }
        list.signal(&fences[step], 1);
    }
    let mut done = Vec::new();
    while !queues.is_empty() {
        let next = random.below(queues.len() as u64) as usize;
        let (mut queue, list) = queues.swap_remove(next);
        queue.submit(&list).unwrap();
        // Kept until all is done: a queue that is dropped ends.
        done.push(queue);
    }
    for fence in &fences {
        fence.wait(1, LONG).unwrap();
    }
    let counters = adapter.node_counters();
    println!("{nodes} engines: {counters:?}");
    assert!(
        nodes.get() == 1 || counters.returns > 0,
        "nobody had to be brought back"
    );
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// The process that is started by the test below, and by nobody else.
#[test]
#[ignore = "part of hq_07_any_number_of_queues_completes_on_one_queue_and_one_core"]
fn child_on_one_core() {
    pin_to_one_core();
    let mut random = Random(7);
    for nodes in [1, 2, 3] {
        run(NonZeroU32::new(nodes).unwrap(), &mut random);
    }
}

/// No progress of two engines at the same time is relied on: queues that wait on each other in any
/// order that has a solution complete, on one to three engines of one VkDevice and, where it has
/// but one, one VkQueue, with one thread of the driver and one core.
///
/// Kills `an-idle-engine-keeps-the-device` and `parked-engines-are-not-waited-for`.
#[test]
fn hq_07_any_number_of_queues_completes_on_one_queue_and_one_core() {
    if engines::shader().is_none() {
        return;
    }
    let environment = [("LP_NUM_THREADS", "1".into())];
    respawned::run_well("child_on_one_core", &environment, "3 engines: ");
}
