//! Host stores: whether a running shader sees what the host stores in system memory.
//!
//! Nothing promises it (`shaders/abi/word.glsl`): what the host stored is visible to what is submitted after. A CPU device
//! sees it, and so does a GPU that asks the host's caches each time. One that keeps lines of system memory in a cache of
//! its own, which nothing takes back while a shader runs, does not (NVIDIA's H100: a line that was read once reads the same
//! until the next submission). Then what a running engine is to see must lie in the device's own memory. So it is tried.

use super::SharedQueue;
use crate::abi::WordGroup;
use crate::shared::{Block, LocalMemory, Mapping, Providers};
use crate::sync::{Arc, lock};
use crate::vulkan::{
    CommandBuffer, CommandRecorder, ComputePipeline, RegionImport, Reuse, SLICE_BEGIN, SLICE_END,
    Timeline, WaitOutcome, shaders,
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
/// Stores in a row that are to be seen.
const ROUNDS: u64 = 32;
/// Looks in which each of them is: some microseconds. On an H100 submissions of other programs drop what it has cached, up
/// to once in 0.1 ms where there are many; that is not to see.
const LOOKS: u32 = 32;
/// Tries: the host may not have a core at first. Where it has none at all, the memory that is right in any case is taken.
const TRIES: u64 = 16;
/// Looks of the host between two at whether the shader has ended.
const HOSTS_LOOKS: u32 = 256;
const PATIENCE: Duration = Duration::from_secs(1);

/// The same providers, which know whether running engines on this queue see what the host stores in system memory. Tried
/// where the device has memory of its own; where it is the CPU's, nothing is to be found out, and whoever asks for what
/// such a device cannot have (`is_forced`) is given all of it.
///
/// # Errors
/// As [`sees_host_stores`]; no page.
pub fn with_host_stores_tried(
    providers: Providers,
    queue: &SharedQueue,
    is_forced: bool,
) -> anyhow::Result<Providers> {
    let local = lock(queue).device().adapter().features.local_memory;
    let sees = match local {
        LocalMemory::SameAsSystem => !is_forced,
        LocalMemory::Unreachable | LocalMemory::Separate { .. } => {
            let system = providers.system();
            let page = system.region(WordGroup::CurrentValues, HOST_STORES_BYTES)?;
            sees_host_stores(queue, &page.map()?, &page.host()?)?
        }
    };
    Ok(if sees {
        providers
    } else {
        providers.with_system_memory_seen_late()
    })
}

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
    let device = Arc::clone(lock(queue).device());
    let lanes = device.adapter().features.subgroup_size.max(2);
    // The first party of hand-offs: it has looked at its word when it first stores to the other's, and gives up after so
    // many looks in vain, of which it takes eight a pass before the first answer.
    let spec = [
        (0, lanes),
        (1, 2 * ROUNDS as u32),
        (2, LOOKS * ROUNDS as u32),
        (3, 0),
        (4, LOOKS / 8),
        (5, LOOKS),
    ];
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
    let words = (&Block::whole(mapping), host);
    for number in 1..=TRIES {
        match are_seen(queue, &commands, (&done, number), words)? {
            Some(false) => {}
            seen => return Ok(seen == Some(true)),
        }
    }
    Ok(false)
}

/// One try, with the number that `done` has after it; `None` where the queue did not come to it in time, and may yet.
fn are_seen(
    queue: &SharedQueue,
    commands: &CommandBuffer,
    (done, number): (&Timeline, u64),
    (seen, host): (&Block, &Block),
) -> anyhow::Result<Option<bool>> {
    for word in [SHADERS_WORD, HOSTS_WORD, ANSWERS] {
        seen.word(word).publish(0);
    }
    lock(queue).submit_one(Some(commands), None, (done, number))?;
    let deadline = Instant::now() + PATIENCE;
    let is_asked = |round| -> anyhow::Result<bool> {
        loop {
            // The shader waits for some microseconds: the driver is asked seldom.
            for _ in 0..HOSTS_LOOKS {
                if seen.word(HOSTS_WORD).observe() >= round {
                    return Ok(true);
                }
                std::hint::spin_loop();
            }
            if done.value()? >= number || Instant::now() >= deadline {
                return Ok(false);
            }
        }
    };
    for round in 1..=ROUNDS {
        if !is_asked(round)? {
            break;
        }
        host.word(SHADERS_WORD).publish(round);
    }
    let ended = done.wait(number, Some(PATIENCE));
    let ended = ended.context("while a shader waited for the host")?;
    let ended = ended == WaitOutcome::Reached;
    Ok(ended.then(|| seen.word(ANSWERS).observe() == ROUNDS))
}
