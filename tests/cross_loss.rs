//! An adapter that is lost, removed or stopped, and the fences that it shares with another one (XA-11).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod two_benches;
}

use native_fence::abi::FenceId;
use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::gpu::{ModelOptions, NodePolicy};
use native_fence::kmd::{
    DriverOptions, Interrupt, NativeFenceSignaled, ResetEngine, SignaledFence,
};
use native_fence::os::{Cycle, CycleLink, QueueVerdict, Record, Verdict};
use native_fence::umd::MonitoredFenceOptions;
use native_fence::{
    CommandList, CrossAdapter, Device, Fence, FenceOptions, HwQueue, KernelQueue, MonitoredFence,
    SignalError, TdrDebugMode, TdrLevel, TdrPolicy, WaitError,
};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::bench::{
    Bench, LONG, TdrCall, Waiter, complete, monitored, native, until, until_completed,
};
use support::two_benches::{
    Seen, cross_adapter, cross_adapter_by, of_two_kinds, on_two_benches_watched,
    on_two_kinds_to_lose, restless, seen, two_drivers,
};

/// How an adapter goes.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Its engine is lost, and there is no other.
    Lost,
    Removed,
    /// By a bug check: an interrupt named a fence that never was (IN-05).
    Stopped,
    /// The same: a reset engine named as aborted what had completed before (TD-03).
    WrongAbortedId,
    /// The same: of more resets of the adapter than there may be (TD-10).
    TooManyResets,
}

/// Of an adapter with native fences.
const ENDS: [End; 5] = [
    End::Lost,
    End::Removed,
    End::Stopped,
    End::WrongAbortedId,
    End::TooManyResets,
];

/// Of one without, whose engines nobody resets, and of the one beside it.
const ENDS_OF_TWO_KINDS: [End; 3] = [End::Lost, End::Removed, End::Stopped];

/// One reset of the adapter is recovered from. Engines answer for themselves: nobody finds in a test's time that one does
/// not, but for one that is lost.
const RESETS: TdrPolicy = TdrPolicy {
    level: TdrLevel::Recover,
    delay: Duration::from_secs(600),
    ddi_delay: Duration::from_secs(60),
    limit_count: 1,
    limit_time: Duration::from_secs(600),
    debug_mode: TdrDebugMode::RecoverNoPrompt,
};

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
            Self::WrongAbortedId => {
                // Of another device: that one's loss is none of the others'.
                let mut guilty = bench.adapter.create_device().create_hw_queue().unwrap();
                complete(&mut guilty, CommandList::new().nop());
                let hw_queue = Some(guilty.os().handle());
                bench.spy.answer_reset(move |_| {
                    Ok(ResetEngine {
                        last_aborted_fence_id: 0,
                        hw_queue,
                    })
                });
                bench.spy.lose_engine(0);
                is_stopped_by(bench, Record::VIDEO_SCHEDULER_INTERNAL_ERROR);
            }
            Self::TooManyResets => {
                bench.spy.fail_tdr(TdrCall::ResetEngine(0));
                bench.spy.lose_engine(0);
                until("the adapter is reset", || {
                    bench.adapter.os().records().len() == 1
                });
                assert_eq!(bench.adapter.os().stopped(), None);
                bench.spy.lose_engine(0);
                is_stopped_by(bench, Record::VIDEO_TDR_FAILURE);
            }
        }
    }

    /// How the engines of one that goes so are watched.
    fn watched(self) -> Option<TdrPolicy> {
        match self {
            Self::Lost | Self::Removed | Self::Stopped => None,
            Self::WrongAbortedId | Self::TooManyResets => Some(RESETS),
        }
    }

    /// The same of an adapter without native fences: its Vulkan device is lost, or its driver tells what cannot be.
    fn meets_one_without(self, bench: &Bench) {
        let (node_ordinal, engine_ordinal) = (0, 0);
        match self {
            Self::Lost => bench.lose_device(),
            Self::Removed => bench.adapter.remove(),
            // Nothing was submitted with that id.
            Self::Stopped => bench.spy.interrupt(Interrupt::DmaCompleted {
                submission_id: u64::MAX,
                node_ordinal,
                engine_ordinal,
            }),
            Self::WrongAbortedId | Self::TooManyResets => {
                unreachable!("engines that execute command buffers are not reset")
            }
        }
        bench.take_records();
    }
}

