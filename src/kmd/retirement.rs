//! Retirement: fences that were destroyed while slices of some nodes may still refer to them.

use crate::abi::FenceId;
use crate::sync::{Mutex, lock};
use std::collections::HashMap;

/// Nodes that each fence still waits for.
#[derive(Debug, Default)]
pub(super) struct Retirements(Mutex<HashMap<FenceId, usize>>);

impl Retirements {
    /// A fence is about to be taken out of as many nodes.
    pub(super) fn begin(&self, fence: FenceId, nodes: usize) {
        lock(&self.0).insert(fence, nodes);
    }

    /// One of them refers to it no more; `true` if it was the last.
    pub(super) fn end_one(&self, fence: FenceId) -> bool {
        let mut nodes = lock(&self.0);
        let Some(left) = nodes.get_mut(&fence) else {
            return false;
        };
        *left -= 1;
        let last = *left == 0;
        if last {
            nodes.remove(&fence);
        }
        last
    }
}
