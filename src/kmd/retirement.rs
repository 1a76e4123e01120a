//! Retirement: fences and allocations that were destroyed while slices of some nodes may still refer
//! to them.

use super::Retirement;
use crate::abi::ObjectId;
use crate::sync::{Arc, Mutex, lock};
use std::collections::HashMap;

/// Nodes that each object still waits for.
#[derive(Debug, Default)]
pub(super) struct Retirements(Mutex<HashMap<ObjectId, usize>>);

impl Retirements {
    /// Takes an object out of every node: `remove` says whether a node refers to it no more.
    pub(super) fn retire<N>(
        &self,
        object: ObjectId,
        nodes: &[Arc<N>],
        remove: impl Fn(&N) -> bool,
    ) -> Retirement {
        if nodes.is_empty() {
            return Retirement::Done;
        }
        // Before the first: another thread may tell of it at once.
        lock(&self.0).insert(object, nodes.len());
        let mut retirement = Retirement::Pending;
        for node in nodes {
            if remove(node) && self.end_one(object) {
                retirement = Retirement::Done;
            }
        }
        retirement
    }

    /// One of them refers to it no more; `true` if it was the last.
    pub(super) fn end_one(&self, object: ObjectId) -> bool {
        let mut nodes = lock(&self.0);
        let Some(left) = nodes.get_mut(&object) else {
            return false;
        };
        *left -= 1;
        let last = *left == 0;
        if last {
            nodes.remove(&object);
        }
        last
    }
}
