//! Level one: at most one thread is inside the calls that preempt, submit, and ask for and reset engines; one
//! that does not come out stops the adapter (TD-18).
//!
//! Open: that nobody at all is in the driver inside ResetFromTimeout. Who destroys or disconnects a queue waits
//! in the driver for slices of the very engine that does not answer; he would have to be sent away first.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::DriverOptions;
use native_fence::os::Record;
use native_fence::{CommandList, KernelQueue, TdrPolicy, WaitError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use support::bench::{
    Bench, Ended, LONG, Moment, hang, on_benches_of, on_recovering_benches, soon, until,
};

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
        let (stays, is_inside) = (Arc::clone(&goes_on), Arc::new(AtomicBool::new(false)));
        let inside = Arc::clone(&is_inside);
        bench.spy.once(Moment::InSubmitCommand, move || {
            inside.store(true, Ordering::Release);
            until("the test lets it go", || stays.load(Ordering::Acquire));
        });
        let mut guilty = bench.queue();
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
