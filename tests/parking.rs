//! What changes for an engine on its way to be parked, or parked, beside the values it waits for:
//! handles that are closed, queues that are destroyed, an engine that is lost.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{DoorbellStatus, FaultCode};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::Interrupt;
use native_fence::{CommandList, SubmitError, WaitError};
use std::sync::mpsc;
use std::thread;
use support::bench::{LONG, monitored_value, on_benches_of, on_every_bench, until_sleeping};

/// A slice has resolved a handle, stands at its wait and ends; then the handle is closed, before
/// anybody has taken the slice's report. The engine does not park over it, though another of its
/// queues stands at a wait that can be waited for: the queue finds out, and is stopped.
///
/// Kills `a-wait-by-a-closed-handle-is-left-out`.
#[test]
fn nf_22_a_handle_that_is_closed_before_the_engine_parks_stops_its_queue() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (stays, closed) = (bench.fence(0), bench.fence(0));
        let (mut one, mut other) = (bench.queue(), bench.queue());
        one.submit(CommandList::new().wait(&stays, 1)).unwrap();
        bench.until_parked();
        bench.engine.keep_ends(true);
        let end = other.submit(CommandList::new().wait(&closed, 1)).unwrap();
        bench.engine.wait_really(bench.engine.submitted());
        closed.close();
        bench.engine.keep_ends(false);
        let Err(WaitError::QueueFaulted(fault)) = other.progress_fence().wait(end, LONG) else {
            panic!("the queue was not stopped")
        };
        assert_eq!(fault.code, FaultCode::StaleHandle);
    });
}

/// A queue is destroyed after its engine has been started again, and before the report of that
/// slice: the engine's waiter, which stood while it was parked, stands no more.
///
/// Kills `what-is-over-is-listened-to-once`.
#[test]
fn nf_04_a_queue_that_is_destroyed_on_an_engine_that_has_just_started_waits_no_more() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        queue.submit(CommandList::new().wait(&fence, 5)).unwrap();
        bench.until_parked();
        assert_eq!(monitored_value(&fence), 4);
        let gate = bench.engine.close();
        queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(bench.engine.at_gate(), 1);
        let (tell, told) = mpsc::channel();
        let destroys = thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            drop(queue);
        });
        // It waits for the slice in flight.
        until_sleeping(told.recv().unwrap());
        drop(gate);
        destroys.join().unwrap();
        bench.until_parked();
        assert_eq!(monitored_value(&fence), u64::MAX);
    });
}

/// One engine of two is lost: the device that has a queue on it is lost, with its fences and with all of
/// its queues, also that on the other engine. Another device goes on, with all that it has.
///
/// Kills `a-loss-spares-queues-of-other-nodes` and `a-loss-is-every-devices`.
#[test]
fn nf_22_the_loss_of_one_engine_ends_the_waits_of_who_was_on_it() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let well = bench.adapter.create_device();
        let (theirs, fence) = (well.create_fence(0).unwrap(), bench.fence(0));
        let on_other = native_fence::HwQueueOptions {
            node_ordinal: 1,
            ..native_fence::HwQueueOptions::default()
        };
        let mut their_queue = well.create_hw_queue_with(on_other).unwrap();
        let (mut doomed, mut on_well) = (bench.queue_on(0), bench.queue_on(1));
        bench.until_parked();
        let (waiter, their_waiter) = (bench.waiter(&fence, 1), bench.waiter(&theirs, 1));
        bench.engines[0].lose();
        // The submission finds it, at the latest.
        let _ = doomed.submit(CommandList::new().nop());
        bench
            .spy
            .until_handled(|interrupt| *interrupt == Interrupt::EngineLost { node_ordinal: 0 })
            .unwrap();
        assert_eq!(waiter.join(), Err(WaitError::DeviceLost));
        assert_eq!(fence.wait(1, LONG), Err(WaitError::DeviceLost));
        let gone = doomed.progress_fence().wait(1, LONG);
        assert_eq!(gone, Err(WaitError::DeviceLost));

        assert_eq!(on_well.doorbell_status(), DoorbellStatus::DisconnectedAbort);
        assert_eq!(on_well.error(), Some(WaitError::DeviceLost));
        assert!(matches!(
            on_well.submit(CommandList::new().nop()),
            Err(SubmitError::Lost)
        ));
        let gone = on_well.progress_fence().wait(1, LONG);
        assert_eq!(gone, Err(WaitError::DeviceLost));
        let value = their_queue
            .submit(CommandList::new().signal(&theirs, 1))
            .unwrap();
        assert_eq!(their_waiter.join(), Ok(()));
        assert_eq!(their_queue.progress_fence().wait(value, LONG), Ok(()));
    });
}
