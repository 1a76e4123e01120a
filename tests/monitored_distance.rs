//! Values of monitored fences of 32 bits whose engines are ahead of the OS (MF-06), and waits for what
//! was reached long ago (MF-03, NF-26).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::{DriverOptions, Interrupt};
use native_fence::os::QueueStop;
use native_fence::{Allocation, CommandList, KernelQueue, SignalError, WaitError};
use support::bench::monitored::{starts_at, store_silently};
use support::bench::{Bench, LONG, on_benches_with, on_monitored_benches_with, until};

/// UINT_MAX/2.
const HALF: u64 = 0x7fff_ffff;
const START: u64 = 0x2_0000_0000;

fn narrow() -> DriverOptions {
    DriverOptions {
        no_64_bit_atomics: true,
        ..DriverOptions::default()
    }
}

fn on_narrow_benches(engines: u32, body: impl Fn(&Bench)) {
    on_benches_with(engines, NodePolicy::default(), &narrow(), body);
}

/// Memory that takes an engine much longer to fill than to do all else.
fn large(bench: &Bench) -> Allocation {
    bench.device.create_allocation(8 << 20).unwrap()
}

fn record_long(queue: &mut KernelQueue, target: &Allocation) {
    let list = CommandList::new()
        .fill(target, 0..target.bytes(), 1)
        .clone();
    queue.record(&list).unwrap();
}

/// MF-06: a signal is stored and its command goes on for long; the program sees the value and queues the
/// next, as far as may be, on another engine. The fence has what was signalled, and not 2^32 less.
///
/// Kills `the-known-value-lags`.
#[test]
fn mf_06_a_value_that_the_os_has_not_looked_at_is_carried() {
    on_narrow_benches(2, |bench| {
        let fence = starts_at(bench, START);
        let target = large(bench);
        let mut first = bench.device.create_kernel_queue_on(0).unwrap();
        let mut second = bench.device.create_kernel_queue_on(1).unwrap();
        first.signal(&fence, START + HALF).unwrap();
        record_long(&mut first, &target);
        let end = first.flush().unwrap();
        until("the first is stored", || {
            fence.current_value() == START + HALF
        });
        second.signal(&fence, START + 2 * HALF).unwrap();
        let value = second.flush().unwrap();
        second.progress_fence().wait(value, LONG).unwrap();
        assert_eq!(fence.current_value(), START + 2 * HALF);
        first.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(fence.wait(START + 2 * HALF, LONG), Ok(()));
        assert_eq!(fence.current_value(), START + 2 * HALF);
    });
}

/// MF-06: whose command has completed, as the progress fence says, is outstanding no more, though the OS was not
/// told yet: who waited for it goes on as far as may be. What is recorded or queued besides counts, also when
/// the OS is told late of another signal of the same value.
///
/// Kills `what-has-completed-is-outstanding-until-it-is-told`, `what-is-not-queued-has-completed`,
/// `a-queued-command-has-no-progress-value`, `one-end-ends-all-of-a-value`.
#[test]
fn mf_06_what_has_completed_is_not_outstanding_though_nobody_was_told() {
    on_monitored_benches_with(1, NodePolicy::default(), &narrow(), |bench| {
        let (fence, gate) = (starts_at(bench, START), starts_at(bench, 0));
        let mut queues = [(); 3].map(|()| bench.device.create_kernel_queue().unwrap());
        for queue in &mut queues {
            let value = queue.submit(CommandList::new().nop()).unwrap();
            queue.progress_fence().wait(value, LONG).unwrap();
        }
        let [first, second, third] = &mut queues;
        let is_completion = |told: &Interrupt| matches!(told, Interrupt::DmaCompleted { .. });
        bench.spy.hold_interrupts(is_completion);
        first.signal(&fence, START + 1).unwrap();
        first.signal(&fence, START + HALF).unwrap();
        let end = first.flush().unwrap();
        until("the command has completed", || {
            first.progress_fence().current_value() == end
        });

        second.wait(&gate, 1).unwrap();
        second.signal(&fence, START + 2 * HALF).unwrap();
        let back = || fence.rewind(START + HALF - 1);
        assert_eq!(back(), Err(SignalError::TooFar), "it is recorded");
        second.flush().unwrap();
        assert_eq!(back(), Err(SignalError::TooFar), "it is queued");

        third.wait(&gate, 1).unwrap();
        third.signal(&fence, START + HALF).unwrap();
        third.flush().unwrap();
        fence.signal(START + HALF + 5).unwrap();
        bench.spy.pass_held_interrupts();
        let ahead = || fence.signal(START + 2 * HALF + 1);
        assert_eq!(ahead(), Err(SignalError::TooFar), "another has completed");

        gate.signal(1).unwrap();
        for queue in [second, third] {
            let value = queue.submit(CommandList::new().nop()).unwrap();
            queue.progress_fence().wait(value, LONG).unwrap();
        }
        let now = fence.current_value();
        assert!([START + HALF, START + 2 * HALF].contains(&now), "{now:#x}");
        fence.signal(now + HALF).unwrap();
        assert_eq!(fence.current_value(), now + HALF);
    });
}

