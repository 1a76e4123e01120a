//! Command engine: an engine that is a queue of the device and executes command buffers.
//!
//! For adapters of monitored fences alone: an engine of WDDM 2.x compares nothing, so no shader is
//! needed. A GPU signal is a store from the command stream, as wide as its fence is; its interrupt is
//! the end of the submission, the only one that Vulkan has. Each part of a command raises the engine's
//! timeline by one, and all parts of a command go in one `vkQueueSubmit`.

use super::{EngineCaps, EngineLost, MapError, SharedQueue};
use crate::shared::{Block, Providers, Region};
use crate::sync::{Arc, Mutex, lock};
use crate::vulkan::{
    COPY_END, CommandBuffer, CommandRecorder, Device, OutOfMemory, RegionImport, Reuse, Submission,
    SubmitError, TRANSFER_ORDER, Timeline, WaitOutcome,
};
use std::time::Duration;

/// A region that the engine reaches, and the host's view of it.
#[derive(Debug)]
pub struct CommandMemory {
    import: Arc<RegionImport>,
    host: Block,
}

impl CommandMemory {
    /// The host's view.
    #[must_use]
    pub fn host(&self) -> &Block {
        &self.host
    }
}

/// What a part of a command does, one thing after another. All places are bytes in a region; who makes
/// them has checked that they lie in it.
#[derive(Clone, Debug)]
pub enum Step {
    /// Stores a fence value: 4 bytes, or 8 at a multiple of 8.
    Store(Arc<CommandMemory>, u64, StoredValue),
    /// Stores a word to each of so many bytes, a multiple of 8.
    Fill(Arc<CommandMemory>, u64, u64, u64),
    /// Copies so many bytes, from the second to the first.
    Copy((Arc<CommandMemory>, u64), (Arc<CommandMemory>, u64), u64),
    /// Stores the device's time, in ticks.
    Timestamp(Arc<CommandMemory>, u64),
}

/// A fence value, as wide as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredValue {
    /// `No64BitAtomics`.
    Low(u32),
    /// All of it.
    Whole(u64),
}

/// Why a command was not submitted.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub enum CommandError {
    /// The driver has no memory for it, for longer than a moment.
    #[error("the driver has no memory for a command ({})", .0.call)]
    NoMemory(OutOfMemory),
    /// The engine executes no more.
    #[error(transparent)]
    Lost(#[from] EngineLost),
}

/// See the file's head.
#[derive(Debug)]
pub struct CommandEngine {
    queue: SharedQueue,
    /// Raised by one at the end of each part.
    ended: Timeline,
    /// The last part's number. Taken before the queue.
    submitted: Mutex<u64>,
    providers: Arc<Providers>,
    device: Arc<Device>,
}

impl CommandEngine {
    /// Of a queue; memory that these providers make can be mapped for it.
    ///
    /// # Errors
    /// The driver gives no timeline.
    pub fn new(queue: SharedQueue, providers: &Arc<Providers>) -> Result<Self, OutOfMemory> {
        let device = Arc::clone(lock(&queue).device());
        Ok(Self {
            ended: Timeline::new(&device, 0)?,
            queue,
            submitted: Mutex::new(0),
            providers: Arc::clone(providers),
            device,
        })
    }

    /// Who makes memory that it reaches.
    #[must_use]
    pub fn providers(&self) -> &Arc<Providers> {
        &self.providers
    }

    /// What the engine has.
    #[must_use]
    pub fn caps(&self) -> EngineCaps {
        EngineCaps::of(self.device.adapter())
    }

    /// Whether it can store the time.
    #[must_use]
    pub fn has_clock(&self) -> bool {
        self.device.adapter().features.timestamps
    }

    /// Makes a region reachable, by an import of its own.
    ///
    /// # Errors
    /// When the host or the device refuses.
    pub fn map(&self, region: &Arc<Region>) -> Result<CommandMemory, MapError> {
        let mapping = region.map()?;
        let import = RegionImport::new(&self.device, &mapping)
            .map_err(|error| MapError::Refused(error.to_string()))?;
        Ok(CommandMemory {
            import: Arc::new(import),
            host: Block::whole(&mapping),
        })
    }

    /// Records a part of a command.
    ///
    /// # Errors
    /// [`CommandError::NoMemory`].
    pub fn record(&self, steps: &[Step]) -> Result<CommandBuffer, CommandError> {
        self.try_record(steps).map_err(CommandError::NoMemory)
    }

