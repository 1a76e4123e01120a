//! Waits with no chance: a handle that is closed while a slice is in flight, a device that is lost.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::shared::Block;
use native_fence::{CommandList, SignalError, WaitError};
use std::thread;
use std::time::Duration;
use support::bench::{Bench, LONG, monitored_value, native, until};

/// Nobody hangs on a handle that is closed: not who waits already, with the engine parked or with a
/// slice in flight that does not end, not who comes later, whatever the value; and a signal is
/// refused.
///
/// Kills `closed-handle-leaves-waiters` and `closed-handle-is-waited-on`.
#[test]
fn nf_22_a_closed_handle_ends_waits() {
    for in_flight in [false, true] {
        let bench = Bench::new();
        let fence = bench.fence(0);
        let gate = in_flight.then(|| bench.engine.close());
        let _queue = bench.queue();
        if in_flight {
            until("a slice is in flight", || bench.engine.at_gate() > 0);
        }
        thread::scope(|scope| {
            let waiters = [1, u64::MAX].map(|value| bench.waiter(&fence, value));
            let late = scope.spawn(|| fence.wait(9, LONG));
            fence.close();
            // In flight, the one that sleeps on the slice itself is let go with it.
            drop(gate);
            for waiter in waiters {
                assert_eq!(waiter.join(), Err(WaitError::Closed));
            }
            assert_eq!(late.join().unwrap(), Err(WaitError::Closed));
        });
        assert_eq!(monitored_value(&fence), u64::MAX);
        for value in [0, 1, u64::MAX] {
            assert_eq!(fence.wait(value, LONG), Err(WaitError::Closed));
            assert_eq!(fence.wait(value, Duration::ZERO), Err(WaitError::Closed));
        }
        assert_eq!(fence.signal(4), Err(SignalError::Closed));
        assert_eq!(fence.rewind(0), Err(SignalError::Closed));
        assert_eq!(fence.current_value(), 0, "the last good value");
    }
}

/// The waits of a device that is lost end with that error, and later ones begin with it.
///
/// Open: a device that the driver reports as lost; here the engine says so in its stead.
///
/// Kills `lost-device-leaves-waiters`.
#[test]
fn nf_22_a_lost_device_ends_waits() {
    let bench = Bench::new();
    let fence = bench.fence(0);
    let gate = bench.engine.close();
    let queue = bench.queue();
    until("a slice is in flight", || bench.engine.at_gate() > 0);
    let waiter = bench.waiter(&fence, 1);
    let progress = bench.waiter(queue.progress_fence(), 1);
    bench.engine.lose();
    assert_eq!(waiter.join(), Err(WaitError::DeviceLost));
    assert_eq!(progress.join(), Err(WaitError::DeviceLost));
    assert_eq!(fence.wait(1, LONG), Err(WaitError::DeviceLost));
    assert_eq!(fence.current_value(), 0);
    drop(gate);
}

/// A loss while the engine is parked, of which the driver tells nobody who sleeps: the next
/// submission finds it, and every wait ends; and so does the adapter.
///
/// Kills `a-loss-wakes-nobody`.
#[test]
fn nf_22_a_loss_that_a_submission_finds_ends_waits() {
    let bench = Bench::new();
    let fence = bench.fence(0);
    let mut queue = bench.then_parked(|| bench.queue());
    let waiter = bench.waiter(&fence, 1);
    waiter.until_asleep();
    bench.engine.lose();
    let submitted = queue.submit(CommandList::new().signal(&fence, 1));
    assert_eq!(waiter.join(), Err(WaitError::DeviceLost));
    if let Ok(value) = submitted {
        let progress = queue.progress_fence().wait(value, LONG);
        assert_eq!(progress, Err(WaitError::DeviceLost));
    }
}

/// A wait whose value was reached is satisfied, although no interrupt has told it before the handle
/// is closed; one whose value was not ends with the error.
///
/// Kills `an-error-ends-what-was-reached`.
#[test]
fn nf_26_what_was_reached_is_satisfied_when_the_handle_is_closed() {
    let bench = Bench::new();
    let fence = bench.fence(0);
    let [reached, not] = [1, 2].map(|value| bench.waiter(&fence, value));
    reached.until_asleep();
    not.until_asleep();
    // As an engine stores it, whose interrupt is on its way.
    let (region, offset) = native(&fence).current_value_place();
    let words = Block::whole(&region.map().unwrap());
    words.word(offset).publish(1);
    fence.close();
    assert_eq!(reached.join(), Ok(()));
    assert_eq!(not.join(), Err(WaitError::Closed));
}
