//! TDR: time-out detection and recovery (`layouts.md` part 4).
//!
//! A watch looks after engines while any of them runs: one that has shown nothing of itself for a quantum is
//! asked to come to its next boundary, and one that has not answered within TdrDelay has timed out. An engine
//! whose device is lost counts as one that cannot answer. What follows is the documented sequence (`steps`), a
//! function for each of its steps, in their order (`sequence`): the engine is reset, the device whose packet it was is
//! in error, and all others go on.
//!
//! From the snapshot to the end of the recovery nothing that the engine raises changes any state: it is kept
//! until then (`deferral`). What stands after it is right whether or not it is still news.

mod deferral;
#[cfg(loom)]
mod explored_deferral;
mod limits;
mod policy;
mod report;
mod sequence;
mod snapshot;
mod steps;
mod verdict;
mod watch;

#[cfg(loom)]
pub use explored_deferral::ExploredDeferral;
pub use policy::{TdrDebugMode, TdrLevel, TdrPolicy};
pub use report::TdrReport;
pub(super) use snapshot::InvalidAbortedFence;
pub use steps::TdrStep;

use super::adapter_state::AdapterState;
use super::record::Record;
use crate::sync::Arc;
use crate::sync::plain as guards;
use crate::sync::plain::{Mutex, lock};
use crate::trace::Recorder;
use deferral::Deferral;
use limits::Limits;
use std::sync::OnceLock;
use steps::Steps;
use watch::Watch;

/// What an adapter knows of its time-outs.
#[derive(Debug)]
pub(super) struct Tdr {
    policy: TdrPolicy,
    pub(super) deferral: Deferral,
    watch: Watch,
    limits: Mutex<Limits>,
    reports: Mutex<Vec<TdrReport>>,
    steps: Steps,
    /// 0x142: the program may use the adapter no more.
    blocked: OnceLock<Record>,
}

impl AdapterState {
    /// Whether engines are recovered; else one that is lost is lost for good.
    pub(super) fn is_watched(&self) -> bool {
        self.tdr.policy.detects() && self.ddi().tdr().is_some()
    }

    /// Whether a verdict stops queues (TD-15): with TdrLevel Off nothing is detected.
    pub(super) fn acts_on_verdicts(&self) -> bool {
        self.tdr.policy.detects()
    }

    /// What was found when engines did not answer: the last few reports, oldest first.
    #[must_use]
    pub fn tdr_reports(&self) -> Vec<TdrReport> {
        self.tdr.reports()
    }

    /// 0x142: why the program may use the adapter no more, if so.
    #[must_use]
    pub fn blocked(&self) -> Option<&Record> {
        self.tdr.blocked.get()
    }
}

/// Reports that are kept, the last of them.
const MOST_REPORTS: usize = 16;

impl Tdr {
    /// Of an adapter with so many nodes.
    pub(super) fn new(policy: TdrPolicy, nodes: u32, recorder: &Arc<Recorder>) -> Self {
        Self {
            policy,
            deferral: Deferral::new(nodes),
            watch: Watch::default(),
            limits: Mutex::default(),
            reports: Mutex::default(),
            steps: Steps::new(recorder),
            blocked: OnceLock::new(),
        }
    }

    fn add_report(&self, report: TdrReport) {
        let mut reports = lock(&self.reports);
        if reports.len() == MOST_REPORTS {
            reports.remove(0);
        }
        reports.push(report);
    }

    /// An engine was found lost: the watch recovers it.
    pub(super) fn lost(&self, node_ordinal: u32) {
        self.watch.lost(node_ordinal);
    }

    /// Nobody is watched any more.
    pub(super) fn stop(&self) {
        self.watch.stop();
    }

    /// The same, and whoever watches is not waited for.
    pub(super) fn let_go(&self) {
        let _nobody_waits = self.watch.let_go();
    }

    /// The last reports, oldest first.
    pub(super) fn reports(&self) -> Vec<TdrReport> {
        lock(&self.reports).clone()
    }
}
