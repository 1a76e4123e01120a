//! What is made after an engine was lost, or while the OS is told of it: no wait on it hangs
//! (NF-22, NF-25).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod queue_of;
}

use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::gpu::{EngineState, NodePolicy};
use native_fence::kmd::Interrupt;
use native_fence::os::OsError;
use native_fence::umd::CreateError;
use native_fence::{CommandList, Device, Fence, FenceOptions, HwQueue, SignalError, WaitError};
use std::sync::{Arc, mpsc};
use support::bench::{Bench, LONG, Moment, complete, on_benches_of, until};
use support::queue_of::disconnected_queue_of;

const LOST: Result<(), WaitError> = Err(WaitError::DeviceLost);

fn shared(device: &Device) -> Fence {
    let options = FenceOptions {
        shared: true,
        ..FenceOptions::default()
    };
    device.create_fence_with(options).unwrap()
}

/// Loses the first engine, on which a queue of the bench's device is, and waits until the OS knows.
fn lose_first(bench: &Bench, queue: &mut HwQueue) {
    bench.until_parked();
    bench.engines[0].lose();
    // The submission finds it, at the latest.
    let _ = queue.submit(CommandList::new().nop());
    bench
        .spy
        .until_handled(|interrupt| *interrupt == Interrupt::EngineLost { node_ordinal: 0 })
        .unwrap();
}

/// Whether a call was refused because its device is lost.
fn is_refused<T>(called: &Result<T, CreateError>) -> bool {
    let state = DeviceExecutionState::STOPPED;
    matches!(called, Err(CreateError::Os(OsError::DeviceLost(of))) if *of == state)
}

/// NF-22: no engine is left: the devices that had a queue on it are told so, and make nothing any more;
/// whoever makes a fence or a queue on a device that was made afterwards has one whose waits end at once.
/// What was stored is read and satisfies as ever.
///
/// Kills `a-fence-made-after-the-loss-is-waited-for` and `a-queue-made-after-the-loss-is-well`.
#[test]
fn nf_22_what_is_made_after_the_loss_of_all_engines_is_lost() {
    on_benches_of(1, NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        lose_first(bench, &mut queue);
        assert!(is_refused(&bench.device.create_fence(3)));
        let later = bench.adapter.create_device();
        assert_eq!(later.execution_state(), DeviceExecutionState::ACTIVE);
        let fence = later.create_fence(3).unwrap();
        assert_eq!(fence.wait(4, LONG), LOST);
        assert_eq!(fence.wait(3, LONG), Ok(()));
        assert_eq!(fence.signal(4), Ok(()), "the error is apart from the value");
        assert_eq!(fence.wait(4, LONG), Ok(()));
        let queue = disconnected_queue_of(&later, 0);
        assert_eq!(queue.error(), Some(WaitError::DeviceLost));
        assert_eq!(queue.progress_fence().wait(1, LONG), LOST);
        queue.connect_doorbell().unwrap_err();
    });
}

/// The same for monitored fences, whose maximum satisfies what waits for them (MF-08). A kernel-mode
/// queue, which needs no doorbell and would run at once, is refused.
///
/// Kills `a-monitored-fence-made-after-the-loss-is-waited-for`.
#[test]
fn nf_22_a_monitored_fence_made_after_the_loss_is_lost() {
    on_benches_of(1, NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        lose_first(bench, &mut queue);
        let later = bench.adapter.create_device();
        let fence = later.create_monitored_fence(3).unwrap();
        assert_eq!(fence.wait(4, LONG), Ok(()));
        assert_eq!(fence.current_value(), u64::MAX);
        for device in [&bench.device, &later] {
            let refusal = device.create_kernel_queue().unwrap_err();
            assert!(refusal.to_string().contains("lost"), "{refusal}");
        }
    });
}

