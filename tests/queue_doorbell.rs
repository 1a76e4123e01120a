//! The doorbell of a queue as its user makes and destroys it: by the DDIs of these names (HQ-02, HQ-12).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{DoorbellStatus, LogType};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::DoorbellId;
use native_fence::os::{OsError, QueueStop};
use native_fence::{
    CommandList, CreateError, EndError, HwQueue, HwQueueOptions, RingError, SubmitError, Timeout,
    WaitError,
};
use std::thread;
use support::bench::{Bench, Call, Failing, LONG, complete, fault, on_every_bench, until};

fn without(bench: &Bench) -> HwQueue {
    let options = HwQueueOptions::default();
    let queue = bench.device.create_hw_queue_without_doorbell(options);
    queue.unwrap()
}

/// Doorbells that the driver was asked to make for a queue, oldest first, refused ones among them.
fn asked_for(bench: &Bench, queue: &HwQueue) -> Vec<DoorbellId> {
    let of_queue = |call| match call {
        Call::CreateDoorbell(hw_queue, doorbell) if hw_queue == queue.os().handle() => {
            Some(doorbell)
        }
        _ => None,
    };
    bench.spy.calls().into_iter().filter_map(of_queue).collect()
}

fn destroyed(bench: &Bench, doorbell: DoorbellId) -> usize {
    bench
        .spy
        .count(|call| *call == Call::DestroyDoorbell(doorbell))
}

fn reason(refused: Result<(), CreateError>) -> OsError {
    match refused {
        Err(CreateError::Os(error)) => error,
        other => panic!("it was not refused: {other:?}"),
    }
}

/// The queue has no doorbell, says so, and no engine executes what is in its ring: another queue has
/// completed a submission of each kind since it was rung.
fn assert_no_doorbell(bench: &Bench, queue: &HwQueue) {
    assert_eq!(queue.os().doorbell(), None);
    assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedRetry);
    let rung = queue.ring_doorbell();
    assert!(
        matches!(
            rung,
            Err(RingError::Connect(CreateError::Os(OsError::NoDoorbell)))
        ),
        "{rung:?}"
    );
    queue.os().notify_work_submission();
    queue.os().disconnect_doorbell();
    assert!(matches!(
        reason(queue.destroy_doorbell()),
        OsError::NoDoorbell
    ));
    let (mut other, fence) = (bench.queue(), bench.fence(0));
    complete(&mut other, CommandList::new().signal(&fence, 1));
    complete(&mut other, CommandList::new().wait(&fence, 1));
}

/// HQ-02: a queue that is made without a doorbell has none at the driver either, and nothing of its ring
/// runs. CreateDoorbell reaches the DDI of its name, once for each doorbell, and starts disconnected; a
/// second one is refused and asks the driver for nothing. Then all runs that was queued.
///
/// Kills `a-second-doorbell-is-asked-for`, `a-missing-doorbell-is-connected`.
#[test]
fn hq_02_a_queue_runs_when_its_doorbell_was_made() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = without(bench);
        let fence = bench.fence(0);
        let list = &mut CommandList::new();
        let value = queue.queue_commands(list.signal(&fence, 1)).unwrap();
        assert_eq!(asked_for(bench, &queue), []);
        assert_no_doorbell(bench, &queue);
        assert_eq!(bench.spy.connects(queue.os().handle()), 0);
        assert_eq!(fence.current_value(), 0);

        queue.create_doorbell().unwrap();
        let made = queue.os().doorbell().unwrap();
        assert_eq!(asked_for(bench, &queue), [made]);
        assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedRetry);
        assert!(matches!(
            reason(queue.create_doorbell()),
            OsError::HasDoorbell
        ));
        assert_eq!(asked_for(bench, &queue), [made]);
        queue.ring_doorbell().unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        assert_eq!(fence.current_value(), 1);
    });
}

/// HQ-02: DestroyDoorbell reaches the DDI of its name, which disconnects it. What was queued and not
/// executed stays in the ring; by another doorbell the queue goes on where it was, and no packet runs
/// twice.
///
/// Kills `a-destroyed-doorbell-stays-with-the-driver`, `a-destroyed-doorbell-is-still-there`.
#[test]
fn hq_02_a_queue_goes_on_by_its_next_doorbell() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        let (fence, gate) = (bench.fence(0), bench.fence(0));
        complete(&mut queue, CommandList::new().signal(&fence, 1));
        let first = queue.os().doorbell().unwrap();
        // It stands at a wait when its doorbell goes.
        let list = &mut CommandList::new();
        let value = queue.submit(list.wait(&gate, 1).signal(&fence, 2)).unwrap();
        queue.destroy_doorbell().unwrap();
        assert_eq!(destroyed(bench, first), 1);
        gate.signal(1).unwrap();
        assert_no_doorbell(bench, &queue);
        assert_eq!(destroyed(bench, first), 1);
        assert_eq!(fence.current_value(), 1);

        queue.create_doorbell().unwrap();
        let next = queue.os().doorbell().unwrap();
        assert_eq!(asked_for(bench, &queue), [first, next]);
        queue.ring_doorbell().unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        assert_eq!(fence.current_value(), 2);
        let signals = || bench.spy.log(queue.os().handle(), LogType::Signals).total();
        until("all of it is logged", || signals() >= 4);
        assert_eq!(signals(), 4, "two signals, and two of progress");
        drop(queue);
        assert_eq!((destroyed(bench, first), destroyed(bench, next)), (1, 1));
    });
}

