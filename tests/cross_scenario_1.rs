//! Scenario 1 of the article, "Cross-adapter native fences": both adapters have them (XA-05). A test for each pair of its
//! table: what each driver sees of the fence, in what order, and the list in which the OS keeps the waiter.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod two_benches;
}

use support::two_benches::{
    By, NativeWait, Seen, cross_adapter, on_two_benches, seen, seen_before, signal_native,
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
            let before = seen_before(igpu, dgpu, &signalled);
            let seen_there = signal_native(dgpu, &signalled, signal, || waits.stands());
            waits.ends();
            assert_eq!(seen(&dgpu.spy, &signalled), seen_there);
            assert_eq!(seen(&igpu.spy, &waited), [Seen::Notified(10)]);
            assert_eq!(
                *before.lock().unwrap(),
                [seen_there],
                "the signaller's driver comes first"
            );
            igpu.spy.unhook();
        }
    });
}

/// Kills `nobody-propagates`, `the-other-adapter-is-given-a-value`.
#[test]
fn xa_05_wait_from_gpu_signal_from_gpu() {
    cell(By::Gpu, By::Gpu);
}

/// Kills `a-cpu-signal-stays-on-its-adapter`, `other-engines-do-not-look`.
#[test]
fn xa_05_wait_from_gpu_signal_from_cpu() {
    cell(By::Gpu, By::Cpu);
}

/// Kills `nobody-propagates`.
#[test]
fn xa_05_wait_from_cpu_signal_from_gpu() {
    cell(By::Cpu, By::Gpu);
}

/// Kills `propagated-before-it-is-stored`.
#[test]
fn xa_05_wait_from_cpu_signal_from_cpu() {
    cell(By::Cpu, By::Cpu);
}
