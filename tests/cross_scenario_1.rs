//! Scenario 1 of the article, "Cross-adapter native fences": both adapters have them (XA-05). A test for each pair of its
//! table: what each driver sees of the fence, in what order, when the waiter goes on, and the list in which the OS keeps it
//! until then.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod two_benches;
}

use native_fence::os::{CrossStep, Witness};
use std::sync::{Arc, Mutex};
use support::bench::native;
use support::two_benches::{
    Before, By, NativeWait, Seen, cross_adapter, on_two_benches, seen, sees, signal_native,
    stands_for_a_while,
};

/// iGPU waits, dGPU signals; whichever made the fence.
fn cell(wait: By, signal: By) {
    on_two_benches(|igpu, dgpu| {
        for made_by_waiter in [false, true] {
            let (waited, signalled) = if made_by_waiter {
                cross_adapter(igpu, dgpu, 0)
            } else {
                let (made, opened) = cross_adapter(dgpu, igpu, 0);
                (opened, made)
            };
            let waits = NativeWait::standing(igpu, &waited, wait);
            let (sees, stands) = (sees(dgpu, &signalled), waits.watch());
            let before = Before::each_call(igpu, move || (sees(), stands_for_a_while(&stands)));
            let seen_there = signal_native(dgpu, &signalled, signal, waits.watch());
            waits.ends();
            assert_eq!(seen(&dgpu.spy, &signalled), seen_there);
            assert_eq!(seen(&igpu.spy, &waited), [Seen::Notified(10)]);
            assert_eq!(
                before.end(igpu),
                [(seen_there, true)],
                "the signaller's driver comes first, and the waiter last"
            );
        }
    });
}

/// Kills `nobody-propagates`, `the-other-adapter-is-given-a-value`, `released-before-they-are-notified`.
#[test]
fn xa_05_wait_from_gpu_signal_from_gpu() {
    cell(By::Gpu, By::Gpu);
}

/// Kills `a-cpu-signal-stays-on-its-adapter`, `other-engines-do-not-look`, `released-before-they-are-notified`.
#[test]
fn xa_05_wait_from_gpu_signal_from_cpu() {
    cell(By::Gpu, By::Cpu);
}

/// Kills `nobody-propagates`, `released-before-they-are-notified`.
#[test]
fn xa_05_wait_from_cpu_signal_from_gpu() {
    cell(By::Cpu, By::Gpu);
}

/// Kills `propagated-before-it-is-stored`, `released-before-they-are-notified`.
#[test]
fn xa_05_wait_from_cpu_signal_from_cpu() {
    cell(By::Cpu, By::Cpu);
}

/// What the OS tells of what it does, with the side of each step.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<(u64, CrossStep)>>);

impl Witness for Told {
    fn sees(&self, side: u64, step: CrossStep) {
        self.0.lock().unwrap().push((side, step));
    }
}

impl Told {
    /// Of one side what its driver has part in.
    fn of_driver(&self, side: u64) -> Vec<Seen> {
        let told = self.0.lock().unwrap();
        let own = told.iter().filter(|told| told.0 == side);
        own.filter_map(|(_, step)| match *step {
            CrossStep::Interrupted(value) => Some(Seen::Raised(value)),
            CrossStep::Stored(value) => Some(Seen::Stored(value)),
            CrossStep::Notified(value) => Some(Seen::Notified(value)),
            _ => None,
        })
        .collect()
    }
}

/// XA-05: what `nfence scenario` is told is what the drivers see, on each side.
///
/// Kills `who-watches-is-told-another-value`.
#[test]
fn xa_05_who_watches_is_told_what_the_drivers_see() {
    on_two_benches(|igpu, dgpu| {
        for signal in [By::Gpu, By::Cpu] {
            let (signalled, waited) = cross_adapter(dgpu, igpu, 0);
            let told = Arc::new(Told::default());
            let handle = signalled.share().unwrap();
            handle.watch(Arc::clone(&told) as _).unwrap();
            let waits = NativeWait::standing(igpu, &waited, By::Cpu);
            signal_native(dgpu, &signalled, signal, waits.watch());
            waits.ends();
            for (bench, fence) in [(dgpu, &signalled), (igpu, &waited)] {
                let side = native(fence).cross_side_number().unwrap();
                let seen = seen(&bench.spy, fence);
                assert!(!seen.is_empty());
                assert_eq!(told.of_driver(side), seen);
            }
        }
    });
}