/// HQ-02: one thread destroys the doorbell while another makes the next one, as soon as it can: that has
/// the ring, and all runs that is queued.
///
/// Kills `a-destroyed-doorbell-stays-with-the-driver`.
#[test]
fn hq_02_a_doorbell_is_made_while_another_is_destroyed() {
    let bench = Bench::new();
    let (mut queue, fence) = (bench.queue(), bench.fence(0));
    for value in 1..=300 {
        thread::scope(|scope| {
            let queue = &queue;
            scope.spawn(move || queue.destroy_doorbell().unwrap());
            until("the next doorbell is made", || {
                queue.create_doorbell().is_ok()
            });
        });
        queue.connect_doorbell().unwrap();
        complete(&mut queue, CommandList::new().signal(&fence, value));
    }
}

/// NF-22: without a doorbell nothing makes room in a ring that is full: whoever would wait for it is told.
///
/// Kills `who-has-no-doorbell-waits-for-room`.
#[test]
fn nf_22_nobody_waits_for_room_without_a_doorbell() {
    let bench = Bench::new();
    let (mut queue, list) = (without(&bench), CommandList::new().nop().clone());
    while queue.queue_commands(&list).is_ok() {}
    let full = queue.submit_blocking(&list, Timeout::Never);
    assert!(matches!(full, Err(SubmitError::Full { .. })), "{full:?}");
}

/// HQ-02: where the driver makes no doorbell, its reason is told and the queue has none; it is asked
/// again when the user asks again. A queue that should have come with one is not left behind.
///
/// Kills `a-refused-doorbell-is-there`.
#[test]
fn hq_02_the_driver_may_refuse_a_doorbell() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = without(bench);
        bench.spy.fail(Failing::CreateDoorbell);
        assert!(matches!(
            reason(queue.create_doorbell()),
            OsError::Driver(_)
        ));
        let gone = |call: &Call| matches!(call, Call::DestroyHwQueue(_));
        let before = bench.spy.count(gone);
        assert!(bench.device.create_hw_queue().is_err());
        assert_eq!(bench.spy.count(gone), before + 1);
        bench.spy.succeed();
        assert_no_doorbell(bench, &queue);

        queue.create_doorbell().unwrap();
        assert_eq!(asked_for(bench, &queue).len(), 2);
        complete(&mut queue, CommandList::new().nop());
    });
}

/// HQ-02, HQ-01: a queue that was stopped is not brought back by another doorbell.
///
/// Kills `stopped-queue-connects-again`.
#[test]
fn hq_02_another_doorbell_does_not_revive_a_stopped_queue() {
    on_every_bench(NodePolicy::default(), |bench| {
        let queue = bench.queue();
        fault(&queue);
        queue.destroy_doorbell().unwrap();
        queue.create_doorbell().unwrap();
        assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedAbort);
        assert!(queue.connect_doorbell().is_err());
        assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedAbort);
    });
}

/// HQ-12: of a queue without a doorbell no engine has what was queued. The end of its process says so at
/// once, however much time it has, destroys nothing, and lets a doorbell be made; with one it executes all.
/// A queue that has executed all ends without.
///
/// Kills `an-end-waits-for-what-no-engine-has`, `a-failed-end-bars-doorbells`.
#[test]
fn hq_12_an_end_is_refused_while_a_queue_with_work_has_no_doorbell() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (mut queue, mut done) = (without(bench), bench.queue());
        complete(&mut done, CommandList::new().nop());
        done.destroy_doorbell().unwrap();
        let fence = bench.fence(0);
        let list = &mut CommandList::new();
        queue.queue_commands(list.signal(&fence, 1)).unwrap();
        let refused = bench.device.end(Timeout::Never);
        let Err(EndError::NoDoorbell(left)) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(left.hw_queue, queue.os().handle());
        assert_eq!((left.completed, left.last_queued), (0, 1));
        assert_eq!(
            bench
                .spy
                .count(|call| matches!(call, Call::DestroyHwQueue(_))),
            0
        );

        queue.create_doorbell().unwrap();
        done.create_doorbell().unwrap();
        done.destroy_doorbell().unwrap();
        bench.device.end(LONG).unwrap();
        assert_eq!(fence.current_value(), 1);
        for ended in [&queue, &done] {
            let refused = reason(ended.create_doorbell());
            assert!(matches!(refused, OsError::ProcessEnds), "{refused}");
            assert_eq!(ended.os().doorbell(), None);
        }
    });
}

