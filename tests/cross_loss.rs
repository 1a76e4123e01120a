//! An adapter that is lost, removed or stopped, and the fences that it shares with another one (XA-11).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod two_benches;
}

use native_fence::abi::FenceId;
use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{Interrupt, NativeFenceSignaled, SignaledFence};
use native_fence::{
    CommandList, CrossAdapter, Fence, FenceOptions, HwQueue, SignalError, WaitError,
};
use std::time::Instant;
use support::bench::{Bench, LONG, monitored, native, until, until_completed};
use support::two_benches::{
    Seen, cross_adapter, cross_adapter_by, of_two_kinds, on_two_benches, on_two_benches_of,
    on_two_kinds, restless, seen, two_drivers,
};

/// How an adapter goes.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Its engine is lost, and there is no other.
    Lost,
    Removed,
    /// By a bug check: an interrupt named a fence that never was (IN-05).
    Stopped,
}

const ENDS: [End; 3] = [End::Lost, End::Removed, End::Stopped];

impl End {
    /// The queue finds out, if it is one of the device's.
    fn meets(self, bench: &Bench, queue: &mut HwQueue) {
        match self {
            Self::Lost => {
                bench.engine.lose();
                let _ = queue.submit(CommandList::new().nop());
            }
            Self::Removed => bench.adapter.remove(),
            Self::Stopped => {
                bench
                    .spy
                    .interrupt(Interrupt::NativeFenceSignaled(NativeFenceSignaled {
                        node_ordinal: 0,
                        engine_ordinal: 0,
                        hw_queue: None,
                        fences: Some(vec![SignaledFence {
                            fence: FenceId {
                                slot: 0xFFFF,
                                generation: 1,
                            },
                            value: 1,
                            hw_queue: None,
                        }]),
                        evaluate_legacy_monitored_fences: false,
                        taken: Instant::now(),
                    }));
                bench.take_records();
            }
        }
    }
}

/// The same of a fence with a doorbell: a queue that is closed at it passes, and nobody has rung.
///
/// Kills `a-stop-is-nothing-to-who-hears`.
#[test]
fn xa_11_what_the_adapter_could_ring_for_is_lost_on_the_other() {
    for end in ENDS {
        println!("{end:?}");
        // The one that goes finds out as its next slice begins.
        on_two_benches_of([restless(), NodePolicy::default()], |stays, goes| {
            let (here, _there) = cross_adapter_by(CrossAdapter::Doorbell, stays, goes, 3);
            let (mut uses_the_engine, mut queue) = (goes.queue(), stays.queue());
            let value = queue.submit(CommandList::new().wait(&here, 10)).unwrap();
            // A slice in flight would execute what is to find the loss.
            goes.until_parked();
            let met = Instant::now();
            end.meets(goes, &mut uses_the_engine);
            until_completed(&queue, value);
            // A slice that nobody ends looks at all after its passes, of which there are for more than ten seconds.
            assert!(met.elapsed() < LONG / 4);
            assert_eq!(here.wait(10, LONG), Err(WaitError::DeviceLost));
            assert_eq!(here.current_value(), 3, "it keeps its last good value");
        });
    }
}

/// One that keeps its value where a device is lost that could signal it.
fn keeping(made: &Bench, opened: &Bench) -> (Fence, Fence) {
    let fence = made.device.create_fence_with(FenceOptions {
        cross_adapter: Some(CrossAdapter::Propagated),
        no_signal_max_value_on_tdr: true,
        ..FenceOptions::default()
    });
    let fence = fence.unwrap();
    let other = opened.device.open_fence(&fence.share().unwrap()).unwrap();
    (fence, other)
}

