//! Blocking waits of CPU threads: how they end.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::{CommandList, Timeout, WaitError};
use std::time::Duration;
use support::bench::{LONG, Waiter, on_every_bench};

/// A wait that timed out has left MonitoredValue to those that still wait; a wait with time-out
/// zero only looks; a wait without time-out lasts until the value comes.
///
/// Kills `a-timed-out-wait-stays-monitored`.
#[test]
fn nf_22_a_time_out_leaves_the_monitored_value_right() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = bench.adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let monitored = || fence.object().fence().monitored_value();
        let brief = Duration::from_millis(5);
        assert_eq!(fence.wait(3, brief), Err(WaitError::TimedOut));
        assert_eq!(monitored(), u64::MAX);
        let patient = bench.waiter_with(&fence, 5, Timeout::Never);
        patient.until_asleep();
        assert_eq!(monitored(), 4);
        for timeout in [brief, Duration::ZERO] {
            assert_eq!(fence.wait(3, timeout), Err(WaitError::TimedOut));
            assert_eq!(monitored(), 4);
        }
        let mut queue = device.create_hw_queue().unwrap();
        queue.submit(CommandList::new().signal(&fence, 5)).unwrap();
        assert_eq!(patient.join(), Ok(()));
        assert_eq!(fence.wait(5, Duration::ZERO), Ok(()));
    });
}

/// A wait on a closed handle is an error, also for a value that was reached; closing ends the
/// waits of all clones; dropping a clone ends none.
///
/// Open: a wait with no chance because its device is lost.
///
/// Kills `a-closed-handle-waits-on` and `closing-ends-no-wait`.
#[test]
fn nf_22_a_closed_handle_ends_waits_with_an_error() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.adapter.create_device().create_fence(1).unwrap();
        let [two, seven] = [2, 7].map(|value| bench.waiter_with(&fence, value, Timeout::Never));
        let clone = fence.clone();
        drop(clone);
        fence.signal(2).unwrap();
        assert_eq!(two.join(), Ok(()));
        seven.until_asleep();
        fence.clone().close();
        assert_eq!(seven.join(), Err(WaitError::Closed));
        for value in [0, 2, 3] {
            assert_eq!(fence.wait(value, LONG), Err(WaitError::Closed));
        }
        assert_eq!(fence.object().fence().monitored_value(), u64::MAX);
    });
}

/// The owner's last own handle may go while others wait through clones: their waits go on.
///
/// Kills `cpu-signals-release-nobody`.
#[test]
fn nf_22_waits_through_clones_outlive_the_owners_handle() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.adapter.create_device().create_fence(0).unwrap();
        let wait = bench.waiter_with(&fence, 1, Timeout::Never);
        let signaller = fence.clone();
        drop(fence);
        wait.until_asleep();
        assert!(!wait.is_finished());
        signaller.signal(1).unwrap();
        assert_eq!(wait.join(), Ok(()));
    });
}

/// The value satisfies a wait while the queue that stored it still stands at a later packet.
///
/// Kills `a-value-reached-is-not-enough`.
#[test]
fn nf_26_the_value_satisfies_and_not_later_work() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = bench.adapter.create_device();
        let (fence, gate) = (
            device.create_fence(0).unwrap(),
            device.create_fence(0).unwrap(),
        );
        let mut queue = device.create_hw_queue().unwrap();
        for round in 1..=20 {
            queue
                .submit(CommandList::new().signal(&fence, round).wait(&gate, round))
                .unwrap();
            fence.wait(round, LONG).unwrap();
            assert_eq!(queue.progress_fence().current_value(), round - 1);
            gate.signal(round).unwrap();
            queue.progress_fence().wait(round, LONG).unwrap();
        }
    });
}

/// A wait that was satisfied is satisfied, although CurrentValue is stored backwards before its
/// thread runs.
///
/// Kills `a-woken-wait-looks-again`.
#[test]
fn nf_26_what_was_satisfied_stays_satisfied() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.adapter.create_device().create_fence(0).unwrap();
        for _ in 0..10 {
            // More than there are cores: they cannot all run before the rewind.
            let waits: Vec<_> = (0..16).map(|_| bench.waiter(&fence, 5)).collect();
            waits.iter().for_each(Waiter::until_asleep);
            fence.signal(5).unwrap();
            fence.rewind(0).unwrap();
            for wait in waits {
                assert_eq!(wait.join(), Ok(()));
            }
            assert_eq!(fence.current_value(), 0);
        }
    });
}

/// After a fault the progress fence is in error, and after a close any fence; the last good value
/// stays readable.
///
/// Kills `an-error-is-a-value`.
#[test]
fn nf_26_the_last_good_value_stays_readable() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = bench.adapter.create_device();
        let (fence, closed) = (
            device.create_fence(0).unwrap(),
            device.create_fence(42).unwrap(),
        );
        closed.close();
        assert_eq!(closed.current_value(), 42);
        let mut queue = device.create_hw_queue().unwrap();
        queue.submit(CommandList::new().signal(&fence, 9)).unwrap();
        queue.progress_fence().wait(1, LONG).unwrap();
        queue
            .submit(CommandList::new().signal(&closed, 50))
            .unwrap();
        let ended = queue.progress_fence().wait(2, LONG);
        assert!(
            matches!(ended, Err(WaitError::QueueFaulted(_))),
            "{ended:?}"
        );
        assert_eq!(queue.progress_fence().current_value(), 1);
        assert_eq!((fence.current_value(), closed.current_value()), (9, 42));
        assert_eq!(fence.wait(9, LONG), Ok(()));
    });
}
