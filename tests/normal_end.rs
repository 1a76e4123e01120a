//! The normal end of a process (HQ-12): what was queued is executed, then the queues go.
//!
//! The abnormal end, in which a device is marked in error and its contexts are suspended, is in `suspend`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::DoorbellStatus;
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{Ddi, HwQueueHandle, HwQueueWait};
use native_fence::os::{OsError, QueueStop, UnfinishedQueue};
use native_fence::{
    CommandList, CreateError, EndError, HwQueue, HwQueueOptions, KernelQueueError, RingError,
    SubmitError, Timeout, WaitError,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use support::bench::{Bench, Call, Ended, LONG, on_benches_of, on_every_bench, until};

fn disconnected(bench: &Bench) -> HwQueue {
    let options = HwQueueOptions::default();
    bench.device.create_hw_queue_disconnected(options).unwrap()
}

fn destroyed(bench: &Bench) -> Vec<HwQueueHandle> {
    let destroyed = |call| match call {
        Call::DestroyHwQueue(queue) => Some(queue),
        _ => None,
    };
    bench
        .spy
        .calls()
        .into_iter()
        .filter_map(destroyed)
        .collect()
}

/// The queues that an end which came to its time-out has told of.
fn unfinished(ended: Result<(), EndError>) -> Vec<UnfinishedQueue> {
    match ended {
        Err(EndError::TimedOut(queues)) => queues,
        other => panic!("the end came to no time-out: {other:?}"),
    }
}

fn is_refused(made: &Result<HwQueue, CreateError>) -> bool {
    matches!(made, Err(CreateError::Os(OsError::ProcessEnds)))
}

/// HQ-12: every doorbell is taken before anything is waited for, then the last queued values are
/// waited for, then the queues are destroyed. Of the queues one waits for the other's signal, that for a
/// CPU signal that comes while the end waits, one was never connected, and one is of kernel mode and
/// ends in a wait for a user-mode queue and a signal of the OS.
///
/// Kills `the-end-waits-for-nothing`, `the-end-stops-the-engine` and `the-end-leaves-the-queues`.
#[test]
fn hq_12_a_process_ends_when_all_that_it_queued_is_executed() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (gate, first, second) = (bench.fence(0), bench.fence(0), bench.fence(0));
        let (never_rung, by_os) = (bench.fence(0), bench.fence(0));
        let mut waits = bench.queue();
        let mut serves = bench.queue();
        let mut silent = disconnected(bench);
        let mut kernel = bench.device.create_kernel_queue().unwrap();
        let list = &mut CommandList::new();
        waits
            .submit(list.wait(&first, 1).signal(&second, 1))
            .unwrap();
        let list = &mut CommandList::new();
        serves
            .submit(list.wait(&gate, 1).signal(&first, 1))
            .unwrap();
        silent
            .queue_commands(CommandList::new().signal(&never_rung, 1))
            .unwrap();
        kernel.submit(CommandList::new().nop()).unwrap();
        kernel
            .wait_native(&second, 1)
            .unwrap()
            .signal_native(&by_os, 1)
            .unwrap();
        let handles = [&waits, &serves, &silent].map(|queue| queue.os().handle());

        thread::scope(|scope| {
            let end = scope.spawn(|| bench.device.end(LONG));
            until("all doorbells are taken", || bench.spy.withdrawals() == 3);
            for queue in [&waits, &serves, &silent] {
                until("the doorbell is disconnected", || {
                    queue.doorbell_status() == DoorbellStatus::DisconnectedRetry
                });
            }
            // The engine goes on with the rings.
            until("a queue that was never rung runs", || {
                never_rung.current_value() == 1
            });
            assert_eq!((first.current_value(), second.current_value()), (0, 0));
            assert!(is_refused(&bench.device.create_hw_queue()), "while it ends");
            assert!(!end.is_finished());
            assert_eq!(
                destroyed(bench)
                    .iter()
                    .filter(|q| handles.contains(q))
                    .count(),
                0
            );
            gate.signal(1).unwrap();
            end.join().unwrap().unwrap();
        });
        assert_eq!((first.current_value(), second.current_value()), (1, 1));
        assert_eq!(by_os.current_value(), 1);

        let calls = bench.spy.calls();
        let place = |which: &Call| calls.iter().position(|call| call == which).unwrap();
        let last_taken = handles.map(|queue| place(&Call::WithdrawDoorbell(queue)));
        let first_gone = handles.map(|queue| place(&Call::DestroyHwQueue(queue)));
        assert!(
            last_taken.iter().max() < first_gone.iter().min(),
            "{calls:?}"
        );
        assert!(calls.contains(&Call::DestroyHwQueue(kernel.os().handle())));

        // It is the end: of the queues, and of the making of queues; fences are still there.
        assert!(is_refused(&bench.device.create_hw_queue()));
        assert!(bench.device.create_kernel_queue().is_err());
        let late = waits.submit(CommandList::new().signal(&second, 2));
        let ended = QueueStop::ProcessEnded;
        assert!(
            matches!(late, Err(SubmitError::Stopped(stop)) if stop == ended),
            "{late:?}"
        );
        let late = kernel.submit(CommandList::new().nop());
        let stopped = WaitError::QueueStopped(ended);
        assert_eq!(late, Err(KernelQueueError::Stopped(stopped)));
        second.signal(2).unwrap();
        second.wait(2, Duration::ZERO).unwrap();
        bench.device.end(Duration::ZERO).unwrap();
        let gone = destroyed(bench);
        drop((waits, serves, silent, kernel));
        assert_eq!(destroyed(bench), gone, "each was destroyed once");
    });
}

