//! Idle kernels: what a registered kernel that no packet names costs, as what is recorded for it. What that is in time is
//! measured (`benches/idle_kernels.rs`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod kernels;
}

use native_fence::abi::{Dispatch, SLICE_SLOTS};
use native_fence::gpu::{
    Engine, EngineLost, GpuVa, Kernels, NodePolicy, ShaderEngine, ShaderTuning, SliceWork,
};
use native_fence::vulkan::{
    Device, DeviceLoss, DeviceOptions, Instance, InstanceOptions, Recorded, choose, shaders,
};
use native_fence::{CommandList, KernelCode};
use std::sync::{Arc, Mutex};
use support::bench::{LONG, on_every_bench};
use support::kernels::{add_words, add_words_self_scheduling, groups_for, sums};

/// Slices after which a kernel that is not used is in none any more: 512, and 64 from one look for such to the next.
const HELD: u64 = 576;

/// Slices that would dispatch, after the last that did.
const DISPATCHING: usize = 64;

/// An engine with so many kernels of each kind, whose device takes no slices: what would be recorded for them is there.
fn engine_with(kernels: usize) -> ShaderEngine {
    let instance = Instance::new(InstanceOptions::default()).unwrap();
    let adapters = instance.adapters();
    let loss = DeviceLoss::new();
    let options = DeviceOptions {
        loss: Some(Arc::clone(&loss)),
        ..DeviceOptions::default()
    };
    let device = Device::open(&instance, choose(&adapters, None).unwrap(), options).unwrap();
    let queue = Arc::new(Mutex::new(device.queue(0).unwrap()));
    let mut engine = ShaderEngine::new(queue, ShaderTuning::default()).unwrap();
    let mut all = Kernels::default();
    for shader in [&shaders::ADD_WORDS, &shaders::ADD_WORDS_SELF_SCHEDULING] {
        for _ in 0..kernels {
            let code = Arc::new(KernelCode::new(shader.words, 32).unwrap());
            all.add(&code).unwrap();
        }
    }
    engine.set_kernels(&all).unwrap();
    engine.attach(GpuVa(0x10_0000_0000), 0).unwrap();
    loss.lose();
    engine
}

/// What each slice that dispatches is, command by command.
fn lengths(engine: &ShaderEngine) -> Vec<usize> {
    let slices = engine.dispatching();
    slices.iter().map(|slice| slice.recorded().len()).collect()
}

fn start(engine: &ShaderEngine, slice: u64) {
    let work = SliceWork {
        queues: 1,
        dispatches: true,
        ..SliceWork::default()
    };
    assert_eq!(engine.start(slice, work), Err(EngineLost));
}

/// A slice that dispatches has three commands more for each kernel that may run in it, in each turn of it: bind, push, and a
/// dispatch of no workgroups. That is while the kernel may be used again soon; of one that no packet has named for long a
/// slice has nothing, and is as if it had never been there.
///
/// Kills `slices-hold-all-kernels`, `kernels-stay-for-ever`.
#[test]
fn an_idle_kernel_is_three_commands_of_a_turn_and_soon_none() {
    for kernels in [1, 5] {
        let engine = engine_with(kernels);
        let of_slice = |rounds: u64, depth: u64, kernels: usize| {
            let (rounds, depth) = (rounds as usize, depth as usize);
            // Barrier, the engine, and the barrier to the host; in a round a barrier before each turn and the engine.
            let without = 4 + rounds * (depth + 4) + 1;
            // Those that schedule themselves run in each turn, the others once.
            without + rounds * 3 * (kernels + depth * kernels)
        };
        let expected = |kernels| {
            let short = of_slice(Dispatch::ROUNDS, 1, kernels);
            let long = of_slice(Dispatch::LONG_ROUNDS, Dispatch::DEPTH, kernels);
            let slots = [[short; SLICE_SLOTS as usize], [long; SLICE_SLOTS as usize]].concat();
            [slots.clone(), slots].concat()
        };
        assert_eq!(lengths(&engine), expected(kernels));
        for slice in 1..=HELD / 2 {
            start(&engine, slice);
        }
        assert_eq!(lengths(&engine), expected(kernels), "they may come again");
        for slice in HELD / 2 + 1..=HELD {
            start(&engine, slice);
        }
        assert_eq!(lengths(&engine), expected(0));
        for slice in engine.dispatching() {
            let mut pipelines: Vec<_> = slice.recorded().to_vec();
            pipelines.retain(|command| matches!(command, Recorded::Bind(_)));
            pipelines.dedup();
            assert_eq!(pipelines.len(), 1, "the engine's alone");
        }
    }
}

/// Where no packet names a kernel, or none has for some slices, slices are those of an engine without kernels.
///
/// Kills `slices-dispatch-from-the-first`, `slices-dispatch-for-ever`.
#[test]
fn slices_without_dispatches_have_no_kernels() {
    on_every_bench(NodePolicy::default(), |bench| {
        let code = [add_words(), add_words_self_scheduling()];
        let kernels = code.map(|code| bench.device.create_kernel(code).unwrap());
        let memory = bench.device.create_allocation(8).unwrap();
        let mut queue = bench.queue();
        let fence = bench.fence(0);
        let mut value = 0;
        // Of slices of signals alone, so many: those that dispatch.
        let mut dispatching = |slices: usize| {
            let mut works = Vec::new();
            while works.len() < slices {
                value += 1;
                let end = queue
                    .submit(CommandList::new().signal(&fence, value))
                    .unwrap();
                queue.progress_fence().wait(end, LONG).unwrap();
                works.extend(bench.engine.take_works());
            }
            works.iter().filter(|work| work.dispatches).count()
        };
        assert_eq!(dispatching(10), 0, "no kernel was asked for");
        let mut other = bench.queue();
        for kernel in &kernels {
            let mut list = CommandList::new();
            let parameters = sums(&memory, &memory, 1);
            list.dispatch(kernel, groups_for(1), &parameters).unwrap();
            let end = other.submit(&list).unwrap();
            other.progress_fence().wait(end, LONG).unwrap();
        }
        let works = bench.engine.take_works();
        assert!(works.iter().any(|work| work.dispatches));
        // What is in flight when a slice ends was submitted before anybody has learned of it.
        let after = dispatching(2 * DISPATCHING);
        assert!(after <= DISPATCHING + 2, "{after}");
        assert_eq!(dispatching(10), 0);
    });
}