    fn try_record(&self, steps: &[Step]) -> Result<CommandBuffer, OutOfMemory> {
        let mut recorder = CommandRecorder::begin(&self.device, Reuse::OneAtATime)?;
        for step in steps {
            recorder = recorder.barrier(TRANSFER_ORDER);
            recorder = match step {
                Step::Store(to, offset, StoredValue::Low(value)) => {
                    recorder.update(&to.import, *offset, &value.to_ne_bytes())
                }
                Step::Store(to, offset, StoredValue::Whole(value)) => {
                    recorder.update(&to.import, *offset, &value.to_ne_bytes())
                }
                Step::Fill(to, offset, bytes, word) => fill(recorder, to, *offset, *bytes, *word),
                Step::Copy((to, destination), (from, source), bytes) => {
                    recorder.copy((&from.import, *source), (&to.import, *destination), *bytes)
                }
                Step::Timestamp(to, offset) => recorder.timestamp(&to.import, *offset)?,
            };
        }
        recorder.barrier(COPY_END).end()
    }

    /// Runs parts in their order, after all that was submitted before, in one `vkQueueSubmit`; gives the
    /// number of the last. Parts are numbered from 1.
    ///
    /// # Errors
    /// [`CommandError`]: of a want nothing runs then; of a lost engine nobody knows.
    pub fn submit(&self, parts: &[CommandBuffer]) -> Result<u64, CommandError> {
        let mut submitted = lock(&self.submitted);
        let parts: Vec<_> = parts
            .iter()
            .zip(*submitted + 1..)
            .map(|(commands, end)| ([commands], [(&self.ended, end)]))
            .collect();
        let submissions: Vec<_> = parts
            .iter()
            .map(|(commands, signals)| Submission {
                commands,
                waits: &[],
                signals,
            })
            .collect();
        let mut queue = lock(&self.queue);
        // A driver that is short of memory for a moment has not lost the device.
        match queue.submit_patiently(&submissions) {
            Ok(()) => {
                *submitted += parts.len() as u64;
                Ok(*submitted)
            }
            Err(SubmitError::OutOfMemory) => {
                let call = "vkQueueSubmit";
                Err(CommandError::NoMemory(OutOfMemory::in_call(call)))
            }
            Err(_) => Err(EngineLost.into()),
        }
    }

    /// The number of the last part that was submitted, 0 for none.
    #[must_use]
    pub fn submitted(&self) -> u64 {
        *lock(&self.submitted)
    }

    /// Calls of `vkQueueSubmit`, those of others that share the queue included.
    #[must_use]
    pub fn submits(&self) -> u64 {
        lock(&self.queue).submits()
    }

    /// The last part that has ended, with all before it; what they wrote is visible to the host.
    ///
    /// # Errors
    /// [`EngineLost`].
    pub fn ended(&self) -> Result<u64, EngineLost> {
        self.ended.value().map_err(|_| EngineLost)
    }

    /// Sleeps until a part has ended; `false` when the time-out came first.
    ///
    /// # Errors
    /// [`EngineLost`].
    pub fn wait(&self, part: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        match self.ended.wait(part, timeout) {
            Ok(outcome) => Ok(outcome == WaitOutcome::Reached),
            Err(_) => Err(EngineLost),
        }
    }
}

/// Stores a 64-bit word to a range. Vulkan fills with 32 bits; where the halves differ, the range's
/// first words are stored and then doubled.
fn fill(
    recorder: CommandRecorder,
    to: &CommandMemory,
    offset: u64,
    bytes: u64,
    word: u64,
) -> CommandRecorder {
    let (low, high) = (word as u32, (word >> 32) as u32);
    if low == high {
        return recorder.fill_range(&to.import, offset, bytes, low);
    }
    let first = bytes.min(CommandRecorder::MOST_UPDATED as u64);
    let words = word.to_ne_bytes().repeat(first as usize / 8);
    let mut recorder = recorder.update(&to.import, offset, &words);
    let mut done = first;
    while done < bytes {
        let more = done.min(bytes - done);
        let (from, end) = ((&to.import, offset), (&to.import, offset + done));
        recorder = recorder.barrier(TRANSFER_ORDER).copy(from, end, more);
        done += more;
    }
    recorder
}
