//! Scene: an adapter of two engines, what is put in their way, and what their driver will do wrong.

use super::expectation::Expectation;
use super::hang::Hang;
use crate::cli::until::until;
use crate::gpu::{EngineUnit, Injection, ShaderTuning, SparePolicy};
use crate::kmd::{DriverFaults, DriverOptions, ResetFault};
use crate::os::NodeCounters;
use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance};
use crate::{Adapter, AdapterOptions, TdrPolicy};
use std::num::NonZeroU32;
use std::time::Duration;

/// The node that is hung.
pub(super) const GUILTY_NODE: u32 = 0;
/// The one that goes on.
pub(super) const OTHER_NODE: u32 = 1;
pub(super) const NODES: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

/// See the file's head.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) adapter: Adapter,
    pub(super) injection: Arc<Injection>,
    pub(super) faults: Arc<DriverFaults>,
}

impl Scene {
    pub(super) fn open(
        instance: &Arc<Instance>,
        info: &AdapterInfo,
        unit: EngineUnit,
        delay: Duration,
    ) -> anyhow::Result<Self> {
        let injection = Injection::new(NODES.get())?;
        let faults = DriverFaults::new();
        let options = AdapterOptions {
            nodes: NODES,
            unit: Some(unit),
            tuning: ShaderTuning {
                stalls: true,
                ..ShaderTuning::default()
            },
            tdr: TdrPolicy {
                delay,
                // A show of hangs is no program that hangs.
                limit_count: u32::MAX,
                ..TdrPolicy::default()
            },
            driver: DriverOptions {
                faults: Some(Arc::clone(&faults)),
                ..DriverOptions::default()
            },
            spares: SparePolicy::Kept,
            // What is put in the way of engines of this process.
            injection: (unit != EngineUnit::Process).then(|| Arc::clone(&injection)),
            ..AdapterOptions::default()
        };
        let adapter = Adapter::open_on(instance, info, &options)?;
        Ok(Self {
            adapter,
            injection,
            faults,
        })
    }

    /// What the driver will do wrong; whether there is something.
    pub(super) fn arm(&self, hang: Hang, patience: Duration) -> bool {
        let reset = |fault| self.faults.at_next_reset(GUILTY_NODE, fault);
        match hang {
            Hang::FailedReset => reset(ResetFault::Fails),
            Hang::WrongAbortedId => reset(ResetFault::SaysAborted(Expectation::WRONG_ID)),
            Hang::Late | Hang::LateWithOthers => reset(ResetFault::ComesLate(patience)),
            Hang::Dependent | Hang::DependentStalled => self.faults.make_one_group(),
            Hang::Lost
            | Hang::KilledProcess
            | Hang::StoppedProcess
            | Hang::Endless
            | Hang::Abort
            | Hang::ComesBack
            | Hang::Paging
            | Hang::Dispatch
            | Hang::Stall => return false,
        }
        true
    }

    /// Where the engine of the node that is hung is, if that is not this process.
    pub(super) fn guilty_process(&self) -> Option<u32> {
        self.adapter.engine_process(GUILTY_NODE)
    }

    /// Of the node that is hung.
    pub(super) fn counters(&self) -> NodeCounters {
        self.counters_of(GUILTY_NODE)
    }

    pub(super) fn counters_of(&self, node_ordinal: u32) -> NodeCounters {
        let ddi = self.adapter.os().ddi();
        ddi.node_counters(node_ordinal).unwrap_or_default()
    }

    /// Waits until a spare stands ready, with the kernels that there are: how long others are held up is promised for
    /// what is so from then on. Before that the recovery waits for its compiler, on a busy machine for seconds.
    pub(super) fn until_spare_is_kept(&self, patience: Duration) -> anyhow::Result<()> {
        until("a spare engine stands ready", patience, || {
            self.adapter.has_spare()
        })
    }

    /// Waits for so many records: the last one may be noted when programs go on already.
    pub(super) fn until_noted(&self, records: usize, patience: Duration) {
        let is_noted = || self.adapter.os().records().len() >= records;
        // Whether they are there is looked at later.
        let _ = until("the records are noted", patience, is_noted);
    }

    /// Waits until the operating system has made up its mind to reset the engine, and the driver holds that up.
    pub(super) fn until_reset_is_held(&self, patience: Duration) -> anyhow::Result<()> {
        until("the engine is about to be reset", patience, || {
            self.faults.met() > 0
        })
    }

    /// Waits until the engine that is about to be reset has done all that it was given.
    pub(super) fn until_all_is_done(&self, patience: Duration) -> anyhow::Result<()> {
        let ddi = self.adapter.os().ddi();
        let is_at_rest = || {
            let tdr = ddi.tdr();
            tdr.is_some_and(|tdr| tdr.engine_marks(GUILTY_NODE).is_none())
        };
        until("the engine has done all", patience, is_at_rest)
    }

    /// Waits until each engine that was given up has come to its end, with all slices that it was given.
    pub(super) fn until_given_up_have_ended(&self, patience: Duration) -> anyhow::Result<()> {
        until("an engine that was given up has ended", patience, || {
            self.adapter.engines_given_up() == 0
        })
    }

    /// The driver holds the reset up no longer.
    pub(super) fn let_reset_go(&self) {
        self.faults.let_go(GUILTY_NODE);
    }
}
