//! Cross-adapter fences of two adapters that both have native fences (XA-01 to XA-04).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod two_benches;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::Interrupt;
use native_fence::shared::Region;
use native_fence::{
    CommandList, CreateError, CrossAdapter, Fence, FenceMemory, FenceOptions, SignalError,
};
use std::sync::Arc;
use support::bench::{complete, monitored_value, native, on_every_bench, until, until_completed};
use support::two_benches::{Seen, cross_adapter, on_two_benches, seen};

/// XA-01: type DEFAULT alone, and in memory that every adapter reaches; whichever way adapters hear of it.
///
/// Kills `a-cross-adapter-fence-may-be-intra-gpu`, `a-cross-adapter-fence-may-be-local`.
#[test]
fn xa_01_only_type_default_is_cross_adapter() {
    on_every_bench(NodePolicy::default(), |bench| {
        for mode in [CrossAdapter::Propagated, CrossAdapter::Doorbell] {
            let create = |memory, intra_gpu| {
                bench.device.create_fence_with(FenceOptions {
                    memory,
                    intra_gpu,
                    cross_adapter: Some(mode),
                    ..FenceOptions::default()
                })
            };
            for memory in [FenceMemory::System, FenceMemory::Local] {
                let refused = create(memory, true).unwrap_err();
                assert!(matches!(refused, CreateError::CrossAdapterIntraGpu));
            }
            let refused = create(FenceMemory::Local, false).unwrap_err();
            assert!(matches!(refused, CreateError::CrossAdapterLocalMemory));
            // That one with a doorbell is made, others see: engines that ring may be made for it, which takes its time.
            if mode == CrossAdapter::Propagated {
                let made = create(FenceMemory::System, false).unwrap();
                assert_eq!(made.current_value(), 0);
            }
        }
    });
}

/// Region, as a number that tells it from others, and offset.
fn place((region, offset): (&Arc<Region>, u64)) -> ((u64, u64), u64) {
    (region.file().unwrap().unwrap(), offset)
}

/// XA-02: CurrentValue is one word of one file of memory, whoever made the fence, and MonitoredValue is each
/// adapter's own. A second handle on an adapter is one on the same object.
///
/// Kills `a-side-has-a-current-value-of-its-own`, `each-handle-is-a-side`.
#[test]
fn xa_02_one_current_value_and_a_monitored_value_each() {
    on_two_benches(|one, other| {
        let (here, there) = cross_adapter(one, other, 7);
        let places = [&here, &there].map(|fence| place(native(fence).current_value_place()));
        assert_eq!(places[0], places[1]);
        let monitored = [&here, &there].map(|fence| place(native(fence).monitored_value_place()));
        assert_ne!(monitored[0].0, monitored[1].0);
        assert_ne!(
            monitored[0].0, places[0].0,
            "never in one page with it (NF-11)"
        );
        assert_eq!((here.current_value(), there.current_value()), (7, 7));
        here.signal(8).unwrap();
        assert_eq!(there.current_value(), 8);
        there.signal(9).unwrap();
        assert_eq!(here.current_value(), 9);

        let again = other.device.open_fence(&here.share().unwrap()).unwrap();
        assert_eq!(native(&again).id(), native(&there).id());
        // One adapter's object goes with its handles; the other's goes on, and so does the value.
        drop((there, again));
        here.signal(10).unwrap();
        let anew = other.device.open_fence(&here.share().unwrap()).unwrap();
        assert_eq!(anew.current_value(), 10);
    });
}

/// XA-03: MonitoredValue is 0 and is never posted, and each signal interrupts, whether anybody waits or not.
///
/// Kills `the-model-disarms-for-good`, `the-shader-disarms-for-good`, `a-monitored-value-that-is-fixed-is-posted`.
#[test]
fn xa_03_every_signal_interrupts() {
    const SIGNALS: u64 = 20;
    on_two_benches(|one, other| {
        let (here, there) = cross_adapter(one, other, 0);
        let mut queue = one.queue();
        one.spy.take();
        other.spy.take();
        for value in 1..=SIGNALS {
            complete(&mut queue, CommandList::new().signal(&here, value));
            until("the OS is told", || {
                seen(&one.spy, &here).len() as u64 == value
            });
        }
        let raised: Vec<_> = (1..=SIGNALS).map(Seen::Raised).collect();
        assert_eq!(seen(&one.spy, &here), raised);
        // With a waiter as well, which stands and goes without a post.
        let waiter = one.waiter(&here, SIGNALS + 1);
        complete(&mut queue, CommandList::new().signal(&here, SIGNALS + 1));
        waiter.join().unwrap();
        one.until_told();
        let seen_here = seen(&one.spy, &here);
        assert!(
            seen_here.iter().all(|seen| matches!(seen, Seen::Raised(_))),
            "{seen_here:?}"
        );
        let seen_there = seen(&other.spy, &there);
        assert!(
            seen_there
                .iter()
                .all(|seen| matches!(seen, Seen::Notified(_))),
            "{seen_there:?}"
        );
        assert_eq!(seen_there.len() as u64, SIGNALS + 1);
        assert_eq!((monitored_value(&here), monitored_value(&there)), (0, 0));
    });
}

