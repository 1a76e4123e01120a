//! Rewind: CurrentValue stored backwards by the CPU, while an interrupt of before is on its way.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::{DriverOptions, Interrupt};
use native_fence::umd::MonitoredFenceOptions;
use native_fence::{CommandList, Fence};
use std::sync::{Mutex, mpsc};
use support::bench::{
    Bench, LONG, complete, monitored, monitored_value, native, on_benches_with, on_every_bench,
    until,
};

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
        let held = Mutex::new(held);
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
                let _ = held.lock().unwrap().recv();
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

/// NF-26, NF-06: a signal that may go back and does not is no rewind, whoever makes it: the value that an
/// engine stores later and takes back at once ends a wait, as after any other signal.
///
/// Kills `a-signal-that-may-go-back-does`.
#[test]
fn nf_26_a_signal_that_may_go_back_and_does_not_is_no_rewind() {
    on_every_bench(NodePolicy::default(), |bench| {
        type First = fn(&Bench, &Fence);
        let firsts: [(&str, First); 3] = [
            ("a rewind by its name", |_, fence| {
                fence.rewind(1).unwrap();
            }),
            ("to where it stands", |_, fence| {
                fence.signal(1).unwrap();
                fence.rewind(1).unwrap();
            }),
            ("a kernel-mode queue", |bench, fence| {
                let mut kernel = bench.device.create_kernel_queue().unwrap();
                kernel.signal_native(fence, 1).unwrap();
                fence.wait(1, LONG).unwrap();
            }),
        ];
        for (name, first) in firsts {
            let fence = bench.fence(0);
            first(bench, &fence);
            let wait = fence.arm(5);
            let mut queue = bench.queue();
            let list = CommandList::new()
                .signal(&fence, 6)
                .signal(&fence, 0)
                .clone();
            complete(&mut queue, &list);
            assert_eq!(wait.wait(LONG), Ok(()), "{name}");
            assert_eq!(fence.current_value(), 0, "{name}");
        }
    });
}

/// The same for a monitored fence, of which the end of the command tells.
///
/// Kills `a-monitored-signal-that-may-go-back-does`.
#[test]
fn nf_26_a_monitored_signal_that_does_not_go_back_is_no_rewind() {
    let basic = DriverOptions {
        basic_monitored_fences: true,
        ..DriverOptions::default()
    };
    on_benches_with(1, NodePolicy::default(), &basic, |bench| {
        for by_queue in [false, true] {
            let fence = monitored::create(bench, MonitoredFenceOptions::default());
            let mut queue = bench.device.create_kernel_queue().unwrap();
            if by_queue {
                queue.signal_by_os(&fence, 1).unwrap();
            } else {
                fence.rewind(1).unwrap();
            }
            assert_eq!(fence.current_value(), 1);
            let wait = fence.arm(5);
            queue.signal(&fence, 6).unwrap();
            queue.signal(&fence, 0).unwrap();
            queue.flush().unwrap();
            assert_eq!(wait.wait(LONG), Ok(()), "by a queue: {by_queue}");
            // The wait may have seen the first.
            until("the second is stored", || fence.current_value() == 0);
        }
    });
}
