//! Kernel engine: the submission ids of one engine, and the commands that carry them.
//!
//! Ids rise with every command that the engine is handed (HQ-10). Whoever hands one over may find
//! another thread doing it, which then takes this one too: so the order of the ids is that in which
//! the driver gets them, and no lock is held while it does. Queues of one engine run side by side,
//! so a command completes for itself; the engine's last completed id is the one below which none is
//! outstanding.

use super::queue_core::QueueCore;
use super::queue_stop::QueueStop;
use super::wait_cell::WaitError;
use crate::abi::Packet;
use crate::kmd::{DdiError, NodeError, SubmitCommand};
use crate::sync::{Arc, Mutex, lock};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Weak;

#[derive(Debug, Default)]
struct State {
    last_submitted: u64,
    in_flight: BTreeMap<u64, Weak<QueueCore>>,
    ready: VecDeque<(Arc<QueueCore>, Vec<Packet>, u64)>,
    handing: bool,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct KernelEngine(Mutex<State>);

/// What a submission id names.
#[derive(Debug)]
pub(super) enum Submitted {
    /// A command of this queue, which was in flight.
    Of(Arc<QueueCore>),
    /// One whose queue is gone, or that was told before.
    Gone,
    /// None that was ever handed over.
    Never,
}

impl KernelEngine {
    /// Hands a command to the driver with the engine's next id, after those that are waiting for it.
    pub(super) fn hand_over(
        &self,
        queue: &Arc<QueueCore>,
        packets: Vec<Packet>,
        progress_value: u64,
    ) {
        let mut state = lock(&self.0);
        let ready = (Arc::clone(queue), packets, progress_value);
        state.ready.push_back(ready);
        if state.handing {
            return;
        }
        state.handing = true;
        while let Some((queue, packets, progress_value)) = state.ready.pop_front() {
            state.last_submitted += 1;
            let submission_id = state.last_submitted;
            // Before the call: the driver may tell of the completion within it.
            state
                .in_flight
                .insert(submission_id, Arc::downgrade(&queue));
            drop(state);
            let result = queue.ddi().submit_command_to_hw_queue(&SubmitCommand {
                hw_queue: queue.handle(),
                submission_id,
                packets: &packets,
                progress_value,
            });
            match &result {
                // Stopped before: by the OS, or at a packet, of which an interrupt tells.
                Ok(()) | Err(DdiError::Node(NodeError::QueueAborted)) => {}
                Err(DdiError::Node(NodeError::Lost(_))) => queue.fail(WaitError::DeviceLost),
                Err(_) => queue.fail(WaitError::QueueStopped(QueueStop::CommandRefused)),
            }
            drop(queue);
            state = lock(&self.0);
            if result.is_err() {
                // It was not taken, so nothing tells of its end.
                state.in_flight.remove(&submission_id);
            }
        }
        state.handing = false;
    }

    /// The driver tells that a command has completed.
    pub(super) fn completed(&self, submission_id: u64) -> Submitted {
        let mut state = lock(&self.0);
        if submission_id == 0 || submission_id > state.last_submitted {
            return Submitted::Never;
        }
        let queue = state.in_flight.remove(&submission_id);
        match queue.and_then(|queue| queue.upgrade()) {
            Some(queue) => Submitted::Of(queue),
            None => Submitted::Gone,
        }
    }

    /// The queue is gone: nothing of it completes any more.
    pub(super) fn forget(&self, queue: &Weak<QueueCore>) {
        lock(&self.0).in_flight.retain(|_, of| !of.ptr_eq(queue));
    }

    /// The id of the last command that was handed over, 0 for none.
    pub(super) fn last_submitted(&self) -> u64 {
        lock(&self.0).last_submitted
    }

    /// The greatest id up to which every command has completed, or is gone with its queue.
    pub(super) fn last_completed(&self) -> u64 {
        let state = lock(&self.0);
        let oldest = state.in_flight.first_key_value();
        oldest.map_or(state.last_submitted, |(id, _)| id - 1)
    }
}
