//! What a slice is to the driver. Two submissions of a queue are ordered in their start only, and a
//! semaphore promises the host no visibility; lavapipe hides a missing barrier and no validation
//! layer sees it, so the command buffers are read back (`decisions.md` 3).

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod vulkan_support;

use native_fence::KernelCode;
use native_fence::abi::{Dispatch, DispatchBlock, SLICE_SLOTS};
use native_fence::gpu::{Engine, GpuVa, Kernels, ShaderEngine, ShaderTuning};
use native_fence::vulkan::{Accesses, Barrier, Recorded, Stages, shaders};
use std::sync::{Arc, Mutex};
use vulkan_support::Bench;

const CONTROL: GpuVa = GpuVa(0x1234_5678_9abc_d000);

/// After the slice before: its stores, and the arguments that it wrote for indirect dispatches.
const BEGIN: Barrier = Barrier {
    src_stage: Stages::COMPUTE,
    src_access: Accesses::SHADER_WRITE,
    dst_stage: Stages::COMPUTE.and(Stages::DRAW_INDIRECT),
    dst_access: Accesses::SHADER_READ
        .and(Accesses::SHADER_WRITE)
        .and(Accesses::INDIRECT_COMMAND_READ),
};

/// Before the host reads.
const END: Barrier = Barrier {
    src_stage: Stages::COMPUTE,
    src_access: Accesses::SHADER_WRITE,
    dst_stage: Stages::HOST,
    dst_access: Accesses::HOST_READ,
};

fn words(push: &[u8]) -> Vec<u64> {
    let words = push.chunks_exact(8);
    words
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

/// Kills `slice-begins-without-a-barrier`, `slice-ends-without-a-barrier`,
/// `slice-begin-orders-reads-only` and `slice-end-is-not-for-the-host`.
#[test]
fn a_slice_is_one_workgroup_between_its_two_barriers() {
    let bench = Bench::new();
    let queue = bench.device.queue(0).unwrap();
    let mut engine =
        ShaderEngine::new(Arc::new(Mutex::new(queue)), ShaderTuning::default()).unwrap();
    engine.attach(CONTROL, 0).unwrap();

    assert!(!engine.commands().is_empty());
    let mut pipelines = Vec::new();
    for (place, commands) in engine.commands().iter().enumerate() {
        let [
            Recorded::Barrier(begin),
            Recorded::Bind(pipeline),
            Recorded::Push(push),
            Recorded::Dispatch(groups),
            Recorded::Barrier(end),
        ] = commands.recorded()
        else {
            panic!("slice {place}: {:?}", commands.recorded());
        };
        assert_eq!((*begin, *end), (BEGIN, END), "slice {place}");
        assert_eq!(*groups, [1, 1, 1], "slice {place}");
        let slot = place as u64 % SLICE_SLOTS;
        assert_eq!(
            words(push),
            [CONTROL.0, slot, 0, 0, 0, 0, 0, 0, 0],
            "slice {place}"
        );
        pipelines.push(*pipeline);
    }
    // The slots of one variant of the engine stand side by side.
    for slots in pipelines.chunks(SLICE_SLOTS as usize) {
        assert_eq!(slots, [slots[0]; SLICE_SLOTS as usize]);
    }
}

/// HQ-08: a slice that dispatches is the engine, and rounds of each kernel and the engine again, with a barrier before
/// each of them that orders stores against shaders and against the counts of indirect dispatches. All but the first
/// run in as many workgroups as the block says.
///
/// Kills `a-kernel-begins-without-a-barrier`, `a-round-begins-without-a-barrier`.
#[test]
fn hq_08_each_kernel_and_each_round_stands_behind_a_barrier() {
    let bench = Bench::new();
    let queue = bench.device.queue(0).unwrap();
    let mut engine =
        ShaderEngine::new(Arc::new(Mutex::new(queue)), ShaderTuning::default()).unwrap();
    let mut kernels = Kernels::default();
    let shaders = [
        &shaders::ADD_WORDS,
        &shaders::ADD_WORDS_TOGETHER,
        &shaders::ADD_WORDS_SELF_SCHEDULING,
    ];
    for (slot, shader) in (0..).zip(shaders) {
        let code = Arc::new(KernelCode::new(shader.words, 32).unwrap());
        assert_eq!(kernels.add(&code), Ok(slot));
    }
    engine.set_kernels(&kernels).unwrap();
    // The addresses come later where an engine is kept warm.
    engine.attach(CONTROL, 0).unwrap();
    let slices = engine.dispatching();
    // Of two kinds, one that does nothing but dispatch and one that does all, each in two lengths.
    assert_eq!(slices.len() as u64, 4 * SLICE_SLOTS);
    for (at, slice) in (0..).zip(&slices) {
        let slot = at % SLICE_SLOTS;
        let (rounds, depth) = match at / SLICE_SLOTS % 2 {
            0 => (Dispatch::ROUNDS, 1),
            _ => (Dispatch::LONG_ROUNDS, Dispatch::DEPTH),
        };
        let mut recorded = slice.recorded().iter();
        let mut next = || recorded.next().unwrap().clone();
        assert_eq!(next(), Recorded::Barrier(BEGIN));
        let Recorded::Bind(shader) = next() else {
            panic!("the engine comes first: {slice:?}")
        };
        let Recorded::Push(push) = next() else {
            panic!("{slice:?}")
        };
        let block = words(&push)[2];
        let engines = |round| [CONTROL.0, slot, block, round, rounds, depth, 3, 3, 0b111];
        assert_eq!(words(&push), engines(0));
        assert_ne!(block, 0);
        assert_eq!(next(), Recorded::Dispatch([1, 1, 1]));
        for round in 1..=rounds {
            for turn in 0..depth {
                assert_eq!(next(), Recorded::Barrier(BEGIN), "round {round}");
                // One that is followed by the engine in any case runs once in a round.
                for kernel in if turn == 0 { 0..3 } else { 2..3 } {
                    let Recorded::Bind(pipeline) = next() else {
                        panic!("{slice:?}")
                    };
                    assert_ne!(pipeline, shader);
                    // The one that finds its job gets what the engine has of it, the other its parameters.
                    let argument = match kernel {
                        0 => DispatchBlock::PARAMETERS,
                        _ => DispatchBlock::kernel(kernel),
                    };
                    let argument = (block + argument).to_le_bytes().to_vec();
                    assert_eq!(next(), Recorded::Push(argument));
                    // No record is read twice in a row, and the first once in a round.
                    let record = [0, 1, 2, 1, 2, 1, 2, 1][turn as usize];
                    let offset = DispatchBlock::kernel(kernel) + 16 * record;
                    assert_eq!(next(), Recorded::DispatchIndirect { offset });
                }
            }
            assert_eq!(next(), Recorded::Barrier(BEGIN), "round {round}");
            assert_eq!(next(), Recorded::Bind(shader));
            let Recorded::Push(push) = next() else {
                panic!("{slice:?}")
            };
            assert_eq!(words(&push), engines(round));
            let offset = if round < rounds {
                DispatchBlock::NEXT_ROUND
            } else {
                DispatchBlock::LAST_ROUND
            };
            assert_eq!(next(), Recorded::DispatchIndirect { offset });
        }
        assert_eq!(next(), Recorded::Barrier(END));
        assert_eq!(recorded.next(), None);
    }
}
