//! Level-checked: the DDIs of hang detection and recovery.

use super::{CollectDbgInfo, DdiError, Level, LevelChecked, ResetEngine, TdrDdi};
use crate::gpu::Activity;
use crate::sync::Arc;

impl LevelChecked {
    fn call_tdr<'a, T>(
        &'a self,
        ddi: &'static str,
        documented: Level,
        call: impl FnOnce(&'a dyn TdrDdi) -> T,
    ) -> T {
        self.call(ddi, documented, |driver| match driver.tdr() {
            Some(tdr) => call(tdr),
            None => unreachable!("only a driver that has them gives them out"),
        })
    }
}

impl TdrDdi for LevelChecked {
    fn supports_per_engine_tdr(&self) -> bool {
        self.call_tdr("SupportPerEngineTDR", Level::Passive, |ddi| {
            ddi.supports_per_engine_tdr()
        })
    }

    fn resets_running_engines(&self) -> bool {
        self.call_tdr("ResetsRunningEngines", Level::Dispatch, |ddi| {
            ddi.resets_running_engines()
        })
    }

    fn engine_is_lost(&self, node_ordinal: u32) -> bool {
        self.call_tdr("EngineIsLost", Level::Dispatch, |ddi| {
            ddi.engine_is_lost(node_ordinal)
        })
    }

    fn activity(&self) -> Arc<Activity> {
        self.call_tdr("Activity", Level::Passive, TdrDdi::activity)
    }

    fn engine_marks(&self, node_ordinal: u32) -> Option<u64> {
        self.call_tdr("EngineMarks", Level::Dispatch, |ddi| {
            ddi.engine_marks(node_ordinal)
        })
    }

    fn request_preemption(&self, node_ordinal: u32) {
        self.call_tdr("RequestPreemption", Level::Dispatch, |ddi| {
            ddi.request_preemption(node_ordinal);
        });
    }

    fn suspect_engine(&self, node_ordinal: u32) {
        self.call_tdr("SuspectEngine", Level::Dispatch, |ddi| {
            ddi.suspect_engine(node_ordinal);
        });
    }

    fn query_engine_status(&self, node_ordinal: u32) -> bool {
        self.call_tdr("QueryEngineStatus", Level::Passive, |ddi| {
            ddi.query_engine_status(node_ordinal)
        })
    }

    fn query_dependent_engine_group(&self, node_ordinal: u32) -> u64 {
        self.call_tdr("QueryDependentEngineGroup", Level::Passive, |ddi| {
            ddi.query_dependent_engine_group(node_ordinal)
        })
    }

    fn reset_engine(&self, node_ordinal: u32) -> Result<ResetEngine, DdiError> {
        self.call_tdr("ResetEngine", Level::Passive, |ddi| {
            ddi.reset_engine(node_ordinal)
        })
    }

    fn resume_hw_engine(&self, node_ordinal: u32) -> Result<(), DdiError> {
        self.call_tdr("ResumeHwEngine", Level::Passive, |ddi| {
            ddi.resume_hw_engine(node_ordinal)
        })
    }

    fn send_threads_away(&self) {
        self.call_tdr("SendThreadsAway", Level::Passive, |ddi| {
            ddi.send_threads_away();
        });
    }

    fn reset_from_timeout(&self) -> Result<Vec<ResetEngine>, DdiError> {
        self.call_tdr("ResetFromTimeout", Level::Passive, |ddi| {
            ddi.reset_from_timeout()
        })
    }

    fn restart_from_timeout(&self) -> Result<(), DdiError> {
        self.call_tdr("RestartFromTimeout", Level::Passive, |ddi| {
            ddi.restart_from_timeout()
        })
    }

    fn give_up_engine(&self, node_ordinal: u32) {
        self.call_tdr("GiveUpEngine", Level::Passive, |ddi| {
            ddi.give_up_engine(node_ordinal);
        });
    }

    fn collect_dbg_info(&self, args: &CollectDbgInfo) -> Result<String, DdiError> {
        self.call_tdr("CollectDbgInfo", Level::Passive, |ddi| {
            ddi.collect_dbg_info(args)
        })
    }
}
