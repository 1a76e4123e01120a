//! Neighbour: a queue of another process, which has done nothing wrong and must not notice who has.

use crate::memory::Allocation;
use crate::node::{CaseNode, Fence, Queue};
use native_fence::abi::{HandleAccess, Packet};

/// Whose it is.
pub(crate) const PROCESS: u64 = 2;
/// What its fence stands at.
const INITIAL: u64 = 5;
/// Slices in which any engine takes its three packets, however short each is cut.
const SLICES: u64 = 256;

/// See the file's head.
pub(crate) struct Neighbour {
    queue: Queue,
    pub(crate) fence: Fence,
    pub(crate) allocation: Allocation,
}

impl Neighbour {
    pub(crate) fn new(node: &mut CaseNode) -> Self {
        let allocation = node.allocation(PROCESS, 128);
        allocation.write_pattern();
        Self {
            allocation,
            fence: node.fence(PROCESS, HandleAccess::FULL, INITIAL),
            queue: node.queue(PROCESS, 4),
        }
    }

    /// Its fence is as it left it, and its queue goes on.
    pub(crate) fn ends_well(mut self, node: &mut CaseNode) {
        assert_eq!(
            self.fence.value(),
            INITIAL,
            "a fence of another process moved"
        );
        self.allocation.check_pattern();
        let (fence, progress) = (self.fence.handle, self.queue.progress.handle);
        for packet in [
            Packet::signal(fence, INITIAL + 1, 0),
            Packet::wait(fence, INITIAL + 1, 0),
            Packet::progress(progress, 1, 1),
        ] {
            self.queue.put(&packet.words());
        }
        self.queue.publish(3);
        node.ring();
        node.settle(SLICES);
        assert_eq!(self.queue.progress.value(), 1, "the neighbour stands still");
        assert_eq!(self.queue.logged(), [1, 2]);
    }
}