/// HQ-12: an end that comes to its time-out says which queue stands at which wait, of either kind, and
/// has destroyed and lost nothing: the queues go on, their doorbells connect again when they are rung,
/// and when the wait is over the end succeeds.
///
/// Kills `a-failed-end-keeps-the-doorbells`, `a-failed-end-destroys`, `the-end-names-no-wait`,
/// `a-held-wait-is-not-named`, `a-failed-end-is-for-good`, `the-end-overlooks-signals-of-the-os`.
#[test]
fn hq_12_an_end_that_times_out_loses_nothing_and_says_why() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (gate, done, by_kernel) = (bench.fence(0), bench.fence(0), bench.fence(0));
        let mut stands = bench.queue();
        let _idle = bench.queue();
        let mut kernel = bench.device.create_kernel_queue().unwrap();
        let list = &mut CommandList::new();
        let value = stands
            .submit(list.signal(&done, 1).wait(&gate, 7).signal(&done, 2))
            .unwrap();
        kernel
            .wait_native(&gate, 9)
            .unwrap()
            .signal_native(&by_kernel, 1)
            .unwrap();
        done.wait(1, LONG).unwrap();
        bench.until_parked();

        let mut told = unfinished(bench.device.end(Duration::ZERO));
        told.sort_by_key(|queue| queue.hw_queue);
        let at_gate = |wait: Option<HwQueueWait>| {
            let wait = wait.unwrap();
            assert_eq!(wait.handle, gate.handle().raw());
            wait.value
        };
        let expected = [
            (stands.os().handle(), value, 0, 7),
            (kernel.os().handle(), 1, 0, 9),
        ];
        let found: Vec<_> = told
            .iter()
            .map(|queue: &UnfinishedQueue| {
                let (last, completed) = (queue.last_queued, queue.completed);
                (queue.hw_queue, last, completed, at_gate(queue.wait))
            })
            .collect();
        assert_eq!(found, expected);
        let said = EndError::TimedOut(told).to_string();
        assert!(
            said.contains("waits for 7 of the fence with handle"),
            "{said}"
        );
        assert_eq!(destroyed(bench), []);

        // A ring, as after any disconnect, and the queue runs what comes.
        assert_eq!(stands.doorbell_status(), DoorbellStatus::DisconnectedRetry);
        stands.submit(CommandList::new().signal(&done, 3)).unwrap();
        kernel.signal_native(&by_kernel, 2).unwrap();
        gate.signal(7).unwrap();
        done.wait(3, LONG).unwrap();
        let one_more = bench.device.create_hw_queue().unwrap();
        bench.until_parked();
        let told = unfinished(bench.device.end(Duration::ZERO));
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(at_gate(told[0].wait), 9);
        gate.signal(9).unwrap();
        by_kernel.wait(2, LONG).unwrap();
        bench.device.end(LONG).unwrap();
        assert_eq!(destroyed(bench).len(), 4);
        drop(one_more);
    });
}

/// HQ-12: an engine that is lost, before the end or while it waits, ends it with the loss and no
/// time-out, though a queue of the other engine waits for what is lost; when the queues of the lost one
/// are dropped, the end succeeds without them.
///
/// Kills `the-end-overlooks-a-loss`.
#[test]
fn hq_12_an_end_tells_of_a_lost_engine() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let (gate, never) = (bench.fence(0), bench.fence(0));
        let (mut dies, mut lives) = (bench.queue_on(0), bench.queue_on(1));
        let list = &mut CommandList::new();
        dies.submit(list.wait(&gate, 1).signal(&never, 1)).unwrap();
        lives.submit(CommandList::new().wait(&never, 1)).unwrap();
        bench.until_parked();
        thread::scope(|scope| {
            let end = scope.spawn(|| bench.device.end(Timeout::Never));
            until("the doorbells are taken", || bench.spy.withdrawals() == 2);
            bench.engines[0].lose();
            until("the end is over", || {
                // The engine is given a slice, if it has none.
                bench
                    .spy
                    .notify_work_submission(dies.os().doorbell().unwrap());
                end.is_finished()
            });
            let Err(EndError::Stopped { hw_queue, error }) = end.join().unwrap() else {
                panic!("the loss was not told")
            };
            assert_eq!(
                (hw_queue, error),
                (dies.os().handle(), WaitError::DeviceLost)
            );
        });
        let again = bench.device.end(LONG);
        assert!(matches!(again, Err(EndError::Stopped { .. })), "{again:?}");
        drop(dies);
        drop(lives);
        bench.device.end(Duration::ZERO).unwrap();
    });
}

