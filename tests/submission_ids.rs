//! Submission ids of an engine whose driver refuses a command (HQ-10).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::{CommandList, KernelQueueError, WaitError};
use support::bench::{Failing, LONG, on_every_bench, until};

/// HQ-10: a command that the driver does not take stops its queue and never completes. It is not
/// outstanding: the engine's last completed id goes on with the commands of others, though the stopped
/// queue is still there.
///
/// Kills `a-refused-command-is-outstanding`.
#[test]
fn hq_10_a_command_that_was_refused_is_not_outstanding() {
    on_every_bench(NodePolicy::default(), |bench| {
        let ids = || bench.adapter.os().submission_ids(0);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        bench.spy.fail(Failing::SubmitCommand);
        queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(queue.error(), Some(WaitError::DeviceLost));
        let refused = queue.submit(CommandList::new().nop());
        let stopped = KernelQueueError::Stopped(WaitError::DeviceLost);
        assert_eq!(refused, Err(stopped));
        assert_eq!(ids(), (1, 1));
        bench.spy.fail_no_more();
        let mut other = bench.device.create_kernel_queue().unwrap();
        let value = other.submit(CommandList::new().nop()).unwrap();
        other.progress_fence().wait(value, LONG).unwrap();
        until("the completion is handled", || ids() == (2, 2));
    });
}
