//! Adapters: whose the nodes, queues and fences of a trace are, where several adapters were recorded.
//!
//! The nodes of all are counted through, each adapter's after those of the one before, so a node of the trace says its
//! adapter too. Of a trace of one adapter nothing is to be said.

use super::{FenceName, QueueName, Trace};
use serde::{Deserialize, Serialize};

/// One of several adapters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterName {
    /// For people.
    pub name: String,
    /// The ordinal in the trace of its node 0.
    pub first_node: u32,
}

impl Trace {
    /// The adapter of a node of the trace, by its place, and the node's ordinal there; none where there is but one adapter.
    #[must_use]
    pub fn adapter_of_node(&self, node_ordinal: u32) -> Option<(usize, u32)> {
        let begun = |adapter: &AdapterName| adapter.first_node <= node_ordinal;
        let place = self.adapters.iter().rposition(begun)?;
        Some((place, node_ordinal - self.adapters[place].first_node))
    }

    /// A node, for people.
    #[must_use]
    pub fn node_name(&self, node_ordinal: u32) -> String {
        match self.adapter_of_node(node_ordinal) {
            Some((adapter, ordinal)) => format!("node {ordinal} of adapter {adapter}"),
            None => format!("node {node_ordinal}"),
        }
    }

    /// A queue's number, with its adapter, for people.
    #[must_use]
    pub fn queue_number(&self, queue: &QueueName) -> String {
        match self.adapter_of_node(queue.node_ordinal) {
            Some((adapter, _)) => format!("{} of adapter {adapter}", queue.number),
            None => queue.number.to_string(),
        }
    }

    /// A fence by its index, for people.
    ///
    /// # Panics
    /// There are not so many.
    #[must_use]
    pub fn fence_name(&self, fence: u32) -> String {
        let name = self.fences[fence as usize];
        match name {
            FenceName::Native { adapter, .. } | FenceName::Handle { adapter, .. }
                if !self.adapters.is_empty() =>
            {
                format!("{name} of adapter {adapter}")
            }
            FenceName::Native { .. }
            | FenceName::Handle { .. }
            | FenceName::CrossAdapter { .. } => name.to_string(),
        }
    }
}