/// XA-03: so does each of a list, to several of which an engine comes in one iteration.
///
/// Kills `the-model-raises-once-an-iteration` and `the-shader-raises-once-an-iteration`.
#[test]
fn xa_03_every_signal_of_a_list_interrupts() {
    const TOGETHER: u64 = 4;
    on_two_benches(|one, other| {
        let (here, _there) = cross_adapter(one, other, 0);
        let mut queue = one.queue();
        for lists in 1..=5 {
            one.spy.take();
            let mut list = CommandList::new();
            let values = (lists - 1) * TOGETHER + 1..=lists * TOGETHER;
            for value in values.clone() {
                list.signal(&here, value);
            }
            complete(&mut queue, &list);
            let raised: Vec<_> = values.map(Seen::Raised).collect();
            until("the OS is told of each", || {
                seen(&one.spy, &here).len() == raised.len()
            });
            assert_eq!(seen(&one.spy, &here), raised);
        }
    });
}

/// XA-03: where the set of signalled fences is not known, the OS is told that there were some (IN-04). Who waits for the
/// last signal, on either adapter, is released.
///
/// Kills `an-unnamed-fence-is-not-propagated`.
#[test]
fn xa_03_what_no_record_names_is_propagated() {
    const SIGNALS: u64 = 20;
    on_two_benches(|one, other| {
        let (here, there) = cross_adapter(one, other, 0);
        let (mut signals, mut waits) = (one.queue(), other.queue());
        let waiters = [one.waiter(&here, SIGNALS), other.waiter(&there, SIGNALS)];
        let end = waits
            .submit(CommandList::new().wait(&there, SIGNALS))
            .unwrap();
        other.until_parked();
        one.spy.on_interrupt(|interrupt| {
            if let Interrupt::NativeFenceSignaled(signaled) = interrupt {
                signaled.fences = None;
            }
        });
        let mut list = CommandList::new();
        for value in 1..=SIGNALS {
            list.signal(&here, value);
        }
        signals.submit(&list).unwrap();
        for waiter in waiters {
            waiter.join().unwrap();
        }
        until_completed(&waits, end);
    });
}

/// XA-03: the signaller drops its last handle before the OS has heard of the signal, whose record names nobody any more.
///
/// Kills `what-a-gone-side-has-stored-is-not-propagated`.
#[test]
fn xa_03_a_signal_outlives_its_handle() {
    on_two_benches(|one, other| {
        let (here, there) = cross_adapter(one, other, 0);
        let mut queue = one.queue();
        one.until_parked();
        let waiter = other.waiter(&there, 10);
        one.spy.keep_interrupts();
        complete(&mut queue, CommandList::new().signal(&here, 10));
        until("it is raised", || {
            seen(&one.spy, &here).contains(&Seen::Raised(10))
        });
        assert!(!waiter.is_finished());
        one.spy.pass_interrupts();
        drop(here);
        waiter.join().unwrap();
    });
}

/// XA-03, NF-21: CPU signals of two adapters are judged one after the other: each value is stored once, and none goes
/// back.
///
/// Kills `cpu-signals-of-two-sides-have-no-turn`.
#[test]
fn xa_03_cpu_signals_of_two_adapters_have_their_turn() {
    const MOST: u64 = 20_000;
    on_two_benches(|one, other| {
        let (here, there) = cross_adapter(one, other, 0);
        // The one stores even values and the other odd ones: of each two that are near, the later one is refused if
        // it is the lower.
        let run = |fence: &Fence, first: u64| {
            let mut seen = 0;
            for value in (first..MOST).step_by(2) {
                match fence.signal(value) {
                    Ok(()) => {}
                    Err(SignalError::Backward { current }) => assert!(current > value),
                    Err(other) => panic!("{other}"),
                }
                let now = fence.current_value();
                assert!(
                    now >= value && now >= seen,
                    "{now} after {seen} and {value}"
                );
                seen = now;
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| run(&here, 1));
            scope.spawn(|| run(&there, 2));
        });
        assert_eq!(here.current_value(), MOST - 1);
    });
}

/// XA-04: wait and signal on one adapter meet without the CPU: the wait ends though the OS learns of no interrupt.
/// Kills `model-waits-for-cross-adapter-fences-are-the-systems`.
#[test]
fn xa_04_a_wait_on_the_signalling_adapter_needs_no_cpu() {
    on_two_benches(|one, other| {
        let (here, _there) = cross_adapter(one, other, 0);
        let (mut waits, mut signals) = (one.queue(), one.queue());
        let end = waits.submit(CommandList::new().wait(&here, 10)).unwrap();
        one.until_parked();
        one.spy.take();
        one.spy.keep_interrupts();
        signals
            .submit(CommandList::new().signal(&here, 10))
            .unwrap();
        until_completed(&waits, end);
        until("it is raised all the same", || {
            seen(&one.spy, &here) == [Seen::Raised(10)]
        });
    });
}