/// HQ-12: threads that submit while the process ends are refused at some submission, and everything
/// that was accepted before is executed.
///
/// Kills `doorbells-connect-while-the-process-ends`.
#[test]
fn hq_12_what_was_accepted_before_the_end_is_executed() {
    for round in 0..20 {
        let bench = Bench::new();
        let fences = [bench.fence(0), bench.fence(0)];
        let accepted = [const { AtomicU64::new(0) }; 2];
        let stop = AtomicBool::new(false);
        // Not the threads': one that is refused shall not drop its queue before the end.
        let mut queues = [bench.queue(), bench.queue()];
        thread::scope(|scope| {
            let _stop = Ended(&stop);
            for (queue, (fence, accepted)) in queues.iter_mut().zip(fences.iter().zip(&accepted)) {
                let stop = &stop;
                scope.spawn(move || {
                    for value in 1.. {
                        let list = &mut CommandList::new();
                        match queue.submit_blocking(list.signal(fence, value), LONG) {
                            Ok(_) => accepted.store(value, Ordering::Release),
                            Err(SubmitError::Stopped(QueueStop::ProcessEnded)) => break,
                            Err(SubmitError::NotRung { why, .. }) => {
                                assert!(matches!(
                                    why,
                                    RingError::Connect(CreateError::Os(OsError::ProcessEnds))
                                        | RingError::Stopped(QueueStop::ProcessEnded)
                                ));
                                break;
                            }
                            Err(other) => panic!("{other}"),
                        }
                        if stop.load(Ordering::Acquire) {
                            break;
                        }
                    }
                });
            }
            until("both have begun", || {
                accepted
                    .iter()
                    .all(|accepted| accepted.load(Ordering::Acquire) > round)
            });
            bench.device.end(LONG).unwrap();
        });
        for (fence, accepted) in fences.iter().zip(&accepted) {
            let accepted = accepted.load(Ordering::Acquire);
            assert!(
                fence.current_value() >= accepted,
                "{} of {accepted}",
                fence.current_value()
            );
        }
    }
}

/// HQ-12: to drop queues waits for nothing: one that stands at a wait which nobody satisfies goes, of
/// either kind, and the process with it.
///
/// Kills `a-dropped-queue-stays`.
#[test]
fn hq_12_a_queue_that_is_dropped_waits_for_nothing() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = bench.adapter.create_device();
        let (gate, done) = (
            device.create_fence(0).unwrap(),
            device.create_fence(0).unwrap(),
        );
        let mut queue = device.create_hw_queue().unwrap();
        let mut kernel = device.create_kernel_queue().unwrap();
        queue
            .submit(CommandList::new().wait(&gate, 1).signal(&done, 1))
            .unwrap();
        kernel
            .wait_native(&gate, 1)
            .unwrap()
            .signal_native(&done, 1)
            .unwrap();
        let handles = [queue.os().handle(), kernel.os().handle()];
        drop((queue, kernel));
        assert_eq!(destroyed(bench), handles);
        gate.signal(1).unwrap();
        device.end(Duration::ZERO).unwrap();
        assert_eq!(done.current_value(), 0);
    });
}

/// HQ-12: an engine with much to do has its users ring without a call; a queue whose doorbell was withdrawn is not among
/// them, however busy the engine is.
///
/// Mutant: `a-withdrawn-doorbell-connects-by-itself`.
#[test]
fn hq_12_a_busy_engine_gives_no_withdrawn_doorbell_back() {
    let policy = NodePolicy {
        slice_time: Duration::from_micros(20),
        ..NodePolicy::default()
    };
    on_every_bench(policy, |bench| {
        let withdrawn = bench.queue();
        let ddi = bench.adapter.os().ddi();
        ddi.withdraw_doorbell(withdrawn.os().doorbell().unwrap())
            .unwrap();
        let options = HwQueueOptions {
            ring_capacity: 8192,
            ..HwQueueOptions::default()
        };
        let mut busy = bench.device.create_hw_queue_with(options).unwrap();
        let fence = bench.fence(0);
        let (mut end, mut last) = (0, 0);
        until("the engine has more to do than a slice takes", || {
            // Who looks may have no core for as long as the engine is busy.
            if busy.progress_fence().current_value() == end {
                let mut list = CommandList::new();
                for value in last + 1..=last + 8000 {
                    list.signal(&fence, value);
                }
                last += 8000;
                end = busy.submit(&list).unwrap();
            }
            busy.doorbell_status() == DoorbellStatus::Connected
        });
        busy.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(
            withdrawn.doorbell_status(),
            DoorbellStatus::DisconnectedRetry
        );
    });
}
