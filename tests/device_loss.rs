//! Devices that are lost while their engines go on for others: what ends, what goes on, and what becomes
//! of the fences that they shared (NF-19, TD-06, TD-14, MF-08).
//!
//! The operating system is told here which devices are lost. Open: that a reset names them, which is the
//! reset's to show.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::abi::{DoorbellStatus, LogEntry};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{CurrentValueUpdate, Ddi, Interrupt, UpdateCurrentValuesFlags};
use native_fence::shared::Block;
use native_fence::umd::MonitoredFenceOptions;
use native_fence::{
    CommandList, Device, EventHandle, Fence, FenceOptions, HwQueue, HwQueueOptions, SubmitError,
    WaitError,
};
use std::collections::BTreeSet;
use support::bench::monitored::{create, sleeper, starts_at};
use support::bench::{
    Bench, Call, Failing, LONG, Waiter, complete, monitored_value, native, on_benches_of,
    on_every_bench, until, until_completed,
};

const LOST: Result<(), WaitError> = Err(WaitError::DeviceLost);
const SHARED: FenceOptions = FenceOptions {
    cross_adapter: None,
    initial: 0,
    memory: native_fence::FenceMemory::System,
    no_signal: false,
    no_wait: false,
    shared: true,
    intra_gpu: false,
    no_signal_max_value_on_tdr: false,
};

/// What a reset does to a device whose packet it aborted.
fn hang(bench: &Bench, device: &Device) {
    let devices = BTreeSet::from([device.process().id()]);
    let os = bench.adapter.os();
    os.fail_devices(&devices, DeviceExecutionState::HUNG);
}

/// A fence of `maker`, and the same opened by another device.
fn shared(maker: &Device, opener: &Device, options: FenceOptions) -> (Fence, Fence) {
    let made = maker.create_fence_with(options).unwrap();
    let opened = opener.open_fence(&made.share().unwrap()).unwrap();
    (made, opened)
}

fn queue_on(device: &Device, node_ordinal: u32) -> HwQueue {
    let options = HwQueueOptions {
        node_ordinal,
        ..HwQueueOptions::default()
    };
    device.create_hw_queue_with(options).unwrap()
}

fn waits_logged(queue: &mut HwQueue) -> Vec<LogEntry> {
    queue.read_wait_log().unwrap().entries
}

/// TD-06: all queues of a lost device stop, of either kind and on every node, and its calls say what became
/// of it; of several losses the first counts. Every other device goes on, on the same engines.
///
/// Kills `a-loss-spares-queues-of-other-nodes`, `a-loss-spares-kernel-mode-queues`,
/// `a-loss-is-every-devices` and `a-later-loss-says-another-state`.
#[test]
fn td_06_all_queues_of_a_lost_device_stop_and_others_go_on() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let well = bench.adapter.create_device();
        let mut theirs = [0, 1].map(|node| queue_on(&well, node));
        let mut lost = [0, 1].map(|node| bench.queue_on(node));
        let mut kernel = bench.device.create_kernel_queue_on(1).unwrap();
        let mut their_kernel = well.create_kernel_queue_on(1).unwrap();
        hang(bench, &bench.device);
        for queue in &mut lost {
            assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedAbort);
            assert_eq!(queue.error(), Some(WaitError::DeviceLost));
            let submitted = queue.submit(CommandList::new().nop());
            assert!(matches!(submitted, Err(SubmitError::Lost)), "{submitted:?}");
        }
        assert_eq!(kernel.error(), Some(WaitError::DeviceLost));
        kernel.submit(CommandList::new().nop()).unwrap_err();
        assert_eq!(bench.device.execution_state(), DeviceExecutionState::HUNG);
        let devices = BTreeSet::from([bench.device.process().id()]);
        let os = bench.adapter.os();
        os.fail_devices(&devices, DeviceExecutionState::RESET);
        assert_eq!(bench.device.execution_state(), DeviceExecutionState::HUNG);

        assert_eq!(well.execution_state(), DeviceExecutionState::ACTIVE);
        for queue in &mut theirs {
            complete(queue, CommandList::new().nop());
            assert_eq!(queue.error(), None);
        }
        let value = their_kernel.submit(CommandList::new().nop()).unwrap();
        assert_eq!(their_kernel.progress_fence().wait(value, LONG), Ok(()));
    });
}

