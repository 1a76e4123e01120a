//! CPU waits for several fences: any of them, or all.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

#[path = "support/engines.rs"]
mod engines;

use native_fence::gpu::NodePolicy;
use native_fence::{CommandList, Fence, Timeout, WaitManyError};
use std::time::Duration;
use support::bench::{
    LONG, Waiter, each, fences, monitored_value, monitored_values, native, nobody_waits,
    on_every_bench, signal,
};

/// Whichever fence the GPU signals first ends a wait for any of them, with its index; when it has
/// returned nobody waits on the others, and their signals raise nothing.
///
/// Kills `any-is-all`, `the-others-stay-monitored` and `every-part-is-the-first`.
#[test]
fn nf_22_wait_any_ends_by_the_first_gpu_signal() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        for first in 0..3 {
            let fences = fences(bench, 3);
            let waits = each(&fences, &[1, 5, 3]);
            let waiter = Waiter::for_any(&waits);
            waiter.until_asleep();
            assert_eq!(monitored_values(&fences), [0, 4, 2]);
            let (fence, value) = waits[first];
            queue
                .submit(CommandList::new().signal(fence, value))
                .unwrap();
            assert_eq!(waiter.join(), Ok(first));
            assert!(nobody_waits(&fences));
            bench.until_told();
            for (at, (fence, value)) in waits.iter().enumerate() {
                signal(bench, &mut queue, fence, value + 1);
                let raised = bench.spy.raised(native(fence).id());
                assert_eq!(raised.len(), usize::from(at == first));
            }
        }
    });
}

/// A wait for all ends by the last signal of the GPU, in whatever order they come; meanwhile it is
/// monitored where it still waits and nowhere else.
///
/// Kills `all-is-any` and `every-part-is-the-first`.
#[test]
fn nf_22_wait_all_needs_all_in_any_order() {
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        for order in orders {
            let fences = fences(bench, 3);
            let waits = each(&fences, &[1, 5, 3]);
            let waiter = Waiter::for_all(&waits);
            let mut expected = [0, 4, 2];
            for at in order {
                waiter.until_asleep();
                assert_eq!(monitored_values(&fences), expected);
                signal(bench, &mut queue, waits[at].0, waits[at].1);
                expected[at] = u64::MAX;
            }
            assert_eq!(waiter.join(), Ok(()));
            assert!(nobody_waits(&fences));
        }
    });
}

/// What was satisfied of a wait for all stays satisfied, though it is rewound while the others are
/// waited for: what was there at the beginning, and what came later.
///
/// Kills `a-woken-wait-looks-again`.
#[test]
fn nf_22_wait_all_keeps_what_a_rewind_takes_back() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        let fences = fences(bench, 3);
        fences[0].signal(7).unwrap();
        let copies = fences.clone();
        // It comes to stand only where it has to.
        let waiter = Waiter::on(&[&fences[1], &fences[2]], move || {
            Fence::wait_all(&each(&copies, &[7, 5, 3]), LONG)
        });
        waiter.until_asleep();
        assert_eq!(monitored_values(&fences), [u64::MAX, 4, 2]);
        fences[0].rewind(0).unwrap();
        fences[1].signal(5).unwrap();
        fences[1].rewind(1).unwrap();
        waiter.until_asleep();
        assert_eq!(monitored_values(&fences), [u64::MAX, u64::MAX, 2]);
        signal(bench, &mut queue, &fences[2], 3);
        assert_eq!(waiter.join(), Ok(()));
        assert!(nobody_waits(&fences));
        let values: Vec<_> = fences.iter().map(Fence::current_value).collect();
        assert_eq!(values, [0, 1, 3]);
    });
}

/// The fence that ended a wait for any is the one that came first, whatever comes before its thread
/// runs.
///
/// Kills `the-last-end-counts`.
#[test]
fn nf_22_wait_any_tells_the_fence_that_came_first() {
    on_every_bench(NodePolicy::default(), |bench| {
        for first in [0, 1] {
            for _ in 0..5 {
                let fences = fences(bench, 2);
                // More than there are cores: they cannot all run before the second signal.
                let waits = (0..16).map(|_| Waiter::for_any(&each(&fences, &[1, 1])));
                let waits: Vec<_> = waits.collect();
                waits.iter().for_each(Waiter::until_asleep);
                fences[first].signal(1).unwrap();
                fences[1 - first].signal(1).unwrap();
                for wait in waits {
                    assert_eq!(wait.join(), Ok(first));
                }
                assert!(nobody_waits(&fences));
            }
        }
    });
}

/// Signals of the CPU satisfy, too: one for any, a batch for all.
///
/// Kills `all-is-any`.
#[test]
fn nf_22_cpu_signals_satisfy_any_and_all() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fences = fences(bench, 3);
        let any = Waiter::for_any(&each(&fences, &[9, 4, 9]));
        let all = Waiter::for_all(&each(&fences, &[9, 4, 9]));
        all.until_asleep();
        fences[1].signal(4).unwrap();
        assert_eq!(any.join(), Ok(1));
        all.until_asleep();
        assert_eq!(monitored_values(&fences), [8, u64::MAX, 8]);
        Fence::signal_all(&[(&fences[2], 10), (&fences[0], 9)]).unwrap();
        assert_eq!(all.join(), Ok(()));
        assert!(nobody_waits(&fences));
    });
}

