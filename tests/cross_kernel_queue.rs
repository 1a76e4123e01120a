//! Queues in kernel mode on an adapter with native fences, which wait for a cross-adapter fence or signal it (XA-09): as in
//! scenarios 2a and 2b, beside another adapter with native fences and beside one without. The adapter's own queues of user
//! mode may wait too, so it is notified as the other is.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod two_benches;
}

use native_fence::os::WaitList;
use native_fence::{CommandList, Fence, KernelQueue, MonitoredFence};
use support::bench::{Bench, LONG, monitored, native, until_completed};
use support::two_benches::{
    Before, By, MonitoredWait, NativeWait, Seen, cross_adapter, knows_native_fences, of_two_kinds,
    on_two_benches, on_two_kinds, seen, signal_native, stands_for_a_while, two_drivers,
};

/// A queue in kernel mode that waits for 10, and the value of its end.
fn waiting_in_kernel_mode(bench: &Bench, fence: &Fence) -> (KernelQueue, u64) {
    let mut queue = bench.device.create_kernel_queue().unwrap();
    queue.wait_native(fence, 10).unwrap();
    let end = queue.submit(CommandList::new().nop()).unwrap();
    assert_eq!(native(fence).standing(), [(WaitList::SoftwareContexts, 10)]);
    bench.spy.take();
    (queue, end)
}

/// Says whether it does, wherever it is asked.
fn stands((queue, end): &(KernelQueue, u64)) -> Box<dyn Fn() -> bool + Send + Sync> {
    let (progress, end) = (queue.progress_fence().clone(), *end);
    Box::new(move || progress.current_value() < end)
}

fn ends((queue, end): &(KernelQueue, u64), fence: &Fence) {
    assert_eq!(queue.progress_fence().wait(*end, LONG), Ok(()));
    assert_eq!(native(fence).standing(), []);
}

fn waits(signal: By) {
    on_two_benches(|igpu, dgpu| {
        let (waited, signalled) = cross_adapter(igpu, dgpu, 0);
        let waits = waiting_in_kernel_mode(igpu, &waited);
        let still = stands(&waits);
        let before = Before::each_call(igpu, move || stands_for_a_while(&still));
        let seen_there = signal_native(dgpu, &signalled, signal, stands(&waits));
        ends(&waits, &waited);
        assert_eq!(seen(&dgpu.spy, &signalled), seen_there);
        assert_eq!(seen(&igpu.spy, &waited), [Seen::Notified(10)]);
        assert_eq!(before.end(igpu), [true], "the waiter goes on last");
    });
}

/// Kills `queues-are-taken-for-threads`.
#[test]
fn xa_09_a_kernel_mode_queue_waits_for_a_signal_from_gpu() {
    waits(By::Gpu);
}

/// Kills `a-cpu-signal-stays-on-its-adapter`.
#[test]
fn xa_09_a_kernel_mode_queue_waits_for_a_signal_from_cpu() {
    waits(By::Cpu);
}

/// A queue in kernel mode that has a signal of 10 in it, behind a gate.
fn signalling_in_kernel_mode(bench: &Bench, fence: &Fence) -> (KernelQueue, MonitoredFence) {
    let gate = monitored::starts_at(bench, 0);
    let mut queue = bench.device.create_kernel_queue().unwrap();
    queue.wait(&gate, 1).unwrap();
    queue.signal_native(fence, 10).unwrap();
    (queue, gate)
}

fn signals(wait: By) {
    on_two_benches(|igpu, dgpu| {
        let (signalled, waited) = cross_adapter(igpu, dgpu, 0);
        let mut beside = igpu.queue();
        let beside_end = beside
            .submit(CommandList::new().wait(&signalled, 10))
            .unwrap();
        let (_queue, gate) = signalling_in_kernel_mode(igpu, &signalled);
        let waits = NativeWait::standing(dgpu, &waited, wait);
        igpu.until_parked();
        igpu.spy.take();
        assert!(
            stands_for_a_while(&waits.watch()),
            "it is not at the head of its software context"
        );
        let still = waits.watch();
        let before = Before::each_call(dgpu, move || stands_for_a_while(&still));
        gate.signal(1).unwrap();
        waits.ends();
        until_completed(&beside, beside_end);
        assert_eq!(seen(&igpu.spy, &signalled), [Seen::Notified(10)]);
        assert_eq!(seen(&dgpu.spy, &waited), [Seen::Notified(10)]);
        assert_eq!(before.end(dgpu), [true], "the waiter goes on last");
    });
}

