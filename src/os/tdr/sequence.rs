//! Sequence: the steps of the documented recovery, a function each, in the order of the article (TD-02).

use super::report::{ReportedQueue, ReportedWait, TdrReport};
use super::snapshot::{QueueIds, Snapshot};
use super::steps::TdrStep;
use super::{TdrDebugMode, TdrLevel};
use crate::abi::wddm::DeviceExecutionState;
use crate::kmd::{
    CollectDbgInfo, DdiError, HwQueueHandle, HwQueueWait, ProcessId, ResetEngine, StillInside,
    TdrDdi,
};
use crate::os::adapter_state::AdapterState;
use crate::os::record::Record;
use crate::os::wait_cell::WaitError;
use crate::sync::plain::lock;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Why an engine is recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It has not answered a preemption request within TdrDelay.
    TimedOut,
    /// Its device is lost: it counts as one that cannot answer (PR-01).
    Lost,
}

/// For what is handled when a snapshot is taken: a waker of the program's that takes longer does not hold a
/// recovery up.
const WAKERS_TIME: Duration = Duration::from_millis(200);

/// How an engine's reset came out.
enum Outcome {
    /// Validated.
    Reset(ResetEngine),
    /// The adapter is reset.
    Promoted(Promotion),
    /// The adapter was stopped.
    Stopped,
}

/// Why the reset of an engine does not do (TD-08).
#[derive(Debug, thiserror::Error)]
enum Promotion {
    /// It could not be reset.
    #[error(transparent)]
    NotReset(DdiError),
    /// What it aborted was a paging packet: the memory that it was about is in nobody knows what state.
    #[error("{}", Record::PAGING_PACKET)]
    PagingPacket,
}

impl AdapterState {
    /// An engine has timed out, or is lost: goes through the steps. On the watch's thread alone.
    pub(super) fn recover_engine(&self, node: u32, cause: Cause) {
        let Some(tdr) = self.ddi().tdr() else {
            return;
        };
        if self.stopped().is_some() {
            return tdr.give_up_engine(node);
        }
        if let Err(StillInside) = self.try_recovery(tdr, node, cause) {
            let reason = "a thread was still in the driver after TdrDdiDelay";
            self.stop_adapter(tdr, node, Record::video_tdr_failure(node, None, reason));
        }
    }

    /// A call of level one: no other thread is in one (TD-18).
    fn alone<T>(&self, call: impl FnOnce() -> T) -> Result<T, StillInside> {
        self.kernel_queues.alone(self.tdr.policy.ddi_delay, call)
    }

    fn try_recovery(&self, tdr: &dyn TdrDdi, node: u32, cause: Cause) -> Result<(), StillInside> {
        let policy = self.tdr.policy;
        // Lost, and replaced since; or running where it cannot be cut off, until its device is lost.
        let is_lost = tdr.engine_is_lost(node);
        if !is_lost && (cause == Cause::Lost || !tdr.resets_running_engines()) {
            return Ok(());
        }
        self.tdr.steps.begin(node, cause == Cause::TimedOut);
        if policy.level == TdrLevel::BugCheck {
            self.stop_adapter(
                tdr,
                node,
                Record::video_tdr_failure(node, None, "TdrLevel says so"),
            );
            return Ok(());
        }
        self.tdr.steps.take(node, TdrStep::Snapshot);
        let snapshot = self.take_snapshot(node);
        self.tdr.steps.take(node, TdrStep::StopIfNothingIsLeft);
        if cause == Cause::TimedOut && is_nothing_left(tdr, node, &snapshot) {
            self.take_interrupts_again(&[node]);
            return Ok(());
        }
        self.tdr.steps.take(node, TdrStep::FlushDeferredWork);
        self.tdr.deferral.flush(node, self.wakers_time());
        self.tdr.steps.take(node, TdrStep::Prepare);
        let group = self.prepare(tdr, node, cause, &snapshot)?;
        if !group.contains(&node) {
            self.stop_adapter(tdr, node, Record::node_without_itself(node));
            return Ok(());
        }
        if policy.debug_mode == TdrDebugMode::Off {
            self.life.note(Record::engine_timeout(node, false));
            self.take_interrupts_again(&[node]);
            return Ok(());
        }
        if cause == Cause::TimedOut && self.query_engine_status(tdr, node)? {
            // It has come to life since.
            self.take_interrupts_again(&[node]);
            return Ok(());
        }
        if !tdr.supports_per_engine_tdr() {
            return self.reset_adapter(tdr, &group, &[], None);
        }
        // All at once: they have one time together (TD-09).
        for member in group.iter().copied().filter(|member| *member != node) {
            tdr.request_preemption(member);
        }
        let mut reset = Vec::new();
        for member in group.iter().copied() {
            let snapshot = if member == node {
                snapshot.clone()
            } else if self.query_engine_status(tdr, member)? {
                // It was preempted in the time that a status takes at most since it was asked to.
                continue;
            } else {
                if !self.group_of(tdr, member)?.contains(&member) {
                    let record = Record::node_without_itself(member);
                    self.stop_adapter(tdr, node, record);
                    return Ok(());
                }
                self.take_snapshot(member)
            };
            self.tdr.steps.take(node, TdrStep::ResetEngine);
            let answer = self.alone(|| tdr.reset_engine(member))?;
            self.tdr.steps.take(node, TdrStep::Validate);
            let promoted = match self.validate(tdr, member, &snapshot, answer) {
                Outcome::Reset(aborted) => {
                    reset.push((member, aborted));
                    let is_paging = aborted.hw_queue.is_some_and(|queue| self.is_paging(queue));
                    is_paging.then_some(Promotion::PagingPacket)
                }
                Outcome::Promoted(why) => Some(why),
                Outcome::Stopped => return Ok(()),
            };
            if let Some(why) = promoted {
                return self.reset_adapter(tdr, &group, &reset, Some(&why));
            }
        }
        self.tdr.steps.take(node, TdrStep::Recover);
        self.recover(tdr, &reset)
    }

