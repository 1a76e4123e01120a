//! Submission ids of an engine whose driver refuses a command (HQ-10).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::os::QueueStop;
use native_fence::{CommandList, KernelQueueError, WaitError};
use support::bench::{Failing, LONG, on_every_bench, until};

/// HQ-10: a command that the driver does not take stops its queue and never completes. It is not
/// outstanding: the engine's last completed id goes on with the commands of others, though the stopped
/// queue is still there.
///
/// Its user is told that it was refused, not that the device is lost, which it is not: what to do is to make
/// the queue anew.
///
/// Kills `a-refused-command-is-outstanding`, `a-refused-command-is-a-lost-device`.
#[test]
fn hq_10_a_command_that_was_refused_is_not_outstanding() {
    on_every_bench(NodePolicy::default(), |bench| {
        let ids = || bench.adapter.os().submission_ids(0);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let refused_id = bench.initialised(0) + 1;
        bench.spy.fail(Failing::SubmitCommand);
        queue.submit(CommandList::new().nop()).unwrap();
        let call = "DxgkDdiSubmitCommandToHwQueue";
        let by = WaitError::QueueStopped(QueueStop::CommandRefused(call));
        assert_eq!(queue.error(), Some(by));
        assert_eq!(queue.progress_fence().wait(1, LONG), Err(by));
        let refused = queue.submit(CommandList::new().nop());
        let stopped = KernelQueueError::Stopped(by);
        assert_eq!(refused, Err(stopped));
        let sentence = stopped.to_string();
        assert_eq!(
            sentence.matches("the queue was stopped").count(),
            1,
            "{sentence}"
        );
        assert!(
            sentence.contains("the driver refused a command"),
            "{sentence}"
        );
        assert!(sentence.contains("make it anew"), "{sentence}");
        assert_eq!(ids(), (refused_id, refused_id));
        bench.spy.succeed();
        let mut other = bench.device.create_kernel_queue().unwrap();
        let next = bench.initialised(0) + 1;
        let value = other.submit(CommandList::new().nop()).unwrap();
        other.progress_fence().wait(value, LONG).unwrap();
        until("the completion is handled", || ids() == (next, next));
    });
}
