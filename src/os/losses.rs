//! Losses: which engines execute no more, and whose devices went with them.
//!
//! A loss is for good, so what is made after it is lost as well: no wait on it may sleep for what
//! nobody brings. Why none is missed: whoever tells of a loss notes it here before he walks over what
//! there is, and whoever makes something looks here after it can be found. The lock under which it
//! comes to be found orders the two: either the walk finds it, or its maker finds the loss.
//! - A queue, of either kind, comes into the adapter's table. The node is noted before the walk over that table.
//! - A fence comes into the adapter's table, and then a process has it open, under the fence's lock. The
//!   processes are known when the queues were walked over, and are noted before the walk over the
//!   fences, which asks each, under its lock, who has it open.

use super::adapter_state::AdapterState;
use super::monitored_fence::MonitoredFence;
use super::native_fence::NativeFence;
use super::signaller::Signaller;
use super::wait_cell::WaitError;
use crate::kmd::{HwQueueHandle, ProcessId};
use crate::sync::{Mutex, lock};
use std::collections::BTreeSet;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Losses(Mutex<Lost>);

#[derive(Debug, Default)]
struct Lost {
    /// Nodes whose engines execute no more.
    nodes: BTreeSet<u32>,
    /// They had a queue on one of these.
    processes: BTreeSet<ProcessId>,
    /// No engine is left.
    is_all: bool,
}

impl Losses {
    /// The engine of a node executes no more, of so many; whether none is left that does.
    pub(super) fn note_node(&self, node_ordinal: u32, node_count: u32) -> bool {
        let mut lost = lock(&self.0);
        lost.nodes.insert(node_ordinal);
        lost.is_all = lost.nodes.len() == node_count as usize;
        lost.is_all
    }

    /// Their devices are lost.
    pub(super) fn note_processes(&self, processes: &BTreeSet<ProcessId>) {
        lock(&self.0).processes.extend(processes);
    }

    fn has_node(&self, node_ordinal: u32) -> bool {
        lock(&self.0).nodes.contains(&node_ordinal)
    }

    fn is_all(&self) -> bool {
        lock(&self.0).is_all
    }

    fn has_process(&self, process: ProcessId) -> bool {
        lock(&self.0).processes.contains(&process)
    }
}

impl AdapterState {
    /// A queue, of either kind, can be found: on a lost engine it never runs. Its process is not lost by
    /// it, since nothing that anybody waits for was ever submitted to it.
    pub(super) fn queue_made(&self, queue: HwQueueHandle, fail: impl FnOnce(WaitError)) {
        if self.losses.has_node(queue.node_ordinal) {
            fail(WaitError::DeviceLost);
        }
    }

    /// A process has made a monitored fence, which nobody else opens.
    pub(super) fn monitored_fence_made(&self, fence: &MonitoredFence) {
        if self.losses.is_all() || self.losses.has_process(fence.process()) {
            fence.lose();
        }
    }

    /// A process has made a fence and has it open: what a lost one could signal is lost, for all who
    /// open it. That of a queue goes with its queue.
    pub(super) fn fence_made(&self, process: ProcessId, fence: &NativeFence) {
        if let Signaller::Queue(_) = fence.terms().signaller {
            return;
        }
        let is_lost = |asked| asked == process && self.losses.has_process(process);
        if self.losses.is_all() || fence.is_signalled_by(is_lost) {
            fence.fail(WaitError::DeviceLost);
        }
    }

    /// A process has opened a fence, made by whomever: a lost one waits for nothing any more. Who else
    /// has it open did not count on this one, and goes on; but where no engine is left.
    pub(super) fn fence_opened(&self, process: ProcessId, fence: &NativeFence) {
        if let Signaller::Queue(_) = fence.terms().signaller {
            return;
        }
        if self.losses.is_all() {
            fence.fail(WaitError::DeviceLost);
        } else if self.losses.has_process(process) {
            fence.fail_openers(|opener| opener == process, WaitError::DeviceLost);
        }
    }
}
