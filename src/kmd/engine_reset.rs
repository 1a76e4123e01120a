//! Engine reset: the DDIs of hang detection and recovery (`layouts.md` 4.1).
//!
//! To reset an engine is to put another one into its place, since nothing stops a shader: the one before is
//! cut off from all that it can reach and left to itself (`gpu::node::cut_off`), or where it is in a
//! process of its own it ends with that.

use super::debug_info::debug_info;
use super::driver::Driver;
use super::{Ddi, DdiError, DriverFaults, HwQueueHandle, ResetFault, TdrDdi};
use crate::abi::StallKind;
use crate::gpu::{Activity, Node, ReplaceError, Replaced, SliceReport};
use crate::shared::Provider;
use crate::sync::Arc;
use std::time::Duration;

/// `DXGKARG_RESETENGINE`, what the driver gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetEngine {
    /// `LastAbortedFenceId`: of a user-mode queue the value of its progress fence that the aborted
    /// submission would have stored; 0 where no packet was aborted. 64 bits here (choice).
    pub last_aborted_fence_id: u64,
    /// The queue whose packet was aborted (choice: a published id is of an engine, one of a user-mode
    /// queue is its own).
    pub hw_queue: Option<HwQueueHandle>,
}

/// `DXGKARG_COLLECTDBGINFO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectDbgInfo {
    /// `Reason`: 0x141 for an engine, 0x117 for the adapter.
    pub reason: u32,
    /// The engine's node, for the first.
    pub node_ordinal: u32,
    /// Most bytes of the report.
    pub buffer_size: usize,
}

impl CollectDbgInfo {
    /// Whole characters of a text, as many as there is room for.
    #[must_use]
    pub fn cut(&self, mut text: String) -> String {
        let ends = (0..=self.buffer_size.min(text.len())).rev();
        let end = ends.into_iter().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text
    }
}

/// Within this time a packet that heeds the abort word has ended: a few looks of it, when its engine has a core.
const ABORT_TIME: Duration = Duration::from_millis(20);

/// The same of one that is said to heed it: on a busy machine its engine may have to wait for a core.
const HEEDED_ABORT_TIME: Duration = Duration::from_secs(1);

/// Within this time an engine that depends on one that is reset is preempted (TD-09).
const DEPENDENT_TIME: Duration = Duration::from_millis(500);

/// A driver, asked to recover.
struct ResetCalls<'a>(&'a Driver);

impl TdrDdi for Driver {
    fn supports_per_engine_tdr(&self) -> bool {
        // No other engine can take over what goes with the lost one's device.
        let local = self.providers().local();
        let outlives = local.map_or(true, Provider::outlives_engines);
        outlives && self.spares.is_some() && !self.options.adapter_wide_tdr
    }

    fn resets_running_engines(&self) -> bool {
        let has_local = self.providers().local().is_ok();
        !has_local && self.nodes.iter().all(|node| node.can_be_cut_off())
    }

    fn engine_is_lost(&self, node_ordinal: u32) -> bool {
        self.node(node_ordinal).is_ok_and(|node| node.is_lost())
    }

    fn activity(&self) -> Arc<Activity> {
        let first = self.nodes.first();
        first.map_or_else(Arc::default, |node| Arc::clone(node.crowd().activity()))
    }

    fn engine_marks(&self, node_ordinal: u32) -> Option<u64> {
        self.node(node_ordinal).ok()?.marks()
    }

    fn request_preemption(&self, node_ordinal: u32) {
        if let Ok(node) = self.node(node_ordinal) {
            node.request_preemption();
        }
    }

    fn suspect_engine(&self, _: u32) {
        if let Some(spares) = &self.spares {
            spares.prepare();
        }
    }

    fn query_engine_status(&self, node_ordinal: u32) -> bool {
        let time = self.options.answer_time;
        // It may be asked as one that depends on another.
        let is_alone = self.query_dependent_engine_group(node_ordinal) == 1 << node_ordinal;
        let time = if is_alone {
            time
        } else {
            time.max(DEPENDENT_TIME)
        };
        self.node(node_ordinal)
            .is_ok_and(|node| node.is_responsive(time))
    }

    fn query_dependent_engine_group(&self, node_ordinal: u32) -> u64 {
        let faults = self.options.faults.as_ref();
        if self.options.shared_device || faults.is_some_and(|faults| faults.is_one_group()) {
            (0..self.node_count()).fold(0, |mask, node| mask | 1 << node)
        } else {
            1 << node_ordinal
        }
    }

    fn reset_engine(&self, node_ordinal: u32) -> Result<ResetEngine, DdiError> {
        let faults = self.options.faults.as_ref();
        let fault = faults.and_then(|faults| Some((faults, faults.take(node_ordinal)?)));
        match fault {
            None => ResetCalls(self).reset_engine(node_ordinal),
            Some((faults, fault)) => ResetCalls(self).reset_by(node_ordinal, faults, fault),
        }
    }

    fn resume_hw_engine(&self, node_ordinal: u32) -> Result<(), DdiError> {
        ResetCalls(self).resume(node_ordinal)
    }

    fn send_threads_away(&self) {
        for node in &self.nodes {
            node.let_waiters_go();
        }
    }

    fn reset_from_timeout(&self) -> Result<Vec<ResetEngine>, DdiError> {
        let nodes = 0..self.node_count();
        nodes.map(|node| ResetCalls(self).replace(node)).collect()
    }

    fn restart_from_timeout(&self) -> Result<(), DdiError> {
        for ordinal in 0..self.node_count() {
            ResetCalls(self).resume(ordinal)?;
        }
        Ok(())
    }

