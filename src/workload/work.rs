//! Work: what the scenario's runners have in common. Chains of dependent dispatches of one small kernel.

use super::bench::Bench;
use super::{PATIENCE, Params};
use crate::shared::{Block, Region};
use crate::sync::Arc;
use crate::vulkan::{
    CommandBuffer, CommandRecorder, ComputePipeline, Device, Queue, RegionImport, Reuse,
    SLICE_BEGIN, SLICE_END, Timeline, WaitOutcome, shaders,
};
use anyhow::ensure;
use std::time::{Duration, Instant};

/// Words of a chain: one of each invocation of its one workgroup, which is a subgroup of most processors.
pub(super) const WORDS: u64 = 8;
/// Steps of a word in a pass of the kernel.
const STEPS_OF_A_PASS: u64 = 128;
/// What lavapipe 22 runs of a workgroup: 65,535 passes in all.
const MOST_PASSES: u64 = 60_000;

/// How many chains there are, and how long a dispatch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkForm {
    /// Chains side by side.
    pub chains: u64,
    /// What the kernel takes by itself, nearly.
    pub micros: u64,
    /// Its name in the report.
    pub name: &'static str,
}

const fn form(chains: u64, micros: u64, name: &'static str) -> WorkForm {
    WorkForm {
        chains,
        micros,
        name,
    }
}

impl WorkForm {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 12] = [
        form(1, 1, "1 chain of 1 us"),
        form(1, 10, "1 chain of 10 us"),
        form(1, 100, "1 chain of 100 us"),
        form(1, 1000, "1 chain of 1 ms"),
        form(8, 1, "8 chains of 1 us"),
        form(8, 10, "8 chains of 10 us"),
        form(8, 100, "8 chains of 100 us"),
        form(8, 1000, "8 chains of 1 ms"),
        form(64, 1, "64 chains of 1 us"),
        form(64, 10, "64 chains of 10 us"),
        form(64, 100, "64 chains of 100 us"),
        form(64, 1000, "64 chains of 1 ms"),
    ];

    /// Dispatches of a chain, each of which needs the one before.
    pub(super) fn links(self) -> u64 {
        match self.micros {
            ..=10 => 64,
            11..=100 => 32,
            _ => 8,
        }
    }

    /// Dispatches of a batch.
    pub(super) fn ops(self) -> u64 {
        self.chains * self.links()
    }

    /// Sizes, for the report.
    pub(super) fn params(self, passes: u64) -> Params {
        [
            ("form".into(), self.name.into()),
            ("chains".into(), self.chains.into()),
            ("links".into(), self.links().into()),
            ("microseconds".into(), self.micros.into()),
            ("passes".into(), passes.into()),
        ]
        .into()
    }
}

/// What the kernel multiplies by.
pub(super) const FACTOR: u64 = 6_364_136_223_846_793_005;
/// Bytes of the kernel's parameters.
pub(super) const PARAMETER_BYTES: u32 = 24;

/// A word after so many steps: x → a·x + 1, taken 2^n times at once.
fn stepped(mut word: u64, mut steps: u64) -> u64 {
    let (mut a, mut c) = (FACTOR, 1_u64);
    while steps != 0 {
        if steps & 1 == 1 {
            word = word.wrapping_mul(a).wrapping_add(c);
        }
        c = c.wrapping_mul(a).wrapping_add(c);
        a = a.wrapping_mul(a);
        steps >>= 1;
    }
    word
}

/// What a chain's words are before a batch.
pub(super) fn first_words(batch: u64, chain: u64) -> Vec<u64> {
    (0..WORDS)
        .map(|at| batch << 32 | chain << 16 | at)
        .collect()
}

/// A chain's words are what its links make of them, each once and in order.
///
/// # Errors
/// Which word is not.
pub(super) fn check(batch: u64, chain: u64, steps: u64, words: &[u64]) -> anyhow::Result<()> {
    for (at, (word, first)) in words.iter().zip(first_words(batch, chain)).enumerate() {
        let expected = stepped(first, steps);
        ensure!(
            *word == expected,
            "word {at} of chain {chain} is {word:#x}, not {expected:#x}"
        );
    }
    Ok(())
}

