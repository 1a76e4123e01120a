//! Load: CPU and GPU writers against readers of one fence, whose values must never be torn.
//!
//! `NFENCE_LOAD_ROUNDS` makes it longer.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "support/engines.rs"]
mod engines;
#[path = "support/until.rs"]
mod until;

use engines::on_every_engine;
use native_fence::{CommandList, Fence, SignalError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use until::{LONG, until};

const BATCH: u64 = 1000;
const READERS: usize = 2;
/// Looks of a reader before it gives the processor away.
const LOOKS: u64 = 256;
/// Values that the CPU stores alone, one close behind the other.
const CPU_ALONE: u64 = 20_000;

fn rounds() -> u64 {
    std::env::var("NFENCE_LOAD_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(20)
}

/// The `n`th value: both halves say the same, so a torn one says two things.
fn whole(n: u64) -> u64 {
    n << 32 | n
}

fn is_whole(value: u64) -> bool {
    value >> 32 == value & 0xffff_ffff
}

/// What one reader saw.
#[derive(Debug, Default)]
struct Seen {
    looks: u64,
    changes: u64,
    last: u64,
}

fn read_until(fence: &Fence, done: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    loop {
        let last_looks = done.load(Ordering::Acquire);
        for _ in 0..LOOKS {
            let value = fence.current_value();
            assert!(is_whole(value), "a torn value: {value:#018x}");
            seen.changes += u64::from(value != seen.last);
            seen.last = value;
        }
        seen.looks += LOOKS;
        if last_looks {
            return seen;
        }
        thread::yield_now();
    }
}

/// NF-01: CurrentValue is 64 bits, aligned to 8 bytes, and never torn. Engine and CPU store values
/// whose halves are the same; threads that read the user's mapping see whole values alone, and so
/// does the OS, whose refusals name the value that stood.
///
/// The CPU's signals race the engine's on purpose: which value stands last is then open (NF-06),
/// and a signal that is overtaken is refused as backward (NF-21).
///
/// Open: what the GPU reads. No packet copies a value out; a kernel that does would show it.
///
/// Mutants: `gpu-stores-half-a-value`, `cpu-stores-half-a-value`.
#[test]
fn nf_01_no_value_is_ever_torn() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let (_, offset) = fence.object().fence().current_value_place();
        assert_eq!(offset % 8, 0);
        let mut queue = device.create_hw_queue().unwrap();
        let (done, next) = (AtomicBool::new(false), AtomicU64::new(1));
        let cpu_stored = AtomicU64::new(0);
        thread::scope(|scope| {
            let readers: Vec<_> = (0..READERS)
                .map(|_| scope.spawn(|| read_until(&fence, &done)))
                .collect();
            let mut list = CommandList::new();
            let mut engine_stores = |rounds| {
                for _ in 0..rounds {
                    list.clear();
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    for n in first..first + BATCH {
                        list.signal(&fence, whole(n));
                    }
                    let value = queue.submit(&list).unwrap();
                    queue.progress_fence().wait(value, LONG).unwrap();
                }
            };
            // The engine alone, then both, then the CPU alone.
            engine_stores(2 * rounds());
            let cpu = scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    match fence.signal(whole(n)) {
                        Ok(()) => {
                            cpu_stored.fetch_add(1, Ordering::Release);
                        }
                        // The engine was faster.
                        Err(SignalError::Backward { current }) => {
                            assert!(is_whole(current), "a torn value: {current:#018x}");
                        }
                        Err(error) => panic!("{error}"),
                    }
                    if n.is_multiple_of(64) {
                        thread::yield_now();
                    }
                }
            });
            engine_stores(rounds());
            let before = cpu_stored.load(Ordering::Acquire);
            until("the CPU's signals alone are stored", || {
                cpu_stored.load(Ordering::Acquire) > before + CPU_ALONE
            });
            done.store(true, Ordering::Release);
            cpu.join().unwrap();
            let stored = cpu_stored.load(Ordering::Acquire);
            for reader in readers {
                let seen = reader.join().unwrap();
                println!("{seen:?}, {stored} CPU signals");
                assert!(seen.changes > 0, "it saw values change: {seen:?}");
            }
        });
    });
    assert_eq!(
        native_fence::vulkan::validation::messages(),
        Vec::<String>::new()
    );
}
