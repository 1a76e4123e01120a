//! CPU threads that begin to wait at random moments against GPU signals at random moments.
//!
//! Nothing is signalled beyond a value until its waiter has returned, so that a lost wake-up is not
//! covered up by the next signal. `NFENCE_ARMS` sets how many waits there are, `NFENCE_ARMS_ON=shader`
//! leaves the model out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

#[path = "support/engines.rs"]
mod engines;

use engines::Random;
use hdrhistogram::Histogram;
use native_fence::abi::Delivery;
use native_fence::gpu::{EngineUnit, NodePolicy};
use native_fence::{CommandList, Fence, HwQueue};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use support::bench::{Bench, LONG, native, on_benches_of, on_every_bench, until};

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

/// The default, and others in which each length of each time comes once; then those that watch.
fn policies() -> [NodePolicy; 7] {
    let micros = |slice, idle, spin| NodePolicy {
        slice_time: Duration::from_micros(slice),
        idle_window: Duration::from_micros(idle),
        company_window: Duration::from_micros(idle * 3),
        crowded_window: Duration::from_micros(idle / 10),
        wait_spin: Duration::from_micros(spin),
        ..NodePolicy::default()
    };
    let polled = |policy| NodePolicy {
        delivery: Delivery::Polled,
        ..policy
    };
    [
        NodePolicy::default(),
        micros(0, 10, 0),
        micros(20, 1_000, 100),
        micros(500, 0, 10),
        micros(4_000, 50, 0),
        polled(NodePolicy::default()),
        polled(micros(50, 10, 0)),
    ]
}

/// How long waits lasted from when their value was submitted, or from when they began if that was
/// later, to their return.
struct Latencies(Histogram<u64>);

impl Latencies {
    fn new() -> Self {
        Self(Histogram::new(3).unwrap())
    }

    fn record(&mut self, from: Instant, to: Instant) {
        let nanos = to.saturating_duration_since(from).as_nanos();
        self.0.record(u64::try_from(nanos).unwrap().max(1)).unwrap();
    }

    fn print(&self) {
        let micros = |quantile| self.0.value_at_quantile(quantile) / 1000;
        println!(
            "{} waits: p50 {} µs, p90 {}, p99 {}, p99.9 {}, max {}",
            self.0.len(),
            micros(0.5),
            micros(0.9),
            micros(0.99),
            micros(0.999),
            micros(1.0)
        );
    }
}

/// What signals a fence: a queue of each engine. The second goes on from the first, since the order
/// of signals is the user's to keep.
struct Signaller {
    fence: Fence,
    queues: Vec<HwQueue>,
}

impl Signaller {
    /// Signals `value`, when the one before is there, and then `then`, if there is such a one: with
    /// two engines by the other's queue, which stands at a wait for the first.
    fn signal(&mut self, value: u64, then: Option<u64>, random: &mut Random) {
        let Self { fence, queues } = self;
        let mut list = CommandList::new();
        list.wait(fence, value - 1);
        for _ in 0..random.below(20) {
            list.nop();
        }
        list.signal(fence, value);
        // By chance, so that each engine is the one that waits.
        let first = random.below(queues.len() as u64) as usize;
        let second = queues.len() - 1 - first;
        match then {
            Some(then) if first == second => {
                list.signal(fence, then);
            }
            Some(then) => {
                let mut list = CommandList::new();
                list.wait(fence, value).signal(fence, then);
                queues[second].submit_blocking(&list, LONG).unwrap();
                spin(delay(random));
            }
            None => {}
        }
        queues[first].submit_blocking(&list, LONG).unwrap();
    }
}

