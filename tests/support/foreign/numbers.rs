//! Numbers: by which names the foreign driver knows nodes, queues and contexts, and the engines behind it.
//!
//! The last node of the engines is its first one, and its numbers of queues and contexts lie far from those that engines
//! count. What names none of its nodes is left as it is: whoever refuses it shall see it.

use native_fence::kmd::{ContextHandle, HwQueueHandle};

/// What the number of a queue is mixed with.
const OF_QUEUES: u32 = 0x5a00_0000;
/// The same for contexts.
const OF_CONTEXTS: u32 = 0x00c3_0000;

/// See the file's head. The way there and the way back are the same one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    nodes: u32,
}

impl Numbers {
    /// Of a driver of so many nodes.
    pub(crate) fn of(nodes: u32) -> Self {
        Self { nodes }
    }

    pub(crate) fn nodes(self) -> u32 {
        self.nodes
    }

    pub(crate) fn node(self, ordinal: u32) -> u32 {
        if ordinal < self.nodes {
            self.nodes - 1 - ordinal
        } else {
            ordinal
        }
    }

    pub(crate) fn queue(self, queue: HwQueueHandle) -> HwQueueHandle {
        HwQueueHandle {
            node_ordinal: self.node(queue.node_ordinal),
            number: queue.number ^ OF_QUEUES,
        }
    }

    pub(crate) fn queues(self, queues: &[HwQueueHandle]) -> Vec<HwQueueHandle> {
        queues.iter().map(|queue| self.queue(*queue)).collect()
    }

    pub(crate) fn context(self, context: ContextHandle) -> ContextHandle {
        ContextHandle {
            node_ordinal: self.node(context.node_ordinal),
            number: context.number ^ OF_CONTEXTS,
        }
    }

    /// A mask of nodes, a bit each.
    pub(crate) fn mask(self, mask: u64) -> u64 {
        let nodes = (0..u64::BITS).filter(|node| mask & (1 << node) != 0);
        nodes.fold(0, |mask, node| mask | 1 << self.node(node))
    }
}
