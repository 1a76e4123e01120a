//! Explored engine: slices of an engine of one queue, and their host, as loom explores them.
//!
//! A slice is the whole of what the one lane of a model engine does in one. Of the node there are the halves that meet it:
//! mailbox, fence table, and the reader of what it reports. Nobody looks again when a slice has ended, as a node does, so
//! that what is lost between the two stays lost.

use super::cut::{CutPlan, Passes};
use super::explored_part::{Part, QueueParts};
use super::lane::{Globals, Shared};
use super::meeting::Meeting;
use super::memory::ModelMemory;
use super::slice::run_lane;
use super::violation::Checked;
use super::write_back::Arrival;
use crate::abi::{
    Delivery, EngineControl, EngineReport, FenceEntry, FenceId, HandleAccess, LocalHandle,
    MAILBOX_CAPACITY, NO_CPU_WAITER, ObjectId, PACKET_BYTES, Packet, QueueDescriptor,
    RECORD_RING_CAPACITY, RingControl, SliceArgs, WordGroup,
};
use crate::gpu::fence_table::FenceTable;
use crate::gpu::handle_table::HandleTable;
use crate::gpu::mailbox::Mailbox;
use crate::gpu::report::ReportReader;
use crate::gpu::{
    AddressSpace, EngineAddress, GpuVa, MapError, ModelOptions, SliceReport, SliceWork,
};
use crate::shared::{Block, ExploresMore, Providers, Region};
use crate::sync::Arc;

/// Packets of the ring.
const CAPACITY: u64 = 16;
/// The fence, and the handle that packets name it by.
const FENCE: FenceId = FenceId {
    slot: 0,
    generation: 1,
};
/// Slots of which no engine has an entry.
const NOBODY: u32 = FenceEntry::LEAF_ENTRIES as u32;

/// The engine's addresses.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) memory: Arc<ModelMemory>,
    providers: Arc<Providers>,
}

impl Space {
    pub(super) fn new() -> Self {
        Self {
            memory: Arc::new(ModelMemory::new(None, Arrival::AtOnce)),
            providers: Arc::default(),
        }
    }
}

impl AddressSpace for Space {
    fn providers(&self) -> &Arc<Providers> {
        &self.providers
    }

    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError> {
        self.memory.map(region)
    }
}

/// See the file's head.
#[derive(Debug)]
pub struct ExploredEngine {
    memory: Arc<ModelMemory>,
    options: ModelOptions,
    control_va: u64,
    _parts: ([Part; 4], QueueParts),
    _tables: (FenceTable, HandleTable),
}

/// Its host, and the program that has the queue.
#[derive(Debug)]
pub struct ExploredHost {
    memory: Arc<ModelMemory>,
    mailbox: Mailbox,
    reader: ReportReader,
    monitored_value: Block,
    current_value: Block,
    entry_va: GpuVa,
    handle: LocalHandle,
    ring: (Block, Block),
    signals: u64,
}

impl ExploredEngine {
    /// Signals of the one fence are compared with `shadow` until a post is adopted; nobody waits for it. `access` is that of
    /// the queue's handle.
    ///
    /// # Errors
    /// Never.
    pub fn new(shadow: u64, access: HandleAccess) -> Result<(Self, ExploredHost), MapError> {
        let _more = ExploresMore::of(&[WordGroup::EngineControl, WordGroup::EngineReport]);
        let space = Space::new();
        let memory = &space.memory;
        let part = |group| Part::of(memory, group);
        let control = part(WordGroup::EngineControl)?;
        let report = part(WordGroup::EngineReport)?;
        let monitored = part(WordGroup::MonitoredValues)?;
        let current = part(WordGroup::CurrentValues)?;
        let [monitored_va, current_va] = [&monitored, &current].map(|part| GpuVa(part.va()));
        let mut fences = FenceTable::new(&control.host);
        let entry_va = fences.enter(&space, FENCE, current_va, monitored_va, shadow)?;
        let mut handles = HandleTable::new(&space)?;
        let handle = LocalHandle::from_raw(1 << LocalHandle::SLOT_BITS);
        let object = ObjectId::Fence(FENCE);
        handles.open(&space, handle, access, object, (current_va, entry_va.0))?;
        let ring = (part(WordGroup::Ring)?, part(WordGroup::Progress)?);
        let queue = QueueParts::new(memory, ring, CAPACITY, handles.directory_va().0)?;
        write_control(&control.host, &report, &queue);
        // It has no progress fence; of one the entry would be read.
        let progress_entry = QueueDescriptor::PROGRESS_FENCE_ENTRY_VA;
        queue.descriptor.host.word(progress_entry).put(entry_va.0);
        // Loom wants the words made before there are several threads.
        let words = |part: &Part, offset, count| drop(part.explored(offset, 8 * count));
        words(&control, EngineControl::MAILBOX, MAILBOX_CAPACITY);
        for record in 0..RECORD_RING_CAPACITY {
            words(&report, EngineReport::record(record), 4);
        }
        let monitored_value = monitored.explored(0, 8);
        monitored_value.word(0).publish(NO_CPU_WAITER);
        let host = ExploredHost {
            memory: Arc::clone(memory),
            mailbox: Mailbox::new(&control.host, &report.host),
            reader: ReportReader::new(&control.host, &report.host),
            monitored_value,
            current_value: current.explored(0, 8),
            entry_va,
            handle,
            ring: queue.ring(),
            signals: 0,
        };
        let engine = Self {
            memory: Arc::clone(memory),
            options: ModelOptions {
                lanes: 1,
                rounds: 1,
                quantum: 1,
                ..ModelOptions::default()
            },
            control_va: control.va(),
            _parts: ([control, report, monitored, current], queue),
            _tables: (fences, handles),
        };
        Ok((engine, host))
    }

