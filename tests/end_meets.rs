//! What the end of a process meets (HQ-12): queues that are being made, doorbells that are
//! disconnected, more queues than an engine runs or a wait takes, and what it leaves to who traces.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{LogType, MAX_HW_QUEUES};
use native_fence::gpu::NodePolicy;
use native_fence::os::OsError;
use native_fence::{
    CommandList, CreateError, EndError, HwQueue, HwQueueOptions, SubmitError, Tracing, WaitError,
};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use support::bench::{Bench, LONG, Moment, complete, on_every_bench, until};

/// LG-07 after HQ-12: a program may keep queues that the end of their process destroyed. They have no
/// logs, and keep nobody from tracing: the switch succeeds, and another process's queue has its logs.
///
/// Kills `a-destroyed-queue-hinders-tracing`.
#[test]
fn lg_07_a_queue_that_outlives_its_process_hinders_no_tracing() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = bench.adapter.create_device();
        let mut ended = device.create_hw_queue().unwrap();
        let lives = bench.queue();
        complete(&mut ended, CommandList::new().nop());
        device.end(LONG).unwrap();
        for tracing in [Tracing::On, Tracing::Verbose, Tracing::Off] {
            bench.adapter.set_tracing(tracing).unwrap();
            let entries = lives.os().log_entries(LogType::Signals);
            assert_eq!(entries, tracing.log_entries());
        }
        drop(ended);
    });
}

/// Has the process end when the `nth` log of a queue that is being made is set, and gives what both
/// came to.
fn end_while_made(
    bench: &Bench,
    nth: usize,
) -> (Result<(), EndError>, Result<HwQueue, CreateError>) {
    let (reached, is_reached) = channel();
    let (ended, is_ended) = channel();
    let is_ended = Mutex::new(is_ended);
    let mut sets = 0;
    let meet = Mutex::new(move || {
        sets += 1;
        if sets == nth {
            reached.send(()).unwrap();
            is_ended.lock().unwrap().recv_timeout(LONG).unwrap();
        }
    });
    bench.spy.hook(move |moment, _| {
        if moment == Moment::AfterSetOfLog {
            (meet.lock().unwrap())();
        }
    });
    let both = thread::scope(|scope| {
        let end = scope.spawn(move || {
            is_reached.recv_timeout(LONG).unwrap();
            let result = bench.device.end(LONG);
            ended.send(()).unwrap();
            result
        });
        let made = bench.device.create_hw_queue();
        (end.join().unwrap(), made)
    });
    bench.spy.unhook();
    both
}

/// HQ-12: an end that begins while a queue is being made succeeds, and whoever makes it is told that the
/// process ends, whether the queue still lacks a log when the end is through or lacks nothing.
///
/// Kills `a-queue-is-made-for-an-ended-process`.
#[test]
fn hq_12_a_queue_that_is_being_made_does_not_hinder_the_end() {
    for nth in [1, 2] {
        on_every_bench(NodePolicy::default(), |bench| {
            let mut queue = bench.queue();
            complete(&mut queue, CommandList::new().nop());
            let (ended, made) = end_while_made(bench, nth);
            ended.unwrap();
            assert!(
                matches!(made, Err(CreateError::Os(OsError::ProcessEnds))),
                "at log {nth}: {made:?}"
            );
            // What was made of it is gone, and no other process is hindered.
            let device = bench.adapter.create_device();
            complete(
                &mut device.create_hw_queue().unwrap(),
                CommandList::new().nop(),
            );
        });
    }
}

/// HQ-12: a doorbell that its user disconnects while the process ends was taken already, and the
/// engine keeps the ring: what was queued is executed, and the end succeeds.
///
/// Kills `a-disconnect-takes-the-ring-from-the-end`.
#[test]
fn hq_12_a_disconnect_while_the_process_ends_takes_nothing_from_the_engine() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (gate, done) = (bench.fence(0), bench.fence(0));
        let mut queue = bench.queue();
        let list = &mut CommandList::new();
        queue.submit(list.wait(&gate, 1).signal(&done, 1)).unwrap();
        thread::scope(|scope| {
            let end = scope.spawn(|| bench.device.end(LONG));
            until("the doorbell is taken", || bench.spy.withdrawals() == 1);
            queue.os().disconnect_doorbell();
            gate.signal(1).unwrap();
            end.join().unwrap().unwrap();
        });
        assert_eq!(done.current_value(), 1);
    });
}

