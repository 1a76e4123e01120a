//! What the device interrupt lock covers.

use super::allocations::KnownAllocation;
use super::cross_doorbells::OwnLine;
use super::habits::Habits;
use super::kernels::KnownKernel;
use super::mappings::Mappings;
use super::retirement::Retirement;
use super::signs_of_life::Shown;
use super::slice_book::SliceBook;
use super::status::Asked;
use super::suspend::Departures;
use super::{NodeCounters, SliceInFlight};
use crate::abi::{AllocationId, CrossDoorbellIndex, FenceId, KernelId, ObjectId, SLICE_SLOTS};
use crate::gpu::choice::{Choice, Chooser};
use crate::gpu::fence_table::FenceTable;
use crate::gpu::handle_table::HandleTable;
use crate::gpu::mailbox::Mailbox;
use crate::gpu::report::ReportReader;
use crate::gpu::run_list::RunList;
use crate::gpu::{EngineMapping, EngineWait, GpuVa, HeldEngine, Parking, QueueFault};
use crate::shared::Block;
use crate::sync::Arc;
use std::collections::HashMap;
use std::time::Instant;

/// What an engine knows of a fence: needed to open handles on it and to adopt for it.
#[derive(Clone, Debug)]
pub(super) struct KnownFence {
    pub(super) id: FenceId,
    pub(super) entry: GpuVa,
    pub(super) current_value: (Arc<EngineMapping>, u64),
    /// None of a fence that no MonitoredValue is posted for: what its signals are compared with is fixed.
    pub(super) monitored_value: Option<(Arc<EngineMapping>, u64)>,
    /// The CPU never reads its CurrentValue (NF-13).
    pub(super) is_intra_gpu: bool,
    /// Its waits pass and its signals store nothing, by whatever handle (NF-19).
    pub(super) is_always_signaled: bool,
    /// Each signal raises, and no raise disarms it (XA-03).
    pub(super) keeps_armed: bool,
    /// What its signals ring (XA-10).
    pub(super) doorbell: Option<CrossDoorbellIndex>,
    /// What the entry's addresses lie in, where they are those of the system process.
    pub(super) system_process: Option<FencePlaces>,
}

/// Where CurrentValue and MonitoredValue lie: mapping and offset of each.
pub(crate) type FencePlaces = [(Arc<EngineMapping>, u64); 2];

impl KnownFence {
    /// Where adoption finds CurrentValue and MonitoredValue: at the addresses of the system process, where
    /// it has any there. Of a fence without a MonitoredValue that is nowhere, no adoption looks at the
    /// entry, and its shadow stays as it was entered: nothing is greater, or everything.
    pub(super) fn adopted_at(&self) -> (GpuVa, GpuVa) {
        let va = |(mapping, offset): &(Arc<EngineMapping>, u64)| mapping.va().offset(*offset);
        let [current, monitored] = match &self.system_process {
            Some([current, monitored]) => [va(current), va(monitored)],
            None => [
                self.current_value_va(),
                self.monitored_value.as_ref().map_or(GpuVa(0), va),
            ],
        };
        let is_adopted = self.monitored_value.is_some();
        (current, if is_adopted { monitored } else { GpuVa(0) })
    }

    pub(super) fn current_value_va(&self) -> GpuVa {
        let (mapping, offset) = &self.current_value;
        mapping.va().offset(*offset)
    }
}

/// Letting the engine go while queues stand at waits.
#[derive(Debug, Default)]
pub(super) struct ParkingState {
    /// Number of the last attempt.
    pub(super) attempt: u64,
    /// The attempt is not finished: no slice is in flight, and whoever was asked to finish it
    /// submits the next one if one is needed.
    pub(super) asked: bool,
    /// The OS knows of `waits` by this attempt.
    pub(super) known: bool,
    /// The engine is parked at them.
    pub(super) waiting: bool,
    /// What the queues stood at when the last attempt began.
    pub(super) waits: Vec<EngineWait>,
    /// The engine takes its own last look at the waits that the OS stands for: whether it is over. None
    /// where none was begun, or somebody brought the engine back since.
    pub(super) look: Option<bool>,
    /// What the next report says of it.
    pub(super) news: Option<Parking>,
}

/// Whether slices are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Up,
    Stopping,
    /// The OS is still to be told.
    Lost,
    LossTold,
    /// Another engine has taken the place of one that was given up, and the OS lets it go on later.
    Replaced,
}

