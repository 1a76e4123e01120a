//! Fewer doorbells than queues (HQ-13): the driver takes one away, and every queue goes on.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{DoorbellStatus, LogType};
use native_fence::gpu::{EngineState, NodePolicy};
use native_fence::kmd::DriverOptions;
use native_fence::{CommandList, HwQueue};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use support::bench::{
    Bench, Call, LONG, Moment, complete, monitored_value, on_benches_with, until, until_completed,
};

fn with_doorbells(doorbells: u32, body: impl Fn(&Bench)) {
    let options = DriverOptions {
        doorbells: NonZeroU32::new(doorbells),
        ..DriverOptions::default()
    };
    on_benches_with(1, NodePolicy::default(), &options, body);
}

/// Doorbells that the driver has taken away, each as its queue's place in `queues`.
fn taken(bench: &Bench, queues: &[&HwQueue]) -> Vec<usize> {
    let taken = |call| match call {
        Call::DoorbellTaken(taken) => {
            let is_its = |queue: &&HwQueue| queue.os().doorbell() == Some(taken.doorbell);
            let place = queues.iter().position(is_its).unwrap();
            assert_eq!(queues[place].os().handle(), taken.hw_queue);
            Some(place)
        }
        _ => None,
    };
    bench.spy.calls().into_iter().filter_map(taken).collect()
}

fn is_connected(queue: &HwQueue) -> bool {
    matches!(
        queue.doorbell_status(),
        DoorbellStatus::Connected | DoorbellStatus::ConnectedNotify
    )
}

/// Signals of a queue's log, which tells of a packet that ran twice.
fn signals(bench: &Bench, queue: &HwQueue) -> u64 {
    bench.spy.log(queue.os().handle(), LogType::Signals).total()
}

/// HQ-13: three queues by turns over one doorbell, and over two, on one thread. Each submission that
/// finds its doorbell gone connects it and takes that of the queue which has been quiet longest; all of
/// them are executed once, in order.
///
/// Kills `a-taken-doorbell-is-not-told`, `the-busiest-doorbell-is-taken` and
/// `doorbells-are-never-short`.
#[test]
fn hq_13_queues_go_on_by_turns_over_fewer_doorbells() {
    for doorbells in [1, 2] {
        with_doorbells(doorbells, |bench| {
            let mut queues: Vec<_> = (0..3).map(|_| bench.queue()).collect();
            let fences: Vec<_> = (0..3).map(|_| bench.fence(0)).collect();
            for round in 1..=20 {
                for (queue, fence) in queues.iter_mut().zip(&fences) {
                    complete(queue, CommandList::new().signal(fence, round));
                    assert_eq!(fence.current_value(), round);
                    assert!(is_connected(queue), "it has just rung");
                }
            }
            let [a, b, c] = &queues[..] else {
                unreachable!()
            };
            let taken = taken(bench, &[a, b, c]);
            // Every round goes through all three, so all three lose theirs again and again.
            for queue in 0..3 {
                let times = taken.iter().filter(|taken| **taken == queue).count();
                assert!(times >= 5, "queue {queue}: {taken:?}");
            }
            for (queue, fence) in queues.iter().zip(&fences) {
                assert_eq!(signals(bench, queue), 40, "each signal and progress, once");
                assert_eq!(fence.current_value(), 20);
            }
            let counted = bench.adapter.os().interrupts().doorbells_taken();
            assert_eq!(counted, taken.len() as u64);
        });
    }
}

/// HQ-13: the doorbell that has been quiet longest is taken, not the one that was connected first and
/// still rings.
///
/// Kills `the-busiest-doorbell-is-taken`.
#[test]
fn hq_13_the_doorbell_that_has_been_quiet_longest_is_taken() {
    with_doorbells(3, |bench| {
        let [mut first, mut rings, mut quiet, mut last] = [(); 4].map(|()| {
            bench
                .device
                .create_hw_queue_disconnected(native_fence::HwQueueOptions::default())
                .unwrap()
        });
        let fence = bench.fence(0);
        let mut value = 0;
        let mut signal = |queue: &mut HwQueue| {
            value += 1;
            complete(queue, CommandList::new().signal(&fence, value));
        };
        for _ in 0..3 {
            signal(&mut first);
            signal(&mut rings);
            signal(&mut quiet);
        }
        // A choice, which sees that all three have rung: the one goes that has had its doorbell longest.
        signal(&mut last);
        assert_eq!(taken(bench, &[&first, &rings, &quiet, &last]), [0]);
        for _ in 0..3 {
            signal(&mut rings);
            signal(&mut last);
        }
        // `rings` has had its doorbell longer than `quiet`, which has not rung since.
        signal(&mut first);
        assert_eq!(taken(bench, &[&first, &rings, &quiet, &last]), [0, 2]);
    });
}