/// Steps of a word in so many links.
pub(super) fn steps_of(links: u64, passes: u64) -> u64 {
    links * passes * STEPS_OF_A_PASS
}

/// Words and parameters of chains, as a Vulkan device has them and as the CPU has them.
#[derive(Debug)]
pub(super) struct Chains {
    import: Arc<RegionImport>,
    block: Block,
    count: u64,
    passes: u64,
}

impl Chains {
    const WORD_BYTES: u64 = WORDS * 8;

    pub(super) fn new(device: &Arc<Device>, count: u64, passes: u64) -> anyhow::Result<Self> {
        let mapping = Region::new(
            "chains",
            count * (Self::WORD_BYTES + u64::from(PARAMETER_BYTES)),
        )?
        .map()?;
        let block = Block::whole(&mapping);
        let import = Arc::new(RegionImport::new(device, &mapping)?);
        for chain in 0..count {
            let words = import.gpu_va() + chain * Self::WORD_BYTES;
            block.put_words(Self::parameters(count, chain), &[words, passes, FACTOR]);
        }
        Ok(Self {
            import,
            block,
            count,
            passes,
        })
    }

    fn parameters(count: u64, chain: u64) -> u64 {
        count * Self::WORD_BYTES + chain * u64::from(PARAMETER_BYTES)
    }

    /// The kernel's one push constant, for a chain's one workgroup. The words of the chains lie behind each other, so
    /// that of the first one serves a dispatch of as many workgroups as there are chains, too.
    pub(super) fn push(&self, chain: u64) -> [u8; 8] {
        (self.import.gpu_va() + Self::parameters(self.count, chain)).to_le_bytes()
    }

    /// What keeps the memory.
    pub(super) fn memory(&self) -> Arc<RegionImport> {
        Arc::clone(&self.import)
    }

    pub(super) fn begin(&self, batch: u64) {
        for chain in 0..self.count {
            let at = chain * Self::WORD_BYTES;
            self.block.put_words(at, &first_words(batch, chain));
        }
    }

    pub(super) fn check(&self, batch: u64, links: u64) -> anyhow::Result<()> {
        let steps = steps_of(links, self.passes);
        (0..self.count).try_for_each(|chain| {
            let words = (0..WORDS).map(|at| chain * Self::WORD_BYTES + at * 8);
            let words: Vec<_> = words.map(|at| self.block.word(at).peek()).collect();
            check(batch, chain, steps, &words)
        })
    }
}

/// The kernel's pipeline.
pub(super) fn pipeline(device: &Arc<Device>) -> anyhow::Result<ComputePipeline> {
    Ok(ComputePipeline::new(device, shaders::WORK.words, 8, &[])?)
}

/// A command buffer's links of the kernel, each behind a barrier: one dispatch, with a workgroup for each chain.
pub(super) fn record_links(
    device: &Arc<Device>,
    chains: &Chains,
    links: u64,
    reuse: Reuse,
) -> anyhow::Result<CommandBuffer> {
    let pipeline = pipeline(device)?;
    let recorder = CommandRecorder::begin(device, reuse)?.keep(chains.memory() as _);
    let mut recorder = recorder.bind(&pipeline);
    let (all, workgroups) = (chains.push(0), u32::try_from(chains.count)?);
    for _ in 0..links {
        recorder = recorder.barrier(SLICE_BEGIN);
        recorder = recorder.push(&all).dispatch(workgroups, 1, 1);
    }
    Ok(recorder.barrier(SLICE_END).end()?)
}

