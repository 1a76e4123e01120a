//! CPU threads that begin to wait at random moments against GPU signals at random moments.
//!
//! A round is one value: nothing is signalled beyond it until its waiters have returned, so that a
//! lost wake-up is not covered up by the next signal. `NFENCE_ARMS` sets how many waits there are.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

#[path = "support/engines.rs"]
mod engines;

use engines::Random;
use native_fence::CommandList;
use native_fence::gpu::NodePolicy;
use std::sync::mpsc;
use std::time::Duration;
use support::bench::{Bench, LONG, on_every_bench, until};

const WAITERS: usize = 3;

fn arms() -> u64 {
    let asked = std::env::var("NFENCE_ARMS").ok();
    asked.map_or(6000, |arms| arms.parse().expect("NFENCE_ARMS is a number"))
}

/// A delay: none, shorter than a call, about a slice, longer than parking takes.
fn delay(random: &mut Random) -> u64 {
    let most = *random.pick(&[1, 100, 3_000, 30_000]);
    random.below(most)
}

fn spin(turns: u64) {
    for _ in 0..turns {
        std::hint::spin_loop();
    }
}

/// The default, and others in which each length of each time comes once.
fn policies() -> [NodePolicy; 5] {
    let micros = |slice, idle, spin| NodePolicy {
        slice_time: Duration::from_micros(slice),
        idle_window: Duration::from_micros(idle),
        wait_spin: Duration::from_micros(spin),
        ..NodePolicy::default()
    };
    [
        NodePolicy::default(),
        micros(0, 10, 0),
        micros(20, 1_000, 100),
        micros(500, 0, 10),
        micros(4_000, 50, 0),
    ]
}

/// Rounds on one adapter: per round each fence gets its value from a queue of its own, and each
/// has a waiter.
fn run(bench: &Bench, rounds: u64, random: &mut Random) {
    let device = bench.adapter.create_device();
    let fences: Vec<_> = (0..WAITERS)
        .map(|_| device.create_fence(0).unwrap())
        .collect();
    let mut queues: Vec<_> = (0..WAITERS)
        .map(|_| device.create_hw_queue().unwrap())
        .collect();
    std::thread::scope(|scope| {
        let (sent, received) = mpsc::channel();
        let begin: Vec<_> = fences
            .iter()
            .map(|fence| {
                let (begin, begun) = mpsc::channel();
                let sent = sent.clone();
                scope.spawn(move || {
                    for (value, turns) in begun {
                        spin(turns);
                        if sent.send((value, fence.wait(value, LONG))).is_err() {
                            break;
                        }
                    }
                });
                begin
            })
            .collect();
        for round in 1..=rounds {
            // Two values a round; a waiter waits for the first or the last of them.
            let last = round * 2;
            for begin in &begin {
                begin.send((last - random.below(2), delay(random))).unwrap();
            }
            for at in 0..WAITERS {
                spin(delay(random));
                let mut list = CommandList::new();
                for _ in 0..random.below(20) {
                    list.nop();
                }
                list.signal(&fences[at], last - 1).signal(&fences[at], last);
                queues[at].submit_blocking(&list, LONG).unwrap();
            }
            for _ in 0..WAITERS {
                let (value, result) = received.recv_timeout(LONG * 2).unwrap();
                assert_eq!(result, Ok(()), "the wait for {value} in round {round}");
            }
        }
        drop(begin);
    });
    for fence in &fences {
        assert_eq!(fence.current_value(), rounds * 2);
        // Who is released may return before the OS has posted.
        until("no waiter is monitored", || {
            fence.object().fence().monitored_value() == u64::MAX
        });
    }
}

/// No wake-up is lost, whatever the moments of waits and signals, and however slices are cut and
/// engines parked between.
///
/// Open: every interleaving; this shows many. Signals of one fence by two engines: there is one.
///
/// Kills `posts-do-not-reach-the-engine`.
#[test]
fn nf_06_load_random_arms_lose_no_wake_up() {
    let mut random = Random(1);
    let policies = policies();
    let rounds = (arms() / (2 * policies.len() as u64 * WAITERS as u64)).max(1);
    for policy in policies {
        println!("{policy:?}");
        let seed = random.bits();
        on_every_bench(policy, |bench| run(bench, rounds, &mut Random(seed)));
    }
}

/// Where the order is left open the last store stands, and backward stores are counted.
///
/// Kills `backward-stores-are-not-counted`.
#[test]
fn nf_06_the_last_store_stands_and_backward_stores_are_counted() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = bench.adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let mut list = CommandList::new();
        for value in [5, 3, 4, 4, 9, 1, 2] {
            list.signal(&fence, value);
        }
        let done = queue.submit(&list).unwrap();
        queue.progress_fence().wait(done, LONG).unwrap();
        assert_eq!(fence.current_value(), 2);
        // Counted when the slices end, for which the waiter need not have waited.
        bench.until_parked();
        assert_eq!(bench.adapter.node_counters().backward_signals, 2);
    });
}