/// TD-14, NF-22, NF-25: the blocked CPU waits of a lost device end with its error at once, of every kind, on
/// what it made and on what it opened, as those for the progress of its queues do; the waits of others on a
/// fence that it could not signal stand, and end by their value.
///
/// Kills `a-lost-device-waits-on`, `a-lost-device-takes-what-it-cannot-signal` and
/// `lost-device-leaves-waiters`.
#[test]
fn td_14_blocked_cpu_waits_of_a_lost_device_return_its_error() {
    on_every_bench(NodePolicy::default(), |bench| {
        let well = bench.adapter.create_device();
        let options = FenceOptions {
            no_signal: true,
            ..SHARED
        };
        let (theirs, opened) = shared(&well, &bench.device, options);
        let (own, queue) = (bench.fence(0), bench.queue());
        let their_waiter = bench.waiter(&theirs, 1);
        let waiters = [&own, &opened, queue.progress_fence()].map(|f| bench.waiter(f, 1));
        let any = Waiter::for_any(&[(&own, 2), (&opened, 2)]);
        let all = Waiter::for_all(&[(&own, 3), (&opened, 3)]);
        let armed = opened.arm(4);
        let event = EventHandle::new().unwrap();
        let by_event = own.wait_event(5, &event);
        hang(bench, &bench.device);
        for waiter in waiters {
            assert_eq!(waiter.join(), LOST);
        }
        any.join().unwrap_err();
        all.join().unwrap_err();
        assert_eq!(armed.outcome(), Some(LOST));
        assert_eq!((by_event.outcome(), event.reset()), (Some(LOST), 1));
        assert_eq!(opened.wait(1, LONG), LOST, "and later ones");

        assert!(!their_waiter.is_finished());
        assert_eq!(monitored_value(&theirs), 0, "their wait stands alone");
        // Nobody may signal it but who stores to its memory.
        let (region, offset) = native(&theirs).current_value_place();
        let words = Block::whole(&region.map().unwrap());
        words.word(offset).publish(1);
        let slots = vec![native(&theirs).id().slot];
        bench.spy.interrupt(Interrupt::ResampleFences {
            node_ordinal: 0,
            slots,
        });
        assert_eq!(their_waiter.join(), Ok(()));
    });
}

/// NF-19, TD-14: a fence that a lost device could signal becomes AlwaysSignaled by one call with the published
/// value and flag. CurrentValue keeps its last good value; CPU waits of all devices end with the error but
/// those that it satisfies. A queue of another device that stood at a wait for it on a parked engine goes on;
/// later GPU waits pass without queuing, GPU signals leave the storage alone, both are logged, on every node,
/// and by a handle that is opened later.
///
/// Kills `a-fence-of-a-lost-device-is-not-always-signaled`, `always-signaled-stores-its-value`,
/// `an-open-handle-is-not-always-signaled`, `always-signaled-is-one-nodes`, `a-later-handle-is-not-always-signaled`
/// and `always-signaled-leaves-cpu-waits`.
#[test]
fn nf_19_a_fence_that_a_lost_device_could_signal_is_always_signaled() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let well = bench.adapter.create_device();
        let (made, opened) = shared(&bench.device, &well, SHARED);
        let mut queues = [0, 1].map(|node| queue_on(&well, node));
        made.signal(5).unwrap();
        for queue in &mut queues {
            queue.submit(CommandList::new().wait(&opened, 9)).unwrap();
        }
        bench.until_parked();
        let waiter = bench.waiter(&opened, 9);
        bench.spy.take();
        hang(bench, &bench.device);

        let update = |call: &Call| match call {
            Call::UpdateCurrentValuesFromCpu(values, flags) => Some((values.clone(), *flags)),
            _ => None,
        };
        let updates: Vec<_> = bench.spy.calls().iter().filter_map(update).collect();
        let always = UpdateCurrentValuesFlags::ALWAYS_SIGNALED;
        let expected = (vec![(native(&made).id(), 0xFFFF_FFFF)], always);
        assert_eq!(updates, [expected]);
        assert_eq!(waiter.join(), LOST);
        assert_eq!(opened.wait(6, LONG), LOST);
        assert_eq!(opened.wait(5, LONG), Ok(()), "what is reached satisfies");
        for queue in &queues {
            until("the wait has passed", || {
                queue.progress_fence().current_value() == 1
            });
        }

        let third = bench.adapter.create_device();
        let late = third.open_fence(&opened.share().unwrap()).unwrap();
        let mut late_queues = [0, 1].map(|node| queue_on(&third, node));
        for (fence, queues) in [(&opened, &mut queues), (&late, &mut late_queues)] {
            for queue in queues {
                let list = &mut CommandList::new();
                complete(queue, list.wait(fence, 7).signal(fence, 8).wait(fence, 9));
                let waits = waits_logged(queue);
                let values: Vec<_> = waits.iter().map(|entry| entry.fence_value).collect();
                assert!(values.ends_with(&[7, 9]), "{values:?}");
                for entry in &waits[waits.len() - 2..] {
                    assert_eq!(entry.observed_ticks, entry.end_ticks, "{entry:?}");
                }
                let signals = queue.read_signal_log().unwrap().entries;
                let of_fence = |entry: &&LogEntry| entry.native_fence == fence.handle().raw();
                let signals: Vec<_> = signals.iter().filter(of_fence).collect();
                assert_eq!(signals.last().unwrap().fence_value, 8);
                assert_eq!(fence.current_value(), 5, "the storage is left alone");
            }
        }
    });
}

