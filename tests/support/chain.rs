//! Chains of dispatches, each of which waits for the one before on another queue.
#![allow(dead_code, reason = "each test file uses a part")]

use super::bench::{LONG, words};
use super::kernels::sums;
use native_fence::{Allocation, CommandList, Device, Fence, HwQueue, Kernel};

/// Two queues that add to a word by turns, each when the other one has.
pub(crate) struct Chain {
    memory: Allocation,
    pub(crate) queues: [HwQueue; 2],
    pub(crate) fences: [Fence; 2],
    pub(crate) links: u64,
}

impl Chain {
    pub(crate) fn new(device: &Device) -> Self {
        Self {
            memory: device.create_allocation(8).unwrap(),
            queues: [0, 1].map(|_| device.create_hw_queue().unwrap()),
            fences: [0, 1].map(|_| device.create_fence(0).unwrap()),
            links: 0,
        }
    }

    /// So many links more, each of one of these kernels by turns.
    pub(crate) fn submit(&mut self, kernels: &[&Kernel], links: u64) {
        let mut lists = [CommandList::new(), CommandList::new()];
        for link in self.links..self.links + links {
            let own = (link % 2) as usize;
            let kernel = kernels[(link / 3) as usize % kernels.len()];
            let sums = sums(&self.memory, &self.memory, 1);
            lists[own].wait(&self.fences[1 - own], link);
            lists[own].dispatch(kernel, [1; 3], &sums).unwrap();
            lists[own].signal(&self.fences[own], link + 1);
        }
        self.links += links;
        for (queue, list) in self.queues.iter_mut().zip(&lists) {
            queue.submit(list).unwrap();
        }
    }

    /// The fence that has the value once so many links are done.
    pub(crate) fn fence(&self, links: u64) -> &Fence {
        &self.fences[((links - 1) % 2) as usize]
    }

    /// How many have been done, as their fences say.
    pub(crate) fn links_done(&self) -> u64 {
        let [first, second] = &self.fences;
        first.current_value().max(second.current_value())
    }

    pub(crate) fn until_done(&self) {
        self.fence(self.links).wait(self.links, LONG).unwrap();
        assert_eq!(words(&self.memory), [self.links]);
    }
}
