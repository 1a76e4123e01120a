//! Level one: at most one thread is inside the calls that preempt, submit, and ask for and reset engines, and
//! nobody else at all while the adapter is reset; one that does not come out stops the adapter (TD-18).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod queue_of;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::{DriverOptions, Interrupt};
use native_fence::os::Record;
use native_fence::{CommandList, DeviceExecutionState, KernelQueue, TdrPolicy, WaitError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use support::bench::{
    Bench, Call, Ended, LONG, Moment, TdrCall, hang, is_sleeping, monitored_value, on_benches_of,
    on_recovering_benches, soon, until,
};
use support::queue_of::{disconnected_queue_of, queue_of};

/// Submits, and waits for each; now and then for what another queue has signalled before.
fn submit(mut queue: KernelQueue, times: u64) {
    for _ in 0..times {
        let value = queue.submit(CommandList::new().nop()).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
    }
}

fn two_kernel_queues(bench: &Bench) -> Vec<KernelQueue> {
    let queues = [0, 1].into_iter().flat_map(|node| {
        [0, 1].map(|_| {
            let device = bench.adapter.create_device();
            device.create_kernel_queue_on(node).unwrap()
        })
    });
    queues.collect()
}

/// TD-18: threads that submit to several engines, and one that preempts them, are never inside at one time,
/// and all that they submit completes.
///
/// Kills `everybody-is-inside-at-once`.
#[test]
fn td_18_one_thread_submits_and_preempts_at_a_time() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let queues = two_kernel_queues(bench);
        thread::scope(|scope| {
            let threads = queues
                .into_iter()
                .map(|queue| scope.spawn(|| submit(queue, 50)));
            let threads: Vec<_> = threads.collect();
            let preempts = scope.spawn(|| {
                // So often, and no more: what is always preempted need not come to an end.
                for _ in 0..100 {
                    for node in [0, 1] {
                        bench.adapter.os().preempt(node).unwrap();
                    }
                    thread::yield_now();
                }
            });
            for thread in threads {
                thread.join().unwrap();
            }
            preempts.join().unwrap();
        });
        let (calls, met) = bench.spy.level_one();
        assert!(calls > 100, "{calls}");
        assert_eq!(met, 0, "of {calls}");
    });
}

/// TD-18: nor is anybody inside while an engine is asked for its status and its group, and reset; who submits
/// to another engine meanwhile goes on after it.
///
/// Kills `a-reset-is-not-alone`.
#[test]
fn td_18_nobody_submits_while_an_engine_is_reset() {
    on_recovering_benches(2, soon(), &DriverOptions::default(), |bench| {
        let innocent = bench.adapter.create_device();
        let mut queue = innocent.create_kernel_queue_on(1).unwrap();
        let mut guilty = bench.queue();
        hang(&mut guilty);
        while bench.adapter.os().records().is_empty() {
            let value = queue.submit(CommandList::new().nop()).unwrap();
            assert_eq!(queue.progress_fence().wait(value, LONG), Ok(()));
        }
        let records = bench.take_records();
        assert_eq!(records[0].code, Record::VIDEO_ENGINE_TIMEOUT_DETECTED);
        submit(queue, 10);
        let (calls, met) = bench.spy.level_one();
        assert_eq!(met, 0, "of {calls}");
    });
}

/// TD-18: a thread that is still inside TdrDdiDelay after an engine is to be reset is the end of the adapter,
/// 0x116; and no longer than that is waited for it.
///
/// Kills `a-thread-in-the-driver-is-waited-for`.
#[test]
fn td_18_a_thread_that_stays_in_the_driver_stops_the_adapter() {
    let tdr = TdrPolicy {
        ddi_delay: Duration::from_millis(200),
        ..soon()
    };
    on_recovering_benches(2, tdr, &DriverOptions::default(), |bench| {
        let goes_on = Arc::new(AtomicBool::new(false));
        let device = bench.adapter.create_device();
        let mut queue = device.create_kernel_queue_on(1).unwrap();
        let mut guilty = bench.queue();
        bench.until_parked();
        let (stays, is_inside) = (Arc::clone(&goes_on), Arc::new(AtomicBool::new(false)));
        let inside = Arc::clone(&is_inside);
        bench.spy.once(Moment::InSubmitCommand, move || {
            inside.store(true, Ordering::Release);
            until("the test lets it go", || stays.load(Ordering::Acquire));
        });
        thread::scope(|scope| {
            let _ends = Ended(&goes_on);
            let submits = scope.spawn(|| queue.submit(CommandList::new().nop()).map(|_| ()));
            until("a thread is inside", || is_inside.load(Ordering::Acquire));
            hang(&mut guilty);
            until("the adapter is stopped", || {
                bench.adapter.os().stopped().is_some()
            });
            assert!(!goes_on.load(Ordering::Acquire));
            let ended = guilty.progress_fence().wait(1, LONG);
            assert_eq!(ended, Err(WaitError::AdapterStopped));
            goes_on.store(true, Ordering::Release);
            let _late = submits.join().unwrap();
        });
        let records = bench.take_records();
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(records[0].code, Record::VIDEO_TDR_FAILURE);
        assert!(records[0].reason.contains("TdrDdiDelay"), "{records:?}");
    });
}

