//! The progress fence of a hardware queue, and the last queued value.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::CommandList;
use native_fence::gpu::NodePolicy;
use support::bench::{Call, LONG, on_every_bench};

/// The driver gets a native fence with the queue; it carries the last completed submission while
/// the next one stands at a wait, and CPU threads wait on it as on any other.
///
/// Kills `progress-before-the-commands`.
#[test]
fn nf_24_the_progress_fence_carries_the_last_completed_submission() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = bench.adapter.create_device();
        let gate = device.create_fence(0).unwrap();
        bench.spy.take();
        let mut queue = device.create_hw_queue().unwrap();
        let progress = queue.progress_fence().clone();
        let id = progress.object().fence().id();
        assert!(
            bench
                .spy
                .take()
                .contains(&Call::CreateHwQueue { progress_fence: id })
        );
        assert_eq!(progress.current_value(), 0);
        let seen = device.create_fence(0).unwrap();
        for value in 1..=20 {
            let mut list = CommandList::new();
            list.nop().signal(&seen, value).wait(&gate, value).nop();
            assert_eq!(queue.submit(&list).unwrap(), value);
            // The engine is inside this submission.
            seen.wait(value, LONG).unwrap();
            assert_eq!(progress.current_value(), value - 1);
            gate.signal(value).unwrap();
            progress.wait(value, LONG).unwrap();
            assert_eq!(progress.current_value(), value);
        }
    });
}

/// The OS reads the last queued value before the doorbell rings.
///
/// Kills `last-queued-value-lags`.
#[test]
fn nf_24_the_os_sees_the_last_queued_value_before_the_doorbell() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = bench.adapter.create_device();
        let mut queue = device.create_hw_queue().unwrap();
        for value in 1..=20 {
            assert_eq!(queue.os().last_queued_value(), value - 1);
            let queued = queue.queue_commands(CommandList::new().nop()).unwrap();
            assert_eq!((queued, queue.os().last_queued_value()), (value, value));
            queue.ring_doorbell().unwrap();
            queue.progress_fence().wait(value, LONG).unwrap();
        }
    });
}
