//! Deferral: what an engine raises while it is being reset is kept until that is over (TD-02).

use crate::kmd::Interrupt;
use crate::sync::plain::{Mutex, lock};
use std::collections::HashMap;
use std::sync::{Condvar, PoisonError};
use std::time::{Duration, Instant};

/// What is known of one node's interrupts.
#[derive(Debug, Default)]
struct Node {
    /// Being handled now.
    under_way: u64,
    /// While it is being reset.
    kept: Option<Vec<Interrupt>>,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct Deferral {
    nodes: Mutex<HashMap<u32, Node>>,
    changed: Condvar,
}

/// An interrupt is being handled, until it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    deferral: &'a Deferral,
    node_ordinal: Option<u32>,
}

/// The node whose engine raised it, if it is of one.
fn node_of(interrupt: &Interrupt) -> Option<u32> {
    match interrupt {
        Interrupt::NativeFenceSignaled(signaled) => Some(signaled.node_ordinal),
        Interrupt::MonitoredFenceSignaled { node_ordinal, .. }
        | Interrupt::DmaCompleted { node_ordinal, .. }
        | Interrupt::DmaPreempted { node_ordinal, .. }
        | Interrupt::EngineParking { node_ordinal, .. }
        | Interrupt::ResampleFences { node_ordinal, .. }
        | Interrupt::EngineLost { node_ordinal } => Some(*node_ordinal),
        Interrupt::HwQueueFaulted { hw_queue, .. } => Some(hw_queue.node_ordinal),
        Interrupt::SuspendContextCompleted { context, .. } => Some(context.node_ordinal),
        // Of no engine: the last one that referred to them has let go.
        Interrupt::ObjectsRetired { .. } => None,
    }
}

impl Deferral {
    /// From now on what the node's engine raises is kept. Waits until what was raised before is handled, at
    /// most for so long: a waker of the program's may never return.
    pub(super) fn begin(&self, node_ordinal: u32, most: Duration) {
        let deadline = Instant::now() + most;
        let mut nodes = lock(&self.nodes);
        nodes
            .entry(node_ordinal)
            .or_default()
            .kept
            .get_or_insert_default();
        while nodes
            .get(&node_ordinal)
            .is_some_and(|node| node.under_way > 0)
        {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let woken = self.changed.wait_timeout(nodes, left);
            nodes = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// It is taken again: what was kept, oldest first.
    #[must_use]
    pub(super) fn end(&self, node_ordinal: u32) -> Vec<Interrupt> {
        let mut nodes = lock(&self.nodes);
        let node = nodes.get_mut(&node_ordinal);
        node.and_then(|node| node.kept.take()).unwrap_or_default()
    }

    /// Keeps an interrupt, if its node is being reset; else gives it back, to be handled.
    pub(crate) fn keep(&self, interrupt: Interrupt) -> Option<(Interrupt, UnderWay<'_>)> {
        let node_ordinal = node_of(&interrupt);
        if let Some(node_ordinal) = node_ordinal {
            let mut nodes = lock(&self.nodes);
            let node = nodes.entry(node_ordinal).or_default();
            if let Some(kept) = &mut node.kept {
                kept.push(interrupt);
                return None;
            }
            node.under_way += 1;
        }
        let under_way = UnderWay {
            deferral: self,
            node_ordinal,
        };
        Some((interrupt, under_way))
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let Some(node_ordinal) = self.node_ordinal else {
            return;
        };
        let mut nodes = lock(&self.deferral.nodes);
        let node = nodes.entry(node_ordinal).or_default();
        node.under_way -= 1;
        if node.kept.is_some() {
            self.deferral.changed.notify_all();
        }
    }
}