/// HQ-12: the same where the disconnect has begun before the end, and the driver comes to it after the
/// end has taken the doorbell.
///
/// Kills `a-late-disconnect-keeps-the-ring`.
#[test]
fn hq_12_a_disconnect_that_the_end_overtakes_gives_the_ring_back() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (gate, done) = (bench.fence(0), bench.fence(0));
        let mut queue = bench.queue();
        let list = &mut CommandList::new();
        queue.submit(list.wait(&gate, 1).signal(&done, 1)).unwrap();
        let (begun, has_begun) = channel();
        let spy = Arc::clone(&bench.spy);
        bench.spy.once(Moment::InDisconnect, move || {
            begun.send(()).unwrap();
            until("the end takes the doorbell", || spy.withdrawals() == 1);
        });
        thread::scope(|scope| {
            let end = scope.spawn(move || {
                has_begun.recv_timeout(LONG).unwrap();
                bench.device.end(LONG)
            });
            queue.os().disconnect_doorbell();
            gate.signal(1).unwrap();
            end.join().unwrap().unwrap();
        });
        assert_eq!(done.current_value(), 1);
    });
}

/// HQ-12: queues that have executed all, or that were never rung, take no place in an engine's list: as
/// many as a process has end, and a command that one of them was not rung for is executed.
///
/// Kills `idle-queues-fill-the-run-list-at-the-end`.
#[test]
fn hq_12_more_queues_end_than_an_engine_runs_at_a_time() {
    let bench = Bench::new();
    let options = HwQueueOptions::default();
    let disconnected = || bench.device.create_hw_queue_disconnected(options).unwrap();
    let mut queues: Vec<_> = (0..MAX_HW_QUEUES + 8).map(|_| disconnected()).collect();
    let silent = bench.fence(0);
    let last = queues.last_mut().unwrap();
    last.queue_commands(CommandList::new().signal(&silent, 1))
        .unwrap();
    bench.device.end(LONG).unwrap();
    assert_eq!(silent.current_value(), 1);
}

/// HQ-12: a command that comes while the process ends, to a queue that had executed all, is executed
/// if its value was published in time, though its submission is refused: nobody waits for what no
/// engine looks at.
///
/// Kills `a-refused-ring-is-not-looked-at`.
#[test]
fn hq_12_a_ring_that_the_end_found_empty_is_looked_at_again() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (gate, late) = (bench.fence(0), bench.fence(0));
        let mut stands = bench.queue();
        let options = HwQueueOptions::default();
        let mut idle = bench.device.create_hw_queue_disconnected(options).unwrap();
        stands.submit(CommandList::new().wait(&gate, 1)).unwrap();
        bench.until_parked();
        thread::scope(|scope| {
            let end = scope.spawn(|| bench.device.end(LONG));
            until("the doorbells are taken", || bench.spy.withdrawals() == 2);
            until("a submission is refused", || {
                let refused = idle.submit(CommandList::new().signal(&late, 1));
                matches!(refused, Err(SubmitError::NotRung { .. }))
            });
            until("it is executed all the same", || late.current_value() == 1);
            gate.signal(1).unwrap();
            end.join().unwrap().unwrap();
        });
    });
}

/// HQ-12, TD-15: an end waits for all queues of a process at a time, however many. A fault of the
/// last one ends it while all others wait for that queue's signal; and before, a time-out tells of each.
///
/// Kills `the-end-waits-for-some-after-others` and `a-time-out-tells-of-some-queues`.
#[test]
fn hq_12_an_end_of_many_queues_sees_the_last_one_stop() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (gate, never, closed) = (bench.fence(0), bench.fence(0), bench.fence(0));
        let mut queues: Vec<_> = (0..40).map(|_| bench.queue()).collect();
        let (last, others) = queues.split_last_mut().unwrap();
        for queue in others {
            queue.submit(CommandList::new().wait(&never, 1)).unwrap();
        }
        let list = &mut CommandList::new();
        last.submit(list.wait(&gate, 1).wait(&closed, 1).signal(&never, 1))
            .unwrap();
        closed.close();
        bench.until_parked();
        match bench.device.end(Duration::ZERO) {
            Err(EndError::TimedOut(unfinished)) => assert_eq!(unfinished.len(), 40),
            other => panic!("it came to no time-out: {other:?}"),
        }
        let before = bench.spy.withdrawals();
        thread::scope(|scope| {
            let end = scope.spawn(|| bench.device.end(LONG));
            until("the doorbells are taken", || {
                bench.spy.withdrawals() == before + 40
            });
            gate.signal(1).unwrap();
            match end.join().unwrap() {
                Err(EndError::Stopped { hw_queue, error }) => {
                    assert_eq!(hw_queue, queues[39].os().handle());
                    assert!(matches!(error, WaitError::QueueFaulted(_)), "{error}");
                }
                other => panic!("the fault was not told: {other:?}"),
            }
        });
        never.signal(1).unwrap();
        queues.pop();
        bench.device.end(LONG).unwrap();
    });
}
