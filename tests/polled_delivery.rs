//! Polled delivery: waiters watch the engines' records, and slices go on when they raise.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::CommandList;
use native_fence::abi::Delivery;
use native_fence::gpu::NodePolicy;
use std::time::Duration;
use support::bench::{LONG, monitored_value, native, on_every_bench};

/// A waiter stands in the list at once, and watches.
const POLLED: NodePolicy = NodePolicy {
    slice_time: Duration::from_millis(4),
    idle_window: Duration::from_micros(50),
    company_window: Duration::from_micros(300),
    crowded_window: Duration::from_micros(10),
    doorbell_window: Duration::from_millis(1),
    delivery: Delivery::Polled,
    wait_spin: Duration::ZERO,
};

/// A waiter is released by the record that it finds, though no end of a slice is told to anybody and
/// CurrentValue has gone back before anybody could have looked.
///
/// Kills `a-watcher-takes-no-records`.
#[test]
fn nf_26_a_watcher_is_released_by_the_record_whatever_is_stored_afterwards() {
    on_every_bench(POLLED, |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.then_parked(|| bench.queue());
        let waiter = bench.waiter(&fence, 5);
        bench.engine.keep_ends(true);
        queue
            .submit(CommandList::new().signal(&fence, 5).signal(&fence, 1))
            .unwrap();
        bench.engine.wait_really(bench.engine.submitted());
        assert_eq!(waiter.join(), Ok(()));
        assert_eq!(fence.current_value(), 1);
        assert_eq!(monitored_value(&fence), u64::MAX);
        bench.engine.keep_ends(false);
    });
}

/// No slice ends to interrupt while all who wait watch, and every signal beyond a MonitoredValue
/// that the engine has is told all the same.
///
/// Kills `polled-slices-end-to-interrupt` and `model-polled-slices-end-to-interrupt`.
#[test]
fn in_06_polled_raises_end_no_slice_and_are_told() {
    on_every_bench(POLLED, |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.then_parked(|| bench.queue());
        let interrupts = bench.counters().interrupts;
        for value in 1..=50 {
            let waiter = bench.waiter(&fence, value);
            // An answer to the raise before would post this waiter's value while its signal runs,
            // and the engine might raise a second time for it, as it may (NF-06).
            bench.until_told();
            queue
                .submit(CommandList::new().signal(&fence, value))
                .unwrap();
            assert_eq!(waiter.join(), Ok(()));
        }
        bench.until_told();
        assert_eq!(bench.counters().interrupts, interrupts);
        let raised = bench.spy.raised(native(&fence).id());
        assert!(raised.iter().copied().eq(1..=50), "{raised:?}");
    });
}

/// A wait that watches ends at its time-out and leaves nothing behind.
///
/// Kills `a-watcher-has-no-time-out`.
#[test]
fn nf_22_a_watcher_times_out() {
    on_every_bench(POLLED, |bench| {
        let fence = bench.fence(0);
        let short = Duration::from_millis(1);
        assert_eq!(fence.wait(1, short), Err(native_fence::WaitError::TimedOut));
        assert_eq!(monitored_value(&fence), u64::MAX);
        let waiter = bench.waiter(&fence, 1);
        fence.signal(1).unwrap();
        assert_eq!(waiter.join(), Ok(()));
        assert_eq!(fence.wait(1, LONG), Ok(()));
    });
}
