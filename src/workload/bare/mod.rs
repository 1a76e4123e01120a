//! The bare control: what words in memory cost on this device, with nothing around them.
//!
//! A dispatch that stores and polls words of the memory in which native fences lie, submitted and
//! waited for with a timeline semaphore. It is no fence: nothing is queued, checked, logged or
//! notified. It says how much of a native fence's time is the device's.

mod copy;
mod cpu_wait;
mod device_clock;
mod handoff;
mod handoff_cross;
mod reset;
mod round_trip;
mod shader_copy;
mod storm;
mod together;
mod turns;
mod work;

pub use copy::Copy;
pub use cpu_wait::CpuWait;
pub use handoff::Handoff;
pub use handoff_cross::HandoffCross;
pub use reset::Reset;
pub use round_trip::RoundTrip;
pub use shader_copy::shader_copy;
pub use storm::Storm;
pub use turns::TurnTaker;
pub use work::Work;

use super::{Counts, PATIENCE};
use crate::shared::{Block, Region};
use crate::sync::Arc;
use crate::vulkan::shaders::Shader;
use crate::vulkan::{
    CommandBuffer, CommandRecorder, ComputePipeline, Device, Exporter, LocalMemory, Queue,
    RegionImport, Reuse, SLICE_BEGIN, SLICE_END, Timeline, WaitOutcome,
};
use anyhow::{Context, bail};

/// What lies between two words.
const LINE_BYTES: u64 = 64;

/// Width of the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 64 bits, as fences are.
    Wide,
    /// 32 bits, for devices without 64-bit atomics.
    Narrow,
}

impl Width {
    /// The widest that a device has.
    #[must_use]
    pub fn of(device: &Device) -> Self {
        let features = &device.adapter().features;
        if features.shader_int64 && features.buffer_int64_atomics {
            Self::Wide
        } else {
            Self::Narrow
        }
    }

    fn bits(self) -> u64 {
        match self {
            Self::Wide => 64,
            Self::Narrow => 32,
        }
    }

    fn shader(self, wide: &'static Shader, narrow: &'static Shader) -> &'static Shader {
        match self {
            Self::Wide => wide,
            Self::Narrow => narrow,
        }
    }
}

/// Lines of the hand-off's shader, by party.
mod lines {
    /// The words that are passed to and fro.
    pub(super) const WORDS: [u64; 2] = [0, 1];
    /// How often each was answered.
    pub(super) const ANSWERS: [u64; 2] = [2, 3];
}

/// Which party of a hand-off a dispatch is, and how many looks in a row are in vain before it gives
/// up: specialisation of the hand-off's shader.
fn party(device: &Device, role: u32, rounds: u64, most_silence: u32) -> [(u32, u32); 4] {
    let lanes = device.adapter().features.subgroup_size.max(2);
    [
        (0, lanes),
        (1, 2 * rounds as u32),
        (3, role),
        (5, most_silence),
    ]
}

/// A page of words.
fn page() -> anyhow::Result<Arc<Region>> {
    Ok(Region::new("bare-control", 64 * LINE_BYTES)?)
}

/// A page of words that a running shader sees the host store to: a device with memory of its own may see no such stores
/// in system memory (`gpu::host_stores`).
fn page_for_host(device: &Arc<Device>) -> anyhow::Result<Arc<Region>> {
    match device.adapter().features.local_memory {
        LocalMemory::Separate { .. } => {
            let memory = Exporter::of_one_device(device);
            Ok(memory.words_of_host(64 * LINE_BYTES)?)
        }
        LocalMemory::Unreachable | LocalMemory::SameAsSystem => page(),
    }
}

/// A dispatch over words of shared memory, ready to be submitted.
#[derive(Debug)]
struct Dispatch {
    words: Block,
    commands: CommandBuffer,
    timeline: Timeline,
    queue: Queue,
    value: u64,
}

impl Dispatch {
    /// One workgroup of a shader over one page of words, a cache line each.
    fn new(device: &Arc<Device>, shader: &Shader, spec: &[(u32, u32)]) -> anyhow::Result<Self> {
        let queue = device.queue(0).context("the device gives out no queue")?;
        Self::over(&page()?, queue, shader, spec)
    }

    /// One workgroup of a shader over a page that it may share with other dispatches.
    fn over(
        page: &Arc<Region>,
        queue: Queue,
        shader: &Shader,
        spec: &[(u32, u32)],
    ) -> anyhow::Result<Self> {
        let device = queue.device();
        let pipeline = ComputePipeline::new(device, shader.words, 8, spec)?;
        let mapping = page.map()?;
        let words = Block::whole(&mapping);
        let import = RegionImport::new(device, &mapping)?;
        let address = import.gpu_va().to_le_bytes();
        let commands = CommandRecorder::begin(device, Reuse::Simultaneous)?
            .keep(Arc::new(import))
            .barrier(SLICE_BEGIN)
            .bind(&pipeline)
            .push(&address)
            .dispatch(1, 1, 1)
            .barrier(SLICE_END)
            .end()?;
        Ok(Self {
            words,
            commands,
            timeline: Timeline::new(device, 0)?,
            queue,
            value: 0,
        })
    }

    fn submit(&mut self) -> anyhow::Result<()> {
        self.value += 1;
        self.queue
            .submit_one(Some(&self.commands), None, (&self.timeline, self.value))?;
        Ok(())
    }

    fn wait(&self) -> anyhow::Result<()> {
        match self.timeline.wait(self.value, Some(PATIENCE))? {
            WaitOutcome::Reached => Ok(()),
            WaitOutcome::TimedOut => bail!("a dispatch of the bare control did not end"),
        }
    }

    /// Whether what was submitted has ended.
    fn has_ended(&self) -> anyhow::Result<bool> {
        Ok(self.timeline.value()? >= self.value)
    }

    /// Stores a word, by the CPU.
    fn put(&self, line: u64, value: u64) {
        self.words.word(line * LINE_BYTES).publish(value);
    }

    /// The word on a cache line.
    fn word(&self, line: u64) -> u64 {
        self.words.word(line * LINE_BYTES).observe()
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.queue.submits(),
            notifications: None,
        }
    }
}
