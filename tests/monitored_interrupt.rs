//! Rules of the interrupts about monitored fences (MF-02, MF-07, MF-08, IN-03, IN-04): which of them
//! makes the OS look at whom.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::{DriverOptions, Interrupt, NativeFenceSignaled};
use native_fence::shared::Block;
use native_fence::umd::MonitoredFenceOptions;
use native_fence::{CommandList, EventHandle, WaitError};
use std::time::Instant;
use support::bench::monitored::{create, sleeper, starts_at, store_silently};
use support::bench::{
    LONG, native, on_benches_with, on_every_bench, on_monitored_benches, on_monitored_benches_with,
    until,
};

fn null_array(evaluate_legacy_monitored_fences: bool) -> Interrupt {
    Interrupt::NativeFenceSignaled(NativeFenceSignaled {
        node_ordinal: 0,
        engine_ordinal: 0,
        fences: None,
        hw_queue: None,
        evaluate_legacy_monitored_fences,
        taken: Instant::now(),
    })
}

/// MF-02: an engine of the advanced form interrupts with each signal, whoever waits, and the interrupt
/// wakes who waits for it.
///
/// Kills `monitored-signals-interrupt-once`, `monitored-interrupt-looks-at-nothing`.
#[test]
fn mf_02_each_gpu_signal_interrupts() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let fence = starts_at(bench, 0);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        for value in 1..=8 {
            queue.signal(&fence, value).unwrap();
        }
        queue.flush().unwrap();
        let interrupts = bench.adapter.os().interrupts();
        until("eight signals interrupt eight times", || {
            interrupts.monitored_fence_signaled() == 8
        });
        let waiter = sleeper(&fence, 9);
        queue.signal(&fence, 9).unwrap();
        queue.flush().unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()));
        until("the ninth interrupts", || {
            interrupts.monitored_fence_signaled() == 9
        });
        assert_eq!(interrupts.native_fence_signaled(), 0);

        // The interrupt alone is enough: what a store that nobody tells of has satisfied.
        let waiter = sleeper(&fence, 10);
        store_silently(&fence, 10);
        assert!(!waiter.is_finished());
        bench.spy.interrupt(Interrupt::MonitoredFenceSignaled {
            node_ordinal: 0,
            engine_ordinal: 0,
        });
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
}

/// MF-02: the interrupt makes the OS look at monitored waiters only.
///
/// Kills `monitored-interrupt-looks-at-native-waiters`.
#[test]
fn mf_02_the_interrupt_leaves_native_waiters_alone() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (native_one, monitored) = (bench.fence(0), starts_at(bench, 0));
        let (native_event, event) = (EventHandle::new().unwrap(), EventHandle::new().unwrap());
        let _native_wait = native_one.wait_event(1, &native_event);
        let _wait = monitored.wait_event(1, &event);
        let (region, offset) = native(&native_one).current_value_place();
        let words = Block::whole(&region.map().unwrap());
        words.word(offset).publish(1);
        store_silently(&monitored, 1);
        bench.spy.interrupt(Interrupt::MonitoredFenceSignaled {
            node_ordinal: 0,
            engine_ordinal: 0,
        });
        assert_eq!((native_event.reset(), event.reset()), (0, 1));
        bench.spy.interrupt(null_array(false));
        assert_eq!(native_event.reset(), 1);
    });
}

/// MF-02, MF-07: an engine of the basic form interrupts for no signal; what it satisfied is found
/// when its command has completed, and so is every other pending wait of the process.
///
/// Kills `basic-engine-interrupts`, `monitored-completion-looks-at-nothing`.
#[test]
fn mf_07_a_completed_command_looks_at_every_pending_wait() {
    let options = DriverOptions {
        basic_monitored_fences: true,
        ..DriverOptions::default()
    };
    on_monitored_benches_with(1, NodePolicy::default(), &options, |bench| {
        let (fence, other) = (starts_at(bench, 0), starts_at(bench, 0));
        let (waiter, bystander) = (sleeper(&fence, 3), sleeper(&other, 1));
        let mut queue = bench.device.create_kernel_queue().unwrap();
        bench.initialised(0);
        let completed = || bench.adapter.os().interrupts().dma_completed();
        let before = completed();
        // A store that nothing tells of: by a shader of the program's own, say.
        store_silently(&other, 1);
        for value in 1..=3 {
            queue.signal(&fence, value).unwrap();
        }
        queue.flush().unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()));
        assert_eq!(bystander.join().unwrap(), Ok(()));
        let interrupts = bench.adapter.os().interrupts();
        assert_eq!(interrupts.monitored_fence_signaled(), 0);
        assert_eq!(completed(), before + 1);
    });
}

fn basic() -> DriverOptions {
    DriverOptions {
        basic_monitored_fences: true,
        ..DriverOptions::default()
    }
}