    fn wakers_time(&self) -> Duration {
        WAKERS_TIME.min(self.tdr.policy.ddi_delay)
    }

    /// The last submitted and last completed ids; from here on what the engine raises is kept. As one step:
    /// what is handled already is waited for, and what comes later changes nothing.
    fn take_snapshot(&self, node: u32) -> Snapshot {
        // Service routine and deferred call are one here: of what was deferred only a waker of the program's that
        // takes its time is left for the article's next step but one.
        self.tdr.deferral.begin(node, self.wakers_time());
        let queues = self.all_queues().into_iter();
        let queues = queues.filter(|queue| queue.handle().node_ordinal == node);
        let mut ids: Vec<_> = queues
            .map(|queue| QueueIds {
                hw_queue: Some(queue.handle()),
                process: Some(queue.process()),
                last_submitted: queue.last_queued_value(),
                last_completed: queue.completed_value(),
            })
            .collect();
        let (last_submitted, last_completed) = self.submission_ids(node);
        ids.push(QueueIds {
            hw_queue: None,
            process: None,
            last_submitted,
            last_completed,
        });
        Snapshot(ids)
    }

    /// Who is reset with the engine, and what there is to be known of it.
    fn prepare(
        &self,
        tdr: &dyn TdrDdi,
        node: u32,
        cause: Cause,
        snapshot: &Snapshot,
    ) -> Result<BTreeSet<u32>, StillInside> {
        let reason = if tdr.supports_per_engine_tdr() {
            Record::VIDEO_ENGINE_TIMEOUT_DETECTED
        } else {
            Record::VIDEO_TDR_TIMEOUT_DETECTED
        };
        let args = CollectDbgInfo {
            reason,
            node_ordinal: node,
            buffer_size: TdrReport::MOST_BYTES,
        };
        let queues = snapshot.0.iter().filter_map(|ids| {
            let hw_queue = ids.hw_queue?;
            let wait = self.ddi().hw_queue_wait(hw_queue);
            Some(ReportedQueue {
                hw_queue,
                last_submitted: ids.last_submitted,
                last_completed: ids.last_completed,
                wait: wait.map(|wait| self.reported(ids.process, wait)),
            })
        });
        self.tdr.add_report(TdrReport {
            reason: args.reason,
            node_ordinal: node,
            is_lost: cause == Cause::Lost,
            queues: queues.collect(),
            driver: tdr
                .collect_dbg_info(&args)
                .map(|text| args.cut(text))
                .map_err(|error| error.to_string()),
        });
        self.group_of(tdr, node)
    }

    /// The nodes whose engines are reset with that of a node.
    fn group_of(&self, tdr: &dyn TdrDdi, node: u32) -> Result<BTreeSet<u32>, StillInside> {
        let mask = self.alone(|| tdr.query_dependent_engine_group(node))?;
        let nodes = 0..self.ddi().node_count();
        Ok(nodes.filter(|of| mask >> of & 1 == 1).collect())
    }

    /// Whether an engine answers (TD-19), by its driver. The caller holds no lock: it may take a while.
    pub(in crate::os) fn query_engine_status(
        &self,
        tdr: &dyn TdrDdi,
        node: u32,
    ) -> Result<bool, StillInside> {
        self.alone(|| tdr.query_engine_status(node))
    }

    fn reported(&self, process: Option<ProcessId>, wait: HwQueueWait) -> ReportedWait {
        let fence = process.and_then(|process| self.fence_of_handle(process, wait.handle));
        let fence = fence.map(|fence| {
            // What no CPU reads (NF-13) is not read for a report.
            let value = (!fence.terms().is_intra_gpu()).then(|| fence.current_value());
            (value, fence.signallers(&self.devices))
        });
        ReportedWait { wait, fence }
    }

