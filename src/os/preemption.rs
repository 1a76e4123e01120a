//! Preemption of an engine's kernel-mode queues, as the OS asks for it (PR-04, PR-05, PR-18).
//!
//! The driver is asked by `DxgkDdiPreemptCommand` and answers by an interrupt. Where it is not
//! PreemptionAware it is never asked, as on Windows 7: long work runs until it ends (PR-11).

use super::adapter::OsError;
use super::adapter_state::AdapterState;
use super::record::Record;
use crate::kmd::{PreemptionCaps, VidSchCaps};
use crate::sync::{Arc, monotonic_ns};
use crate::trace::Note;

impl AdapterState {
    /// Has a node's engine let go of what it was handed through the OS, which is handed over again then:
    /// paging packets first, with their ids, the others with new ones. Returns at once.
    ///
    /// # Errors
    /// A driver that is not PreemptionAware ([`OsError::NotPreemptionAware`]); a stopped adapter; no such
    /// node.
    pub fn preempt(&self, node_ordinal: u32) -> Result<(), OsError> {
        self.check_up()?;
        let nodes = self.ddi().node_count();
        if node_ordinal >= nodes {
            return Err(OsError::NodeOrdinal {
                node_ordinal,
                nodes,
            });
        }
        if !self.vidsch_caps().has(VidSchCaps::PREEMPTION_AWARE) {
            return Err(OsError::NotPreemptionAware);
        }
        self.recording.recorder().note(|| Note::Preemption {
            node_ordinal,
            at: monotonic_ns(),
        });
        let life = Arc::clone(&self.life);
        let refused = Box::new(move |error| {
            life.bug_check(Record::preempt_command_failed(node_ordinal, &error));
            life.settle();
        });
        let engine = self.kernel_queues.engine(node_ordinal);
        engine.preempt(self.ddi(), refused);
        Ok(())
    }

    /// The last request to preempt a node's engine, by its id, and whether it is answered.
    #[must_use]
    pub fn preemption(&self, node_ordinal: u32) -> (u64, bool) {
        self.kernel_queues.engine(node_ordinal).preemption()
    }

    /// `D3DKMDT_PREEMPTION_CAPS`, as the driver reports them (PR-03).
    #[must_use]
    pub fn preemption_caps(&self) -> PreemptionCaps {
        self.ddi().preemption_caps()
    }

    /// The answer to a request.
    pub(super) fn dma_preempted(&self, node_ordinal: u32, preemption_id: u64, last: u64) {
        let engine = self.kernel_queues.engine(node_ordinal);
        if engine.preempted(preemption_id, last).is_err() {
            let record = Record::invalid_preemption(preemption_id, last, node_ordinal);
            self.life.bug_check(record);
            self.life.settle();
        }
    }
}