/// NF-19 at the Ddi: by the call alone a queue that stands at a wait on a parked engine goes on, and the value
/// that the call carries is not stored.
///
/// Kills `always-signaled-wakes-no-queue` and `always-signaled-stores-its-value`.
#[test]
fn nf_19_the_driver_lets_waiting_queues_go_on_by_itself() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(5);
        let mut queue = bench.queue();
        let value = queue.submit(CommandList::new().wait(&fence, 9)).unwrap();
        bench.until_parked();
        tell_always_signaled(bench, &fence);
        until_completed(&queue, value);
        assert_eq!(fence.current_value(), 5);
    });
}

/// The call alone, as an operating system makes it.
fn tell_always_signaled(bench: &Bench, fence: &Fence) {
    let (region, offset) = native(fence).current_value_place();
    let words = Block::whole(&region.map().unwrap());
    let update = CurrentValueUpdate {
        fence: native(fence).id(),
        value: 0xFFFF_FFFF,
        word: words.word(offset),
    };
    let flags = UpdateCurrentValuesFlags::ALWAYS_SIGNALED;
    bench
        .spy
        .update_current_values_from_cpu(&[update], flags)
        .unwrap();
}

/// NF-19: also where the lost device only opened the fence, and where a slice has looked at the wait before the
/// loss and its report comes after it: the engine does not park over it. Nor by the call alone.
///
/// Kills `an-engine-parks-at-what-is-always-signaled`.
#[test]
fn nf_19_an_engine_that_asks_to_park_finds_that_its_wait_passes() {
    let by_loss = |bench: &Bench, _: &Fence| hang(bench, &bench.device);
    for tell in [by_loss, tell_always_signaled] {
        on_every_bench(NodePolicy::default(), |bench| {
            let well = bench.adapter.create_device();
            let (theirs, _opened) = shared(&well, &bench.device, SHARED);
            let mut queue = queue_on(&well, 0);
            bench.until_parked();
            bench.engine.keep_ends(true);
            let value = queue.submit(CommandList::new().wait(&theirs, 3)).unwrap();
            bench.engine.wait_really(bench.engine.submitted());
            tell(bench, &theirs);
            bench.engine.keep_ends(false);
            until_completed(&queue, value);
            assert_eq!(theirs.current_value(), 0);
        });
    }
}

/// NF-19, LG-09: the OS, which waits and signals in a kernel-mode queue's stead, does the same: a wait that it
/// holds passes, a later one too, and a signal stores nothing; what comes behind them is executed.
///
/// Kills `a-kernel-mode-queue-stalls-at-what-is-always-signaled` and
/// `the-os-signals-what-is-always-signaled`.
#[test]
fn nf_19_kernel_mode_queues_pass_and_store_nothing() {
    on_every_bench(NodePolicy::default(), |bench| {
        let well = bench.adapter.create_device();
        let (made, opened) = shared(&bench.device, &well, SHARED);
        made.signal(5).unwrap();
        let mut queue = well.create_kernel_queue().unwrap();
        queue.wait_native(&opened, 9).unwrap();
        let held = queue.submit(CommandList::new().nop()).unwrap();
        bench.until_parked();
        assert!(queue.progress_fence().current_value() < held);
        hang(bench, &bench.device);
        assert_eq!(queue.progress_fence().wait(held, LONG), Ok(()));
        queue.wait_native(&opened, 10).unwrap();
        queue.signal_native(&opened, 11).unwrap();
        let later = queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(queue.progress_fence().wait(later, LONG), Ok(()));
        assert_eq!(queue.error(), None);
        assert_eq!(opened.current_value(), 5, "the storage is left alone");
        let waits: Vec<_> = queue.read_wait_log().entries;
        let values: Vec<_> = waits.iter().map(|entry| entry.fence_value).collect();
        assert_eq!(values, [9, 10]);
    });
}

