//! What changes of MonitoredValue do while an engine runs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::{Ddi, MonitoredValueUpdate};
use native_fence::shared::Block;
use native_fence::{CommandList, Fence, HwQueue};
use std::sync::Arc;
use support::bench::{Bench, LONG, Moment, complete, on_every_bench};

/// A queue that stands at a wait, and the fence that lets it go.
fn standing_queue(bench: &Bench) -> (HwQueue, Fence) {
    let device = bench.adapter.create_device();
    let gate = device.create_fence(0).unwrap();
    let mut queue = device.create_hw_queue().unwrap();
    queue.submit(CommandList::new().wait(&gate, 1)).unwrap();
    (queue, gate)
}

/// Stores CurrentValue as an engine would: into the memory, with no call.
fn store_current_value(fence: &Fence) -> impl Fn(u64) + Send + Sync + 'static {
    let (region, offset) = fence.object().fence().current_value_place();
    let block = Block::whole(&region.map().unwrap());
    move |value| block.word(offset).publish(value)
}

/// Wakes the engine, if it is parked: one more look at all queues.
fn wake(bench: &Bench) {
    bench.spy.resume_engine(0);
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

/// Posts a MonitoredValue below CurrentValue to a slice that is in flight and has not looked yet, and
/// waits until all that it raises is told. With no slice in flight the post were the host's to adopt.
fn raise_by_adoption(bench: &Bench, fence: &Fence) {
    bench.until_parked();
    let gate = bench.engine.close();
    wake(bench);
    assert_eq!(bench.engine.at_gate(), 1);
    post_behind_the_os(bench, fence, 3);
    drop(gate);
    bench.until_told();
}

/// An engine that adopts a MonitoredValue below CurrentValue raises, though nothing is signalled
/// any more. That shadow, barrier and look come in this order, with no signal between, is held in
/// place by `an_adoption_stores_the_shadow_and_then_looks_at_the_value` and
/// `lanes_meet_twice_an_iteration_and_nowhere_else` of tests/engine_shader.rs.
///
/// Kills `adoption-never-raises` and `model-adoption-never-raises`.
#[test]
fn nf_07_a_value_above_the_adopted_monitored_value_is_raised() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (_queue, _gate) = standing_queue(bench);
        let fence = bench.fence(0);
        let mut signaller = bench.queue();
        complete(&mut signaller, CommandList::new().signal(&fence, 10));
        // Nobody waits on any fence: nothing else is ever raised here.
        bench.until_told();
        assert_eq!(bench.spy.named(), []);
        raise_by_adoption(bench, &fence);
        assert_eq!(bench.spy.raised(fence.object().fence().id()), [10]);
    });
}

/// MonitoredValue is stored, the call returns while a slice that was in flight before it has not
/// ended, and the waiter of a value that came between post and look is released without interrupt.
///
/// Kills `posts-store-no-monitored-value` and `a-post-waits-for-the-engine`.
#[test]
fn nf_08_a_post_waits_for_no_engine_and_the_os_looks_again() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (_queue, _gate) = standing_queue(bench);
        let fence = bench.fence(0);
        let store = store_current_value(&fence);
        let id = fence.object().fence().id();
        let native = Arc::clone(fence.object().fence());
        bench.spy.hook(move |moment, updates| {
            let arms = || updates[0].0 == id && updates[0].1 != u64::MAX;
            if moment == Moment::AfterUpdateOfMonitoredValues && arms() {
                assert_eq!(native.monitored_value(), updates[0].1, "the word is stored");
                store(updates[0].1 + 1);
            }
        });
        bench.until_parked();
        let gate = bench.engine.close();
        wake(bench);
        for value in 1..=20 {
            // No slice ends meanwhile: nothing but the look can release.
            fence.wait(value, LONG).unwrap();
            assert_eq!(bench.engine.at_gate(), 1);
        }
        bench.spy.unhook();
        assert_eq!(fence.object().fence().monitored_value(), u64::MAX);
        drop(gate);
        bench.until_told();
        assert_eq!(bench.spy.named(), []);
    });
}

/// A post that came too late for the slice in flight, and a value that came too late for the OS's
/// look: the service of the slice has the fence read again.
///
/// Kills `unadopted-posts-are-forgotten`.
#[test]
fn nf_08_a_post_that_no_slice_adopted_is_looked_at_when_the_slice_is_serviced() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let store = store_current_value(&fence);
        let mut queue = bench.then_parked(|| bench.queue());
        bench.engine.keep_ends(true);
        queue.submit(CommandList::new().nop()).unwrap();
        bench.engine.wait_really(bench.engine.submitted());
        let waiter = bench.waiter(&fence, 7);
        waiter.until_asleep();
        store(7);
        assert!(!waiter.is_finished(), "nobody looked");
        bench.engine.keep_ends(false);
        assert_eq!(waiter.join(), Ok(()));
    });
}

/// An interrupt that unblocks nobody: the waiter that stands goes on waiting, and its value still
/// raises, although the raise before had disarmed the engine's shadow.
///
/// Kills `an-answer-arms-nothing`.
#[test]
fn nf_06_an_interrupt_that_unblocks_nobody_is_harmless() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (_queue, _gate) = standing_queue(bench);
        let fence = bench.fence(10);
        let mut signaller = bench.queue();
        bench.until_parked();
        let waiter = bench.waiter(&fence, 20);
        waiter.until_asleep();
        raise_by_adoption(bench, &fence);
        assert!(!waiter.is_finished(), "10 is not 20");
        signaller
            .submit(CommandList::new().signal(&fence, 20))
            .unwrap();
        assert_eq!(waiter.join(), Ok(()));
        bench.until_told();
        assert_eq!(bench.spy.raised(fence.object().fence().id()), [10, 20]);
    });
}
