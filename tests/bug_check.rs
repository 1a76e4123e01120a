//! Bug checks: what the OS cannot go on after stops the adapter, is noted, and hangs nobody.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{FenceId, HandleAccess};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{Interrupt, NativeFenceSignaled, SignaledFence};
use native_fence::os::{OsError, Record};
use native_fence::{CommandList, Fence, SignalError, SubmitError, WaitError};
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use support::bench::{Bench, Call, Failing, LONG, Waiter, native, on_every_bench};

/// Of a slot that there is not.
const NOWHERE: FenceId = FenceId {
    slot: 77_777,
    generation: 1,
};

/// Waits of two fences and of a queue's progress that nothing will satisfy, each standing.
fn waits(bench: &Bench) -> (native_fence::HwQueue, [Fence; 2], Vec<Waiter>) {
    let queue = bench.queue();
    let fences = [bench.fence(0), bench.fence(0)];
    let waits = [
        (&fences[0], 5),
        (&fences[1], 1),
        (queue.progress_fence(), 1),
    ];
    let waiters = waits.map(|(fence, value)| bench.waiter(fence, value));
    (queue, fences, Vec::from(waiters))
}

/// The adapter has ended by the one record: waits end, nothing is created, nothing is queued, and
/// no MonitoredValue is posted any more.
fn assert_stopped(
    bench: &Bench,
    (mut queue, fences, waiters): (native_fence::HwQueue, [Fence; 2], Vec<Waiter>),
    parameters: [u64; 2],
) {
    for waiter in waiters {
        assert_eq!(waiter.join(), Err(WaitError::AdapterStopped));
    }
    let records = bench.take_records();
    let [record] = &records[..] else {
        panic!("{records:?}")
    };
    assert_eq!(record.code, 0x119);
    assert_eq!(record.parameters[..2], parameters);
    assert!(record.is_bug_check() && !record.reason.is_empty());
    assert_eq!(bench.adapter.os().stopped(), Some(record));

    let refusals = [
        Box::<dyn Error>::from(bench.device.create_fence(0).unwrap_err()),
        bench.device.create_hw_queue().unwrap_err().into(),
        bench.device.create_allocation(64).unwrap_err().into(),
    ];
    for refusal in refusals {
        assert!(refusal.to_string().contains(&record.reason), "{refusal}");
    }
    let process = bench.device.process();
    let memory = native_fence::FenceMemory::System;
    let refused = process.create_native_fence(0, HandleAccess::FULL, memory);
    assert!(matches!(refused, Err(OsError::Stopped(by)) if by == *record));

    let posts = bench.spy.updates();
    assert_eq!(fences[0].wait(9, LONG), Err(WaitError::AdapterStopped));
    assert_eq!(fences[0].signal(100), Err(SignalError::AdapterStopped));
    assert_eq!(fences[0].current_value(), 0, "the last good value stays");
    assert_eq!(
        fences[0].wait(0, LONG),
        Ok(()),
        "what is reached is reached"
    );
    let submitted = queue.submit(CommandList::new().signal(&fences[0], 1));
    assert!(matches!(submitted, Err(SubmitError::Lost)), "{submitted:?}");
    assert_eq!(queue.error(), Some(WaitError::AdapterStopped));
    assert_eq!(
        bench.spy.updates(),
        posts,
        "the driver is not asked any more"
    );
}

/// FQ-09: the driver fails a post. Without it wake-ups would be lost in silence.
///
/// Kills `a-failed-post-is-passed-over`, `a-stop-forgets-the-fences`, `a-stop-forgets-the-queues`,
/// `a-stopped-adapter-makes-fences`.
#[test]
fn fq_09_a_failed_update_of_monitored_values_stops_the_adapter() {
    on_every_bench(NodePolicy::default(), |bench| {
        let standing = waits(bench);
        let last = bench.fence(0);
        bench.until_parked();
        bench.spy.fail(Failing::UpdateMonitoredValues);
        let posts = bench.spy.updates();
        assert_eq!(last.wait(3, LONG), Err(WaitError::AdapterStopped));
        assert_eq!(
            bench.spy.updates(),
            posts,
            "the post was the one that failed"
        );
        let id = native(&last).id().word();
        assert_stopped(
            bench,
            standing,
            [Record::UPDATE_OF_MONITORED_VALUE_FAILED, id],
        );
        assert_eq!(Record::UPDATE_OF_MONITORED_VALUE_FAILED, 0x12);
    });
}