/// HQ-13: the status first, then the disconnect. When the OS has said DISCONNECTED_RETRY, the queue still
/// runs, and what is rung for until then is executed without a connect.
///
/// Kills `a-taken-doorbell-is-not-told` and `a-doorbell-is-let-go-before-its-status`.
#[test]
fn hq_13_the_status_is_read_before_the_disconnect() {
    with_doorbells(1, |bench| {
        let mut first = bench.queue();
        let mut second = bench.queue();
        let (fence, other) = (bench.fence(0), bench.fence(0));
        for value in 1..=3 {
            complete(&mut first, CommandList::new().signal(&fence, value));
        }
        let before = bench.spy.connects(first.os().handle());
        let progress = first.os().memory().progress.clone();
        let status = move || {
            let at = native_fence::abi::QueueProgress::DOORBELL_STATUS;
            DoorbellStatus::from_word(progress.word(at).observe())
        };
        let seen = Arc::new(AtomicU64::new(u64::MAX));
        bench.spy.once(Moment::BeforeDoorbellIsTaken, {
            let status = status.clone();
            move || {
                assert_ne!(
                    status(),
                    DoorbellStatus::DisconnectedRetry,
                    "nobody was told"
                );
            }
        });
        // The packets are written before the status changes, and are not rung for.
        let value = first
            .queue_commands(CommandList::new().signal(&fence, 4))
            .unwrap();
        let ran = first.progress_fence().clone();
        bench.spy.once(Moment::AfterStatusOfTakenDoorbell, {
            let seen = Arc::clone(&seen);
            move || seen.store(status() as u64, Ordering::Release)
        });
        complete(&mut second, CommandList::new().signal(&other, 1));
        complete(&mut second, CommandList::new().signal(&other, 2));
        let retry = DoorbellStatus::DisconnectedRetry;
        assert_eq!(seen.load(Ordering::Acquire), retry as u64);
        assert_eq!(first.doorbell_status(), retry);
        until("what was in the ring is executed", || {
            ran.current_value() >= value
        });
        assert_eq!(fence.current_value(), 4);
        assert_eq!(bench.spy.connects(first.os().handle()), before);

        // It leaves when a slice has ended in which it had nothing more; what is not rung for after that
        // stays, beside a queue that runs.
        bench.until_parked();
        let stays = first
            .queue_commands(CommandList::new().signal(&fence, 5))
            .unwrap();
        for value in 3..=8 {
            complete(&mut second, CommandList::new().signal(&other, value));
        }
        assert_eq!(fence.current_value(), 4);
        first.ring_doorbell().unwrap();
        until_completed(&first, stays);
        assert_eq!(bench.spy.connects(first.os().handle()), before + 1);
    });
}

/// HQ-13: a queue that stands at a wait when its doorbell is taken is brought back by what it waits for:
/// the CPU's signal while the engine is parked, and the other queue's, without a connect.
///
/// Kills `a-queue-leaves-at-its-wait` and `a-taken-doorbell-is-not-looked-at`.
#[test]
fn hq_13_a_queue_that_waits_is_brought_back_without_its_doorbell() {
    with_doorbells(1, |bench| {
        let mut waits = bench.queue();
        let mut other = bench.queue();
        let (gate, fence, elsewhere) = (bench.fence(0), bench.fence(0), bench.fence(0));
        let mut rounds = 0;
        for by_cpu in [true, false, true, false] {
            rounds += 1;
            let mut list = CommandList::new();
            list.wait(&gate, rounds).signal(&fence, rounds);
            let value = waits.submit(&list).unwrap();
            let connects = bench.spy.connects(waits.os().handle());
            // Until its doorbell is gone.
            until("the doorbell is taken", || {
                let next = elsewhere.current_value() + 1;
                complete(&mut other, CommandList::new().signal(&elsewhere, next));
                waits.doorbell_status() == DoorbellStatus::DisconnectedRetry
            });
            bench.until_parked();
            assert_eq!(
                monitored_value(&gate),
                rounds - 1,
                "the OS waits in its stead"
            );
            if by_cpu {
                gate.signal(rounds).unwrap();
            } else {
                complete(&mut other, CommandList::new().signal(&gate, rounds));
            }
            until_completed(&waits, value);
            assert_eq!(fence.current_value(), rounds);
            assert_eq!(bench.spy.connects(waits.os().handle()), connects);
        }
        assert_eq!(signals(bench, &waits), 2 * rounds);
    });
}

