//! Levels of DDIs: who calls at a wrong one is noted (FQ-09).
//!
//! Every test over the bench is one of this rule too: it fails in the end if the OS made any call of
//! it at a wrong level.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::CommandList;
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{
    Callbacks, ConnectDoorbell, ContextAllocation, ContextAllocationId, CreateContextAllocation,
    Ddi, DdiError, DisconnectDoorbell, Driver, FeatureError, FeatureId, Interrupt,
    IsFeatureEnabledResult, Level, LevelChecked, NativeFenceInterface, QueryFeatureInterface,
    WrongLevel,
};
use native_fence::os::{Adapter, Record};
use std::sync::{Arc, Mutex, Weak};
use support::bench::{Bench, DdiSpy, LONG, Moment, complete, on_every_bench};

/// The adapter, for a hook, which shall not keep it.
fn adapter(bench: &Bench) -> Weak<Adapter> {
    Arc::downgrade(bench.adapter.os())
}

fn assert_noted(records: &[Record], thread: Level, documented: Level, ddi: &str) {
    let parameters = [thread as u64, documented as u64, 0, 0];
    let noted = |record: &Record| {
        record.code == 0xC4
            && record.parameters == parameters
            && record.reason.starts_with(ddi)
            && !record.is_bug_check()
    };
    assert!(records.iter().any(noted), "{ddi}: {records:?}");
}

/// FQ-09: UpdateMonitoredValues runs at the device interrupt level. What belongs lower, called from
/// within it, is a record that names call and levels, and the adapter goes on.
///
/// Kills `a-call-at-a-wrong-level-is-not-told`, `levels-are-not-raised` and
/// `update-of-monitored-values-at-dispatch`.
#[test]
fn fq_09_a_passive_call_from_within_update_of_monitored_values_is_a_record() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        let (os, handle) = (adapter(bench), queue.os().handle());
        let doorbell = queue.os().doorbell().unwrap();
        bench.until_parked();
        bench.spy.keep_level_in_hooks();
        bench
            .spy
            .once(Moment::AfterUpdateOfMonitoredValues, move || {
                assert_eq!(Level::of_thread(), Level::DeviceInterrupt);
                let os = os.upgrade().unwrap();
                os.ddi().update_native_fence_logs(&[handle]).unwrap();
                os.ddi().notify_work_submission(doorbell);
            });
        let waiter = bench.waiter(&fence, 1);
        let records = bench.take_records();
        let (raised, passive) = (Level::DeviceInterrupt, Level::Passive);
        assert_noted(&records, raised, Level::Dispatch, "UpdateNativeFenceLogs");
        assert_noted(&records, raised, passive, "NotifyWorkSubmission");
        assert_eq!(records.len(), 2, "{records:?}");

        assert_eq!(Level::of_thread(), Level::Passive, "and comes down again");
        complete(&mut queue, CommandList::new().signal(&fence, 1));
        waiter.join().unwrap();
        assert!(bench.adapter.os().stopped().is_none());
    });
}

/// FQ-09: an interrupt and what it defers run at DISPATCH_LEVEL: who parks an engine from there may
/// not connect a doorbell.
///
/// Kills `park-engine-belongs-at-passive-level` and `a-call-at-a-wrong-level-is-not-told`.
#[test]
fn fq_09_a_passive_call_from_an_interrupt_is_a_record() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        bench.until_parked();
        let (os, doorbell) = (adapter(bench), queue.os().doorbell().unwrap());
        bench.spy.keep_level_in_hooks();
        bench.spy.once(Moment::BeforeParking, move || {
            os.upgrade()
                .unwrap()
                .ddi()
                .connect_doorbell(&ConnectDoorbell::of(doorbell))
                .unwrap();
        });
        let value = queue.submit(CommandList::new().wait(&fence, 1)).unwrap();
        bench.until_parked();
        let records = bench.take_records();
        assert_noted(&records, Level::Dispatch, Level::Passive, "ConnectDoorbell");
        assert_eq!(records.len(), 1, "{records:?}");
        fence.signal(1).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
    });
}

/// An OS that asks at which level it is interrupted.
#[derive(Default)]
struct Asks(Mutex<Vec<Level>>);

impl Callbacks for Asks {
    fn notify_interrupt(&self, _: Interrupt) {
        self.0.lock().unwrap().push(Level::of_thread());
    }

    fn disconnect_doorbell(&self, args: &DisconnectDoorbell) {
        panic!("nobody asks for a doorbell: {args:?}");
    }

    fn create_context_allocation(
        &self,
        args: &CreateContextAllocation,
    ) -> Result<ContextAllocation, DdiError> {
        panic!("nobody asks for a context: {args:?}");
    }

    fn destroy_context_allocation(&self, id: ContextAllocationId) {
        panic!("nobody asks for a context: {id:?}");
    }

    fn wrong_level(&self, wrong: WrongLevel) {
        panic!("{wrong}");
    }

    fn is_feature_enabled(&self, _: FeatureId) -> IsFeatureEnabledResult {
        IsFeatureEnabledResult::default()
    }

    fn query_feature_interface(
        &self,
        query: &QueryFeatureInterface,
    ) -> Result<NativeFenceInterface, FeatureError> {
        Err(FeatureError::Unknown(query.feature))
    }
}

/// FQ-09: whatever thread the driver interrupts on, the OS is at DISPATCH_LEVEL then, and the thread
/// comes down again.
///
/// Kills `an-interrupt-is-at-passive-level`.
#[test]
fn fq_09_an_interrupt_is_handled_at_dispatch_level() {
    let spy = DdiSpy::over(Driver::new(Vec::new()));
    let checked = LevelChecked::over(Arc::clone(&spy) as _);
    let os = Arc::new(Asks::default());
    checked.start(Arc::clone(&os) as _).unwrap();
    spy.interrupt(Interrupt::ResampleFences {
        node_ordinal: 0,
        slots: Vec::new(),
    });
    assert_eq!(*os.0.lock().unwrap(), [Level::Dispatch]);
    assert_eq!(Level::of_thread(), Level::Passive);
    checked.stop();
}

/// FQ-09: each call that the OS makes in a life of fences, queues and waits is at its level: none
/// is noted, which the bench looks at in the end. That it would be, the other tests show.
///
/// Kills `park-engine-belongs-at-passive-level`.
#[test]
fn fq_09_the_os_calls_each_ddi_at_its_level() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        for value in 1..=20 {
            let waiter = bench.waiter(&fence, value);
            queue
                .submit(CommandList::new().signal(&fence, value))
                .unwrap();
            waiter.join().unwrap();
        }
        fence.signal(30).unwrap();
        let value = queue.submit(CommandList::new().wait(&fence, 31)).unwrap();
        bench.until_parked();
        fence.signal(31).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        queue.read_signal_log().unwrap();
        queue.os().disconnect_doorbell();
        queue.connect_doorbell().unwrap();
        drop((queue, fence, bench.fence(0)));
        assert_eq!(bench.adapter.os().records(), []);
    });
}
