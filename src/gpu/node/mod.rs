//! Node: an engine, and all that keeps it supplied.
//!
//! A node is the part of an adapter that is scheduled by itself (WDDM's word). It submits slices
//! while a queue can go on, takes their reports, and parks the engine when nothing can.
//!
//! One lock, the device interrupt lock, covers posts, reports and submissions, so that updates of
//! MonitoredValues and the service of an interrupt exclude each other (NF-08). Nobody waits for an
//! engine with it held. State Running or Parking means: a slice is in flight, or somebody who
//! holds the lock or is about to take it will submit one or park.

mod allocations;
mod counters;
mod cross_doorbells;
mod cut_off;
mod doorbells;
mod fences;
mod habits;
mod inner;
mod interrupts;
mod kernels;
mod logs;
mod mappings;
mod parking;
mod policy;
mod retirement;
mod save_areas;
mod signs_of_life;
mod slice_book;
mod slices;
mod stalls;
mod status;
mod succession;
mod suspend;

pub use counters::NodeCounters;
pub(crate) use inner::FencePlaces;
pub use interrupts::SliceInFlight;
pub use policy::NodePolicy;
pub use save_areas::SaveAreaMove;
pub use stalls::StalledAt;
pub use succession::{ReplaceError, Replaced};
pub use suspend::Suspension;

use super::{
    ContextKind, Crowd, Engine, EngineBlock, EngineCaps, EngineLost, EngineMapping, EngineState,
    EngineWord, GpuVa, HeldEngine, KernelError, Kernels, MapError, Reaper, SaveArea,
};
use crate::abi::{EngineControl, EngineReport, QueueDescriptor, WordGroup};
use crate::shared::{Block, Pool, PoolPlace, Providers, Region};
use crate::sync::{Arc, AtomicU64, Mutex, lock, plain};
use inner::Inner;
use mappings::Mappings;
use slices::MOST_PASSES;