/// Rounds on one adapter: per round each fence gets two values from queues of its own, and has a
/// waiter for one of them. The second is not signalled before a waiter for the first has returned.
fn run(bench: &Bench, rounds: u64, random: &mut Random, latencies: &mut Latencies) {
    let nodes = bench.engines.len() as u32;
    let signaller = || Signaller {
        fence: bench.fence(0),
        queues: (0..nodes).map(|node| bench.queue_on(node)).collect(),
    };
    let mut signallers: Vec<_> = (0..WAITERS).map(|_| signaller()).collect();
    let fences: Vec<_> = signallers.iter().map(|s| s.fence.clone()).collect();
    std::thread::scope(|scope| {
        let (sent, received) = mpsc::channel();
        let waiter = |at: usize| {
            let (begin, begun) = mpsc::channel();
            let (sent, fence) = (sent.clone(), &fences[at]);
            scope.spawn(move || {
                for (value, turns) in begun {
                    spin(turns);
                    let from = Instant::now();
                    let result = fence.wait(value, LONG);
                    if sent
                        .send((at, value, from, result, Instant::now()))
                        .is_err()
                    {
                        break;
                    }
                }
            });
            begin
        };
        let begin: Vec<_> = (0..WAITERS).map(waiter).collect();
        for round in 1..=rounds {
            let last = round * 2;
            let waits_for_last = [(); WAITERS].map(|()| random.below(2) == 1);
            for (begin, for_last) in begin.iter().zip(waits_for_last) {
                let value = last - u64::from(!for_last);
                begin.send((value, delay(random))).unwrap();
            }
            let mut submitted = Vec::new();
            for (signaller, for_last) in signallers.iter_mut().zip(waits_for_last) {
                spin(delay(random));
                submitted.push(Instant::now());
                signaller.signal(last - 1, for_last.then_some(last), random);
            }
            for _ in 0..WAITERS {
                let (at, value, from, result, to) = received.recv_timeout(LONG * 2).unwrap();
                assert_eq!(result, Ok(()), "the wait for {value} in round {round}");
                latencies.record(from.max(submitted[at]), to);
                if !waits_for_last[at] {
                    signallers[at].signal(last, None, random);
                }
            }
        }
        drop(begin);
    });
    for fence in &fences {
        until("the last value is stored", || {
            fence.current_value() == rounds * 2
        });
    }
    // Who is released may return before the OS has posted; and an engine that has gone on from its
    // wait, before the OS knows.
    bench.until_told();
    for fence in &fences {
        until("no waiter is monitored", || {
            native(fence).monitored_value() == u64::MAX
        });
    }
}

fn random_arms(engines: u32, seed: u64) {
    let mut random = Random(seed);
    let policies = policies();
    let shader_alone = std::env::var_os("NFENCE_ARMS_ON").is_some_and(|on| on == "shader");
    let benches = if shader_alone { 1 } else { 2 };
    let rounds = arms().div_ceil(benches * policies.len() as u64 * WAITERS as u64);
    for policy in policies {
        println!("{engines} engines, {policy:?}");
        let seed = random.bits();
        let body = |bench: &Bench| {
            let mut latencies = Latencies::new();
            run(bench, rounds, &mut Random(seed), &mut latencies);
            latencies.print();
        };
        if shader_alone {
            body(&Bench::of(engines, None, policy));
        } else {
            on_benches_of(engines, policy, body);
        }
    }
}

/// No wake-up is lost, whatever the moments of waits and signals, and however slices are cut and
/// engines parked between.
///
/// Open: every interleaving; this shows many, and loom all of a few small cases.
///
/// Kills `posts-do-not-reach-the-engine`.
#[test]
fn nf_06_load_random_arms_lose_no_wake_up() {
    random_arms(1, 1);
}

/// The same where two engines signal one fence by turns, each of which stands at a wait for the
/// other's value while the CPU's waits come and go.
///
/// Kills `posts-reach-the-first-engine-alone`.
#[test]
fn nf_08_load_random_arms_of_two_engines_lose_no_wake_up() {
    random_arms(2, 2);
}

/// The same with engines of every unit: queues of a device that may be one, which run by turns, and
/// devices that share the driver's threads.
///
/// Kills `engines-of-one-queue-are-refused`.
#[test]
fn nf_08_load_random_arms_lose_no_wake_up_whatever_an_engine_is_made_of() {
    for unit in [EngineUnit::Queue, EngineUnit::Device, EngineUnit::Instance] {
        println!("{unit:?}");
        let mut latencies = Latencies::new();
        let bench = Bench::of(2, Some(unit), NodePolicy::default());
        assert_eq!(bench.engines.len(), 2);
        run(&bench, 100, &mut Random(3), &mut latencies);
        latencies.print();
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
