//! Host stores: whether a running shader sees what the host stores in system memory.
//!
//! Nothing promises it (`shaders/abi/word.glsl`): what the host stored is visible to what is submitted after. A CPU device
//! sees it, and so does a GPU that asks the host's caches each time. One that keeps lines of system memory in a cache of
//! its own, which nothing takes back while a shader runs, does not (NVIDIA's H100: a line that was read once reads the same
//! until the next submission). Then what a running engine is to see must lie in the device's own memory. So it is tried.

use super::SharedQueue;
use crate::shared::{Block, Mapping};
use crate::sync::{Arc, lock};
use crate::vulkan::{
    CommandRecorder, ComputePipeline, RegionImport, Reuse, SLICE_BEGIN, SLICE_END, Timeline,
    WaitOutcome, shaders,
};
use anyhow::Context;
use std::time::{Duration, Instant};

/// Lines of the hand-off's shader: the words of both parties, then how often the first was answered.
const LINE_BYTES: u64 = 64;
const SHADERS_WORD: u64 = 0;
const HOSTS_WORD: u64 = LINE_BYTES;
const ANSWERS: u64 = 2 * LINE_BYTES;
/// Bytes that the try needs.
pub const HOST_STORES_BYTES: u64 = 4 * LINE_BYTES;
/// Passes of eight looks of one try each: the host may not have a core at first.
const PASSES: [u32; 3] = [64, 512, 4096];
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a shader on this queue, which has looked at a word already, sees what the host stores there meanwhile: the
/// shader and the host's looks by `mapping`, the host's stores by `host`. Not seen, too, where the queue does not come to
/// the shader in time: on a program's queue it stands behind what the program has there.
///
/// # Errors
/// The driver takes no shader, or the device is lost.
pub fn sees_host_stores(
    queue: &SharedQueue,
    mapping: &Arc<Mapping>,
    host: &Block,
) -> anyhow::Result<bool> {
    for passes in PASSES {
        if is_seen(queue, mapping, host, passes)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_seen(
    queue: &SharedQueue,
    mapping: &Arc<Mapping>,
    host: &Block,
    passes: u32,
) -> anyhow::Result<bool> {
    let device = Arc::clone(lock(queue).device());
    let lanes = device.adapter().features.subgroup_size.max(2);
    // The first party of two hand-offs: it has looked at its word when it stores to the other's.
    let spec = [(0, lanes), (1, 2), (3, 0), (4, passes), (5, u32::MAX)];
    let pipeline = ComputePipeline::new(&device, shaders::BARE_HANDOFF.words, 8, &spec)?;
    let import = RegionImport::new(&device, mapping)?;
    let address = import.gpu_va().to_le_bytes();
    let commands = CommandRecorder::begin(&device, Reuse::OneAtATime)?
        .keep(Arc::new(import))
        .barrier(SLICE_BEGIN)
        .bind(&pipeline)
        .push(&address)
        .dispatch(1, 1, 1)
        .barrier(SLICE_END)
        .end()?;
    let done = Timeline::new(&device, 0)?;
    let seen = Block::whole(mapping);
    for word in [SHADERS_WORD, HOSTS_WORD, ANSWERS] {
        seen.word(word).publish(0);
    }
    lock(queue).submit_one(Some(&commands), None, (&done, 1))?;
    let deadline = Instant::now() + PATIENCE;
    while seen.word(HOSTS_WORD).observe() == 0 && done.value()? == 0 && Instant::now() < deadline {
        std::hint::spin_loop();
    }
    host.word(SHADERS_WORD).publish(1);
    let ended = done.wait(1, Some(PATIENCE));
    let ended = ended.context("while a shader waited for the host")?;
    Ok(ended == WaitOutcome::Reached && seen.word(ANSWERS).observe() != 0)
}
