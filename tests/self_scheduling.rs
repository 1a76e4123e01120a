//! Kernels that schedule themselves: the last workgroup of a table of dispatches does the engine's step, and the next table
//! runs without the engine (HQ-08).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod engines;
    pub(crate) mod kernels;
}

use native_fence::{CommandList, Device, Fence, HwQueue};
use support::bench::{LONG, words};
use support::engines::on_every_engine;
use support::kernels::{add_words_self_scheduling, sums};

/// HQ-08: a chain of dependent dispatches over two queues.
#[test]
fn hq_08_a_chain_over_two_queues() {
    const LINKS: u64 = 200;
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_self_scheduling()).unwrap();
        let memory = device.create_allocation(8).unwrap();
        let mut queues = [0, 1].map(|_| device.create_hw_queue().unwrap());
        let fences = [0, 1].map(|_| device.create_fence(0).unwrap());
        for batch in 0..5 {
            let mut lists = [CommandList::new(), CommandList::new()];
            for link in 0..LINKS {
                let own = (link % 2) as usize;
                let at = batch * LINKS + link;
                lists[own].wait(&fences[1 - own], at);
                lists[own]
                    .dispatch(&kernel, [1; 3], &sums(&memory, &memory, 1))
                    .unwrap();
                lists[own].signal(&fences[own], at + 1);
            }
            for (queue, list) in queues.iter_mut().zip(&lists) {
                queue.submit(list).unwrap();
            }
            let last = (batch + 1) * LINKS;
            fences[1].wait(last, LONG).unwrap();
            assert_eq!(words(&memory), [last]);
        }
    });
}
