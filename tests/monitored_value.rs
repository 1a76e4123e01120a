//! What changes of MonitoredValue do while an engine runs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/held_bench.rs"]
mod held_bench;
#[path = "support/held_engine.rs"]
mod held_engine;
#[path = "support/spy_ddi.rs"]
mod spy_ddi;

use held_bench::{Bench, on_every_bench, store_current_value, thread_number, until_it_sleeps};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{Ddi, MonitoredValueUpdate};
use native_fence::shared::Block;
use native_fence::{CommandList, Fence, HwQueue};
use spy_ddi::{Call, Moment};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(15);

/// Slices that last until their passes are spent, or somebody asks.
fn long_slices() -> NodePolicy {
    NodePolicy {
        slice_time: Duration::from_secs(5),
        idle_window: Duration::from_secs(5),
        ..NodePolicy::default()
    }
}

/// A queue that stands at a wait, and the fence that lets it go: the engine looks at it in a slice
/// as long as it may be.
fn standing_queue(bench: &Bench) -> (HwQueue, Fence) {
    let device = bench.adapter.create_device();
    let gate = device.create_fence(0).unwrap();
    let mut queue = device.create_hw_queue().unwrap();
    queue.submit(CommandList::new().wait(&gate, 1)).unwrap();
    (queue, gate)
}

/// Wakes the engine, if it is parked: one more look at all queues.
fn wake(fence: &Fence) {
    fence.signal(fence.current_value() + 1).unwrap();
}

/// The call that the OS makes, made by the test: the OS does not read CurrentValue after it.
fn post_behind_the_os(bench: &Bench, fence: &Fence, value: u64) {
    let native = fence.object().fence();
    let (region, offset) = native.monitored_value_place();
    let block = Block::whole(&region.map().unwrap());
    let update = MonitoredValueUpdate {
        fence: native.id(),
        value,
        word: block.word(offset),
    };
    bench.spy.update_monitored_values(&[update]).unwrap();
}

/// An engine that adopts a MonitoredValue below CurrentValue raises, though nothing is signalled
/// any more. That shadow, barrier and look come in this order, with no signal between, is held in
/// place by `an_adoption_stores_the_shadow_and_then_looks_at_the_value` and
/// `lanes_meet_twice_an_iteration_and_nowhere_else` of tests/engine_shader.rs.
///
/// Kills `adoption-never-raises` and `model-adoption-never-raises`.
#[test]
fn nf_07_a_value_above_the_adopted_monitored_value_is_raised() {
    on_every_bench(long_slices(), |bench| {
        let (_queue, _gate) = standing_queue(bench);
        let device = bench.adapter.create_device();
        let (fence, prod) = (
            device.create_fence(0).unwrap(),
            device.create_fence(0).unwrap(),
        );
        let mut other = device.create_hw_queue().unwrap();
        other.submit(CommandList::new().signal(&fence, 10)).unwrap();
        let named = || bench.adapter.os().interrupts().fences_named();
        let deadline = Instant::now() + LONG;
        // Nobody waits on any fence: nothing else is ever raised here.
        while fence.current_value() < 10 {
            assert!(Instant::now() < deadline, "10 was never signalled");
            std::thread::yield_now();
        }
        assert_eq!(named(), 0);
        // A post that meets no slice is the host's to adopt: then once more.
        while named() == 0 {
            assert!(Instant::now() < deadline, "no adoption ever raised");
            wake(&prod);
            post_behind_the_os(bench, &fence, 3);
            let slice = bench.holder.started();
            bench.holder.wait_really(slice);
        }
        assert_eq!(fence.current_value(), 10);
    });
}

