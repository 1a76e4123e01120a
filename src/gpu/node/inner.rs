//! What the device interrupt lock covers.

use super::NodeCounters;
use super::allocations::KnownAllocation;
use super::habits::Habits;
use super::mappings::Mappings;
use super::retirement::Retirement;
use crate::abi::{AllocationId, FenceId};
use crate::gpu::fence_table::FenceTable;
use crate::gpu::handle_table::HandleTable;
use crate::gpu::mailbox::Mailbox;
use crate::gpu::report::ReportReader;
use crate::gpu::run_list::RunList;
use crate::gpu::{EngineMapping, EngineWait, GpuVa, Parking, QueueFault};
use crate::shared::Block;
use crate::sync::Arc;
use std::collections::HashMap;

/// What an engine knows of a fence: needed to open handles on it and to adopt for it.
#[derive(Clone, Debug)]
pub(super) struct KnownFence {
    pub(super) id: FenceId,
    pub(super) entry: GpuVa,
    pub(super) current_value: (Arc<EngineMapping>, u64),
    /// None of a fence that no MonitoredValue is posted for.
    pub(super) monitored_value: Option<(Arc<EngineMapping>, u64)>,
    /// The CPU never reads its CurrentValue (NF-13).
    pub(super) is_intra_gpu: bool,
    /// Its waits pass and its signals store nothing, by whatever handle (NF-19).
    pub(super) is_always_signaled: bool,
    /// What the entry's addresses lie in, where they are those of the system process.
    pub(super) _system_process: Option<FencePlaces>,
}

/// Where CurrentValue and MonitoredValue lie: mapping and offset of each.
pub(crate) type FencePlaces = [(Arc<EngineMapping>, u64); 2];

impl KnownFence {
    pub(super) fn current_value_va(&self) -> GpuVa {
        let (mapping, offset) = &self.current_value;
        mapping.va.offset(*offset)
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
}

/// The node's changing half.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) run_list: RunList,
    pub(super) fences: FenceTable,
    pub(super) known: HashMap<u32, KnownFence>,
    pub(super) allocations: HashMap<AllocationId, KnownAllocation>,
    pub(super) handles: HashMap<u64, HandleTable>,
    pub(super) mappings: Mappings,
    /// Of the system process.
    pub(super) beside: Mappings,
    pub(super) mailbox: Mailbox,
    pub(super) reader: ReportReader,
    pub(super) submitted: u64,
    pub(super) serviced: u64,
    pub(super) requests: u64,
    pub(super) habits: Habits,
    /// The last slice that does not end to interrupt; 0 for none.
    pub(super) last_polled: u64,
    /// Doorbells say CONNECTED: producers need not call.
    pub(super) self_service: bool,
    pub(super) parking: ParkingState,
    pub(super) retirement: Retirement,
    pub(super) life: Life,
    /// A thread looks at the slices in flight beside the interrupt thread.
    pub(super) looked_at: bool,
    /// Faults whose queues a slice in flight has still to save.
    pub(super) unsaved_faults: Vec<(u32, QueueFault)>,
    pub(super) counters: NodeCounters,
}

impl Inner {
    pub(super) fn new(control: &Block, report: &Block) -> Self {
        Self {
            run_list: RunList::new(),
            fences: FenceTable::new(control),
            known: HashMap::new(),
            allocations: HashMap::new(),
            handles: HashMap::new(),
            mappings: Mappings::default(),
            beside: Mappings::default(),
            mailbox: Mailbox::new(control, report),
            reader: ReportReader::new(control, report),
            submitted: 0,
            serviced: 0,
            requests: 0,
            habits: Habits::default(),
            last_polled: 0,
            self_service: false,
            parking: ParkingState::default(),
            retirement: Retirement::default(),
            life: Life::Up,
            looked_at: false,
            unsaved_faults: Vec::new(),
            counters: NodeCounters::default(),
        }
    }

    pub(super) fn oldest_in_flight(&self) -> Option<u64> {
        let in_flight = self.serviced < self.submitted && self.life == Life::Up;
        in_flight.then_some(self.serviced + 1)
    }
}
