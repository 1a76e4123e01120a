//! Adapter: the OS's side of one driver, as its users hold it.

use super::adapter_state::AdapterState;
use super::bring_up::{BringUp, StartError};
use super::features::Features;
use super::listener;
use super::process::Process;
use super::record::Record;
use super::tdr::TdrPolicy;
use crate::abi::wddm::DeviceExecutionState;
use crate::kmd::{
    Callbacks, ContextAllocation, ContextAllocationId, ContextKind, CreateContextAllocation, Ddi,
    DdiError, DisconnectDoorbell, FeatureError, FeatureId, Interrupt, IsFeatureEnabledResult,
    LevelChecked, NativeFenceInterface, NodeError, ProcessId, QueryFeatureInterface, WrongLevel,
};
use crate::shared::RegionError;
use crate::sync::Arc;
use std::ops::Deref;
use std::sync::Weak;

/// Why the OS refused.
#[derive(Debug, thiserror::Error)]
pub enum OsError {
    /// No shared memory.
    #[error(transparent)]
    Memory(#[from] RegionError),
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DdiError),
    /// A process has 2^20 handles open.
    #[error("the process has no fence handle left ({max})", max = crate::abi::LocalHandle::SLOTS)]
    HandlesUsedUp,
    /// No allocation has that size.
    #[error(
        "an allocation of {0} bytes: its size must be a multiple of 8, not 0, and one that memory has"
    )]
    AllocationSize(u64),
    /// No ring has as many packets.
    #[error("a ring of {0} packets: its capacity must be a power of two of 2 to 1,048,576")]
    RingCapacity(u64),
    /// No log has as many entries.
    #[error("a log of {0} entries: it must have {least} to {most}",
        least = crate::abi::LOG_BUFFER_ENTRIES, most = crate::abi::MOST_LOG_ENTRIES)]
    LogEntries(u64),
    /// The process ends, or has ended ([`Process::end`]).
    #[error(
        "the process ends: it gets no queue, and its doorbells do not connect; open another one"
    )]
    ProcessEnds,
    /// The device was ended with work queued ([`Process::terminate`]).
    #[error("the device was ended and is in error; open another one")]
    DeviceInError,
    /// A context on a node that the adapter has not (HQ-11).
    #[error("node ordinal {node_ordinal}: the adapter has {nodes} nodes, the first being 0")]
    NodeOrdinal {
        /// The node that was asked for.
        node_ordinal: u32,
        /// How many there are.
        nodes: u32,
    },
    /// A context of no engine of its node, or of several (HQ-11).
    #[error("engine affinity {0:#x}: it must be exactly bit 0, since every node has one engine")]
    EngineAffinity(u32),
    /// No context has that priority.
    #[error("a priority of {0}: it must be -7 to 7")]
    Priority(i32),
    /// The driver preempts nothing (PR-11).
    #[error("the driver is not PreemptionAware: what its engines have runs until it ends")]
    NotPreemptionAware,
    /// A second doorbell of one queue.
    #[error("the queue has a doorbell: destroy it first")]
    HasDoorbell,
    /// A queue without a doorbell.
    #[error("the queue has no doorbell: create one first")]
    NoDoorbell,
    /// A waker, which runs within a call that moves a log or switches tracing, asks for the same. Calls of
    /// that kind wait for each other, and that one waits for the waker.
    #[error(
        "logs are being moved by the call within which this waker runs: wake a task, and move them there"
    )]
    Busy,
    /// A monitored fence is asked for where fences of several adapters are native (XA-08).
    #[error(
        "the adapter has native fences: open or create the cross-adapter fence as a native one"
    )]
    NativeHere,
    /// A handle of another fence, which has no side on other adapters (XA-08).
    #[error("the fence is not cross-adapter: set FenceOptions::cross_adapter when it is made")]
    NotCrossAdapter,
    /// A bug check stopped the adapter.
    #[error("the adapter was stopped by {0}; open it anew")]
    Stopped(Record),
    /// The program has caused more resets of engines than it may (0x142).
    #[error("the program is kept from the adapter by {0}; open the adapter anew")]
    Blocked(Record),
    /// The device is in an error state, for good: what was queued is not executed.
    #[error("the device is lost ({}): destroy it and make it anew", state_name(*.0))]
    DeviceLost(DeviceExecutionState),
    /// A shared fence does not come over from another operating system.
    #[error(transparent)]
    Passing(#[from] super::PassFenceError),
    /// A fence with a doorbell is asked for where there are no native fences (XA-10).
    #[error(
        "a fence with CrossAdapter::Doorbell needs native fences on each adapter: make it with CrossAdapter::Propagated"
    )]
    DoorbellNeedsNativeFences,
    /// XA-10: what the host and other adapters store in system memory its running engines see late.
    #[error(
        "running engines of the adapter do not see what others store in system memory, where doorbells lie: make the \
         fence with CrossAdapter::Propagated"
    )]
    DoorbellSeenLate,
    /// More engines than doorbells have lines.
    #[error(
        "the adapter has {wanted} engines, and of the {most} that can have fences with CrossAdapter::Doorbell in a \
         program {free} are left: close an adapter that has such fences, or make the fence with \
         CrossAdapter::Propagated",
        most = crate::abi::CrossDoorbells::LINES - 1
    )]
    DoorbellLines {
        /// Engines of the adapter.
        wanted: u32,
        /// Lines that are left.
        free: u32,
    },
    /// More such fences than a program can have.
    #[error(
        "the program has {most} fences with CrossAdapter::Doorbell, and can have no more: close one of them",
        most = crate::abi::CrossDoorbellIndex::END
    )]
    DoorbellsUsedUp,
    /// Shared memory does not come over from another operating system.
    #[error(transparent)]
    PassingMemory(#[from] super::PassMemoryError),
    /// `GetOSCaps` does not report SupportIntraGpuFenceType.
    #[error("there is no fence type INTRA_GPU here: GetOSCaps does not report it; use DEFAULT")]
    NoIntraGpu,
    /// The driver has no segment for the values of fences.
    #[error("the driver names no segment that the fence's values could lie in")]
    NoFenceSegments,
    /// The adapter has no engine that executes queues' packets.
    #[error("the adapter has no engine, and no queue of either kind. {0}")]
    NoEngines(String),
    /// The adapter came up without native fences, which user-mode queues need as well.
    #[error("the adapter has no native fences, and no queue for user-mode submission. {0}")]
    NoNativeFences(String),
}