/// What the lost adapter could signal is always signaled on the other: queues pass, CPU waits end with the error, the
/// value stays. What it could not, and what was made to go on, goes on; so does everything else there.
///
/// Kills `a-stop-stays-on-its-adapter`, `what-keeps-its-value-is-lost-elsewhere`,
/// `a-late-side-is-not-told-of-the-loss`, `who-has-no-queue-survives-the-removal`.
#[test]
fn xa_11_what_the_adapter_could_signal_is_lost_on_the_other() {
    for end in ENDS {
        println!("{end:?}");
        on_two_benches(|stays, goes| {
            let (here, there) = cross_adapter(stays, goes, 3);
            let (kept, _kept_there) = keeping(stays, goes);
            let own = stays.fence(0);
            // Of the gone adapter's nobody has it open.
            let alone = stays
                .device
                .create_fence_with(FenceOptions {
                    cross_adapter: Some(CrossAdapter::Propagated),
                    ..FenceOptions::default()
                })
                .unwrap();
            let mut uses_the_engine = goes.queue();
            let idle = goes.adapter.create_device();
            let shared = here.share().unwrap();
            let by_idle = idle.open_fence(&shared).unwrap();
            let fences = [&here, &kept, &own, &alone];
            let waits = fences.map(|fence| {
                let mut queue = stays.queue();
                let end = queue.submit(CommandList::new().wait(fence, 10)).unwrap();
                (queue, end, stays.waiter(fence, 10))
            });
            stays.until_parked();
            goes.until_parked();
            stays.spy.take();
            end.meets(goes, &mut uses_the_engine);
            let [lost, goes_on @ ..] = waits;
            until_completed(&lost.0, lost.1);
            assert_eq!(lost.2.join(), Err(WaitError::DeviceLost));
            assert_eq!(here.current_value(), 3, "it keeps its last good value");
            let always = Seen::AlwaysSignaled(0xFFFF_FFFF);
            assert_eq!(seen(&stays.spy, &here), [always]);
            assert_ne!(there.signal(11), Ok(()));
            if let End::Removed = end {
                // A device that has no queue is lost as well.
                assert_eq!(idle.execution_state(), DeviceExecutionState::STOPPED);
                assert_eq!(by_idle.signal(11), Err(SignalError::DeviceLost));
            }
            // Who comes later learns of it, on an object of the fence that is made anew.
            drop(here);
            let late = stays.device.open_fence(&shared).unwrap();
            assert_eq!(late.wait(10, LONG), Err(WaitError::DeviceLost));
            for ((queue, end, waiter), fence) in goes_on.into_iter().zip([&kept, &own, &alone]) {
                assert!(queue.progress_fence().current_value() < end && !waiter.is_finished());
                fence.signal(10).unwrap();
                until_completed(&queue, end);
                assert_eq!(waiter.join(), Ok(()));
                assert!(!seen(&stays.spy, fence).contains(&always));
            }
            assert_eq!(stays.device.execution_state(), DeviceExecutionState::ACTIVE);
        });
    }
}

/// The same where the fence is monitored on one of them, whichever goes.
///
/// Kills `a-lost-monitored-side-is-nobodys-affair`, `queues-stand-at-what-another-adapter-lost`.
#[test]
fn xa_11_a_monitored_side_is_lost_with_the_other_adapter() {
    on_two_kinds(|without, with| {
        let (monitored, fence) = of_two_kinds(without, with, false);
        let waiter = with.waiter(&fence, 10);
        let mut queue = with.queue();
        let end = queue.submit(CommandList::new().wait(&fence, 10)).unwrap();
        with.until_parked();
        without.adapter.remove();
        assert_eq!(waiter.join(), Err(WaitError::DeviceLost));
        until_completed(&queue, end);
        assert_eq!((fence.current_value(), monitored.current_value()), (0, 0));
        assert_eq!(with.device.execution_state(), DeviceExecutionState::ACTIVE);
    });
    on_two_kinds(|without, with| {
        let (waited, fence) = of_two_kinds(without, with, true);
        let other = monitored::starts_at(without, 0);
        let sleeper = monitored::sleeper(&waited, 10);
        let mut queue = without.device.create_kernel_queue().unwrap();
        queue.wait(&waited, 10).unwrap();
        queue.signal(&other, 1).unwrap().flush().unwrap();
        with.adapter.remove();
        assert_eq!(sleeper.join().unwrap(), Err(WaitError::DeviceLost));
        until("the queue passes", || other.current_value() == 1);
        assert_eq!(native(&fence).current_value(), 0);
    });
}

/// XA-11: a device alone is lost, and its adapter goes on: what it could signal is lost on the other adapter too.
///
/// Mutant: `the-loss-stays-on-its-adapter`.
#[test]
fn xa_11_what_a_device_alone_could_signal_is_lost_on_the_other() {
    on_two_benches(|stays, goes| {
        let (here, _there) = cross_adapter(stays, goes, 3);
        let waiter = stays.waiter(&here, 10);
        let mut queue = stays.queue();
        let end = queue.submit(CommandList::new().wait(&here, 10)).unwrap();
        stays.until_parked();
        let lost = [goes.device.process().id()].into();
        let os = goes.adapter.os();
        os.fail_devices(&lost, native_fence::DeviceExecutionState::HUNG);
        until_completed(&queue, end);
        assert_eq!(waiter.join(), Err(WaitError::DeviceLost));
    });
}

/// XA-11: the same on two drivers of one process.
///
/// Kills `a-lost-monitored-side-is-nobodys-affair`.
#[test]
fn xa_11_a_monitored_side_is_lost_on_two_drivers() {
    two_drivers::hold_on_two_drivers("a_monitored_side_is_lost", 1);
}