/// FQ-09: the waits that a stop ends leave MonitoredValues that are no longer right, of which nobody tells the driver.
///
/// Kills `a-stopped-adapter-is-called`.
#[test]
fn fq_09_who_leaves_a_stopped_adapter_calls_no_driver() {
    on_every_bench(NodePolicy::default(), |bench| {
        let standing = waits(bench);
        bench.until_parked();
        let posts = bench.spy.updates();
        bench.spy.interrupt(naming(NOWHERE, Instant::now()));
        assert_stopped(bench, standing, [1, NOWHERE.word()]);
        assert_eq!(bench.spy.updates(), posts);
    });
}

/// FQ-09: the driver stores what a CPU signal says, and fails the post that follows from it. Who is
/// satisfied is so, and the signaller learns that the adapter is stopped.
///
/// Kills `a-signal-whose-post-failed-is-well`.
#[test]
fn fq_09_a_signal_whose_post_fails_says_that_the_adapter_is_stopped() {
    on_every_bench(NodePolicy::default(), |bench| {
        let standing = waits(bench);
        let fence = bench.fence(0);
        let waiter = bench.waiter(&fence, 3);
        bench.until_parked();
        bench.spy.fail(Failing::UpdateMonitoredValues);
        assert_eq!(fence.signal(3), Err(SignalError::AdapterStopped));
        assert_eq!(waiter.join(), Ok(()));
        assert_eq!(fence.current_value(), 3);
        let id = native(&fence).id().word();
        let parameters = [Record::UPDATE_OF_MONITORED_VALUE_FAILED, id];
        assert_stopped(bench, standing, parameters);
    });
}

/// FQ-09: the driver fails a CPU signal, of several fences whose locks are all held.
///
/// Kills `a-failed-signal-is-passed-over` and `a-failed-signal-is-a-failed-post`.
#[test]
fn fq_09_a_failed_update_of_current_values_stops_the_adapter() {
    on_every_bench(NodePolicy::default(), |bench| {
        let standing = waits(bench);
        let (first, second) = (bench.fence(0), bench.fence(0));
        bench.until_parked();
        bench.spy.fail(Failing::UpdateCurrentValuesFromCpu);
        let signalled = native_fence::Fence::signal_all(&[(&first, 1), (&second, 1)]);
        assert_eq!(signalled, Err(SignalError::AdapterStopped));
        let id = native(&first).id().word();
        assert_stopped(
            bench,
            standing,
            [Record::UPDATE_OF_CURRENT_VALUE_FAILED, id],
        );
        assert_eq!(Record::UPDATE_OF_CURRENT_VALUE_FAILED, 0x13);
    });
}

fn naming(fence: FenceId, taken: Instant) -> Interrupt {
    Interrupt::NativeFenceSignaled(NativeFenceSignaled {
        node_ordinal: 0,
        engine_ordinal: 0,
        fences: Some(vec![SignaledFence {
            fence,
            value: 1,
            hw_queue: None,
        }]),
        hw_queue: None,
        evaluate_legacy_monitored_fences: false,
        taken,
    })
}

/// Gives an id that must not be named, and the fence of its slot where there is one.
type Names<'a> = &'a dyn Fn(&Bench) -> (FenceId, Option<Fence>);

