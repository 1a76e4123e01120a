//! Copy of the bare control by a shader: one workgroup copies, with nothing around it.

use crate::sync::Arc;
use crate::vulkan::{ComputePipeline, Queue, SLICE_BEGIN, SLICE_END, shaders};
use crate::workload::copy::{COPIES, COPY_BYTES};
use crate::workload::queue_copy::QueueCopy;
use anyhow::ensure;

/// Bytes that an invocation copies in one pass of the shader's loop.
const BYTES_OF_A_PASS: u64 = 64;

const WORK: &str = "One vkQueueSubmit of 16 dispatches of one workgroup, as large as an engine's, \
                    that copy 1 MiB each by the loop of an engine's COPY; measured is from the call \
                    to the return of vkWaitSemaphores; no packet, no signal.";

/// On a queue, with as many invocations as an engine has lanes by default.
///
/// # Errors
/// No memory, no 64-bit integers in shaders, or the driver imports no memory.
pub fn shader_copy(queue: Queue) -> anyhow::Result<QueueCopy> {
    let device = Arc::clone(queue.device());
    let features = &device.adapter().features;
    ensure!(
        features.shader_int64,
        "the device has no 64-bit integers in shaders"
    );
    let lanes = features.subgroup_size;
    let passes = COPY_BYTES / (BYTES_OF_A_PASS * u64::from(lanes));
    let spec = [(0, lanes), (1, passes as u32)];
    let pipeline = ComputePipeline::new(&device, shaders::BARE_COPY.words, 16, &spec)?;
    QueueCopy::new(queue, WORK, |recorder, from, to| {
        let mut recorder = recorder
            .keep(Arc::clone(from) as _)
            .keep(Arc::clone(to) as _)
            .barrier(SLICE_BEGIN)
            .bind(&pipeline);
        for copy in 0..COPIES {
            let address = |import: u64| (import + copy * COPY_BYTES).to_le_bytes();
            let places = [to.gpu_va(), from.gpu_va()].map(address);
            recorder = recorder.push(places.as_flattened()).dispatch(1, 1, 1);
        }
        Ok(recorder.barrier(SLICE_END))
    })
}
