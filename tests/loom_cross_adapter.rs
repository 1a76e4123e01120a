//! Fences of several adapters whose signals the OS propagates (XA-02, XA-03), in every order that loom finds: two adapters
//! with their real sides, one of them with an engine where that is asked for. As `tests/loom.rs` otherwise.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_rig;
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_systems;
}

use loom::thread;
use native_fence::gpu::Arrival;
use native_fence::shared::Block;
use native_fence::umd::Device;
use native_fence::{CommandList, CrossAdapter, Fence, FenceOptions, Timeout};
use support::loom_rig::{Rig, RigOptions, armed_waiter, explore};
use support::loom_systems::{raise, rest, signaller, without_engines};

/// A fence of the first adapter.
fn propagated_fence(device: &Device) -> Fence {
    let options = FenceOptions {
        cross_adapter: Some(CrossAdapter::Propagated),
        ..FenceOptions::default()
    };
    device.create_fence_with(options).unwrap()
}

/// The same on another adapter.
fn side_of(fence: &Fence, device: &Device) -> Fence {
    device.open_fence(&fence.share().unwrap()).unwrap()
}

/// A thread that takes the value back.
fn rewinder(fence: &Fence) -> thread::JoinHandle<()> {
    let fence = fence.clone();
    thread::spawn(move || fence.rewind(0).unwrap())
}

/// XA-02: A's engine signals while B's waiter comes: its look finds the value, or A's interrupt finds it.
#[test]
fn loom_an_engine_signals_while_another_adapter_arms() {
    explore(2..=2, || {
        let rig = Rig::new(RigOptions::default());
        let b = without_engines();
        let made = propagated_fence(&rig.device);
        let opened = side_of(&made, &b);
        let mut queue = rig.queue();
        rig.rest();
        loom::explore();
        queue.submit(CommandList::new().signal(&made, 1)).unwrap();
        opened.wait(1, Timeout::Never).unwrap();
        loom::stop_exploring();
    });
}

/// The record can be here before the value: B's waiter, who stands by then, is released by what A's record says.
#[test]
fn loom_another_adapter_hears_of_a_value_before_it_arrives() {
    explore(1..=2, || {
        let rig = Rig::new(RigOptions {
            short_slices: true,
            current_values: Arrival::AtSliceEnd,
            ..RigOptions::default()
        });
        let b = without_engines();
        let made = propagated_fence(&rig.device);
        let opened = side_of(&made, &b);
        let mut queue = rig.queue();
        let waits = armed_waiter(&opened, 1);
        rig.rest();
        // The first slice ends at the third packet.
        let mut list = CommandList::new();
        list.nop().nop().nop().signal(&made, 1);
        queue.submit(&list).unwrap();
        loom::explore();
        waits.join().unwrap().unwrap();
        loom::stop_exploring();
    });
}

/// A queue of B stands at a wait while B's engine parks, and A's CPU signals: nobody else brings the engine back.
#[test]
fn loom_another_adapter_signals_while_an_engine_parks() {
    explore(1..=2, || {
        let rig = Rig::new(RigOptions::default());
        let a = without_engines();
        let made = propagated_fence(&a);
        let (from, to, mut queue) = (side_of(&made, &rig.device), rig.fence(), rig.queue());
        rig.rest();
        loom::explore();
        queue
            .submit(CommandList::new().wait(&from, 1).signal(&to, 1))
            .unwrap();
        made.signal(1).unwrap();
        to.wait(1, Timeout::Never).unwrap();
        loom::stop_exploring();
    });
}

/// NF-21: CPUs signal on both sides at a time. Whether a value goes back is judged against what is stored, on whatever
/// side, so it does not; and a waiter of either value hears of it.
#[test]
fn loom_cpus_of_two_adapters_signal() {
    explore(3..=3, || {
        let (a, b) = (without_engines(), without_engines());
        let made = propagated_fence(&a);
        let opened = side_of(&made, &b);
        rest();
        loom::explore();
        let signals = signaller(&made, 2);
        let _ = opened.signal(1);
        opened.wait(2, Timeout::Never).unwrap();
        signals.join().unwrap();
        loom::stop_exploring();
        assert_eq!(made.current_value(), 2, "a lower value was stored last");
    });
}

/// B opens the fence and waits there while A's CPU signals: the signal finds B's side, or its waiter the value.
#[test]
fn loom_a_side_is_opened_while_another_adapter_signals() {
    explore(2..=3, || {
        let (a, b) = (without_engines(), without_engines());
        let made = propagated_fence(&a);
        rest();
        loom::explore();
        let signals = signaller(&made, 1);
        let opened = side_of(&made, &b);
        opened.wait(1, Timeout::Never).unwrap();
        signals.join().unwrap();
        loom::stop_exploring();
    });
}

/// NF-26: A's CPU takes back what A's engine has signalled while B opens the fence: the rewind finds B's side, or B learns of
/// it when its side joins. A's record is older than the waiter who comes to B then.
#[test]
fn loom_a_side_is_opened_while_another_adapter_rewinds() {
    explore(3..=3, || {
        let (a, b) = (without_engines(), without_engines());
        let made = propagated_fence(&a);
        made.signal(6).unwrap();
        rest();
        loom::explore();
        let rewind = rewinder(&made);
        let opened = side_of(&made, &b);
        rewind.join().unwrap();
        let wait = opened.arm(5);
        raise(&made, 6);
        loom::stop_exploring();
        assert_eq!(wait.outcome(), None, "5 was not signalled since");
    });
}

/// The same of a waiter who comes to B's side, which is open, and has seen the lower value: B has heard of the rewind by
/// then.
#[test]
fn loom_another_adapters_waiter_comes_while_one_rewinds() {
    explore(3..=3, || {
        let (a, b) = (without_engines(), without_engines());
        let made = propagated_fence(&a);
        let opened = side_of(&made, &b);
        made.signal(6).unwrap();
        rest();
        loom::explore();
        let rewind = rewinder(&made);
        let wait = (opened.current_value() == 0).then(|| opened.arm(5));
        raise(&made, 6);
        rewind.join().unwrap();
        loom::stop_exploring();
        if let Some(wait) = wait {
            assert_eq!(wait.outcome(), None, "5 was not signalled since");
        }
    });
}

/// NF-26: work that no engine makes takes 1 back and stores it again, and whoever watches the work looks when both are done.
/// B's waiter comes before, between the two, or later.
#[test]
fn loom_work_signals_again_while_another_adapter_arms() {
    explore(2..=3, || {
        let (a, b) = (without_engines(), without_engines());
        let made = propagated_fence(&a);
        let opened = side_of(&made, &b);
        let (region, offset) = made.object().fence().current_value_place();
        let word = Block::whole(&region.map().unwrap());
        word.word(offset).publish(1);
        made.object().look_again();
        rest();
        loom::explore();
        let works = thread::spawn({
            let made = made.clone();
            move || {
                word.word(offset).publish(0);
                word.word(offset).publish(1);
                made.object().look_again();
            }
        });
        opened.wait(1, Timeout::Never).unwrap();
        works.join().unwrap();
        loom::stop_exploring();
    });
}