/// Of an adapter that stays: its engine is reset as often as it is lost, for the reports of that.
const REPORTS: TdrPolicy = TdrPolicy {
    limit_count: 1_000_000,
    ..RESETS
};

fn is_stopped_by(bench: &Bench, code: u32) {
    until("the adapter is stopped", || {
        bench.adapter.os().stopped().is_some()
    });
    assert_eq!(bench.adapter.os().stopped().unwrap().code, code);
    bench.take_records();
}

/// Two benches, of which one can go so; `stays` says how the other's engine is let go.
fn on_two_benches(end: End, stays: NodePolicy, body: impl Fn(&Bench, &Bench)) {
    println!("{end:?}");
    let goes = (NodePolicy::default(), end.watched());
    on_two_benches_watched(&[(stays, None), goes], body);
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

/// The same of what is monitored where it is made.
fn kept_monitored() -> MonitoredFenceOptions {
    MonitoredFenceOptions {
        cross_adapter: true,
        no_signal_max_value_on_tdr: true,
        ..MonitoredFenceOptions::default()
    }
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
        // The one that goes finds out as its next slice begins.
        on_two_benches(end, restless(), |stays, goes| {
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
/// `a-late-side-is-not-told-of-the-loss`, `who-has-no-queue-survives-the-removal`,
/// `what-others-can-signal-is-not-lost`, `a-stop-by-the-watch-is-noted-alone`.
#[test]
fn xa_11_what_the_adapter_could_signal_is_lost_on_the_other() {
    for end in ENDS {
        on_two_benches(end, NodePolicy::default(), |stays, goes| {
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
            // After a reset of the adapter the OS looks at all that it may not have been told of.
            let before = match end {
                End::TooManyResets => vec![Seen::Notified(3)],
                End::Lost | End::Removed | End::Stopped | End::WrongAbortedId => Vec::new(),
            };
            assert_eq!(seen(&stays.spy, &here), [before, vec![always]].concat());
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
    for end in ENDS_OF_TWO_KINDS {
        println!("{end:?}");
        on_two_kinds_to_lose(|without, with| {
            let (monitored, fence) = of_two_kinds(without, with, false);
            let keeps = without
                .device
                .create_monitored_fence_with(kept_monitored())
                .unwrap();
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
    for end in ENDS_OF_TWO_KINDS {
        println!("{end:?}");
        on_two_kinds_to_lose(|without, with| {
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

/// XA-11, TD-14: what a device that has gone could signal is always signaled wherever it is open, also where others could
/// reach its values yet: a third adapter, which has lost nothing, and signals it as ever by its CPU.
///
/// Kills `one-adapter-is-told-of-the-loss`, `what-others-can-signal-is-not-lost`.
#[test]
fn xa_11_what_a_third_adapter_could_signal_too_is_lost() {
    for mode in [CrossAdapter::Propagated, CrossAdapter::Doorbell] {
        println!("{mode:?}");
        on_two_benches(End::Removed, NodePolicy::default(), |stays, goes| {
            let third = Bench::on_model(ModelOptions::default(), NodePolicy::default()).0;
            let (here, _there) = cross_adapter_by(mode, stays, goes, 3);
            let beside = third.device.open_fence(&here.share().unwrap()).unwrap();
            let of_both = [(stays, &here), (&third, &beside)];
            let waits = of_both.map(|(bench, fence)| Both::of(bench, fence));
            stays.until_parked();
            third.until_parked();
            goes.adapter.remove();
            waits.into_iter().for_each(Both::pass);
            for (bench, fence) in of_both {
                assert!(seen(&bench.spy, fence).contains(&Seen::AlwaysSignaled(0xFFFF_FFFF)));
                assert_eq!(fence.current_value(), 3, "it keeps its last good value");
                let state = bench.device.execution_state();
                assert_eq!(state, DeviceExecutionState::ACTIVE);
            }
            beside.signal(11).unwrap();
            for (_, fence) in of_both {
                assert_eq!(fence.wait(11, LONG), Ok(()));
                assert_eq!(fence.wait(12, LONG), Err(WaitError::DeviceLost));
            }
        });
    }
}

/// By whom the fence is to be signaled at which the one queue stands that is no other's: as the report of a reset has it.
fn to_be_signaled_by(bench: &Bench) -> String {
    let os = bench.adapter.os();
    // An engine that took another's place has looked at the queue.
    bench.until_parked();
    let noted = os.records().len();
    bench.spy.lose_engine(0);
    until("the engine is reset", || os.records().len() > noted);
    bench.take_records();
    let report = os.tdr_reports().pop().unwrap().to_string();
    let (_, by) = report.split_once(", to be signaled by ").unwrap();
    by.lines().next().unwrap().to_owned()
}

/// Who has gone does not signal what was made to keep its value, although his handle is open yet. A queue that waits for
/// what it signals itself later waits on: whoever waits for such a fence has it open with the right to signal, and his
/// CPU can (TD-15). So it is not certain that it waits in vain, before or after.
fn is_signalled_from_here_alone(stays: &Bench, kept: &Fence, go: impl FnOnce()) {
    let mut queue = stays.queue();
    let mut list = CommandList::new();
    list.wait(kept, 10).signal(kept, 10);
    let end = queue.submit(&list).unwrap();
    stays.until_parked();
    let hw_queue = queue.os().handle();
    let link = CycleLink {
        hw_queue,
        fence: native(kept).id(),
        value: 10,
    };
    let verdict = Verdict::Waiting {
        suspicion: Some(Cycle(vec![link])),
    };
    let waits = [QueueVerdict { hw_queue, verdict }];
    let own = format!("device {}", stays.device.process().id().0);
    assert_eq!(stays.adapter.os().verdicts(), waits);
    let by = to_be_signaled_by(stays);
    assert_eq!(by, format!("{own}, another program or adapter"));
    go();
    assert_eq!(to_be_signaled_by(stays), own);
    stays.until_parked();
    assert_eq!(stays.adapter.os().verdicts(), waits);
    assert_eq!(stays.adapter.os().certain_verdicts(), []);
    assert_eq!(queue.error(), None);
    kept.signal(10).unwrap();
    until_completed(&queue, end);
}

/// XA-11, TD-15: an adapter that has gone is not among those who may signal.
///
/// Kills `an-open-handle-signals-whatever-became-of-its-device`, `a-stopped-adapter-signals`.
#[test]
fn xa_11_an_adapter_that_has_gone_signals_nothing() {
    for end in ENDS {
        println!("{end:?}");
        let policy = NodePolicy::default();
        let watched = [(policy, Some(REPORTS)), (policy, end.watched())];
        on_two_benches_watched(&watched, |stays, goes| {
            let (kept, _kept_there) = keeping(CrossAdapter::Propagated, stays, goes);
            is_signalled_from_here_alone(stays, &kept, || {
                let mut uses_the_engine = goes.queue();
                goes.until_parked();
                end.meets(goes, &mut uses_the_engine);
                until("the adapter has gone", || {
                    let is_lost = goes.device.execution_state() != DeviceExecutionState::ACTIVE;
                    is_lost || goes.adapter.os().stopped().is_some()
                });
            });
        });
    }
}

/// XA-11, TD-15: the same of an adapter without native fences.
///
/// Kills `a-monitored-side-signals-whatever-became-of-it`.
#[test]
fn xa_11_a_monitored_side_that_has_gone_signals_nothing() {
    for end in ENDS_OF_TWO_KINDS {
        println!("{end:?}");
        let policy = NodePolicy::default();
        let options = DriverOptions::default();
        let Some(without) = Bench::over_command_buffers_to_lose(None, &options) else {
            return;
        };
        let (stays, memory) = Bench::recovering_on_model(policy, REPORTS);
        let made = without
            .device
            .create_monitored_fence_with(kept_monitored())
            .unwrap();
        let kept = stays.device.open_fence(&made.share().unwrap()).unwrap();
        is_signalled_from_here_alone(&stays, &kept, || end.meets_one_without(&without));
        drop((kept, stays));
        assert_eq!(memory.violations(), []);
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
        on_two_benches(End::Lost, NodePolicy::default(), |stays, goes| {
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

/// XA-11: the same on two drivers of one process, of which one's Vulkan device is lost: every call of it says so.
///
/// Kills `a-lost-monitored-side-is-nobodys-affair`, `queues-stand-at-what-another-adapter-lost`.
#[test]
fn xa_11_a_monitored_side_is_lost_on_two_drivers() {
    two_drivers::hold_on_two_drivers("a_monitored_side_is_lost_with", 2);
}