/// 32 fences can be waited for, all of them and any; none, or 33, are refused with an error that
/// says why, before anything is looked at.
///
/// Kills `thirty-two-are-refused` and `every-part-is-the-first`.
#[test]
fn nf_22_up_to_32_fences() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        let fences = fences(bench, 33);
        let waits = each(&fences, &[1; 33]);
        let any = Waiter::for_any(&waits[..32]);
        let all = Waiter::for_all(&waits[..32]);
        any.until_asleep();
        all.until_asleep();
        assert_eq!(monitored_values(&fences[..32]), [0; 32]);
        let mut signal = |at: usize| {
            assert!(!all.is_finished());
            let mut list = CommandList::new();
            queue.submit(list.signal(&fences[at], 1)).unwrap();
        };
        // Before the others: who is told of two slices by two threads may be told of the later one first.
        signal(31);
        assert_eq!(any.join(), Ok(31));
        // 11 and 32 have no common divisor: each comes once.
        for at in (1..32).map(|at| (31 + 11 * at) % 32) {
            signal(at);
        }
        assert_eq!(all.join(), Ok(()));
        assert!(nobody_waits(&fences));

        let before = bench.spy.updates();
        let many = Fence::wait_any(&waits, LONG);
        assert_eq!(many, Err(WaitManyError::TooMany));
        let says = many.unwrap_err().to_string();
        assert_eq!(says, "one call waits for at most 32 fences");
        assert_eq!(Fence::wait_all(&waits, LONG), Err(WaitManyError::TooMany));
        assert_eq!(Fence::wait_any(&[], LONG), Err(WaitManyError::NoFence));
        assert_eq!(Fence::wait_all(&[], LONG), Err(WaitManyError::NoFence));
        assert_eq!(bench.spy.updates(), before);
    });
}

/// A fence may be named twice with different values: any ends with the lesser, all with the
/// greater.
///
/// Kills `any-is-all`, `all-is-any` and `every-part-is-the-first`.
#[test]
fn nf_22_the_same_fence_twice() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        let fence = bench.fence(0);
        let waits = [(&fence, 5), (&fence, 3)];
        let (any, all) = (Waiter::for_any(&waits), Waiter::for_all(&waits));
        all.until_asleep();
        assert_eq!(monitored_value(&fence), 2);
        signal(bench, &mut queue, &fence, 3);
        assert_eq!(any.join(), Ok(1));
        all.until_asleep();
        assert_eq!(monitored_value(&fence), 4);
        signal(bench, &mut queue, &fence, 5);
        assert_eq!(all.join(), Ok(()));
        assert_eq!(monitored_value(&fence), u64::MAX);
        let twice = [(&fence, 6), (&fence, 6)];
        let timed_out = Fence::wait_any(&twice, Duration::from_millis(5));
        assert_eq!(timed_out, Err(WaitManyError::TimedOut));
        assert_eq!(monitored_value(&fence), u64::MAX);
    });
}

/// What is satisfied when it begins tells no driver and no engine of it; of several fences that are
/// there, any takes the first.
///
/// Kills `any-takes-the-last` and `what-is-there-is-waited-for`.
#[test]
fn nf_22_what_is_there_makes_no_call() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fences = fences(bench, 4);
        Fence::signal_all(&each(&fences[1..], &[4, 9, 9])).unwrap();
        bench.spy.take();
        for timeout in [Duration::ZERO.into(), LONG.into(), Timeout::Never] {
            let any = |values| Fence::wait_any(&each(&fences, values), timeout);
            assert_eq!(any(&[1, 5, 8, 9]), Ok(2));
            assert_eq!(any(&[1, 3, 8, 9]), Ok(1));
            assert_eq!(any(&[0, 0, 0, 0]), Ok(0));
            let all = |values| Fence::wait_all(&each(&fences, values), timeout);
            assert_eq!(all(&[0, 4, 8, 9]), Ok(()));
        }
        assert_eq!(bench.spy.updates(), 0);
        assert!(fences.iter().all(|fence| native(fence).waits() == 0));
    });
}

/// Fences of several devices and of several adapters are waited for together (choice).
///
/// Kills `any-is-all` and `all-is-any`.
#[test]
fn nf_22_fences_of_several_adapters() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (other, _memory) = engines::model();
        let elsewhere = other.create_device();
        let mut far_queue = elsewhere.create_hw_queue().unwrap();
        let fences = [
            bench.fence(0),
            bench.adapter.create_device().create_fence(0).unwrap(),
            elsewhere.create_fence(0).unwrap(),
        ];
        let waits = each(&fences, &[1, 1, 1]);
        let (any, all) = (Waiter::for_any(&waits), Waiter::for_all(&waits));
        any.until_asleep();
        all.until_asleep();
        let mut list = CommandList::new();
        far_queue.submit(list.signal(&fences[2], 1)).unwrap();
        assert_eq!(any.join(), Ok(2));
        fences[1].signal(1).unwrap();
        all.until_asleep();
        let mut queue = bench.queue();
        signal(bench, &mut queue, &fences[0], 1);
        assert_eq!(all.join(), Ok(()));
        assert!(nobody_waits(&fences));
    });
}
