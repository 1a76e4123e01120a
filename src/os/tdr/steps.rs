//! Steps: the documented recovery of an engine as a list, in the order of the article, and which of them the last
//! recovery of each node took, and when (TD-02).
//!
//! Each has a function of its own: Preempt and Detect the watch's (`watch`), the others the sequence's
//! (`sequence`). An engine whose device is lost is asked for nothing. A dependent engine that is reset as well has
//! a reset and a validation of its own.

use crate::os::adapter_state::AdapterState;
use crate::sync::plain::{Mutex, lock};
use crate::sync::{Arc, monotonic_ns};
use crate::trace::{Note, Recorder};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A step of the recovery of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TdrStep {
    /// The engine is asked to come to its next boundary.
    Preempt,
    /// It has not answered within TdrDelay, or its device is lost.
    Detect,
    /// The last submitted and completed ids, while what the engine raises is kept.
    Snapshot,
    /// All has completed by then: nothing is reset.
    StopIfNothingIsLeft,
    /// What was raised before the snapshot is handled.
    FlushDeferredWork,
    /// CollectDbgInfo and QueryDependentEngineGroup.
    Prepare,
    /// ResetEngine.
    ResetEngine,
    /// LastAbortedFenceId is one that can be.
    Validate,
    /// Devices of aborted packets are in error, the others' packets are submitted again.
    Recover,
    /// ResetFromTimeout: nothing of the adapter reads or writes memory any more.
    ResetFromTimeout,
    /// Devices that have lost work are in error, and nothing that was submitted is any more.
    CleanUp,
    /// RestartFromTimeout.
    RestartFromTimeout,
}

impl TdrStep {
    /// Those of an engine's recovery, in their order.
    pub const OF_ENGINE: [Self; 9] = [
        Self::Preempt,
        Self::Detect,
        Self::Snapshot,
        Self::StopIfNothingIsLeft,
        Self::FlushDeferredWork,
        Self::Prepare,
        Self::ResetEngine,
        Self::Validate,
        Self::Recover,
    ];

    /// Those of the adapter's, in the place of what is left of the others.
    pub const OF_ADAPTER: [Self; 3] = [
        Self::ResetFromTimeout,
        Self::CleanUp,
        Self::RestartFromTimeout,
    ];

    /// For people, and for programs that read what is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Preempt => "preempt",
            Self::Detect => "detect",
            Self::Snapshot => "snapshot",
            Self::StopIfNothingIsLeft => "stop if nothing is left",
            Self::FlushDeferredWork => "flush deferred work",
            Self::Prepare => "prepare",
            Self::ResetEngine => "reset the engine",
            Self::Validate => "validate",
            Self::Recover => "recover",
            Self::ResetFromTimeout => "reset the adapter",
            Self::CleanUp => "clean up",
            Self::RestartFromTimeout => "restart the adapter",
        }
    }
}

/// Of one node.
#[derive(Debug, Default)]
struct OfNode {
    /// The last request, which may have been answered.
    asked: Option<Instant>,
    taken: Vec<(TdrStep, Instant)>,
}

/// Steps of the last recovery of each node.
#[derive(Debug)]
pub(super) struct Steps {
    of_nodes: Mutex<BTreeMap<u32, OfNode>>,
    recorder: Arc<Recorder>,
}

impl Steps {
    /// None yet; those to come are told to the recorder as well.
    pub(super) fn new(recorder: &Arc<Recorder>) -> Self {
        Self {
            of_nodes: Mutex::default(),
            recorder: Arc::clone(recorder),
        }
    }

    fn note(&self, node_ordinal: u32, step: TdrStep) {
        self.recorder.note(|| Note::Recovery {
            node_ordinal,
            step: step.name(),
            at: monotonic_ns(),
        });
    }

    /// An engine was asked to come to its next boundary.
    pub(super) fn asked(&self, node_ordinal: u32) {
        self.note(node_ordinal, TdrStep::Preempt);
        let mut steps = lock(&self.of_nodes);
        steps.entry(node_ordinal).or_default().asked = Some(Instant::now());
    }

    /// A recovery begins: of an engine that has not answered, or of one that is lost.
    pub(super) fn begin(&self, node_ordinal: u32, has_asked: bool) {
        self.note(node_ordinal, TdrStep::Detect);
        let mut steps = lock(&self.of_nodes);
        let of = steps.entry(node_ordinal).or_default();
        let asked = of.asked.take().filter(|_| has_asked);
        of.taken = asked.map(|at| (TdrStep::Preempt, at)).into_iter().collect();
        of.taken.push((TdrStep::Detect, Instant::now()));
    }

    /// It comes to a step.
    pub(super) fn take(&self, node_ordinal: u32, step: TdrStep) {
        self.note(node_ordinal, step);
        let mut steps = lock(&self.of_nodes);
        let of = steps.entry(node_ordinal).or_default();
        of.taken.push((step, Instant::now()));
    }
}

impl AdapterState {
    /// The steps that the last recovery of a node's engine has taken so far, each with the time since its first.
    #[must_use]
    pub fn tdr_steps(&self, node_ordinal: u32) -> Vec<(TdrStep, Duration)> {
        let steps = lock(&self.tdr.steps.of_nodes);
        let taken = steps.get(&node_ordinal).map(|of| of.taken.as_slice());
        let Some(taken @ [(_, first), ..]) = taken else {
            return Vec::new();
        };
        let since = |at: Instant| at.saturating_duration_since(*first);
        taken.iter().map(|(step, at)| (*step, since(*at))).collect()
    }
}