/// MF-07, NF-22: a command that signals and then faults has not completed, and no signal interrupts: the
/// fault makes the OS look, and who waits for the value wakes.
///
/// Kills `a-fault-looks-at-nothing`.
#[test]
fn mf_07_what_a_command_stored_before_its_fault_is_found() {
    on_benches_with(1, NodePolicy::default(), &basic(), |bench| {
        let fence = starts_at(bench, 0);
        let target = bench.device.create_allocation(64).unwrap();
        let event = EventHandle::new().unwrap();
        let wait = fence.wait_event(1, &event);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        queue.signal(&fence, 1).unwrap();
        let list = CommandList::new().fill(&target, 0..128, 1).clone();
        let value = queue.submit(&list).unwrap();
        let ended = queue.progress_fence().wait(value, LONG);
        assert!(
            matches!(ended, Err(WaitError::QueueFaulted(_))),
            "{ended:?}"
        );
        until("who waits is told", || event.reset() == 1);
        assert_eq!(wait.outcome(), Some(Ok(())));
    });
}

/// MF-07, NF-22: a queue is dropped while a command runs that has signalled: what it stored is found by
/// the time that the queue is gone.
///
/// Kills `the-end-of-a-queue-looks-at-nothing`.
#[test]
fn mf_07_what_a_dropped_queue_stored_is_found() {
    on_benches_with(1, NodePolicy::default(), &basic(), |bench| {
        let fence = starts_at(bench, 0);
        let target = bench.device.create_allocation(32 << 20).unwrap();
        let event = EventHandle::new().unwrap();
        let _wait = fence.wait_event(1, &event);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        queue.signal(&fence, 1).unwrap();
        let mut list = CommandList::new();
        for value in 0..4 {
            list.fill(&target, 0..target.bytes(), value);
        }
        queue.submit(&list).unwrap();
        until("it is stored", || fence.current_value() == 1);
        drop(queue);
        assert_eq!(event.reset(), 1);
    });
}

/// MF-07: a completion whose queue is gone is one of somebody's command, and makes the OS look at all.
///
/// Kills `a-completion-of-a-gone-queue-looks-at-nothing`.
#[test]
fn mf_07_a_completion_of_a_queue_that_is_gone_looks_at_all() {
    on_benches_with(1, NodePolicy::default(), &basic(), |bench| {
        let fence = starts_at(bench, 0);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let value = queue.submit(CommandList::new().nop()).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        drop(queue);
        let event = EventHandle::new().unwrap();
        let _wait = fence.wait_event(1, &event);
        store_silently(&fence, 1);
        assert_eq!(event.reset(), 0);
        bench.spy.interrupt(Interrupt::DmaCompleted {
            submission_id: 1,
            node_ordinal: 0,
            engine_ordinal: 0,
        });
        assert_eq!(event.reset(), 1);
    });
}

/// IN-03, IN-04: a NULL array makes the OS look at no monitored-fence waiter, and with
/// EvaluateLegacyMonitoredFences at these too.
///
/// Kills `null-array-looks-at-monitored-fences`, `legacy-flag-is-forgotten`.
#[test]
fn in_04_a_null_array_with_the_flag_looks_at_both_kinds() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = starts_at(bench, 0);
        let event = EventHandle::new().unwrap();
        let wait = fence.wait_event(1, &event);
        store_silently(&fence, 1);
        bench.spy.interrupt(null_array(false));
        assert_eq!(event.reset(), 0, "it was not looked at");
        bench.spy.interrupt(null_array(true));
        assert_eq!(event.reset(), 1);
        assert_eq!(wait.outcome(), Some(Ok(())));
    });
}

/// MF-08: the loss of an engine that could signal it sets a monitored fence to its maximum, which
/// satisfies its waits, unless NoSignalMaxValueOnTdr was set: then they end with the error. Queues on
/// the engine are stopped.
///
/// Kills `lost-monitored-fence-stays`, `no-signal-max-value-is-forgotten`.
#[test]
fn mf_08_a_lost_engine_sets_the_maximum() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = starts_at(bench, 0);
        let spared = create(
            bench,
            MonitoredFenceOptions {
                no_signal_max_value_on_tdr: true,
                ..MonitoredFenceOptions::default()
            },
        );
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let (waiter, spared_waiter) = (sleeper(&fence, 7), sleeper(&spared, 7));
        bench.until_parked();
        bench.engine.lose();
        // The submission finds it, at the latest.
        let _ = queue.submit(CommandList::new().nop());
        bench
            .spy
            .until_handled(|interrupt| *interrupt == Interrupt::EngineLost { node_ordinal: 0 })
            .unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()));
        assert_eq!(fence.current_value(), u64::MAX);
        assert_eq!(spared_waiter.join().unwrap(), Err(WaitError::DeviceLost));
        assert_eq!(spared.current_value(), 0);
        assert_eq!(queue.error(), Some(WaitError::DeviceLost));
    });
}