/// The node's changing half.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Inner {
    pub(super) engine: Arc<HeldEngine>,
    pub(super) run_list: RunList,
    pub(super) fences: FenceTable,
    pub(super) known: HashMap<u32, KnownFence>,
    pub(super) allocations: HashMap<AllocationId, KnownAllocation>,
    pub(super) kernels: HashMap<KernelId, KnownKernel>,
    pub(super) handles: HashMap<u64, HandleTable>,
    pub(super) mappings: Mappings,
    /// Of the system process.
    pub(super) beside: Mappings,
    /// The page of cross-adapter doorbells, once a fence has one.
    pub(super) cross_doorbells: Option<OwnLine>,
    pub(super) mailbox: Mailbox,
    pub(super) reader: ReportReader,
    pub(super) submitted: u64,
    pub(super) serviced: u64,
    pub(super) requests: u64,
    /// The last request to end its slices, if there were any.
    pub(super) asked: Option<Asked>,
    /// The queue whose packet was under way when the engine was last found not to answer.
    pub(super) silent_in: Option<u32>,
    pub(super) shown: Shown,
    pub(super) aborts: u64,
    pub(super) habits: Habits,
    /// For who records.
    pub(super) slice_book: SliceBook,
    /// Which slices do transfers for paging packets alone.
    pub(super) for_paging: [bool; SLICE_SLOTS as usize],
    /// The last slice that does not end to interrupt; 0 for none.
    pub(super) last_polled: u64,
    /// Doorbells say CONNECTED: producers need not call.
    pub(super) self_service: bool,
    pub(super) parking: ParkingState,
    pub(super) retirement: Retirement,
    pub(super) departures: Departures,
    pub(super) chooser: Chooser,
    /// The engine is not preempted: it has one context at a time.
    pub(super) one_context: bool,
    pub(super) life: Life,
    /// The engine's device said that it is lost, or its driver gave up: nothing that still runs there comes back to the
    /// driver.
    pub(super) device_lost: bool,
    /// What the engine said of it, or the one before it.
    pub(super) failure: Option<String>,
    /// Who waited for its slices was let go before it was replaced.
    pub(super) let_go: bool,
    /// A thread looks at the slices in flight beside the interrupt thread.
    pub(super) looked_at: bool,
    /// Faults whose queues a slice in flight has still to save.
    pub(super) unsaved_faults: Vec<(u32, QueueFault)>,
    /// When an engine was let go of whose records may not all have been taken: it had written them by then.
    pub(super) left_records: Option<Instant>,
    pub(super) counters: NodeCounters,
}

impl Inner {
    pub(super) fn new(engine: Arc<HeldEngine>, control: &Block, report: &Block) -> Self {
        Self {
            engine,
            run_list: RunList::new(),
            fences: FenceTable::new(control),
            known: HashMap::new(),
            allocations: HashMap::new(),
            kernels: HashMap::new(),
            handles: HashMap::new(),
            mappings: Mappings::default(),
            beside: Mappings::default(),
            cross_doorbells: None,
            mailbox: Mailbox::new(control, report),
            reader: ReportReader::new(control, report),
            submitted: 0,
            serviced: 0,
            requests: 0,
            asked: None,
            silent_in: None,
            shown: Shown::default(),
            aborts: 0,
            habits: Habits::default(),
            slice_book: SliceBook::default(),
            for_paging: [false; SLICE_SLOTS as usize],
            last_polled: 0,
            self_service: false,
            parking: ParkingState::default(),
            retirement: Retirement::default(),
            departures: Departures::default(),
            chooser: Chooser::default(),
            one_context: false,
            life: Life::Up,
            device_lost: false,
            failure: None,
            let_go: false,
            looked_at: false,
            unsaved_faults: Vec::new(),
            left_records: None,
            counters: NodeCounters::default(),
        }
    }

    /// Which queues the next slice has.
    pub(super) fn choose(&mut self) -> Choice {
        if self.one_context {
            let candidates = self.run_list.candidates();
            self.chooser.one_context(&candidates)
        } else if self.run_list.has_priorities() {
            let candidates = self.run_list.candidates();
            self.chooser.by_priority(&candidates)
        } else {
            Choice::All
        }
    }

    pub(super) fn oldest_in_flight(&self) -> Option<SliceInFlight> {
        let in_flight = self.serviced < self.submitted && self.life == Life::Up;
        in_flight.then(|| SliceInFlight::new(self.serviced + 1, &self.engine))
    }

    /// The engine's device is lost, and none has taken its place.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.life, Life::Lost | Life::LossTold)
    }

    /// The same for certain: nothing that it still does counts. Else, though its device failed, it may be well and run, and is
    /// to be cut off as one that hangs (TD-23).
    pub(super) fn is_surely_lost(&self) -> bool {
        self.device_lost && self.engine.is_surely_lost()
    }

    /// Whether slices are submitted, to this engine.
    pub(super) fn runs(&self, engine: &Arc<HeldEngine>) -> bool {
        self.life == Life::Up && Arc::ptr_eq(&self.engine, engine)
    }

    /// All regions of fences, queues and allocations that have an address.
    pub(super) fn live_mappings(&self) -> Vec<Arc<EngineMapping>> {
        self.mappings.live().chain(self.beside.live()).collect()
    }

    /// Those of the engine's tables.
    pub(super) fn table_mappings(&self) -> impl Iterator<Item = &EngineMapping> {
        let handles = self.handles.values().flat_map(HandleTable::mappings);
        self.fences.mappings().chain(handles)
    }

    /// The mappings are another engine's: what the tables say of addresses is written anew.
    pub(super) fn pass_on_tables(&mut self) {
        self.fences.pass_on();
        for (slot, known) in &mut self.known {
            let (current, monitored) = known.adopted_at();
            if let Some(entry) = self.fences.move_to(*slot, current, monitored) {
                known.entry = entry;
            }
        }
        for handles in self.handles.values() {
            handles.pass_on(|object| match object {
                ObjectId::Fence(fence) => {
                    let known = self.known.get(&fence.slot)?;
                    Some((known.current_value_va(), known.entry.0))
                }
                ObjectId::Allocation(id) => self.allocations.get(&id).map(KnownAllocation::place),
                ObjectId::Kernel(id) => self.kernels.get(&id).map(|kernel| kernel.place()),
                ObjectId::Handle(..) => None,
            });
        }
        self.mappings.let_go();
        self.beside.let_go();
    }
}
