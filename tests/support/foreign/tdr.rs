//! The foreign driver's part of hang detection and recovery.

use super::driver::ForeignDriver;
use super::fault::Fault;
use native_fence::kmd::{Activity, CollectDbgInfo, DdiError, ResetEngine, TdrDdi};
use std::sync::Arc;

impl ForeignDriver {
    /// Of the engines behind it, which have it where the driver says so.
    fn recovery(&self) -> &dyn TdrDdi {
        self.engines.tdr().expect("engines that are recovered")
    }

    fn aborted(&self, reset: ResetEngine) -> ResetEngine {
        ResetEngine {
            hw_queue: reset.hw_queue.map(|queue| self.numbers.queue(queue)),
            ..reset
        }
    }
}

impl TdrDdi for ForeignDriver {
    fn supports_per_engine_tdr(&self) -> bool {
        self.recovery().supports_per_engine_tdr()
    }

    fn resets_running_engines(&self) -> bool {
        self.fault != Some(Fault::ResetsNothingThatRuns) && self.recovery().resets_running_engines()
    }

    fn engine_is_lost(&self, node_ordinal: u32) -> bool {
        self.recovery()
            .engine_is_lost(self.numbers.node(node_ordinal))
    }

    fn activity(&self) -> Arc<Activity> {
        self.recovery().activity()
    }

    fn engine_marks(&self, node_ordinal: u32) -> Option<u64> {
        self.recovery()
            .engine_marks(self.numbers.node(node_ordinal))
    }

    fn request_preemption(&self, node_ordinal: u32) {
        self.recovery()
            .request_preemption(self.numbers.node(node_ordinal));
    }

    fn suspect_engine(&self, node_ordinal: u32) {
        self.recovery()
            .suspect_engine(self.numbers.node(node_ordinal));
    }

    fn query_engine_status(&self, node_ordinal: u32) -> bool {
        let answers = self
            .recovery()
            .query_engine_status(self.numbers.node(node_ordinal));
        answers && self.fault != Some(Fault::CallsEnginesHung)
    }

    fn query_dependent_engine_group(&self, node_ordinal: u32) -> u64 {
        let group = self
            .recovery()
            .query_dependent_engine_group(self.numbers.node(node_ordinal));
        self.numbers.mask(group)
    }

    fn reset_engine(&self, node_ordinal: u32) -> Result<ResetEngine, DdiError> {
        let reset = self
            .recovery()
            .reset_engine(self.numbers.node(node_ordinal))?;
        Ok(self.aborted(reset))
    }

    fn resume_hw_engine(&self, node_ordinal: u32) -> Result<(), DdiError> {
        self.recovery()
            .resume_hw_engine(self.numbers.node(node_ordinal))
    }

    fn send_threads_away(&self) {
        self.recovery().send_threads_away();
    }

    fn reset_from_timeout(&self) -> Result<Vec<ResetEngine>, DdiError> {
        if matches!(
            self.fault,
            Some(Fault::FailsAdapterResets | Fault::ResetsNothingThatRuns)
        ) {
            return Err(DdiError::NoSpare("it never has one".into()));
        }
        let reset = self.recovery().reset_from_timeout()?;
        let reset = reset.into_iter().map(|reset| self.aborted(reset));
        Ok(reset.rev().collect())
    }

    fn restart_from_timeout(&self) -> Result<(), DdiError> {
        self.recovery().restart_from_timeout()
    }

    fn give_up_engine(&self, node_ordinal: u32) {
        self.recovery()
            .give_up_engine(self.numbers.node(node_ordinal));
    }

    fn collect_dbg_info(&self, args: &CollectDbgInfo) -> Result<String, DdiError> {
        self.recovery().collect_dbg_info(&CollectDbgInfo {
            node_ordinal: self.numbers.node(args.node_ordinal),
            ..*args
        })
    }
}
