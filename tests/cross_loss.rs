//! An adapter that is lost, removed or stopped, and the fences that it shares with another one (XA-11).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod two_benches;
}

use native_fence::abi::FenceId;
use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::gpu::{ModelOptions, NodePolicy};
use native_fence::kmd::{Interrupt, NativeFenceSignaled, SignaledFence};
use native_fence::umd::MonitoredFenceOptions;
use native_fence::{
    CommandList, CrossAdapter, Device, Fence, FenceOptions, HwQueue, KernelQueue, MonitoredFence,
    SignalError, WaitError,
};
use std::thread::JoinHandle;
use std::time::Instant;
use support::bench::{Bench, LONG, Waiter, complete, monitored, native, until_completed};
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

    /// The same of an adapter without native fences, which is told by its driver.
    fn meets_one_without(self, bench: &Bench) {
        let (node_ordinal, engine_ordinal) = (0, 0);
        match self {
            Self::Lost => bench.spy.interrupt(Interrupt::EngineLost { node_ordinal }),
            Self::Removed => bench.adapter.remove(),
            // Nothing was submitted with that id.
            Self::Stopped => bench.spy.interrupt(Interrupt::DmaCompleted {
                submission_id: u64::MAX,
                node_ordinal,
                engine_ordinal,
            }),
        }
        bench.take_records();
    }
}

/// One that keeps its value where a device is lost that could signal it.
fn keeping(mode: CrossAdapter, made: &Bench, opened: &Bench) -> (Fence, Fence) {
    let fence = made.device.create_fence_with(FenceOptions {
        cross_adapter: Some(mode),
        no_signal_max_value_on_tdr: true,
        ..FenceOptions::default()
    });
    let fence = fence.unwrap();
    let other = opened.device.open_fence(&fence.share().unwrap()).unwrap();
    (fence, other)
}

/// Waits for 10 of a native side by a queue and by a thread.
struct Both {
    queue: HwQueue,
    end: u64,
    waiter: Waiter,
}

impl Both {
    fn of(bench: &Bench, fence: &Fence) -> Self {
        let mut queue = bench.queue();
        let end = queue.submit(CommandList::new().wait(fence, 10)).unwrap();
        let waiter = bench.waiter(fence, 10);
        Self { queue, end, waiter }
    }

    /// What they wait for is lost.
    fn pass(self) {
        until_completed(&self.queue, self.end);
        assert_eq!(self.waiter.join(), Err(WaitError::DeviceLost));
    }

    /// It is not.
    fn go_on(self, signal: impl FnOnce()) {
        let progress = self.queue.progress_fence();
        assert!(progress.current_value() < self.end && !self.waiter.is_finished());
        signal();
        until_completed(&self.queue, self.end);
        assert_eq!(self.waiter.join(), Ok(()));
    }
}

/// The same of a monitored side, by a queue in kernel mode, which signals a fence behind it.
struct BothMonitored {
    queue: KernelQueue,
    passed: MonitoredFence,
    sleeper: JoinHandle<Result<(), WaitError>>,
}

impl BothMonitored {
    fn of(bench: &Bench, fence: &MonitoredFence) -> Self {
        let passed = monitored::starts_at(bench, 0);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        queue.wait(fence, 10).unwrap();
        queue.signal(&passed, 1).unwrap().flush().unwrap();
        let sleeper = monitored::sleeper(fence, 10);
        Self {
            queue,
            passed,
            sleeper,
        }
    }

    fn pass(self) {
        assert_eq!(self.sleeper.join().unwrap(), Err(WaitError::DeviceLost));
        assert_eq!(self.passed.wait(1, LONG), Ok(()));
        assert_eq!(self.queue.error(), None);
    }

    fn go_on(self, signal: impl FnOnce()) {
        assert!(self.passed.current_value() == 0 && !self.sleeper.is_finished());
        signal();
        assert_eq!(self.sleeper.join().unwrap(), Ok(()));
        assert_eq!(self.passed.wait(1, LONG), Ok(()));
    }
}

