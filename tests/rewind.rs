//! Rewind: CurrentValue stored backwards by the CPU, while an interrupt of before is on its way.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::CommandList;
use native_fence::gpu::NodePolicy;
use native_fence::kmd::Interrupt;
use std::sync::mpsc;
use support::bench::{complete, monitored_value, native, on_every_bench};

/// A wait is satisfied by the value that was reached while it waited: also when CurrentValue is
/// rewound before the OS has handled the interrupt; and a wait that began after the rewind is not,
/// whatever the late interrupt says.
///
/// Open: a GPU signal below CurrentValue, which is a rewind that the OS does not see; records of
/// before it count for waits that began after it.
///
/// Kills `a-rewind-takes-away-what-was-reached` and `a-late-record-counts-after-a-rewind`.
#[test]
fn nf_26_a_rewind_ends_what_was_reached_and_no_later_wait() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.then_parked(|| bench.queue());
        let id = native(&fence).id();
        let (come, has_come) = mpsc::channel();
        let (let_go, held) = mpsc::channel::<()>();
        bench.spy.on_interrupt(move |interrupt| {
            let Interrupt::NativeFenceSignaled(payload) = interrupt else {
                return;
            };
            if payload
                .fences
                .iter()
                .flatten()
                .any(|named| named.fence == id)
            {
                come.send(()).unwrap();
                // Ends with a test that failed, too.
                let _ = held.recv();
            }
        });

        let before = bench.waiter(&fence, 5);
        before.until_asleep();
        complete(&mut queue, CommandList::new().signal(&fence, 5));
        has_come.recv().unwrap();
        fence.rewind(0).unwrap();
        assert_eq!(before.join(), Ok(()), "it was reached");

        let after = bench.waiter(&fence, 3);
        after.until_asleep();
        let_go.send(()).unwrap();
        bench.until_told();
        assert_eq!(monitored_value(&fence), 2, "it waits on");
        assert!(!after.is_finished());
        drop(let_go);
        complete(&mut queue, CommandList::new().signal(&fence, 3));
        assert_eq!(after.join(), Ok(()));
    });
}