/// MonitoredValue is stored, the call returns while a slice that was in flight before it still
/// runs, and the waiter of a value that came between post and look is released without interrupt.
///
/// Kills `posts-store-no-monitored-value` and `a-post-waits-for-the-engine`.
#[test]
fn nf_08_a_post_waits_for_no_engine_and_the_os_looks_again() {
    on_every_bench(long_slices(), |bench| {
        let (_queue, _gate) = standing_queue(bench);
        let fence = bench.adapter.create_device().create_fence(0).unwrap();
        let store = store_current_value(&fence);
        let id = fence.object().fence().id();
        let native = Arc::clone(fence.object().fence());
        let returned_early = Arc::new(AtomicBool::new(false));
        let slice_before = Arc::new(AtomicU64::new(0));
        let (early, before) = (Arc::clone(&returned_early), Arc::clone(&slice_before));
        let holder = Arc::clone(&bench.holder);
        bench.spy.hook(move |moment, updates| {
            if updates[0].0 != id || updates[0].1 == u64::MAX {
                return;
            }
            match moment {
                Moment::BeforeMonitored => before.store(holder.started(), Ordering::SeqCst),
                Moment::AfterMonitored => {
                    if !holder.has_really_ended(before.load(Ordering::SeqCst)) {
                        early.store(true, Ordering::SeqCst);
                    }
                    assert_eq!(native.monitored_value(), updates[0].1, "the word is stored");
                    store(updates[0].1 + 1);
                }
                Moment::BeforeCurrent | Moment::AfterCurrent => {}
            }
        });
        let prod = bench.adapter.create_device().create_fence(0).unwrap();
        let deadline = Instant::now() + LONG;
        let mut value = 0;
        while !returned_early.load(Ordering::SeqCst) {
            assert!(Instant::now() < deadline, "every call outlasted the slice");
            value += 1;
            wake(&prod);
            // No end of a slice is told meanwhile: nothing but the look can release.
            bench.holder.hold(true);
            let result = fence.wait(value, LONG);
            bench.holder.hold(false);
            result.unwrap();
        }
        bench.spy.unhook();
        assert_eq!(bench.adapter.os().interrupts().fences_named(), 0);
        assert_eq!(fence.object().fence().monitored_value(), u64::MAX);
    });
}

/// A post that came too late for the slice in flight, and a value that came too late for the OS's
/// look: the service of the slice has the fence read again.
///
/// Kills `unadopted-posts-are-forgotten`.
#[test]
fn nf_08_a_post_that_no_slice_adopted_is_looked_at_when_the_slice_is_serviced() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = bench.adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let store = store_current_value(&fence);
        let mut queue = device.create_hw_queue().unwrap();
        bench.holder.hold(true);
        queue.submit(CommandList::new().nop()).unwrap();
        let slice = bench.holder.started();
        assert!(slice > 0);
        bench.holder.wait_really(slice);
        bench.spy.take();
        let never = device.create_fence(0).unwrap();
        let (sleeper, number) = mpsc::channel();
        let (sent, received) = mpsc::channel();
        std::thread::scope(|scope| {
            // The first waiter waits for the slice in the interrupt thread's stead; the second
            // finds that taken, and sleeps with its last look behind it.
            scope.spawn(|| never.wait(1, LONG));
            bench.spy.wait_for(|call| *call == Call::AssistInterrupts);
            scope.spawn(|| {
                sleeper.send(thread_number()).unwrap();
                sent.send(fence.wait(7, LONG)).unwrap();
            });
            bench.spy.wait_for(|call| *call == Call::AssistReturned);
            until_it_sleeps(number.recv().unwrap());
            store(7);
            assert!(received.try_recv().is_err(), "nobody looked");
            bench.holder.hold(false);
            assert_eq!(received.recv_timeout(LONG), Ok(Ok(())));
            never.close();
        });
    });
}

/// An interrupt that unblocks nobody: the waiter that stands goes on waiting, and its value still
/// raises, although the raise before had disarmed the engine's shadow.
///
/// Kills `an-answer-arms-nothing`.
#[test]
fn nf_06_an_interrupt_that_unblocks_nobody_is_harmless() {
    on_every_bench(long_slices(), |bench| {
        let (_queue, _gate) = standing_queue(bench);
        let device = bench.adapter.create_device();
        let (fence, prod) = (
            device.create_fence(10).unwrap(),
            device.create_fence(0).unwrap(),
        );
        let never = device.create_fence(0).unwrap();
        let mut other = device.create_hw_queue().unwrap();
        let named = || bench.adapter.os().interrupts().fences_named();
        let (sleeper, number) = mpsc::channel();
        let (sent, received) = mpsc::channel();
        std::thread::scope(|scope| {
            // The first waiter looks at its slices itself; the second sleeps until it is woken.
            scope.spawn(|| never.wait(1, LONG));
            bench.spy.wait_for(|call| *call == Call::AssistInterrupts);
            scope.spawn(|| {
                sleeper.send(thread_number()).unwrap();
                sent.send(fence.wait(20, LONG)).unwrap();
            });
            bench.spy.wait_for(|call| *call == Call::AssistReturned);
            until_it_sleeps(number.recv().unwrap());
            let deadline = Instant::now() + LONG;
            while named() == 0 {
                assert!(Instant::now() < deadline, "no adoption ever raised");
                wake(&prod);
                post_behind_the_os(bench, &fence, 3);
                bench.holder.wait_really(bench.holder.started());
            }
            assert!(received.try_recv().is_err(), "10 is not 20");
            other.submit(CommandList::new().signal(&fence, 20)).unwrap();
            let result = received.recv_timeout(LONG);
            never.close();
            assert_eq!(result, Ok(Ok(())));
        });
    });
}