/// Passes of the kernel that take so long on the bench's device. Measured once a bench: all runners of a row do the
/// same.
pub(super) fn passes_in(bench: &Bench, micros: u64) -> anyhow::Result<u64> {
    let known = bench.picoseconds_of_a_pass.get().copied();
    let of_a_pass = known.map_or_else(|| picoseconds_of_a_pass(bench), Ok)?;
    bench.picoseconds_of_a_pass.get_or_init(|| of_a_pass);
    let passes = (micros * 1_000_000).div_ceil(of_a_pass);
    ensure!(
        passes <= MOST_PASSES,
        "the device takes {passes} passes of the kernel in {micros} microseconds, and some drivers end loops after fewer"
    );
    Ok(passes)
}

/// From what more passes of as many dispatches take longer. A busy machine takes its processors away for longer than
/// the kernel needs, so the quickest of all tries counts, and it is tried again while the difference is less than half
/// of what a dispatch of many passes lets one take at most, its own costs included.
///
/// Where more passes never took longer, that most is taken, and said: rows have a kernel of fewer passes than their
/// names promise then, and all the same.
fn picoseconds_of_a_pass(bench: &Bench) -> anyhow::Result<u64> {
    const LINKS: u64 = 16;
    const FEW: u64 = 64;
    const MANY: u64 = 1024;
    const TRIES: u32 = 5;
    const ROUNDS: u32 = 8;
    let mut queue = bench.queue()?;
    let device = Arc::clone(queue.device());
    let timeline = Timeline::new(&device, 0)?;
    let commands = |passes| -> anyhow::Result<CommandBuffer> {
        let chains = Chains::new(&device, 1, passes)?;
        record_links(&device, &chains, LINKS, Reuse::OneAtATime)
    };
    let commands = [commands(FEW)?, commands(MANY)?];
    let mut value = 0;
    let mut least = [Duration::MAX; 2];
    let (mut measured, mut most) = (None, 1);
    for _ in 0..ROUNDS {
        for (least, commands) in least.iter_mut().zip(&commands) {
            for _ in 0..TRIES {
                value += 1;
                *least = (*least).min(run(&mut queue, commands, (&timeline, value))?);
            }
        }
        measured = of_a_pass(least, (MANY - FEW) * LINKS);
        most = of_a_pass([Duration::ZERO, least[1]], MANY * LINKS).unwrap_or(1);
        if let Some(of_a_pass) = measured.filter(|of_a_pass| *of_a_pass >= most / 2) {
            return Ok(of_a_pass);
        }
    }
    Ok(measured.unwrap_or_else(|| {
        eprintln!(
            "nfence: the machine is too busy to measure a pass of the kernel of `work`: its dispatches may be \
             shorter than the rows' names say"
        );
        most
    }))
}

/// What so many more passes make of one, in picoseconds, where they took longer at all.
fn of_a_pass([few, many]: [Duration; 2], more: u64) -> Option<u64> {
    let of_a_pass = many.checked_sub(few)?.as_nanos() * 1000 / u128::from(more);
    u64::try_from(of_a_pass).ok().filter(|time| *time != 0)
}

/// Submits a command buffer and waits for it.
pub(super) fn run(
    queue: &mut Queue,
    commands: &CommandBuffer,
    (timeline, value): (&Timeline, u64),
) -> anyhow::Result<Duration> {
    let start = Instant::now();
    queue.submit_one(Some(commands), None, (timeline, value))?;
    let outcome = timeline.wait(value, Some(PATIENCE))?;
    let wall = start.elapsed();
    ensure!(outcome == WaitOutcome::Reached, "the chains did not end");
    Ok(wall)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_takes_what_more_of_them_take_longer() {
        let times = |few, many| [few, many].map(Duration::from_micros);
        assert_eq!(of_a_pass(times(100, 1000), 900), Some(1_000_000));
        assert_eq!(of_a_pass(times(100, 100), 900), None);
        assert_eq!(of_a_pass(times(1000, 100), 900), None, "too busy");
        assert_eq!(of_a_pass(times(0, 100), 1000), Some(100_000));
    }
}