/// Every time-out resets the adapter.
fn adapter_wide() -> DriverOptions {
    DriverOptions {
        adapter_wide_tdr: true,
        ..DriverOptions::default()
    }
}

/// What comes by interrupts, or is called at their level.
fn is_interrupt(call: &Call) -> bool {
    matches!(call, Call::Interrupt(_) | Call::UpdateMonitoredValues(_))
}

/// A thread of a test: its number once it is about to call, and whether it has come through.
#[derive(Default)]
struct Caller {
    thread: AtomicU32,
    is_through: AtomicBool,
}

impl Caller {
    fn calls(&self, call: impl FnOnce()) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread.store(thread.unsigned_abs(), Ordering::Release);
        call();
        self.is_through.store(true, Ordering::Release);
    }

    /// Whether it sleeps, or has come through.
    fn is_held_or_through(&self) -> bool {
        let thread = self.thread.load(Ordering::Acquire).cast_signed();
        let thread = rustix::thread::Pid::from_raw(thread);
        self.is_through.load(Ordering::Acquire) || thread.is_some_and(is_sleeping)
    }
}

/// TD-18: inside ResetFromTimeout no other thread is in the driver, whatever it calls, and each call that came
/// meanwhile is made afterwards. What belongs to interrupts gets in.
///
/// Kills `threads-are-in-the-driver-in-a-reset`.
#[test]
fn td_18_nobody_is_in_the_driver_while_the_adapter_is_reset() {
    on_recovering_benches(2, soon(), &adapter_wide(), |bench| {
        let device = &bench.adapter.create_device();
        let os = bench.adapter.os();
        let fence = || device.create_fence(0).unwrap();
        let (closed, signalled, waited) = (fence(), fence(), fence());
        let (dropped, disconnected) = (queue_of(device, 1), queue_of(device, 0));
        let (connected, resized) = (disconnected_queue_of(device, 1), queue_of(device, 1));
        let (without, read) = (queue_of(device, 0), queue_of(device, 1));
        let context = device.create_context(1, 1).unwrap();
        // What it has in flight is lost with the adapter, and its device is in error.
        let submits = bench.adapter.create_device();
        let mut submitting = submits.create_kernel_queue_on(1).unwrap();

        let (in_reset, goes_on) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
        let goes_on = Arc::new(goes_on);
        let (is_inside, may_go_on) = (Arc::clone(&in_reset), Arc::clone(&goes_on));
        bench.spy.before_tdr(move |call| {
            if call == TdrCall::ResetFromTimeout {
                is_inside.store(true, Ordering::Release);
                until("the test has seen", || may_go_on.load(Ordering::Acquire));
            }
        });
        let mut guilty = bench.queue();
        hang(&mut guilty);
        until("the adapter is reset", || in_reset.load(Ordering::Acquire));
        let called = bench.spy.calls().len();

        let calls: Vec<Box<dyn FnOnce() + Send>> = vec![
            Box::new(|| drop(fence())),
            Box::new(|| drop(closed)),
            Box::new(|| signalled.signal(1).unwrap()),
            Box::new(|| drop(device.create_monitored_fence(0).unwrap())),
            Box::new(|| drop(device.create_allocation(4096).unwrap())),
            Box::new(|| drop(queue_of(device, 0))),
            Box::new(|| drop(dropped)),
            Box::new(|| disconnected.os().disconnect_doorbell()),
            Box::new(|| connected.connect_doorbell().unwrap()),
            Box::new(|| without.destroy_doorbell().unwrap()),
            // Until the engine executes again its logs stay as they are.
            Box::new(|| drop(resized.resize_logs(200))),
            Box::new(|| drop(read.read_signal_log().unwrap())),
            Box::new(|| context.suspend(LONG).unwrap()),
            Box::new(|| drop(device.create_context(0, 1).unwrap())),
            Box::new(|| assert_eq!(os.ddi().vidsch_caps(), os.vidsch_caps())),
            Box::new(|| assert!(os.ddi().node_counters(1).is_some())),
            Box::new(|| drop(bench.adapter.create_device())),
        ];
        let callers: Vec<_> = calls.iter().map(|_| Caller::default()).collect();
        let (waits, interrupts) = (Caller::default(), Caller::default());
        thread::scope(|scope| {
            let _ends = Ended(&goes_on);
            for (caller, call) in callers.iter().zip(calls) {
                scope.spawn(|| caller.calls(call));
            }
            scope.spawn(|| waits.calls(|| waited.wait(1, LONG).unwrap()));
            let interrupt = Interrupt::ObjectsRetired { objects: vec![] };
            scope.spawn(|| interrupts.calls(|| bench.spy.interrupt(interrupt)));
            until("each is held, or has come through", || {
                callers.iter().all(Caller::is_held_or_through)
            });
            until("an interrupt gets in", || {
                interrupts.is_through.load(Ordering::Acquire)
            });
            until("what belongs to it does", || monitored_value(&waited) == 0);
            // Handed over by whoever is inside, when he has left.
            let value = submitting.submit(CommandList::new().nop()).unwrap();

            let mut calls = bench.spy.calls().split_off(called);
            calls.retain(|call| !is_interrupt(call));
            assert_eq!(calls, []);
            goes_on.store(true, Ordering::Release);
            let completed = submitting.progress_fence().wait(value, LONG);
            assert!(completed.is_ok() || completed == Err(WaitError::DeviceLost));
            until("each comes through", || {
                let mut callers = callers.iter();
                callers.all(|caller| caller.is_through.load(Ordering::Acquire))
            });
            waited.signal(1).unwrap();
        });
        let records = bench.take_records();
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(records[0].code, Record::VIDEO_TDR_TIMEOUT_DETECTED);
    });
}

