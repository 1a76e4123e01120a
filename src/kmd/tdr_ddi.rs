//! TDR DDIs: what the OS calls of a driver to detect hangs and to recover (`layouts.md` 4.1). Each method is
//! the DDI of its name and documents that DDI's contract.

use super::{CollectDbgInfo, DdiError, ResetEngine};
use crate::gpu::Activity;
use crate::sync::Arc;

/// See the file's head. As of [`Ddi`](super::Ddi), each call says its level.
pub trait TdrDdi {
    /// `DXGK_DRIVERCAPS`, its `SupportPerEngineTDR`: the driver resets one engine and leaves the others alone
    /// (TD-16). Asked once, when the driver has been started.
    fn supports_per_engine_tdr(&self) -> bool;

    /// Whether an engine that still runs can be reset (choice): not where engines reach memory that they
    /// cannot be cut off from. There an engine is reset when its device is lost, and not before.
    fn resets_running_engines(&self) -> bool;

    /// Whether an engine's device is lost, and none has taken its place (choice).
    fn engine_is_lost(&self, node_ordinal: u32) -> bool;

    /// Who tells the OS that an engine was taken from Parked (choice): by it the OS watches over engines, and
    /// sleeps while none runs.
    fn activity(&self) -> Arc<Activity>;

    /// DISPATCH_LEVEL: a number that changes with each step of an engine, each answer of its mailbox and each
    /// end of a slice (choice); `None` while no slice is in flight.
    fn engine_marks(&self, node_ordinal: u32) -> Option<u64>;

    /// DISPATCH_LEVEL: asks the engine to come to its next boundary. Returns at once (choice: the request that
    /// precedes each time-out, PR-01; a driver that preempts kernel-mode queues does more for them).
    fn request_preemption(&self, node_ordinal: u32);

    /// DISPATCH_LEVEL: an engine may have to be reset soon (choice). Returns at once.
    fn suspect_engine(&self, node_ordinal: u32);

    /// `DxgkDdiQueryEngineStatus`, PASSIVE_LEVEL, must succeed: whether the engine is `Responsive` (TD-19). It is
    /// asked to come to a boundary, unless that was asked and nothing was shown since, and has a bounded
    /// time.
    fn query_engine_status(&self, node_ordinal: u32) -> bool;

    /// `DxgkDdiQueryDependentEngineGroup`, PASSIVE_LEVEL, must succeed: the nodes whose engines are reset with
    /// this one's, a bit each, its own among them (TD-09).
    fn query_dependent_engine_group(&self, node_ordinal: u32) -> u64;

    /// `DxgkDdiResetEngine`, PASSIVE_LEVEL, as the two before of threading level one (TD-18): no other thread
    /// is in one of these, in PreemptCommand or in SubmitCommandToHwQueue. On return nothing that the engine was doing changes anything any
    /// more, and the node is ready for packets, of which it executes none before
    /// [`resume_hw_engine`](TdrDdi::resume_hw_engine). Of the packets that were under way one queue's is aborted;
    /// every other queue goes on behind what was done.
    ///
    /// # Errors
    /// The engine cannot be reset: the adapter is reset then.
    fn reset_engine(&self, node_ordinal: u32) -> Result<ResetEngine, DdiError>;

    /// `DxgkDdiResumeHwEngine`, PASSIVE_LEVEL: the OS takes interrupts of the engine again.
    ///
    /// # Errors
    /// The engine does not go on: the adapter is reset then.
    fn resume_hw_engine(&self, node_ordinal: u32) -> Result<(), DdiError>;

    /// PASSIVE_LEVEL: the adapter is to be reset, and threads are inside (choice: the documents know no driver
    /// in which a thread waits for an engine). Whoever waits there for slices that do not end leaves; their
    /// engine executes no more.
    fn send_threads_away(&self);

    /// `DxgkDdiResetFromTimeout`, PASSIVE_LEVEL, no other thread is in the driver (TD-18), but for interrupts
    /// and what they defer: on return nothing of the
    /// adapter reads or writes memory. Gives what was aborted on each node (choice: by it the OS knows whom to
    /// blame).
    ///
    /// # Errors
    /// Stops the adapter (TD-20). It may be that an engine hangs and nothing keeps it from memory, or that one runs of a
    /// driver that resets none which does ([`resets_running_engines`](TdrDdi::resets_running_engines)). A driver that
    /// says it resets engines that run, of which none hangs, has no reason to: there a failure breaks the rule.
    fn reset_from_timeout(&self) -> Result<Vec<ResetEngine>, DdiError>;

    /// `DxgkDdiRestartFromTimeout`, PASSIVE_LEVEL: the adapter may touch memory again.
    ///
    /// # Errors
    /// Stops the adapter.
    fn restart_from_timeout(&self) -> Result<(), DdiError>;

    /// PASSIVE_LEVEL: the adapter was stopped, and the engine does not answer (choice: the documents stop the
    /// machine): on return it changes nothing any more, and whoever waited for it returns.
    fn give_up_engine(&self, node_ordinal: u32);

    /// `DxgkDdiCollectDbgInfo`, PASSIVE_LEVEL, with any others at once: what the driver knows, for people; at
    /// most `buffer_size` bytes (TD-11).
    ///
    /// # Errors
    /// Then there is no report of the driver's.
    fn collect_dbg_info(&self, args: &CollectDbgInfo) -> Result<String, DdiError>;
}