/// HQ-12: while a process ends, no doorbell is made, and one that its user destroys goes with the end: the
/// engine keeps the ring, and what was queued is executed.
///
/// Kills `a-doorbell-is-made-for-an-ending-process`, `a-doorbell-is-destroyed-under-an-end`.
#[test]
fn hq_12_the_end_of_a_process_keeps_the_rings() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (mut queue, idle) = (bench.queue(), without(bench));
        let (gate, fence) = (bench.fence(0), bench.fence(0));
        let doorbell = queue.os().doorbell().unwrap();
        let list = &mut CommandList::new();
        queue.submit(list.wait(&gate, 1).signal(&fence, 1)).unwrap();
        thread::scope(|scope| {
            let end = scope.spawn(|| bench.device.end(Timeout::Never));
            until("the doorbell is taken", || bench.spy.withdrawals() == 1);
            // Those of all queues are looked at one after the other.
            until("no doorbell is made", || {
                let refused = idle.create_doorbell();
                let ends = matches!(refused, Err(CreateError::Os(OsError::ProcessEnds)));
                if refused.is_ok() {
                    idle.destroy_doorbell().unwrap();
                }
                ends
            });
            queue.destroy_doorbell().unwrap();
            assert_eq!(destroyed(bench, doorbell), 0);
            assert!(matches!(
                reason(queue.destroy_doorbell()),
                OsError::NoDoorbell
            ));
            gate.signal(1).unwrap();
            end.join().unwrap().unwrap();
        });
        assert_eq!(fence.current_value(), 1);
        assert_eq!(destroyed(bench, doorbell), 1);
    });
}

/// HQ-12: a doorbell that its user destroyed during an end which fails is destroyed then, and the queue can
/// have another one.
///
/// Kills `an-unwanted-doorbell-stays`.
#[test]
fn hq_12_a_doorbell_that_was_destroyed_during_a_failed_end_is_gone() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (mut queue, mut other) = (bench.queue(), bench.queue());
        let (gate, never, fence) = (bench.fence(0), bench.fence(0), bench.fence(0));
        let doorbell = queue.os().doorbell().unwrap();
        let list = &mut CommandList::new();
        queue.submit(list.wait(&gate, 1).signal(&fence, 1)).unwrap();
        other.submit(CommandList::new().wait(&never, 1)).unwrap();
        thread::scope(|scope| {
            let end = scope.spawn(|| bench.device.end(Timeout::Never));
            until("the doorbells are taken", || bench.spy.withdrawals() == 2);
            queue.destroy_doorbell().unwrap();
            assert_eq!(destroyed(bench, doorbell), 0);
            // The packet that waits for it faults, with which the end does not come.
            never.close();
            let refused = end.join().unwrap();
            assert!(
                matches!(refused, Err(EndError::Stopped { .. })),
                "{refused:?}"
            );
        });
        assert_eq!(destroyed(bench, doorbell), 1);
        drop(other);
        gate.signal(1).unwrap();
        assert_no_doorbell(bench, &queue);
        assert_eq!(fence.current_value(), 0);
        queue.create_doorbell().unwrap();
        queue.ring_doorbell().unwrap();
        bench.device.end(LONG).unwrap();
        assert_eq!(fence.current_value(), 1);
    });
}

/// HQ-12, NF-22: a queue whose process has ended says so, to who waits for more progress, and to who reads
/// or resizes its logs, of which the driver knows nothing any more.
///
/// Kills `an-ended-queue-was-destroyed`, `the-log-of-an-ended-queue-has-the-drivers-reason`,
/// `the-size-of-an-ended-queues-log-has-the-drivers-reason`.
#[test]
fn hq_12_an_ended_queue_says_that_its_process_has_ended() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        let fence = bench.fence(0);
        complete(&mut queue, CommandList::new().signal(&fence, 1));
        bench.device.end(LONG).unwrap();
        let ended = WaitError::QueueStopped(QueueStop::ProcessEnded);
        assert_eq!(queue.progress_fence().wait(2, LONG), Err(ended));
        assert_eq!(queue.progress_fence().wait(1, LONG), Ok(()));
        assert_eq!(queue.error(), Some(ended));
        let unread = queue.read_signal_log().map(|_| ());
        assert!(matches!(reason(unread), OsError::ProcessEnds));
        let resized = queue.resize_logs(200);
        assert!(matches!(reason(resized), OsError::ProcessEnds));
    });
}
