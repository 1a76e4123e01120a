//! Explored queue: a hardware queue of an engine, as loom explores it.
//!
//! The queue is taken into registers, stepped and saved as a slice does it; the rest of an engine is left out. Of its
//! words the ring, the read index and the progress fence are explored, which the user writes or reads.

use super::clock::Ticks;
use super::cut::{CutPlan, Passes};
use super::explored_part::{Part, QueueParts};
use super::lane::{Globals, Lane, Shared};
use super::memory::ModelMemory;
use super::violation::Checked;
use super::write_back::Arrival;
use crate::abi::{
    FaultCode, FenceEntry, HandleAccess, HandleEntry, LocalHandle, LogEntry, LogHeader, LogIndex,
    PAGE_BYTES, QueueDescriptor, QueueProgress, WordGroup,
};
use crate::gpu::{MapError, ModelOptions, SliceWork};
use crate::shared::{Block, Region};
use crate::sync::Arc;

/// Rounds of the one iteration for which the queue is in registers.
const ROUNDS: u32 = 3;
/// See the file's head. Its engine has the one queue.
#[derive(Debug)]
pub struct ExploredQueue {
    memory: Arc<ModelMemory>,
    options: ModelOptions,
    queue: QueueParts,
    current_value: Part,
    /// What else it reads and writes.
    _others: [Part; 3],
}

/// Where a queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExploredStand {
    /// Packets executed.
    pub read: u64,
    /// Why it was stopped.
    pub fault: Option<FaultCode>,
}

impl ExploredQueue {
    /// Handle of the progress fence.
    pub const PROGRESS: LocalHandle = LocalHandle::from_raw(1 << LocalHandle::SLOT_BITS);

    /// A new one, whose ring has so many packets.
    ///
    /// # Errors
    /// Never.
    pub fn new(capacity: u64) -> Result<Self, MapError> {
        let memory = Arc::new(ModelMemory::new(None, Arrival::AtOnce));
        let explored = |name| Part::new(&memory, &Region::new(name, 2 * PAGE_BYTES)?);
        let ring = (explored("hw-queue-ring")?, explored("hw-queue-progress")?);
        let current_value = explored("fence-cv")?;
        let fence = Part::of(&memory, WordGroup::FenceTable)?;
        let [directory, leaf] = [
            Part::of(&memory, WordGroup::HandleTable)?,
            Part::of(&memory, WordGroup::HandleTable)?,
        ];
        // Nobody waits: no signal is compared with less.
        fence.host.word(FenceEntry::SHADOW).put(u64::MAX);
        directory.host.word(0).put(leaf.va());
        let meta = HandleEntry::meta(Self::PROGRESS.generation(), HandleAccess::FULL);
        for (offset, value) in [
            (HandleEntry::META, meta),
            (HandleEntry::VA, current_value.va()),
            (HandleEntry::DETAIL, fence.va()),
        ] {
            leaf.host.word(offset).put(value);
        }
        let queue = QueueParts::new(&memory, ring, capacity, directory.va())?;
        for (offset, value) in [
            (
                QueueDescriptor::PROGRESS_CURRENT_VALUE_VA,
                current_value.va(),
            ),
            (QueueDescriptor::PROGRESS_FENCE_ENTRY_VA, fence.va()),
            (
                QueueDescriptor::PROGRESS_HANDLE,
                Self::PROGRESS.raw().into(),
            ),
        ] {
            queue.descriptor.host.word(offset).put(value);
        }
        Ok(Self {
            memory,
            options: ModelOptions {
                lanes: 1,
                rounds: ROUNDS,
                ..ModelOptions::default()
            },
            queue,
            current_value,
            _others: [fence, directory, leaf],
        })
    }

    /// Control and packets of its ring.
    #[must_use]
    pub fn ring(&self) -> (Block, Block) {
        self.queue.ring()
    }

    /// Its progress words.
    #[must_use]
    pub fn progress(&self) -> Block {
        self.queue.progress.explored(0, QueueProgress::BYTES)
    }

    /// CurrentValue of its progress fence.
    #[must_use]
    pub fn current_value(&self) -> Block {
        self.current_value.explored(0, 8)
    }

    /// The engine takes it up, steps it for an iteration, and saves it; where it stands then.
    ///
    /// # Errors
    /// Never.
    pub fn run(&self) -> Checked<ExploredStand> {
        let (passes, work) = (Passes::new(CutPlan::Never.passes(0)), SliceWork::default());
        let (memory, clock) = (&*self.memory, &*self.options.clock);
        let mut g = Globals::new(memory, clock, passes, 0, &self.options, work, (0, 0));
        g.run_list_va = self.queue.run_list_va();
        g.queue_count = 1;
        let s = Shared::new();
        let mut lane = Lane::without_queue(&g, &s, (0, 1), Ticks(0), 0);
        lane.load_queue(0)?;
        lane.begin_rounds()?;
        for _ in 0..g.rounds {
            if !lane.step_round()? {
                break;
            }
        }
        lane.save_queue()?;
        Ok(ExploredStand {
            read: lane.q.read,
            fault: lane.q.fault,
        })
    }

    /// The values of its signals, as it has logged them.
    #[must_use]
    pub fn logged(&self) -> Vec<u64> {
        let log = &self.queue.log.host;
        let index = LogIndex::from_word(log.word(LogHeader::INDEX).peek());
        (0..index.first_free_entry_index)
            .map(|slot| {
                let at = LogIndex::entry_offset(slot) + LogEntry::FENCE_VALUE;
                log.word(at).peek()
            })
            .collect()
    }
}