/// IN-05: a fence that is destroyed, which nothing refers to any more, is named by a record that was
/// taken afterwards; so is one that is destroyed when its slot is used again, and an id that no
/// fence ever had, in a slot of a fence or of none.
///
/// Kills `a-destroyed-fence-may-be-named`, `an-older-generation-may-be-named`,
/// `a-generation-to-come-may-be-named` and `a-slot-past-the-table-may-be-named`.
#[test]
fn in_05_a_destroyed_fence_in_an_interrupt_stops_the_adapter() {
    let next = |id: FenceId| FenceId {
        generation: id.generation + 1,
        ..id
    };
    let ids: [Names<'_>; 5] = [
        &|bench| (native(&bench.fence(0)).id(), None),
        &|bench| {
            let id = native(&bench.fence(0)).id();
            let again = bench.fence(0);
            assert_eq!(native(&again).id().slot, id.slot);
            (id, None)
        },
        &|bench| (next(native(&bench.fence(0)).id()), None),
        &|bench| {
            let fence = bench.fence(0);
            (next(native(&fence).id()), Some(fence))
        },
        &|_| (NOWHERE, None),
    ];
    for id in ids {
        on_every_bench(NodePolicy::default(), |bench| {
            let standing = waits(bench);
            // With no slice in flight a fence is gone when its drop returns.
            bench.until_parked();
            let (id, _fence) = id(bench);
            assert!(bench.adapter.os().stopped().is_none());
            bench.spy.interrupt(naming(id, Instant::now()));
            assert_stopped(bench, standing, [1, id.word()]);
        });
    }
}

/// IN-05: a fence that is destroyed after its record was taken and before the OS is told is named
/// rightly, also when its slot is used again by then; and one that slices in flight may still refer
/// to, whenever its record was taken. Neither the test nor the driver is to blame.
///
/// Kills `a-late-name-stops-the-adapter` and `a-retiring-fence-stops-the-adapter`.
#[test]
fn in_05_a_fence_destroyed_after_its_record_was_taken_is_no_fault() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        let fence = bench.fence(0);
        let id = native(&fence).id();
        let armed = fence.arm(1);
        bench.until_parked();
        // The record is taken; before it is told, the fence goes and another has its slot.
        let gone = Arc::new(Mutex::new(Some((fence.clone(), armed))));
        let goes = Arc::clone(&gone);
        bench.spy.on_interrupt(move |interrupt| {
            if matches!(interrupt, Interrupt::NativeFenceSignaled(_)) {
                goes.lock().unwrap().take();
            }
        });
        let list = {
            let mut list = CommandList::new();
            list.signal(&fence, 1);
            list
        };
        drop(fence);
        queue.submit(&list).unwrap();
        bench.until_told();
        assert_eq!(bench.spy.raised(id), [1]);
        assert!(gone.lock().unwrap().is_none(), "it was destroyed in time");
        assert_eq!(bench.adapter.os().interrupts().unknown_fences(), 1);
        assert_eq!(bench.adapter.os().records(), []);

        // A slice in flight that was submitted before the fence is destroyed may raise it later.
        let fence = bench.fence(0);
        let id = native(&fence).id();
        bench.until_parked();
        let gate = bench.engine.close();
        queue.submit(CommandList::new().nop()).unwrap();
        drop(fence);
        assert_eq!(
            bench.spy.calls_of_os().last(),
            Some(&Call::DestroyNativeFence(id)),
            "and it is not retired"
        );
        bench.spy.interrupt(naming(id, Instant::now()));
        assert_eq!(bench.adapter.os().interrupts().unknown_fences(), 2);
        assert_eq!(bench.adapter.os().records(), []);
        drop(gate);
    });
}

/// A second bug check finds the adapter stopped: the first is the one that counts.
///
/// Kills `the-last-bug-check-is-the-end`.
#[test]
fn the_first_bug_check_is_the_end() {
    on_every_bench(NodePolicy::default(), |bench| {
        let standing = waits(bench);
        let id = FenceId {
            slot: 5_000,
            generation: 1,
        };
        bench.spy.interrupt(naming(id, Instant::now()));
        bench
            .spy
            .interrupt(naming(FenceId { slot: 6_000, ..id }, Instant::now()));
        assert_stopped(bench, standing, [1, id.word()]);
    });
}
