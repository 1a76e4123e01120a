//! Kernels that are registered while queues run: a node's slices are not asked to end for it, and it waits for none of them.
//! (The Vulkan driver's compiler may be waited for, behind what is on the engine: `Device::create_kernel`.)

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod kernels;
}

use native_fence::abi::EngineControl;
use native_fence::gpu::NodePolicy;
use native_fence::{CommandList, Kernel};
use std::thread;
use support::bench::{Bench, complete, on_every_bench, until, until_completed, words};
use support::kernels::{add_words, add_words_together, sums};

/// How often the host has asked slices to end.
fn requests(bench: &Bench) -> u64 {
    let control = &bench.engine.named("engine-control")[0];
    control.host.word(EngineControl::REQUEST).observe()
}

/// HQ-08: kernels come while the node has a slice of another queue in flight, which does not end before they are there.
/// It is not asked to end either; and their first packets, behind those of a kernel that was there, run once.
///
/// Kills `a-registration-ends-slices`, `a-registration-waits-for-slices`.
#[test]
fn hq_08_a_registration_stops_no_queue() {
    on_every_bench(NodePolicy::default(), |bench| {
        let memory = bench.device.create_allocation(16).unwrap();
        let first = bench.device.create_kernel(add_words()).unwrap();
        let (mut queue, mut beside) = (bench.queue(), bench.queue());
        let dispatch = |kernel: &Kernel| {
            let mut list = CommandList::new();
            list.dispatch(kernel, [1; 3], &sums(&memory, &memory, 1))
                .unwrap();
            list
        };
        complete(&mut queue, &dispatch(&first));
        bench.until_parked();
        thread::scope(|scope| {
            // Dropped first also where the test fails: whoever waits for the slice goes on.
            let gate = bench.engine.close();
            let end = queue.submit(&dispatch(&first)).unwrap();
            until("a slice is in flight", || bench.engine.at_gate() == 1);
            let (asked, submitted) = (requests(bench), bench.engine.submitted());
            let registers = scope.spawn(|| {
                [add_words_together(), add_words()]
                    .map(|code| bench.device.create_kernel(code).unwrap())
            });
            until("the kernels are registered", || registers.is_finished());
            let kernels = registers.join().unwrap();
            let last = kernels
                .each_ref()
                .map(|kernel| beside.submit(&dispatch(kernel)).unwrap());
            assert_eq!(bench.engine.at_gate(), 1, "it is in flight still");
            assert_eq!(bench.engine.submitted(), submitted);
            assert_eq!(requests(bench), asked, "no slice is asked to end");
            drop(gate);
            until_completed(&queue, end);
            until_completed(&beside, last[1]);
        });
        assert_eq!(words(&memory), [4, 4]);
    });
}