    /// Looks at what ResetEngine has answered.
    fn validate(
        &self,
        tdr: &dyn TdrDdi,
        node: u32,
        snapshot: &Snapshot,
        answer: Result<ResetEngine, DdiError>,
    ) -> Outcome {
        let aborted = match answer {
            Ok(aborted) => aborted,
            Err(why) => return Outcome::Promoted(Promotion::NotReset(why)),
        };
        if let Some(hw_queue) = aborted.hw_queue {
            let is_user_mode = self.kernel_queues.of_handle(hw_queue).is_none();
            let (last_aborted, engine) = (
                aborted.last_aborted_fence_id,
                self.kernel_queues.engine(node),
            );
            let is_queued = is_user_mode || engine.is_in_flight(last_aborted);
            let ids = snapshot.ids_of(hw_queue, is_user_mode);
            if let Some(Err(invalid)) = ids.map(|ids| ids.check(last_aborted, is_queued)) {
                self.stop_adapter(tdr, node, Record::invalid_aborted_fence(node, invalid));
                return Outcome::Stopped;
            }
            // Of a paging packet it is asked yet what it named.
            if !is_user_mode && !self.is_paging(hw_queue) {
                engine.aborted(last_aborted);
            }
        }
        Outcome::Reset(aborted)
    }

    /// The devices of aborted packets are in error, all others go on.
    fn recover(&self, tdr: &dyn TdrDdi, reset: &[(u32, ResetEngine)]) -> Result<(), StillInside> {
        let guilty = reset.iter().filter_map(|(_, aborted)| aborted.hw_queue);
        let guilty: BTreeSet<_> = guilty.filter_map(|queue| self.owner_of(queue)).collect();
        self.fail_devices(&guilty, DeviceExecutionState::HUNG);
        let nodes: Vec<_> = reset.iter().map(|(node, _)| *node).collect();
        for node in &nodes {
            self.life.note(Record::engine_timeout(*node, true));
        }
        let now = Instant::now();
        let is_over = || lock(&self.tdr.limits).is_program_over(&self.tdr.policy, now);
        if !guilty.is_empty() && is_over() {
            self.block_program(nodes[0]);
        }
        for node in &nodes {
            self.hand_over_again(*node);
            if let Err(why) = tdr.resume_hw_engine(*node) {
                let group = nodes.iter().copied().collect();
                let why = Promotion::NotReset(why);
                return self.reset_adapter(tdr, &group, reset, Some(&why));
            }
        }
        self.take_interrupts_again(&nodes);
        Ok(())
    }

    /// What the engine was handed through the OS and has not completed is handed over again, before anything
    /// new (TD-07): as after a preemption, whose answer comes at once, since nothing runs.
    fn hand_over_again(&self, node: u32) {
        if self.kernel_queues.engine(node).has_in_flight() {
            // Where the driver takes nothing back, its rings go on as they are.
            let _ = self.preempt(node);
        }
    }

    /// What was kept meanwhile is news still, or is none; and what was never raised is found by looking.
    fn take_interrupts_again(&self, nodes: &[u32]) {
        let kept = nodes.iter().map(|node| self.tdr.deferral.end(*node));
        for interrupt in kept.collect::<Vec<_>>().into_iter().flatten() {
            self.handle_interrupt(interrupt);
        }
        for fence in self.all_fences() {
            fence.raised_with_any();
        }
        self.monitored.look();
    }