/// TD-14: made with NoSignalMaxValueOnTdr a fence goes on where a device is lost that could signal it: the
/// waits of others stand, on the CPU and on the GPU, and end by their value; those of the lost device end.
///
/// Kills `no-signal-max-value-on-tdr-is-forgotten`.
#[test]
fn td_14_no_signal_max_value_on_tdr_lets_a_fence_go_on() {
    on_every_bench(NodePolicy::default(), |bench| {
        let well = bench.adapter.create_device();
        let options = FenceOptions {
            no_signal_max_value_on_tdr: true,
            ..SHARED
        };
        let (made, opened) = shared(&bench.device, &well, options);
        let mut queue = queue_on(&well, 0);
        let value = queue.submit(CommandList::new().wait(&opened, 2)).unwrap();
        bench.until_parked();
        let (of_lost, of_well) = (bench.waiter(&made, 2), bench.waiter(&opened, 2));
        hang(bench, &bench.device);
        assert_eq!(of_lost.join(), LOST);
        assert!(!of_well.is_finished());
        let mut signals = queue_on(&well, 0);
        complete(&mut signals, CommandList::new().signal(&opened, 1));
        assert_eq!(opened.current_value(), 1);
        assert_eq!(queue.progress_fence().current_value(), 0);
        complete(&mut signals, CommandList::new().signal(&opened, 2));
        assert_eq!(of_well.join(), Ok(()));
        assert_eq!(queue.progress_fence().wait(value, LONG), Ok(()));
    });
}

/// TD-14: fences that a lost device has nothing to do with, or only waited for, are untouched: no call names
/// them, and their values, waits and queues are as they were.
///
/// Kills `a-loss-is-every-devices` and `a-lost-device-takes-what-it-cannot-signal`.
#[test]
fn td_14_other_fences_are_untouched() {
    on_every_bench(NodePolicy::default(), |bench| {
        let well = bench.adapter.create_device();
        let alone = well.create_fence(0).unwrap();
        let waiter = bench.waiter(&alone, 1);
        let mut queue = queue_on(&well, 0);
        let value = queue.submit(CommandList::new().wait(&alone, 1)).unwrap();
        bench.until_parked();
        bench.spy.take();
        hang(bench, &bench.device);
        assert_eq!(bench.spy.calls_of_os(), []);
        assert!(!waiter.is_finished());
        let mut signals = queue_on(&well, 0);
        complete(&mut signals, CommandList::new().signal(&alone, 1));
        assert_eq!(waiter.join(), Ok(()));
        assert_eq!(queue.progress_fence().wait(value, LONG), Ok(()));
    });
}

/// MF-08: the loss of a device sets the monitored fences that it could signal to their maximum, which
/// satisfies their waits; those made with NoSignalMaxValueOnTdr, and those that it could not signal, keep
/// their value and end with the error. Those of another device are as they were.
///
/// Kills `lost-monitored-fence-stays`, `no-signal-max-value-is-forgotten` and
/// `what-nobody-could-signal-gets-its-maximum`.
#[test]
fn mf_08_a_lost_device_sets_the_maximum_of_what_it_could_signal() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = starts_at(bench, 3);
        let kept = [(true, false), (false, true)].map(|(no_max, no_signal)| {
            create(
                bench,
                MonitoredFenceOptions {
                    initial: 3,
                    no_signal_max_value_on_tdr: no_max,
                    no_signal,
                    ..MonitoredFenceOptions::default()
                },
            )
        });
        let well = bench.adapter.create_device();
        let theirs = well.create_monitored_fence(3).unwrap();
        let waiter = sleeper(&fence, u64::MAX);
        let kept_waiters = kept.each_ref().map(|fence| sleeper(fence, 7));
        let their_waiter = sleeper(&theirs, 7);
        hang(bench, &bench.device);
        assert_eq!(waiter.join().unwrap(), Ok(()));
        assert_eq!(fence.current_value(), u64::MAX);
        for (waiter, fence) in kept_waiters.into_iter().zip(&kept) {
            assert_eq!(waiter.join().unwrap(), LOST);
            assert_eq!(fence.current_value(), 3);
        }
        assert!(!their_waiter.is_finished());
        theirs.signal(7).unwrap();
        assert_eq!(their_waiter.join().unwrap(), Ok(()));
    });
}

/// FQ-09: a driver that fails the call stops the adapter with 0x119, P1 = 0x13: queues would stall at the
/// fence.
///
/// Kills `a-failed-always-signaled-is-passed-over`.
#[test]
fn fq_09_a_failed_always_signaled_stops_the_adapter() {
    on_every_bench(NodePolicy::default(), |bench| {
        let well = bench.adapter.create_device();
        let (_made, opened) = shared(&bench.device, &well, SHARED);
        let other = well.create_fence(0).unwrap();
        let waiters = [&opened, &other].map(|fence| bench.waiter(fence, 1));
        bench.spy.fail(Failing::UpdateCurrentValuesFromCpu);
        hang(bench, &bench.device);
        let [of_lost, of_well] = waiters.map(Waiter::join);
        assert_eq!(of_lost, LOST);
        assert_eq!(of_well, Err(WaitError::AdapterStopped));
        let records = bench.take_records();
        assert_eq!(records.len(), 1);
        assert_eq!((records[0].code, records[0].parameters[0]), (0x119, 0x13));
    });
}