/// MF-06: a command has made one signal and goes on for long: the one behind it counts.
///
/// Kills `a-command-completes-with-its-first-signal`.
#[test]
fn mf_06_a_signal_of_a_command_that_goes_on_is_outstanding() {
    on_narrow_benches(1, |bench| {
        let fence = starts_at(bench, START);
        let target = large(bench);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        queue.signal(&fence, START + 1).unwrap();
        record_long(&mut queue, &target);
        queue.signal(&fence, START + HALF).unwrap();
        let end = queue.flush().unwrap();
        until("the first is stored", || {
            fence.current_value() != START && queue.progress_fence().current_value() > 0
        });
        assert_eq!(fence.rewind(START - 1), Err(SignalError::TooFar));
        queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(fence.current_value(), START + HALF);
    });
}

/// MF-06: a signal that an engine has is outstanding until no engine can store it any more, though its
/// queue was stopped: until its command has completed, or the queue is destroyed.
///
/// Kills `a-stopped-queue-forgets-what-runs`.
#[test]
fn mf_06_a_signal_of_a_stopped_queue_is_outstanding_until_it_is_destroyed() {
    on_narrow_benches(1, |bench| {
        let (fence, gate) = (starts_at(bench, START), starts_at(bench, 0));
        let target = large(bench);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        record_long(&mut queue, &target);
        queue.signal(&fence, START + HALF).unwrap();
        queue.wait(&gate, 1).unwrap();
        gate.close();
        let stopped = WaitError::QueueStopped(QueueStop::FenceClosed);
        assert_eq!(queue.error(), Some(stopped));
        assert_eq!(fence.rewind(START - 1), Err(SignalError::TooFar));
        drop(queue);
        // It has been stored or never will be.
        let was_stored = fence.current_value() == START + HALF;
        assert_eq!(fence.rewind(START - 1).is_err(), was_stored);
    });
}

/// MF-03, NF-26: what a fence has reached is no question of distance: a wait for it passes, however far
/// the fence has gone on since, also one that a queue comes to late. And a wait that was near when it was
/// queued does not stop its queue by what others signalled meanwhile.
///
/// Kills `what-was-reached-is-too-far`, `a-queued-wait-is-judged-again`.
#[test]
fn mf_03_what_was_reached_long_ago_is_not_too_far() {
    on_narrow_benches(1, |bench| {
        let (fence, gate) = (starts_at(bench, START), starts_at(bench, 0));
        let mut queue = bench.device.create_kernel_queue().unwrap();
        queue.wait(&gate, 1).unwrap();
        queue.wait(&fence, START + 1).unwrap();
        fence.signal(START + HALF).unwrap();
        fence.signal(START + 2 * HALF).unwrap();
        gate.signal(1).unwrap();
        let value = queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(queue.progress_fence().wait(value, LONG), Ok(()));
        assert_eq!(fence.wait(START + 1, LONG), Ok(()));
        assert_eq!(fence.arm(START + 1).outcome(), Some(Ok(())));
        queue.wait(&fence, START + 1).unwrap();

        // Far ahead, by the time that the queue comes to it.
        queue.wait(&gate, 2).unwrap();
        queue.wait(&fence, START + 3 * HALF).unwrap();
        fence.rewind(START + 2 * HALF - 1).unwrap();
        gate.signal(2).unwrap();
        assert_eq!(queue.error(), None);
        let value = queue.submit(CommandList::new().nop()).unwrap();
        fence.signal(START + 2 * HALF).unwrap();
        assert_eq!(queue.progress_fence().current_value(), value - 1);
        fence.signal(START + 3 * HALF).unwrap();
        assert_eq!(queue.progress_fence().wait(value, LONG), Ok(()));
    });
}

/// MF-06: a signal of the OS was judged when it was queued, and all that was queued since was judged by it: at
/// its turn it is stored, and stops its queue for nothing that the word says meanwhile.
///
/// Kills `a-queued-signal-is-judged-again`.
#[test]
fn mf_06_a_queued_signal_is_not_judged_again() {
    on_narrow_benches(1, |bench| {
        let (fence, gate) = (starts_at(bench, START), starts_at(bench, 0));
        let mut queue = bench.device.create_kernel_queue().unwrap();
        queue.wait(&gate, 1).unwrap();
        queue.signal_by_os(&fence, START + HALF).unwrap();
        assert_eq!(fence.rewind(START - 1), Err(SignalError::TooFar));
        // What nobody may signal now, in memory all the same.
        store_silently(&fence, (START - 1) & u64::from(u32::MAX));
        assert_eq!(fence.current_value(), START - 1);
        gate.signal(1).unwrap();
        assert_eq!(queue.error(), None);
        assert_eq!(fence.current_value(), START + HALF);
        // It is outstanding no more, and what it stored counts.
        assert_eq!(fence.rewind(START - 1), Err(SignalError::TooFar));
        fence.signal(START + 2 * HALF).unwrap();
    });
}
