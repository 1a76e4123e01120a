//! Waits for several fences that begin at random moments against GPU signals in random order.
//!
//! A round is one value a fence: nothing is signalled beyond it until its waiters have returned, so
//! that a lost wake-up is not covered up by the next signal.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

#[path = "support/engines.rs"]
mod engines;

use engines::Random;
use native_fence::abi::Delivery;
use native_fence::gpu::NodePolicy;
use native_fence::{CommandList, Fence, WaitManyError};
use std::sync::mpsc;
use std::time::Duration;
use support::bench::{Bench, LONG, monitored_value, on_every_bench};

const WAITERS: usize = 3;
const FENCES: usize = 4;
const ROUNDS: u64 = 400;

/// A wait of one round: whether for any, of which fences, for which values, after how many turns.
#[derive(Clone, Debug)]
struct Wait {
    any: bool,
    of: Vec<(usize, u64)>,
    turns: u64,
}

impl Wait {
    /// Of one to six fences, some of them named twice.
    fn random(random: &mut Random, round: u64) -> Self {
        let fences = 1 + random.below(6);
        let fence = |_| {
            let value = 2 * round - random.below(2);
            (random.below(FENCES as u64) as usize, value)
        };
        let of = (0..fences).map(fence).collect();
        Self {
            any: random.below(2) == 0,
            of,
            turns: delay(random),
        }
    }

    /// Waits, longer than anybody waits for it: what comes late is lost, too. Looks whether what
    /// it was told is so: nobody rewinds.
    fn run(&self, fences: &[Fence]) -> Result<(), WaitManyError> {
        spin(self.turns);
        let waits = self.of.iter().map(|(at, value)| (&fences[*at], *value));
        let waits: Vec<_> = waits.collect();
        let is_there = |(fence, value): &(&Fence, u64)| fence.current_value() >= *value;
        if self.any {
            let came = Fence::wait_any(&waits, LONG * 2)?;
            assert!(is_there(&waits[came]), "{self:?}: {came}");
        } else {
            Fence::wait_all(&waits, LONG * 2)?;
            assert!(waits.iter().all(is_there), "{self:?}");
        }
        Ok(())
    }
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

fn run(bench: &Bench, random: &mut Random) {
    let fences: Vec<_> = (0..FENCES).map(|_| bench.fence(0)).collect();
    let mut queues: Vec<_> = (0..FENCES).map(|_| bench.queue()).collect();
    std::thread::scope(|scope| {
        let (sent, received) = mpsc::channel();
        let begin = [(); WAITERS].map(|()| {
            let (begin, begun) = mpsc::channel::<Wait>();
            let (sent, fences) = (sent.clone(), &fences);
            scope.spawn(move || {
                for wait in begun {
                    let ended = wait.run(fences);
                    if sent.send((wait, ended)).is_err() {
                        break;
                    }
                }
            });
            begin
        });
        for round in 1..=ROUNDS {
            for begin in &begin {
                begin.send(Wait::random(random, round)).unwrap();
            }
            // Each fence gets both of its values, the fences in a random order.
            let mut order: Vec<_> = (0..FENCES).collect();
            while !order.is_empty() {
                let at = order.swap_remove(random.below(order.len() as u64) as usize);
                spin(delay(random));
                let mut list = CommandList::new();
                list.signal(&fences[at], 2 * round - 1);
                list.signal(&fences[at], 2 * round);
                queues[at].submit_blocking(&list, LONG).unwrap();
            }
            for _ in 0..WAITERS {
                let (wait, ended) = received.recv_timeout(LONG).unwrap();
                assert_eq!(ended, Ok(()), "{wait:?} in round {round}");
            }
            for fence in &fences {
                assert_eq!(monitored_value(fence), u64::MAX, "in round {round}");
            }
        }
    });
}

/// No wake-up is lost and no part of a wait is left behind, whatever the moments and the order of
/// the signals; what a wait tells is so.
///
/// Open: every interleaving; this shows many.
///
/// Kills `an-end-before-the-sleep-is-slept-over`.
#[test]
fn nf_22_load_waits_for_many_against_signals_in_random_order() {
    let sleeps_at_once = NodePolicy {
        wait_spin: Duration::ZERO,
        ..NodePolicy::default()
    };
    let watches = NodePolicy {
        delivery: Delivery::Polled,
        ..sleeps_at_once
    };
    let mut random = Random(22);
    for policy in [NodePolicy::default(), sleeps_at_once, watches] {
        println!("{policy:?}");
        let seed = random.bits();
        on_every_bench(policy, |bench| run(bench, &mut Random(seed)));
    }
}