    /// Resets all engines: `why` the reset of one did not do, if that was tried. `before` are those that
    /// were: what they aborted is known.
    fn reset_adapter(
        &self,
        tdr: &dyn TdrDdi,
        guilty: &BTreeSet<u32>,
        before: &[(u32, ResetEngine)],
        why: Option<&Promotion>,
    ) -> Result<(), StillInside> {
        let now = Instant::now();
        if lock(&self.tdr.limits).is_adapter_over(&self.tdr.policy, now) {
            let node = guilty.first().copied().unwrap_or_default();
            let reason = "more than TdrLimitCount resets of the adapter within TdrLimitTime";
            self.stop_adapter(tdr, node, Record::video_tdr_failure(node, None, reason));
            return Ok(());
        }
        let nodes: Vec<_> = (0..self.ddi().node_count()).collect();
        let snapshots = nodes.iter().map(|node| self.take_snapshot(*node));
        let snapshots: Vec<_> = snapshots.collect();
        // Nobody hands anything over meanwhile: it would be lost without its owner being told.
        let first = guilty.first().copied().unwrap_or_default();
        let restarted = self.alone(|| {
            self.tdr.steps.take(first, TdrStep::ResetFromTimeout);
            let reset = match self.reset_from_timeout(tdr)? {
                Ok(reset) => reset,
                Err(error) => return Ok(Err(error)),
            };
            self.tdr.steps.take(first, TdrStep::CleanUp);
            let is_known =
                |queue: &HwQueueHandle| before.iter().any(|(node, _)| *node == queue.node_ordinal);
            let aborted = reset.iter().filter_map(|reset| reset.hw_queue);
            let aborted = aborted.filter(|queue| !is_known(queue));
            let aborted = aborted.chain(before.iter().filter_map(|(_, reset)| reset.hw_queue));
            let is_blamed = |queue: &HwQueueHandle| guilty.contains(&queue.node_ordinal);
            let (guilty_queues, others): (BTreeSet<_>, BTreeSet<_>) = aborted.partition(is_blamed);
            let owner = |queue: HwQueueHandle| self.owner_of(queue);
            let blamed: BTreeSet<_> = guilty_queues.iter().copied().filter_map(owner).collect();
            self.fail_devices(&blamed, DeviceExecutionState::HUNG);
            // Whoever had work queued has lost it: nothing is submitted again (TD-20). So has the owner of a
            // packet that an engine was in which had nothing to do with it, and whose memory a paging packet
            // was about; not the system device (TD-08).
            let of_paging = self.lose_paging(&guilty_queues);
            let unfinished = snapshots.iter().flat_map(|snapshot| &snapshot.0);
            let unfinished = unfinished.filter(|ids| !ids.is_empty());
            let owners: BTreeSet<_> = unfinished
                .filter_map(|ids| ids.process)
                .chain(self.owners_of_submissions())
                .chain(others.into_iter().filter_map(owner))
                .chain(of_paging)
                .collect();
            self.fail_devices(&owners, DeviceExecutionState::RESET);
            for node in &nodes {
                self.kernel_queues.engine(*node).adapter_reset();
            }
            self.tdr.steps.take(first, TdrStep::RestartFromTimeout);
            Ok(tdr.restart_from_timeout())
        })??;
        if let Err(error) = restarted {
            let node = guilty.first().copied().unwrap_or_default();
            let reason = format!("the adapter was not reset: {error}");
            let record = Record::video_tdr_failure(node, Some(&error), &reason);
            self.stop_adapter(tdr, node, record);
            return Ok(());
        }
        let why = why.map(|why| why as &dyn std::fmt::Display);
        self.life.note(Record::adapter_timeout(guilty, why));
        self.take_interrupts_again(&nodes);
        self.initialise_again();
        Ok(())
    }

    /// Nobody else is in the driver (TD-18). Level one is held by the caller: who submits has left before, and
    /// comes back after.
    fn reset_from_timeout(
        &self,
        tdr: &dyn TdrDdi,
    ) -> Result<Result<Vec<ResetEngine>, DdiError>, StillInside> {
        let most = self.tdr.policy.ddi_delay;
        let send_away = || tdr.send_threads_away();
        let reset = || tdr.reset_from_timeout();
        self.inside.alone(most, send_away, reset)
    }

    /// The device whose queue it is. The system device is blamed for nothing.
    fn owner_of(&self, queue: HwQueueHandle) -> Option<ProcessId> {
        let kernel_queue = self.kernel_queues.of_handle(queue);
        let kernel_queue = kernel_queue.filter(|queue| !queue.is_paging());
        let of_kernel = kernel_queue.map(|queue| queue.process());
        self.queue(queue).map(|queue| queue.process()).or(of_kernel)
    }

    /// Those with commands in kernel-mode queues that have not completed; not the system device.
    fn owners_of_submissions(&self) -> Vec<ProcessId> {
        let queues = self.kernel_queues.all().into_iter();
        let unfinished = queues.filter(|queue| queue.is_unfinished() && !queue.is_paging());
        unfinished.map(|queue| queue.process()).collect()
    }

    /// The program has caused more resets than it may: it uses the adapter no more.
    fn block_program(&self, node: u32) {
        let record = Record::program_blocked(node);
        self.tdr.blocked.get_or_init(|| {
            self.life.note(record.clone());
            record
        });
        self.fail_everything(WaitError::DeviceLost);
    }

    /// The end of the adapter. Nobody resets the engine any more, so nobody shall wait for it.
    fn stop_adapter(&self, tdr: &dyn TdrDdi, node: u32, record: Record) {
        self.life.bug_check(record);
        self.life.settle();
        tdr.give_up_engine(node);
        for node in 0..self.ddi().node_count() {
            drop(self.tdr.deferral.end(node));
        }
    }
}

/// Whether the engine has come to the end of all that it had.
fn is_nothing_left(tdr: &dyn TdrDdi, node: u32, snapshot: &Snapshot) -> bool {
    tdr.engine_marks(node).is_none() && snapshot.is_empty()
}