/// The same of a fence with a doorbell: a queue that is closed at it passes, and nobody has rung. Who waits for others goes
/// on: at one that was made to keep its value, and at one of which the adapter that has gone knows nothing, which rings on.
///
/// Kills `a-stop-is-nothing-to-who-hears`, `what-keeps-its-value-is-lost-elsewhere`.
#[test]
fn xa_11_what_the_adapter_could_ring_for_is_lost_on_the_other() {
    for end in ENDS {
        println!("{end:?}");
        // The one that goes finds out as its next slice begins.
        on_two_benches_of([restless(), NodePolicy::default()], |stays, goes| {
            let third = Bench::on_model(ModelOptions::default(), NodePolicy::default()).0;
            let doorbell = CrossAdapter::Doorbell;
            let (here, _there) = cross_adapter_by(doorbell, stays, goes, 3);
            let (kept, _kept_there) = keeping(doorbell, stays, goes);
            let (among, among_too) = cross_adapter_by(doorbell, stays, &third, 0);
            let mut among_others = third.queue();
            let (mut uses_the_engine, mut queue) = (goes.queue(), stays.queue());
            let value = queue.submit(CommandList::new().wait(&here, 10)).unwrap();
            let [keeps, rings] = [&kept, &among].map(|fence| Both::of(stays, fence));
            // A slice in flight would execute what is to find the loss.
            goes.until_parked();
            let met = Instant::now();
            end.meets(goes, &mut uses_the_engine);
            until_completed(&queue, value);
            // A slice that nobody ends looks at all after its passes, of which there are for more than ten seconds.
            assert!(met.elapsed() < LONG / 4);
            assert_eq!(here.wait(10, LONG), Err(WaitError::DeviceLost));
            assert_eq!(here.current_value(), 3, "it keeps its last good value");
            keeps.go_on(|| kept.signal(10).unwrap());
            rings.go_on(|| {
                complete(&mut among_others, CommandList::new().signal(&among_too, 10));
            });
            assert_eq!(stays.device.execution_state(), DeviceExecutionState::ACTIVE);
        });
    }
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
            let (kept, _kept_there) = keeping(CrossAdapter::Propagated, stays, goes);
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
            let [lost, goes_on @ ..] =
                [&here, &kept, &own, &alone].map(|fence| Both::of(stays, fence));
            stays.until_parked();
            goes.until_parked();
            stays.spy.take();
            end.meets(goes, &mut uses_the_engine);
            lost.pass();
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
            for (waits, fence) in goes_on.into_iter().zip([&kept, &own, &alone]) {
                waits.go_on(|| fence.signal(10).unwrap());
                assert!(!seen(&stays.spy, fence).contains(&always));
            }
            assert_eq!(stays.device.execution_state(), DeviceExecutionState::ACTIVE);
        });
    }
}

/// The same where the fence is monitored on one of them, and that one goes. On the other what was made to keep its value
/// goes on, and what is its own.
///
/// Kills `a-lost-monitored-side-is-nobodys-affair`, `a-stop-of-a-monitored-side-stays-on-its-adapter`,
/// `what-keeps-its-monitored-value-is-lost-elsewhere`.
#[test]
fn xa_11_a_monitored_side_is_lost_with_its_adapter() {
    for end in ENDS {
        println!("{end:?}");
        on_two_kinds(|without, with| {
            let (monitored, fence) = of_two_kinds(without, with, false);
            let options = MonitoredFenceOptions {
                cross_adapter: true,
                no_signal_max_value_on_tdr: true,
                ..MonitoredFenceOptions::default()
            };
            let keeps = without.device.create_monitored_fence_with(options).unwrap();
            let kept = with.device.open_fence(&keeps.share().unwrap()).unwrap();
            let own = with.fence(0);
            let [lost, goes_on @ ..] = [&fence, &kept, &own].map(|fence| Both::of(with, fence));
            with.until_parked();
            end.meets_one_without(without);
            lost.pass();
            assert_eq!((fence.current_value(), monitored.current_value()), (0, 0));
            for (waits, fence) in goes_on.into_iter().zip([&kept, &own]) {
                waits.go_on(|| fence.signal(10).unwrap());
            }
            assert_eq!(with.device.execution_state(), DeviceExecutionState::ACTIVE);
        });
    }
}

