//! CurrentValue for a thread that only reads.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::{CommandList, Fence};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use support::bench::{Ended, on_every_bench, until};

/// Reads until it is stopped; what it saw last stands in `seen`, and never goes back.
fn read_only(fence: &Fence, seen: &AtomicU64, stop: &AtomicBool) {
    let mut last = fence.current_value();
    while !stop.load(Ordering::Acquire) {
        let value = fence.current_value();
        assert!(value >= last, "{value} after {last}");
        last = value;
        seen.store(value, Ordering::Release);
        std::thread::yield_now();
    }
}

fn until_seen(seen: &AtomicU64, value: u64) {
    until("the value is seen", || {
        seen.load(Ordering::Acquire) >= value
    });
}

/// The reader sees each CPU signal without anything else being done; MonitoredValue stays at
/// `UINT64_MAX`, and nobody is interrupted.
///
/// Kills `cpu-signals-store-nothing`.
#[test]
fn nf_27_a_reader_sees_every_cpu_signal_at_once() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.adapter.create_device().create_fence(0).unwrap();
        let (seen, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let _stop = Ended(&stop);
            scope.spawn(|| read_only(&fence, &seen, &stop));
            for value in 1..=1000 {
                fence.signal(value).unwrap();
                assert_eq!(fence.current_value(), value);
                until_seen(&seen, value);
            }
        });
        assert_eq!(fence.object().fence().monitored_value(), u64::MAX);
        bench.until_told();
        assert_eq!(bench.spy.named(), []);
    });
}

/// When a slice has ended, its signals are there, though nobody was told of the end: no report was
/// taken, no interrupt came, no call was made.
///
/// Kills `the-engine-signals-late`.
#[test]
fn nf_27_a_reader_sees_gpu_signals_when_the_slice_ends() {
    let policy = NodePolicy {
        slice_time: Duration::from_secs(5),
        ..NodePolicy::default()
    };
    on_every_bench(policy, |bench| {
        let device = bench.adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let (seen, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let _stop = Ended(&stop);
            scope.spawn(|| read_only(&fence, &seen, &stop));
            for round in 0..20 {
                let mut list = CommandList::new();
                for value in 1..=200 {
                    list.signal(&fence, round * 200 + value);
                }
                // The doorbell starts a slice, which all of it fits.
                bench.until_parked();
                bench.engine.keep_ends(true);
                queue.submit(&list).unwrap();
                bench.engine.wait_really(bench.engine.submitted());
                assert_eq!(queue.read_index(), (round + 1) * 201);
                assert_eq!(fence.current_value(), (round + 1) * 200);
                until_seen(&seen, (round + 1) * 200);
                bench.engine.keep_ends(false);
                until_seen(&seen, (round + 1) * 200);
            }
        });
        assert_eq!(fence.object().fence().monitored_value(), u64::MAX);
        bench.until_told();
        assert_eq!(bench.spy.named(), []);
    });
}
