//! What a slice is to the driver. Two submissions of a queue are ordered in their start only, and a
//! semaphore promises the host no visibility; lavapipe hides a missing barrier and no validation
//! layer sees it, so the command buffers are read back (`decisions.md` 3).

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod vulkan_support;

use native_fence::abi::SLICE_SLOTS;
use native_fence::gpu::{Engine, GpuVa, ShaderEngine, ShaderTuning};
use native_fence::vulkan::{Accesses, Barrier, Recorded, Stages};
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
        assert_eq!(push.len(), 16);
        assert_eq!(push[..8], CONTROL.0.to_le_bytes());
        let slot = place as u64 % SLICE_SLOTS;
        assert_eq!(push[8..], slot.to_le_bytes(), "slot of slice {place}");
        pipelines.push(*pipeline);
    }
    // The slots of one variant of the engine stand side by side.
    for slots in pipelines.chunks(SLICE_SLOTS as usize) {
        assert_eq!(slots, [slots[0]; SLICE_SLOTS as usize]);
    }
}
