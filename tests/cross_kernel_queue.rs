//! Queues in kernel mode on an adapter with native fences, which wait for a cross-adapter fence or signal it (XA-09): as in
//! scenarios 2a and 2b. The adapter's own queues of user mode may wait too, so it is notified as the other is.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod two_benches;
}

use native_fence::CommandList;
use native_fence::os::WaitList;
use support::bench::{native, until, until_completed};
use support::two_benches::{
    By, NativeWait, Seen, cross_adapter, on_two_benches, seen, signal_native,
};

fn waits(signal: By) {
    on_two_benches(|igpu, dgpu| {
        let (waited, signalled) = cross_adapter(igpu, dgpu, 0);
        let mut queue = igpu.device.create_kernel_queue().unwrap();
        queue.wait_native(&waited, 10).unwrap();
        let end = queue.submit(CommandList::new().nop()).unwrap();
        let progress = queue.progress_fence();
        assert_eq!(
            native(&waited).standing(),
            [(WaitList::SoftwareContexts, 10)]
        );
        igpu.spy.take();
        let stands = || progress.current_value() < end;
        let seen_there = signal_native(dgpu, &signalled, signal, stands);
        until("the queue goes on", || !stands());
        assert_eq!(seen(&dgpu.spy, &signalled), seen_there);
        assert_eq!(seen(&igpu.spy, &waited), [Seen::Notified(10)]);
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

fn signals(wait: By) {
    on_two_benches(|igpu, dgpu| {
        let (signalled, waited) = cross_adapter(igpu, dgpu, 0);
        let mut beside = igpu.queue();
        let beside_end = beside
            .submit(CommandList::new().wait(&signalled, 10))
            .unwrap();
        let gate = igpu.device.create_monitored_fence(0).unwrap();
        let mut queue = igpu.device.create_kernel_queue().unwrap();
        queue.wait(&gate, 1).unwrap();
        queue.signal_native(&signalled, 10).unwrap();
        let waits = NativeWait::standing(dgpu, &waited, wait);
        igpu.until_parked();
        igpu.spy.take();
        assert!(
            waits.stands(),
            "it is not at the head of its software context"
        );
        gate.signal(1).unwrap();
        waits.ends();
        until_completed(&beside, beside_end);
        assert_eq!(seen(&igpu.spy, &signalled), [Seen::Notified(10)]);
        assert_eq!(seen(&dgpu.spy, &waited), [Seen::Notified(10)]);
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
