//! Signals from the CPU: one call, a batch, and who learns of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::{CurrentValueUpdate, Ddi, UpdateCurrentValuesFlags};
use native_fence::shared::Block;
use native_fence::{CommandList, Fence, SignalError};
use support::bench::{Call, LONG, native, on_benches_of, on_every_bench, until_completed};

fn values(fences: &[Fence]) -> Vec<u64> {
    fences.iter().map(Fence::current_value).collect()
}

fn is_update(call: &Call) -> bool {
    matches!(call, Call::UpdateCurrentValuesFromCpu(..))
}

/// A batch is one call of the driver with all values in the caller's order; every value is there
/// on return, and every queue that waited for one goes on.
///
/// Kills `a-batch-in-the-order-of-locks`, `only-the-first-of-a-batch` and
/// `broken-the-driver-stops-half-way-in-a-batch`.
#[test]
fn nf_17_a_batch_is_one_call_in_order() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = bench.adapter.create_device();
        let fences: Vec<_> = (0..32).map(|_| device.create_fence(0).unwrap()).collect();
        let mut queues = Vec::new();
        for fence in &fences[..3] {
            let mut queue = device.create_hw_queue().unwrap();
            queue.submit(CommandList::new().wait(fence, 100)).unwrap();
            queues.push(queue);
        }
        bench.spy.take();
        // Neither in the order of creation nor backwards.
        let batch: Vec<_> = (0..32)
            .map(|at| (&fences[at * 7 % 32], 100 + at as u64))
            .collect();
        Fence::signal_all(&batch).unwrap();
        for (fence, value) in &batch {
            assert_eq!(fence.current_value(), *value);
        }
        let told: Vec<_> = bench.spy.take().into_iter().filter(is_update).collect();
        let wanted = batch
            .iter()
            .map(|(fence, value)| (fence.object().fence().id(), *value));
        assert_eq!(
            told,
            [Call::UpdateCurrentValuesFromCpu(
                wanted.collect(),
                UpdateCurrentValuesFlags::default()
            )]
        );
        for queue in &queues {
            queue.progress_fence().wait(1, LONG).unwrap();
        }
    });
}

/// The driver takes the entries of a call in their order: of two for one fence the later stays.
///
/// Kills `a-batch-backwards-in-the-driver`.
#[test]
fn nf_17_the_driver_stores_a_batch_in_its_order() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.adapter.create_device().create_fence(0).unwrap();
        let native = fence.object().fence();
        let (region, offset) = native.current_value_place();
        let block = Block::whole(&region.map().unwrap());
        let updates = [7, 9, 8].map(|value| CurrentValueUpdate {
            fence: native.id(),
            value,
            word: block.word(offset),
        });
        bench
            .spy
            .update_current_values_from_cpu(&updates, UpdateCurrentValuesFlags::default())
            .unwrap();
        assert_eq!(fence.current_value(), 8);
    });
}

/// A batch with an error in it stores nothing, and the driver is not called.
///
/// Kills `a-batch-goes-backward`.
#[test]
fn nf_17_a_batch_with_an_error_stores_nothing() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = bench.adapter.create_device();
        let fences: Vec<_> = (0..33).map(|_| device.create_fence(5).unwrap()).collect();
        let closed = device.create_fence(5).unwrap();
        closed.close();
        bench.spy.take();
        for (batch, error) in [
            (
                vec![(&fences[0], 6), (&fences[1], 4)],
                SignalError::Backward { current: 5 },
            ),
            (vec![(&fences[0], 6), (&closed, 6)], SignalError::Closed),
            (
                vec![(&fences[0], 6), (&fences[0], 7)],
                SignalError::NamedTwice,
            ),
            (
                fences.iter().map(|fence| (fence, 6)).collect(),
                SignalError::TooMany,
            ),
        ] {
            assert_eq!(Fence::signal_all(&batch), Err(error));
            assert_eq!(values(&fences), [5; 33], "{error}");
        }
        assert!(!bench.spy.take().iter().any(is_update));
        Fence::signal_all(&[]).unwrap();
    });
}

