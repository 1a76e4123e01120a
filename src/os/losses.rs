//! Losses: which engines execute no more, and have no other in their place.
//!
//! Such a loss is for good, so what is made after it is lost as well: no wait on it may sleep for what
//! nobody brings. Why none is missed: whoever tells of a loss notes it here before he walks over what
//! there is, and whoever makes something looks here after it can be found. The lock under which it
//! comes to be found orders the two: either the walk finds it, or its maker finds the loss. What becomes of
//! devices stands in `device_loss`.

use super::adapter_state::AdapterState;
use super::monitored_fence::MonitoredFence;
use super::native_fence::NativeFence;
use super::signaller::Signaller;
use super::wait_cell::WaitError;
use crate::kmd::HwQueueHandle;
use crate::sync::{Mutex, lock};
use std::collections::BTreeSet;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Losses(Mutex<Lost>);

#[derive(Debug, Default)]
struct Lost {
    /// Nodes whose engines execute no more.
    nodes: BTreeSet<u32>,
    /// No engine is left, or the adapter was removed.
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

    /// The adapter was removed.
    pub(super) fn note_all(&self) {
        lock(&self.0).is_all = true;
    }

    fn has_node(&self, node_ordinal: u32) -> bool {
        lock(&self.0).nodes.contains(&node_ordinal)
    }

    fn is_all(&self) -> bool {
        lock(&self.0).is_all
    }
}

impl AdapterState {
    /// A queue, of either kind, can be found: on a lost engine it never runs. Its device is not lost by
    /// it, since nothing that anybody waits for was ever submitted to it.
    pub(super) fn queue_made(&self, queue: HwQueueHandle, fail: impl FnOnce(WaitError)) {
        if self.losses.has_node(queue.node_ordinal) {
            fail(WaitError::DeviceLost);
        }
    }

    /// A device has made a monitored fence, or opened one that other adapters have: these are none the worse for it.
    pub(super) fn monitored_fence_made(&self, fence: &MonitoredFence) {
        if !self.losses.is_all() {
        } else if fence.cross_side().is_some() {
            fence.always_signal();
        } else {
            fence.lose();
        }
    }

    /// A device has opened a fence, made by whomever. That of a queue goes with its queue.
    pub(super) fn fence_opened(&self, fence: &NativeFence) {
        if fence.terms().signaller == Signaller::Openers && self.losses.is_all() {
            fence.fail(WaitError::DeviceLost);
        }
    }
}