/// HQ-13: nobody's ring goes on for ever. A queue that was only connected, and whose user may be about to
/// ring, keeps its doorbell from who connects, who then runs by calls; the first of its calls takes it.
///
/// Kills `a-fresh-doorbell-is-taken` and `a-fresh-doorbell-is-kept-for-ever`.
#[test]
fn hq_13_who_is_turned_away_runs_by_calls() {
    with_doorbells(1, |bench| {
        let idle = bench.queue();
        let mut asks = bench
            .device
            .create_hw_queue_disconnected(native_fence::HwQueueOptions::default())
            .unwrap();
        let fence = bench.fence(0);
        assert!(is_connected(&idle));
        asks.connect_doorbell().unwrap();
        assert!(is_connected(&idle), "its user may be about to ring");
        assert_eq!(asks.doorbell_status(), DoorbellStatus::ConnectedNotify);
        assert!(taken(bench, &[&idle, &asks]).is_empty());

        complete(&mut asks, CommandList::new().signal(&fence, 1));
        assert_eq!(bench.spy.notifies(asks.os().handle()), 1);
        until("the call finds a doorbell", || {
            taken(bench, &[&idle, &asks]) == [0]
        });
        assert_eq!(idle.doorbell_status(), DoorbellStatus::DisconnectedRetry);
        complete(&mut asks, CommandList::new().signal(&fence, 2));
        assert_eq!(taken(bench, &[&idle, &asks]), [0]);
    });
}

/// HQ-13: a command that is rung for after the driver has chosen the doorbell and before the OS has said so,
/// while the engine parks: its user reads CONNECTED and goes on, so the driver looks for it.
///
/// Kills `a-taken-doorbell-is-not-looked-at`.
#[test]
fn hq_13_a_command_that_was_rung_for_while_the_engine_parked_is_executed() {
    with_doorbells(1, |bench| {
        let mut losing = bench.queue();
        let mut calling = bench
            .device
            .create_hw_queue_disconnected(native_fence::HwQueueOptions::default())
            .unwrap();
        let (fence, other) = (bench.fence(0), bench.fence(0));
        let (done, progress) = (other.clone(), losing.progress_fence().clone());
        calling.connect_doorbell().unwrap();
        let (back, queues) = channel();
        bench.spy.once(Moment::BeforeDoorbellIsTaken, {
            let (driver, fence) = (bench.parking_driver(), fence.clone());
            move || {
                until("what was called for is executed", || {
                    done.current_value() == 1
                });
                until("the engine parks", || {
                    driver.engine_state(0) == Some(EngineState::Parked)
                });
                assert!(is_connected(&losing));
                losing
                    .queue_commands(CommandList::new().signal(&fence, 1))
                    .unwrap();
                back.send(losing).unwrap();
            }
        });
        calling
            .submit(CommandList::new().signal(&other, 1))
            .unwrap();
        let losing: HwQueue = queues.recv_timeout(LONG).unwrap();
        until("what was rung for is executed", || {
            progress.current_value() == 1
        });
        assert!(!is_connected(&losing));
        assert_eq!(fence.current_value(), 1);
    });
}

/// HQ-13 under load: streams of three queues, each of a thread, over one doorbell and over two; partners
/// wait for each other, so that doorbells are taken from queues that stand at waits. Each command is
/// executed once and in order, and every thread comes to its end.
///
/// Mutants: those of the tests above, which kill them for certain.
#[test]
fn hq_13_streams_of_several_threads_lose_nothing() {
    const ROUNDS: u64 = 150;
    for doorbells in [1, 2] {
        with_doorbells(doorbells, |bench| {
            let queues: Vec<_> = (0..3).map(|_| bench.queue()).collect();
            let fences: Vec<_> = (0..3).map(|_| bench.fence(0)).collect();
            let begin = Barrier::new(queues.len());
            let queues: Vec<_> = std::thread::scope(|scope| {
                let threads = queues.into_iter().enumerate().map(|(place, mut queue)| {
                    let (fences, begin) = (&fences, &begin);
                    scope.spawn(move || {
                        begin.wait();
                        for round in 1..=ROUNDS {
                            let mut list = CommandList::new();
                            // Not before the one behind it has made the round before.
                            list.wait(&fences[(place + 1) % 3], round - 1);
                            list.signal(&fences[place], round);
                            let value = queue.submit_blocking(&list, LONG).unwrap();
                            if round % 16 == 0 {
                                queue.progress_fence().wait(value, LONG).unwrap();
                            }
                        }
                        queue.progress_fence().wait(ROUNDS, LONG).unwrap();
                        queue
                    })
                });
                let threads: Vec<_> = threads.collect();
                threads.into_iter().map(|t| t.join().unwrap()).collect()
            });
            for (queue, fence) in queues.iter().zip(&fences) {
                assert_eq!(fence.current_value(), ROUNDS);
                assert_eq!(signals(bench, queue), 2 * ROUNDS);
            }
            assert_eq!(bench.counters().backward_signals, 0, "in order");
            println!(
                "{} taken",
                bench.adapter.os().interrupts().doorbells_taken()
            );
        });
    }
}