/// The same, and the other one goes. Who opens the fence later learns of it.
///
/// Kills `queues-stand-at-what-another-adapter-lost`, `a-stop-stays-on-its-adapter`,
/// `what-keeps-its-value-is-lost-elsewhere`, `a-late-side-is-not-told-of-the-loss`.
#[test]
fn xa_11_a_monitored_side_is_lost_with_the_other_adapter() {
    for end in ENDS {
        println!("{end:?}");
        on_two_kinds(|without, with| {
            let (waited, fence) = of_two_kinds(without, with, true);
            let keeps = with.device.create_fence_with(FenceOptions {
                cross_adapter: Some(CrossAdapter::Propagated),
                no_signal_max_value_on_tdr: true,
                ..FenceOptions::default()
            });
            let keeps = keeps.unwrap().share().unwrap();
            let kept = without.device.open_monitored_fence(&keeps).unwrap();
            // Or nobody there would have it open that could be lost.
            let _keeps = with.device.open_fence(&keeps).unwrap();
            let own = monitored::starts_at(without, 0);
            let fences = [&waited, &kept, &own];
            let [lost, goes_on @ ..] = fences.map(|fence| BothMonitored::of(without, fence));
            let shared = waited.share().unwrap();
            let mut uses_the_engine = with.queue();
            with.until_parked();
            end.meets(with, &mut uses_the_engine);
            lost.pass();
            let values = (native(&fence).current_value(), waited.current_value());
            assert_eq!(values, (0, 0));
            let late = without.device.open_monitored_fence(&shared).unwrap();
            assert_eq!(late.wait(10, LONG), Err(WaitError::DeviceLost));
            for (waits, fence) in goes_on.into_iter().zip([&kept, &own]) {
                waits.go_on(|| fence.signal(10).unwrap());
            }
            let state = without.device.execution_state();
            assert_eq!(state, DeviceExecutionState::ACTIVE);
        });
    }
}

/// XA-11: a device alone is lost, and its adapter goes on: what it could signal, or ring for, is lost on the other adapter
/// too; what another device there could, is not, and goes on.
///
/// Kills `the-loss-stays-on-its-adapter`, `others-are-not-told-what-is-always-signaled`.
#[test]
fn xa_11_what_a_device_alone_could_signal_is_lost_on_the_other() {
    for mode in [CrossAdapter::Propagated, CrossAdapter::Doorbell] {
        println!("{mode:?}");
        on_two_benches(|stays, goes| {
            let (here, _there) = cross_adapter_by(mode, stays, goes, 3);
            let beside = goes.adapter.create_device();
            let options = FenceOptions {
                cross_adapter: Some(mode),
                ..FenceOptions::default()
            };
            let theirs = beside.create_fence_with(options).unwrap();
            let ours = stays.device.open_fence(&theirs.share().unwrap()).unwrap();
            let [lost, goes_on] = [&here, &ours].map(|fence| Both::of(stays, fence));
            stays.until_parked();
            let os = goes.adapter.os();
            let process = [goes.device.process().id()].into();
            os.fail_devices(&process, DeviceExecutionState::HUNG);
            lost.pass();
            assert_eq!(here.current_value(), 3, "it keeps its last good value");
            let mut queue = beside.create_hw_queue().unwrap();
            goes_on.go_on(|| complete(&mut queue, CommandList::new().signal(&theirs, 10)));
            let states = [&beside, &stays.device].map(Device::execution_state);
            assert_eq!(states, [DeviceExecutionState::ACTIVE; 2]);
        });
    }
}

/// XA-11: the same on two drivers of one process.
///
/// Kills `a-lost-monitored-side-is-nobodys-affair`, `queues-stand-at-what-another-adapter-lost`.
#[test]
fn xa_11_a_monitored_side_is_lost_on_two_drivers() {
    two_drivers::hold_on_two_drivers("a_monitored_side_is_lost_with", 2);
}