    /// Runs a slice, until there is nothing to do.
    ///
    /// # Errors
    /// Never.
    pub fn run(&self) -> Checked<()> {
        let (passes, work) = (Passes::new(CutPlan::Never.passes(0)), SliceWork::default());
        let (memory, clock) = (&*self.memory, &*self.options.clock);
        let control = self.control_va;
        let g = Globals::new(memory, clock, passes, control, &self.options, work, (0, 0));
        run_lane(g, &Shared::new(), 0, 0, &Meeting::new(1))
    }
}

/// What the engine is told of itself and of its slice, which is the same each time: it ends when nothing is left to do.
fn write_control(control: &Block, report: &Part, queue: &QueueParts) {
    let args = EngineControl::slice_args(0);
    for (offset, value) in [
        (EngineControl::REPORT_VA, report.va()),
        (EngineControl::CLOCK_BITS, u64::from(u64::BITS)),
        (EngineControl::run_list(0, 0), queue.descriptor.va()),
        (args + SliceArgs::QUEUE_COUNT, 1),
        (args + SliceArgs::TIME_BUDGET, u64::MAX),
        (args + SliceArgs::PASS_BUDGET, u64::MAX),
        (args + SliceArgs::DELIVERY, Delivery::Polled as u64),
    ] {
        control.word(offset).put(value);
    }
}

impl ExploredHost {
    /// The queue has so many more signals to execute: of 1 and up.
    pub fn submit(&mut self, signals: u64) {
        let (control, packets) = &self.ring;
        for number in self.signals..self.signals + signals {
            let signal = Packet::signal(self.handle, number + 1, number);
            packets.put_words(number * PACKET_BYTES, &signal.words());
        }
        self.signals += signals;
        control.word(RingControl::WRITE_INDEX).publish(self.signals);
    }

    /// Posts so many fences of which the engine knows nothing.
    pub fn post_others(&mut self, posts: u64) {
        self.mailbox.post((0..posts).map(|_| NOBODY));
    }

    /// Somebody comes to wait for `value`: posts that, and gives CurrentValue as it is after the post.
    pub fn wait_for(&mut self, value: u64) -> u64 {
        self.monitored_value.word(0).publish(value - 1);
        self.mailbox.post([FENCE.slot]);
        self.current_value.word(0).observe()
    }

    /// Whether the engine has said that it has taken the post; and what signals are compared with, as it is seen then.
    ///
    /// # Errors
    /// Never.
    pub fn acknowledged(&mut self) -> Checked<(bool, u64)> {
        let has_taken = !self.mailbox.unacknowledged().contains(&FENCE.slot);
        let shadow = self.entry_va.0 + FenceEntry::SHADOW;
        Ok((has_taken, self.memory.observe(shadow, None)?))
    }

    /// Takes records: the values that they name, and whether some were lost.
    pub fn take(&mut self) -> (Vec<u64>, bool) {
        let mut report = SliceReport::default();
        self.reader.take_records(&mut report);
        let values = report.raised.iter().map(|raised| raised.value);
        (values.collect(), report.collapsed)
    }
}