/// Why a node did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// No memory or address for it.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The driver has no memory for a command; the call that said so.
    #[error("the driver has no memory for the command ({0}): wait for others to complete")]
    NoMemory(&'static str),
    /// As many queues as an engine can have are connected.
    #[error("the engine's run list is full ({} queues)", crate::abi::MAX_HW_QUEUES)]
    RunListFull,
    /// The queue was stopped: destroy it and make it anew.
    #[error("the queue was stopped; destroy it and make it anew")]
    QueueAborted,
    /// Slices may know queues of the context.
    #[error("the context may be on the engine still: suspend it, and wait until it is")]
    NotSuspended,
    /// The engine does not take a kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The engine is lost.
    #[error(transparent)]
    Lost(#[from] EngineLost),
}

/// See the module's page.
#[derive(Debug)]
pub struct Node {
    /// The first to be dropped, and the engine the first of it: an engine whose device is lost may still run,
    /// and looks at all that follows until its end is waited for.
    inner: Mutex<Inner>,
    ordinal: u32,
    caps: EngineCaps,
    providers: Arc<Providers>,
    control: EngineMapping,
    report: EngineMapping,
    policy: NodePolicy,
    crowd: Arc<Crowd>,
    /// Loop passes that a slice may take.
    pass_budget: u64,
    word: EngineWord,
    /// Records that were taken, for those who look without the lock.
    records_taken: AtomicU64,
    descriptors: Pool,
    /// Of contexts that the OS makes no save area for.
    save_areas: Pool,
    /// Whoever changes what the engine has takes turns.
    registering: Mutex<()>,
    /// What it has, and each that takes its place. Taken before `inner`.
    kernels: Mutex<Kernels>,
    /// Where its engine ends when another has taken its place; none does without.
    reaper: plain::Mutex<Option<Arc<Reaper>>>,
}

impl Node {
    /// Attaches an engine, one of a crowd.
    ///
    /// # Errors
    /// When memory for the engine's blocks cannot be had.
    pub fn new(
        ordinal: u32,
        mut engine: Box<dyn Engine>,
        policy: NodePolicy,
        crowd: Arc<Crowd>,
    ) -> Result<Self, NodeError> {
        let map = |group, bytes| -> Result<EngineMapping, MapError> {
            let region = engine.providers().for_words(group, bytes)?;
            EngineMapping::new(engine.as_ref(), &region)
        };
        let control = map(WordGroup::EngineControl, EngineControl::BLOCK_BYTES)?;
        let report = map(WordGroup::EngineReport, EngineReport::BLOCK_BYTES)?;
        attach(
            engine.as_mut(),
            control.host(),
            control.va(),
            report.va(),
            0,
        )?;
        let (caps, providers) = (engine.caps(), Arc::clone(engine.providers()));
        let cuts_slices = engine.cuts_slices();
        // The node's alone from here on, also where the node does not come up: it goes before what it may still store to.
        let engine = HeldEngine::new(engine);
        let inner = Inner::new(engine, control.host(), report.host());
        let pool = |group, bytes| Pool::new(&providers, group, bytes);
        let descriptors = pool(WordGroup::QueueDescriptor, QueueDescriptor::BYTES);
        let save_areas = pool(WordGroup::SaveArea, SaveArea::BYTES);
        let mut node = Self {
            ordinal,
            caps,
            providers,
            control,
            report,
            policy,
            crowd,
            pass_budget: MOST_PASSES,
            word: EngineWord::default(),
            records_taken: AtomicU64::new(0),
            descriptors,
            save_areas,
            registering: Mutex::default(),
            kernels: Mutex::default(),
            reaper: plain::Mutex::default(),
            inner: Mutex::new(inner),
        };
        if cuts_slices {
            node.pass_budget = node.calibrate_passes()?;
        }
        Ok(node)
    }

    /// How its slices end, and how long waiters look.
    #[must_use]
    pub fn policy(&self) -> NodePolicy {
        self.policy
    }

    /// The engines that it is one of.
    #[must_use]
    pub fn crowd(&self) -> &Arc<Crowd> {
        &self.crowd
    }

    /// `NodeOrdinal`.
    #[must_use]
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// Who makes memory that the engine can map.
    #[must_use]
    pub fn providers(&self) -> &Arc<Providers> {
        &self.providers
    }

    /// What the engine has.
    #[must_use]
    pub fn caps(&self) -> EngineCaps {
        self.caps
    }

    /// The engine's state, a hint.
    #[must_use]
    pub fn state(&self) -> EngineState {
        self.word.state()
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> NodeCounters {
        let inner = lock(&self.inner);
        NodeCounters {
            backward_signals: self
                .report
                .host()
                .word(EngineReport::BACKWARD_SIGNALS)
                .observe(),
            refused_words: inner.reader.refused,
            mappings: inner.mappings.count() + inner.beside.count(),
            handle_tables: inner.handles.len() as u64,
            ..inner.counters
        }
    }

    /// Gives a region an address in the engine's space, the same to all that hold one at a time:
    /// the region is unmapped when nobody holds the mapping any more. Whoever drops it has seen to
    /// it that no slice refers to the region.
    ///
    /// # Errors
    /// When the host or the device refuses.
    pub fn map(&self, region: &Arc<Region>) -> Result<Arc<EngineMapping>, NodeError> {
        Ok(Self::map_locked(&mut lock(&self.inner), region)?)
    }

    /// Gives a region one more address, apart from that of [`Node::map`].
    ///
    /// # Errors
    /// When it cannot be mapped.
    pub fn map_beside(&self, region: &Arc<Region>) -> Result<Arc<EngineMapping>, NodeError> {
        let inner = &mut *lock(&self.inner);
        Ok(Self::map_in(&**inner.engine, &mut inner.beside, region)?)
    }

    /// A place for the descriptor of a queue of this node, whose words are zero.
    ///
    /// # Errors
    /// When there is no memory, or it cannot be mapped.
    pub fn descriptor(&self) -> Result<(PoolPlace, EngineBlock), NodeError> {
        let place = self.descriptors.allocate().map_err(MapError::from)?;
        let mapping = self.map(place.region())?;
        let descriptor = mapping.part(place.offset(), QueueDescriptor::BYTES);
        Ok((place, descriptor))
    }

    /// A save area in memory of the node's own, as contexts of the OS's device have (PR-13).
    ///
    /// # Errors
    /// As [`Node::descriptor`].
    pub fn own_save_area(&self, kind: ContextKind) -> Result<Arc<SaveArea>, NodeError> {
        let place = self.save_areas.allocate().map_err(MapError::from)?;
        let mapping = self.map(place.region())?;
        let offset = place.offset();
        Ok(SaveArea::of_node(&mapping, offset, place, kind))
    }

    fn map_locked(inner: &mut Inner, region: &Arc<Region>) -> Result<Arc<EngineMapping>, MapError> {
        Self::map_in(&**inner.engine, &mut inner.mappings, region)
    }

    fn map_in(
        engine: &dyn Engine,
        mappings: &mut Mappings,
        region: &Arc<Region>,
    ) -> Result<Arc<EngineMapping>, MapError> {
        if let Some(mapping) = mappings.of(region) {
            return Ok(mapping);
        }
        let mapping = Arc::new(EngineMapping::new(engine, region)?);
        mappings.remember(region, &mapping);
        Ok(mapping)
    }
}

/// Tells an engine where its blocks lie, whose control block's words these are.
pub(super) fn attach(
    engine: &mut dyn Engine,
    words: &Block,
    control: GpuVa,
    report: GpuVa,
    before: u64,
) -> Result<(), MapError> {
    for (offset, value) in [
        (EngineControl::REPORT_VA, report.0),
        (EngineControl::CLOCK_BITS, engine.clock_bits()),
    ] {
        words.word(offset).put(value);
    }
    engine.attach(control, before)
}