/// TD-18: who waits in the driver for the engine that does not answer is sent away before the adapter is reset,
/// and the packet's device is blamed all the same; nobody is waited for, and whom it was not about goes on.
///
/// Kills `who-waits-for-a-hung-engine-stays-inside`.
#[test]
fn td_18_who_waits_for_the_engine_is_sent_away() {
    on_recovering_benches(1, soon(), &adapter_wide(), |bench| {
        let innocent = bench.adapter.create_device();
        let (mut queue, dropped) = (queue_of(&innocent, 0), queue_of(&innocent, 0));
        let guilty = bench.adapter.create_device();
        let mut hung = queue_of(&guilty, 0);
        bench.then_parked(|| ());
        hang(&mut hung);
        bench.until_stalled();
        thread::scope(|scope| {
            scope.spawn(|| hung.os().disconnect_doorbell());
            scope.spawn(|| queue.os().disconnect_doorbell());
            scope.spawn(|| drop(dropped));
        });
        let ended = hung.progress_fence().wait(1, LONG);
        assert_eq!(ended, Err(WaitError::DeviceLost));
        until("the adapter was reset", || {
            bench.adapter.os().records().len() == 1
        });
        assert_eq!(guilty.execution_state(), DeviceExecutionState::HUNG);
        assert_eq!(innocent.execution_state(), DeviceExecutionState::ACTIVE);
        queue.connect_doorbell().unwrap();
        let value = queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(queue.progress_fence().wait(value, LONG), Ok(()));
        let records = bench.take_records();
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(records[0].code, Record::VIDEO_TDR_TIMEOUT_DETECTED);
    });
}

/// TD-18: of whatever call, a thread that is still inside TdrDdiDelay after the adapter is to be reset is its
/// end, and the calls that waited for the reset come through.
///
/// Kills `a-reset-does-not-wait-for-who-is-inside`.
#[test]
fn td_18_a_thread_that_stays_in_any_call_stops_the_adapter() {
    let tdr = TdrPolicy {
        ddi_delay: Duration::from_millis(200),
        ..soon()
    };
    on_recovering_benches(2, tdr, &adapter_wide(), |bench| {
        let goes_on = Arc::new(AtomicBool::new(false));
        let device = bench.adapter.create_device();
        // The OS's own queues on both engines are there.
        let _other = bench.queue_on(1);
        let mut guilty = bench.queue();
        bench.until_parked();
        let (stays, is_inside) = (Arc::clone(&goes_on), Arc::new(AtomicBool::new(false)));
        let inside = Arc::clone(&is_inside);
        bench.spy.once(Moment::AfterCreateOfKernelQueue, move || {
            inside.store(true, Ordering::Release);
            until("the test lets it go", || stays.load(Ordering::Acquire));
        });
        thread::scope(|scope| {
            let _ends = Ended(&goes_on);
            let creates = scope.spawn(|| device.create_kernel_queue_on(1).map(|_| ()));
            until("a thread is inside", || is_inside.load(Ordering::Acquire));
            hang(&mut guilty);
            until("the adapter is stopped", || {
                bench.adapter.os().stopped().is_some()
            });
            assert!(!goes_on.load(Ordering::Acquire));
            assert!(bench.adapter.os().ddi().node_counters(0).is_some());
            goes_on.store(true, Ordering::Release);
            let _late = creates.join().unwrap();
        });
        let records = bench.take_records();
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(records[0].code, Record::VIDEO_TDR_FAILURE);
        assert!(records[0].reason.contains("TdrDdiDelay"), "{records:?}");
        let calls = bench.spy.tdr_calls();
        assert!(!calls.contains(&TdrCall::ResetFromTimeout), "{calls:?}");
    });
}