    fn give_up_engine(&self, node_ordinal: u32) {
        if let Ok(node) = self.node(node_ordinal) {
            node.give_up();
            self.threads.let_go(node_ordinal);
        }
    }

    fn collect_dbg_info(&self, args: &CollectDbgInfo) -> Result<String, DdiError> {
        debug_info(self, args)
    }
}

impl ResetCalls<'_> {
    /// Ends the packet that a node's engine is in, or gives the engine up.
    fn reset_engine(&self, node_ordinal: u32) -> Result<ResetEngine, DdiError> {
        match self.abort(self.0.node(node_ordinal)?) {
            Some(aborted) => Ok(aborted),
            None => self.replace(node_ordinal),
        }
    }

    /// The same, gone wrong in this way.
    fn reset_by(
        &self,
        node_ordinal: u32,
        faults: &DriverFaults,
        fault: ResetFault,
    ) -> Result<ResetEngine, DdiError> {
        match fault {
            ResetFault::Fails => Err(DdiError::NoSpare(String::from("that is an injected fault"))),
            ResetFault::SaysAborted(last_aborted_fence_id) => Ok(ResetEngine {
                last_aborted_fence_id,
                ..self.reset_engine(node_ordinal)?
            }),
            ResetFault::ComesLate(most) => {
                faults.wait_until_let(node_ordinal, most);
                self.reset_engine(node_ordinal)
            }
        }
    }

    /// Puts a spare into the place of a node's engine.
    fn replace(&self, node_ordinal: u32) -> Result<ResetEngine, DdiError> {
        let node = self.0.node(node_ordinal)?;
        let replaced = match self.put_spare(node) {
            // It may have been lost while it was kept, or made: once is bad luck, and twice is a device that
            // makes no more engines, which is for the whole adapter to find out (TD-08).
            Err(
                DdiError::Reset(ReplaceError::Map(_) | ReplaceError::Kernel(_))
                | DdiError::NoSpare(_),
            ) => self.put_spare(node),
            replaced => replaced,
        }?;
        // The engine before has threads that wait for it; the new one gets its own.
        self.0.threads.let_go(node_ordinal);
        self.0.serve(node)?;
        drop(replaced.engine);
        self.tell(node, replaced.report);
        Ok(self.aborted(node_ordinal, replaced.aborted))
    }

    fn put_spare(&self, node: &Node) -> Result<Replaced, DdiError> {
        let spares = self.0.spares.as_ref().ok_or_else(|| {
            DdiError::NoSpare(String::from("the driver was made without spare engines"))
        })?;
        let mut spare = spares.take().map_err(DdiError::NoSpare)?;
        spare.serve(node.ordinal());
        let queues = self.0.queues.of_node(node.ordinal());
        Ok(node.replace_engine(spare, &queues)?)
    }

    /// The gentle way: a packet that heeds the abort word ends by it, and the engine goes on. One that is lost
    /// heeds nothing.
    fn abort(&self, node: &Arc<Node>) -> Option<ResetEngine> {
        let stalled = node.stalled_at().filter(|_| !node.is_lost())?;
        let aborted = self.aborted(node.ordinal(), Some(stalled.hw_queue));
        let slot = self.0.queues.slot(HwQueueHandle {
            node_ordinal: node.ordinal(),
            number: stalled.hw_queue,
        });
        // A kernel heeds nothing, and whose it is may be another's by now.
        let slot = slot.ok().filter(|slot| !slot.has_released())?;
        let kind = slot.stall_kind(stalled.packet);
        node.abort_stall();
        let patience = match kind {
            Some(StallKind::HeedsAbort) => HEEDED_ABORT_TIME,
            Some(StallKind::HeedsNothing) | None => ABORT_TIME,
        };
        node.comes_to_boundary(patience).then_some(aborted)
    }

    /// What is told of the queue whose packet was aborted.
    fn aborted(&self, node_ordinal: u32, number: Option<u32>) -> ResetEngine {
        let hw_queue = number.map(|number| HwQueueHandle {
            node_ordinal,
            number,
        });
        let kernel_queue =
            hw_queue.and_then(|queue| self.0.reporter.kernel_queues().of_handle(queue));
        if let Some(queue) = kernel_queue {
            // One without a command was stopped at nothing of the OS's.
            let id = queue.aborted_submission();
            return ResetEngine {
                last_aborted_fence_id: id.unwrap_or(0),
                hw_queue: hw_queue.filter(|_| id.is_some()),
            };
        }
        let id = hw_queue.and_then(|hw_queue| {
            let slot = self.0.queues.slot(hw_queue).ok()?;
            let completed = self.0.node(node_ordinal).ok()?.progress_value(&slot);
            // What stands in the ring is its user's: none of his is below what the engine has stored.
            Some(slot.next_progress_value().unwrap_or(0).max(completed))
        });
        ResetEngine {
            last_aborted_fence_id: id.unwrap_or(0),
            hw_queue,
        }
    }

    /// The engine executes again.
    fn resume(&self, node_ordinal: u32) -> Result<(), DdiError> {
        let node = self.0.node(node_ordinal)?;
        self.tell(node, node.go_on());
        // A completion that the engine had noted, and not told, when it was given up.
        let reporter = &self.0.reporter;
        for queue in reporter.kernel_queues().of_node(node_ordinal) {
            reporter.tell_completions_anew(node, queue.handle());
        }
        Ok(())
    }

    fn tell(&self, node: &Arc<Node>, report: SliceReport) {
        if !report.is_empty() {
            self.0.reporter.deliver(node, report);
        }
    }
}