/// Kills `a-queue-in-kernel-mode-has-the-driver-store`.
#[test]
fn xa_09_a_kernel_mode_queue_signals_a_wait_from_gpu() {
    signals(By::Gpu);
}

/// Kills `a-queue-in-kernel-mode-has-the-driver-store`.
#[test]
fn xa_09_a_kernel_mode_queue_signals_a_wait_from_cpu() {
    signals(By::Cpu);
}

/// XA-09: as in scenario 2b, with a waiter in kernel mode: the signal is one of a queue or a thread of the adapter without
/// native fences.
///
/// Kills `monitored-signals-stay-on-their-adapter`, `propagated-before-the-os-stores-it`.
#[test]
fn xa_09_a_kernel_mode_queue_waits_for_an_adapter_without_native_fences() {
    on_two_kinds(|without, with| {
        for (made_native, signal) in [(true, By::Gpu), (false, By::Cpu)] {
            let (signalled, waited) = of_two_kinds(without, with, made_native);
            let waits = waiting_in_kernel_mode(with, &waited);
            let (stored, still) = (signalled.clone(), stands(&waits));
            let before = Before::each_call(with, move || {
                (stored.current_value(), stands_for_a_while(&still))
            });
            let mut queue = without.device.create_kernel_queue().unwrap();
            match signal {
                By::Gpu => drop(queue.signal(&signalled, 10).unwrap().flush().unwrap()),
                By::Cpu => signalled.signal(10).unwrap(),
            }
            ends(&waits, &waited);
            assert_eq!(seen(&with.spy, &waited), [Seen::Notified(10)]);
            assert_eq!(before.end(with), [(10, true)]);
            assert!(!knows_native_fences(&without.spy));
        }
    });
}

/// XA-09: as in scenario 2a, with a signaller in kernel mode: the OS stores the value when its packet is at the head of the
/// software context, and tells the adapter's own driver of it, and that of the adapter without native fences nothing.
///
/// Kills `a-queue-in-kernel-mode-has-the-driver-store`, `a-kernel-queues-signal-stays-on-its-adapter`.
#[test]
fn xa_09_a_kernel_mode_queue_signals_an_adapter_without_native_fences() {
    on_two_kinds(|without, with| {
        for (made_native, wait) in [(true, By::Gpu), (false, By::Cpu)] {
            let (waited, signalled) = of_two_kinds(without, with, made_native);
            let waits = MonitoredWait::standing(without, &waited, wait);
            let mut beside = with.queue();
            let beside_end = beside
                .submit(CommandList::new().wait(&signalled, 10))
                .unwrap();
            let (_queue, gate) = signalling_in_kernel_mode(with, &signalled);
            with.until_parked();
            with.spy.take();
            assert!(
                stands_for_a_while(&waits.watch()),
                "it is not at the head of its software context"
            );
            gate.signal(1).unwrap();
            waits.ends();
            until_completed(&beside, beside_end);
            assert_eq!(seen(&with.spy, &signalled), [Seen::Notified(10)]);
            assert_eq!(waited.current_value(), 10);
            assert!(!knows_native_fences(&without.spy));
        }
    });
}

/// XA-09: and beside an adapter without native fences of another driver.
///
/// Kills `a-kernel-queues-signal-stays-on-its-adapter`, `monitored-signals-stay-on-their-adapter`.
#[test]
fn xa_09_without_native_fences_holds_on_two_drivers() {
    two_drivers::hold_on_two_drivers("adapter_without_native_fences", 2);
}