impl OsError {
    /// Whether an engine, or a device of its, executes no more.
    pub(super) fn is_of_lost_engine(&self) -> bool {
        let is_lost = matches!(self, Self::Driver(DdiError::Node(NodeError::Lost(_))));
        is_lost || matches!(self, Self::DeviceLost(_))
    }
}

fn state_name(state: DeviceExecutionState) -> String {
    let mut names = DeviceExecutionState::VALUES.values.iter();
    let named = names.find(|(_, number)| *number == state.0);
    named.map_or_else(|| state.0.to_string(), |(name, _)| (*name).to_owned())
}

/// An adapter that came up. Dropping the last user's reference stops the driver: when that has
/// returned, no slice runs, no interrupt comes and no thread of the driver is left.
///
/// What interrupts need is a part of its own, so that an interrupt under way never holds the last
/// reference to this one and the driver is never stopped from its own thread.
#[derive(Debug)]
pub struct Adapter {
    state: Arc<AdapterState>,
}

impl Adapter {
    /// What outlives it while somebody looks at it.
    pub(super) fn state(&self) -> Arc<AdapterState> {
        Arc::clone(&self.state)
    }
}

struct Upcalls {
    adapter: Weak<AdapterState>,
    features: Features,
}

impl Callbacks for Upcalls {
    fn notify_interrupt(&self, interrupt: Interrupt) {
        if let Some(adapter) = self.adapter.upgrade() {
            adapter.handle_interrupt(interrupt);
        }
    }