/// When a CPU signal returns, the value is stored, and the waiters that it satisfies are released,
/// though no interrupt can come; the waiter of more stays, and MonitoredValue is its.
///
/// Kills `cpu-signals-release-nobody` and `cpu-signals-store-nothing`.
#[test]
fn nf_20_a_signal_that_returned_is_stored_and_has_released_its_waiters() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.adapter.create_device().create_fence(0).unwrap();
        let native = fence.object().fence();
        bench.engine.keep_ends(true);
        let [three, five, nine] = [3, 5, 9].map(|value| bench.waiter(&fence, value));
        for waiter in [&three, &five, &nine] {
            waiter.until_asleep();
        }
        assert_eq!(native.monitored_value(), 2);
        fence.signal(5).unwrap();
        assert_eq!(fence.current_value(), 5);
        assert_eq!(native.monitored_value(), 8);
        assert_eq!((three.join(), five.join()), (Ok(()), Ok(())));
        assert!(!nine.is_finished());
        fence.signal(9).unwrap();
        assert_eq!(native.monitored_value(), u64::MAX);
        assert_eq!(nine.join(), Ok(()));
    });
}

/// A queue that waits on the fence goes on, though its engine was let go.
///
/// Kills `a-parked-engine-is-not-started`.
#[test]
fn nf_20_a_signal_brings_back_a_parked_engine() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = bench.adapter.create_device();
        let (gate, done) = (
            device.create_fence(0).unwrap(),
            device.create_fence(0).unwrap(),
        );
        let mut queue = device.create_hw_queue().unwrap();
        for round in 1..=5 {
            queue
                .submit(CommandList::new().wait(&gate, round).signal(&done, round))
                .unwrap();
            bench.until_parked();
            assert_eq!(done.current_value(), round - 1);
            gate.signal(round).unwrap();
            done.wait(round, LONG).unwrap();
        }
    });
}

/// NotificationOnly stores nothing and makes the GPU look again at the queues that wait on the
/// fence, whose CurrentValue somebody else has stored; the OS does nothing of its own here. An
/// engine whose queues wait on other fences is let alone.
///
/// Kills `cpu-signals-do-not-tell-the-gpu` and `a-signal-wakes-every-parked-engine`.
#[test]
fn nf_18_a_notification_brings_back_the_engines_that_wait_on_the_fence() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let fences = [bench.fence(0), bench.fence(0)];
        let mut ends = Vec::new();
        for (fence, node) in fences.iter().zip(0..) {
            let mut queue = bench.queue_on(node);
            let end = queue.submit(CommandList::new().wait(fence, 5)).unwrap();
            ends.push((queue, end));
        }
        bench.until_parked();
        let slices = || [0, 1].map(|node| bench.counters_of(node).slices);
        let before = slices();

        let (region, offset) = native(&fences[1]).current_value_place();
        let stored = Block::whole(&region.map().unwrap()).part(offset, 8);
        stored.word(0).publish(6);
        let update = CurrentValueUpdate {
            fence: native(&fences[1]).id(),
            value: 5,
            word: stored.word(0),
        };
        let flags = UpdateCurrentValuesFlags::NOTIFICATION_ONLY;
        bench
            .spy
            .update_current_values_from_cpu(&[update], flags)
            .unwrap();
        until_completed(&ends[1].0, ends[1].1);
        assert_eq!(fences[1].current_value(), 6, "nothing is stored");
        bench.until_parked();
        assert_eq!(slices()[0], before[0], "the other engine was started");
        fences[0].signal(5).unwrap();
        until_completed(&ends[0].0, ends[0].1);
    });
}

/// A call goes to one driver: fences of several adapters are refused, and nothing is stored.
///
/// Kills `a-batch-of-several-adapters-goes-to-the-first`.
#[test]
fn nf_17_a_batch_of_several_adapters_is_refused() {
    on_every_bench(NodePolicy::default(), |here| {
        on_every_bench(NodePolicy::default(), |there| {
            let (one, other) = (here.fence(0), there.fence(0));
            let refused = Fence::signal_all(&[(&one, 1), (&other, 1)]);
            assert_eq!(refused, Err(SignalError::SeveralAdapters));
            assert_eq!((one.current_value(), other.current_value()), (0, 0));
        });
    });
}