/// TD-06, NF-22: one of two engines is lost. The devices that had a queue on it are lost: each of their
/// calls says so, of whatever kind, and of a CPU signal too. Others are not, nor is what they share with a
/// lost one. A queue on the lost engine never runs, whoever makes it.
///
/// Kills `a-lost-device-makes-fences`, `a-lost-device-makes-queues`, `a-lost-device-signals`,
/// `a-queue-made-after-the-loss-is-well` and `a-loss-is-every-later-devices`.
#[test]
fn td_06_a_lost_devices_calls_say_so_and_others_go_on() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let mut doomed = bench.queue_on(0);
        let well = bench.adapter.create_device();
        let of_well = shared(&well);
        let handle = of_well.share().unwrap();
        let own = bench.fence(0);
        let monitored = bench.device.create_monitored_fence(0).unwrap();
        assert_eq!(bench.device.execution_state(), DeviceExecutionState::ACTIVE);
        lose_first(bench, &mut doomed);

        let lost = &bench.device;
        assert_eq!(lost.execution_state(), DeviceExecutionState::STOPPED);
        assert!(is_refused(&lost.create_fence(0)));
        assert!(is_refused(&lost.create_monitored_fence(0)));
        assert!(is_refused(&lost.create_allocation(64)));
        assert!(is_refused(&lost.create_hw_queue()));
        assert!(is_refused(&lost.create_kernel_queue()));
        assert!(is_refused(&lost.create_context(1, 1)));
        assert!(is_refused(&lost.open_fence(&handle)));
        assert_eq!(own.signal(1), Err(SignalError::DeviceLost));
        assert_eq!(monitored.signal(1), Err(SignalError::DeviceLost));
        assert_eq!(own.wait(1, LONG), LOST);

        assert_eq!(well.execution_state(), DeviceExecutionState::ACTIVE);
        let waiter = bench.waiter(&of_well, 1);
        let on_lost = disconnected_queue_of(&well, 0);
        assert_eq!(on_lost.error(), Some(WaitError::DeviceLost));
        assert_eq!(on_lost.progress_fence().wait(1, LONG), LOST);
        let mut runs = disconnected_queue_of(&well, 1);
        runs.connect_doorbell().unwrap();
        assert_eq!(runs.error(), None);
        complete(&mut runs, CommandList::new().signal(&of_well, 1));
        assert_eq!(waiter.join(), Ok(()));
    });
}

/// NF-22: the same for what a lost device makes while the OS walks over what there is: the walk, which ends
/// a wait there, has looked into the tables already.
///
/// Kills `lost-devices-are-not-noted`.
#[test]
fn nf_22_what_is_made_while_the_os_is_told_of_the_loss_is_lost() {
    for engines in [1, 2] {
        on_benches_of(engines, NodePolicy::default(), |bench| {
            let mut queue = bench.queue_on(0);
            let fence = bench.fence(0);
            bench.until_parked();
            let waiter = bench.waiter(&fence, 1);
            bench.until_parked();
            let (sender, made) = mpsc::channel();
            let device = bench.device.clone();
            // The walk ends the wait: its MonitoredValue is nobody's any more.
            bench
                .spy
                .once(Moment::AfterUpdateOfMonitoredValues, move || {
                    let refused = is_refused(&device.create_fence(0));
                    sender.send(refused).unwrap();
                });
            lose_first(bench, &mut queue);
            assert_eq!(waiter.join(), LOST);
            assert!(made.recv_timeout(LONG).unwrap());
        });
    }
}

/// NF-22, HQ-10: a kernel-mode queue that the driver has made before the loss and that the OS notes when
/// it has walked over the queues is its maker's no more: he is told of the loss.
///
/// Kills `a-kernel-queue-made-over-the-loss-is-well`.
#[test]
fn nf_22_a_kernel_queue_made_while_the_os_is_told_of_the_loss_is_lost() {
    on_benches_of(1, NodePolicy::default(), |bench| {
        let mut rung = bench.queue();
        bench.until_parked();
        let (engine, spy) = (Arc::clone(&bench.engines[0]), Arc::clone(&bench.spy));
        let driver = bench.parking_driver();
        bench.spy.once(Moment::AfterCreateOfKernelQueue, move || {
            // A slice that has passed would execute what is submitted, and find no loss.
            until("the engine has gone", || {
                driver.engine_state(0) == Some(EngineState::Parked)
            });
            engine.lose();
            let _ = rung.submit(CommandList::new().nop());
            spy.until_handled(|interrupt| *interrupt == Interrupt::EngineLost { node_ordinal: 0 })
                .unwrap();
        });
        assert!(is_refused(&bench.device.create_kernel_queue()));
    });
}