    fn disconnect_doorbell(&self, args: &DisconnectDoorbell) {
        if let Some(adapter) = self.adapter.upgrade() {
            adapter.doorbell_taken(args);
        }
    }

    fn create_context_allocation(
        &self,
        args: &CreateContextAllocation,
    ) -> Result<ContextAllocation, DdiError> {
        let adapter = self.adapter.upgrade();
        let gone = DdiError::InvalidParameter("the adapter is gone");
        adapter.ok_or(gone)?.context_allocations.create(args)
    }

    fn destroy_context_allocation(&self, id: ContextAllocationId) {
        // With the adapter all of them went.
        if let Some(adapter) = self.adapter.upgrade() {
            adapter.context_allocations.destroy(id);
        }
    }

    fn wrong_level(&self, wrong: WrongLevel) {
        if let Some(adapter) = self.adapter.upgrade() {
            adapter.life.note(Record::wrong_level(wrong));
        }
    }

    fn is_feature_enabled(&self, feature: FeatureId) -> IsFeatureEnabledResult {
        self.features.is_enabled(feature)
    }

    fn query_feature_interface(
        &self,
        query: &QueryFeatureInterface,
    ) -> Result<NativeFenceInterface, FeatureError> {
        self.features.query_interface(query)
    }
}

impl Adapter {
    /// Starts a driver, with all features that the OS has.
    ///
    /// # Errors
    /// The driver does not start, or what it says of itself cannot be; then it is stopped again.
    pub fn start(ddi: Arc<dyn Ddi>) -> Result<Arc<Self>, StartError> {
        Self::start_with(ddi, Features::default())
    }

    /// The same with these features.
    ///
    /// # Errors
    /// As [`Adapter::start`].
    pub fn start_with(ddi: Arc<dyn Ddi>, features: Features) -> Result<Arc<Self>, StartError> {
        Self::start_watched(ddi, features, TdrPolicy::default())
    }

    /// The same, whose engines are watched and recovered as `tdr` says.
    ///
    /// # Errors
    /// As [`Adapter::start`].
    pub fn start_watched(
        ddi: Arc<dyn Ddi>,
        features: Features,
        tdr: TdrPolicy,
    ) -> Result<Arc<Self>, StartError> {
        let state = Arc::new(AdapterState::new(LevelChecked::over(ddi), tdr));
        state.life.of(Arc::downgrade(&state));
        let adapter = Arc::new(Self { state });
        let ddi = adapter.ddi();
        // Dropped on an error, and that stops the driver.
        let upcalls = Upcalls {
            adapter: Arc::downgrade(&adapter.state),
            features,
        };
        ddi.start(Arc::new(upcalls))
            .map_err(|error| StartError::Driver(error.to_string()))?;
        adapter.came_up_with(BringUp::of(ddi.as_ref(), features)?);
        let watched = adapter.state.start_watch();
        watched.map_err(|error| StartError::Driver(error.to_string()))?;
        Ok(adapter)
    }

    /// A process that uses the adapter.
    #[must_use]
    pub fn open_process(self: &Arc<Self>) -> Arc<Process> {
        Process::new(
            ProcessId(self.next_process()),
            Arc::clone(self),
            ContextKind::Program,
        )
    }

    /// The same for the OS itself.
    pub(super) fn open_system_process(self: &Arc<Self>, kind: ContextKind) -> Arc<Process> {
        Process::new(ProcessId(self.next_process()), Arc::clone(self), kind)
    }

    /// An interrupt of an engine that a scenario plays.
    #[cfg(loom)]
    pub fn interrupt(&self, interrupt: Interrupt) {
        self.handle_interrupt(interrupt);
    }
}

impl Deref for Adapter {
    type Target = AdapterState;

    fn deref(&self) -> &AdapterState {
        &self.state
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        listener::stop(Arc::clone(&self.state));
    }
}
