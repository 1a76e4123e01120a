//! CPU waits for several fences: any of them, or all.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

#[path = "support/engines.rs"]
mod engines;

use native_fence::gpu::NodePolicy;
use native_fence::shared::Block;
use native_fence::{CommandList, Fence, HwQueue, Timeout, WaitError, WaitManyError};
use std::time::Duration;
use support::bench::{
    Bench, Call, LONG, Moment, Waiter, complete, monitored_value, native, on_every_bench, until,
};

const BRIEF: Duration = Duration::from_millis(5);

fn fences(bench: &Bench, count: usize) -> Vec<Fence> {
    (0..count).map(|_| bench.fence(0)).collect()
}

/// Each fence with its value.
fn each<'a>(fences: &'a [Fence], values: &[u64]) -> Vec<(&'a Fence, u64)> {
    fences.iter().zip(values.iter().copied()).collect()
}

fn monitored_values(fences: &[Fence]) -> Vec<u64> {
    fences.iter().map(monitored_value).collect()
}

fn nobody_waits(fences: &[Fence]) -> bool {
    fences
        .iter()
        .all(|fence| monitored_value(fence) == u64::MAX)
}

fn updates(bench: &Bench) -> usize {
    let is_update = |call: &Call| matches!(call, Call::UpdateMonitoredValues(_));
    bench.spy.count(is_update)
}

/// A signal by the GPU, all of which the OS has been told on return.
fn signal(bench: &Bench, queue: &mut HwQueue, fence: &Fence, value: u64) {
    complete(queue, CommandList::new().signal(fence, value));
    bench.until_told();
}

/// Stores CurrentValue as an engine would: into the memory, with no call.
fn store(fence: &Fence) -> impl Fn(u64) + Send + Sync + 'static {
    let (region, offset) = native(fence).current_value_place();
    let block = Block::whole(&region.map().unwrap());
    move |value| block.word(offset).publish(value)
}

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

/// A wait for any goes on while one of its fences can still come; then it ends with the last that
/// could. One that is there wins over others that failed.
///
/// Kills `any-fails-with-the-first`.
#[test]
fn nf_22_wait_any_passes_over_closed_handles() {
    let closed = |index| {
        let error = WaitError::Closed;
        Err(WaitManyError::Failed { index, error })
    };
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        let fences = fences(bench, 3);
        let waits = each(&fences, &[1, 1, 1]);
        let [lasts, fails] = [0, 1].map(|_| Waiter::for_any(&waits));
        fences[0].close();
        lasts.until_asleep();
        fails.until_asleep();
        assert_eq!(monitored_values(&fences), [u64::MAX, 0, 0]);
        signal(bench, &mut queue, &fences[1], 1);
        assert_eq!([lasts.join(), fails.join()], [Ok(1), Ok(1)]);
        assert!(nobody_waits(&fences));

        assert_eq!(Fence::wait_any(&waits, LONG), Ok(1), "it is there");
        assert_eq!(Fence::wait_any(&waits, Duration::ZERO), Ok(1));
        let waits = each(&fences, &[0, 2, 2]);
        let waiter = {
            let copies = fences.clone();
            Waiter::on(&[&fences[1], &fences[2]], move || {
                Fence::wait_any(&each(&copies, &[0, 2, 2]), LONG)
            })
        };
        fences[2].close();
        waiter.until_asleep();
        fences[1].close();
        assert_eq!(waiter.join(), closed(1));
        assert!(nobody_waits(&fences));
        for timeout in [Duration::ZERO, LONG] {
            assert_eq!(Fence::wait_any(&waits, timeout), closed(2));
        }
    });
}

/// A wait for all ends as soon as a fence that had not come cannot come any more, and waits on
/// none of the others then; one that had come may go.
///
/// Kills `all-waits-on-after-an-error` and `the-others-stay-monitored`.
#[test]
fn nf_22_wait_all_ends_with_the_first_closed_handle() {
    let closed = |index| {
        let error = WaitError::Closed;
        Err(WaitManyError::Failed { index, error })
    };
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        let fences = fences(bench, 3);
        let waits = each(&fences, &[1, 1, 1]);
        let waiter = Waiter::for_all(&waits);
        signal(bench, &mut queue, &fences[0], 1);
        fences[0].close();
        waiter.until_asleep();
        assert_eq!(monitored_values(&fences), [u64::MAX, 0, 0]);
        fences[1].close();
        assert_eq!(waiter.join(), closed(1));
        assert!(nobody_waits(&fences));

        let before = updates(bench);
        for timeout in [Duration::ZERO, LONG] {
            assert_eq!(Fence::wait_all(&waits, timeout), closed(0));
            assert_eq!(Fence::wait_all(&waits[1..], timeout), closed(0));
        }
        assert_eq!(updates(bench), before, "it came to stand nowhere");
    });
}

/// A lost device and a stopped queue end waits for several fences with their error.
///
/// Open: a device that the driver reports as lost; here the engine says so in its stead.
///
/// Kills `lost-device-leaves-waiters` and `all-waits-on-after-an-error`.
#[test]
fn nf_22_lost_devices_and_stopped_queues_end_waits_for_many() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fences = fences(bench, 2);
        let closed = bench.fence(0);
        closed.close();
        let mut queue = bench.queue();
        let progress = queue.progress_fence().clone();
        let waiter = Waiter::for_all(&[(&fences[0], 1), (&progress, 1)]);
        queue.submit(CommandList::new().signal(&closed, 1)).unwrap();
        let ended = waiter.join();
        let Err(WaitManyError::Failed { index: 1, error }) = ended else {
            panic!("{ended:?}");
        };
        assert!(matches!(error, WaitError::QueueFaulted(_)), "{error:?}");
        for timeout in [Duration::ZERO, LONG] {
            let again = Fence::wait_all(&[(&progress, 1), (&fences[0], 1)], timeout);
            assert_eq!(again, Err(WaitManyError::Failed { index: 0, error }));
        }

        let gate = bench.engine.close();
        let _queue = bench.queue();
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        let any = Waiter::for_any(&each(&fences, &[1, 1]));
        let all = Waiter::for_all(&each(&fences, &[1, 1]));
        bench.engine.lose();
        let is_lost = |ended| {
            let error = WaitError::DeviceLost;
            matches!(ended, Err(WaitManyError::Failed { error: e, .. }) if e == error)
        };
        assert!(is_lost(any.join().map(drop)));
        assert!(is_lost(all.join()));
        assert!(nobody_waits(&fences));
        drop(gate);
    });
}

/// A wait that timed out has left no MonitoredValue behind and that of others alone, and one with
/// time-out zero changes none at all.
///
/// Kills `the-others-stay-monitored`.
#[test]
fn nf_22_a_time_out_of_many_leaves_nothing_behind() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fences = fences(bench, 3);
        fences[0].signal(1).unwrap();
        let patient = bench.waiter_with(&fences[1], 5, Timeout::Never);
        for _ in 0..3 {
            assert_eq!(
                Fence::wait_all(&each(&fences, &[1, 3, 3]), BRIEF),
                Err(WaitManyError::TimedOut)
            );
            assert_eq!(
                Fence::wait_any(&each(&fences, &[2, 3, 3]), BRIEF),
                Err(WaitManyError::TimedOut)
            );
            assert_eq!(monitored_values(&fences), [u64::MAX, 4, u64::MAX]);
        }
        let before = updates(bench);
        let zero = Duration::ZERO;
        let timed_out = Err(WaitManyError::TimedOut);
        assert_eq!(
            Fence::wait_any(&each(&fences, &[2, 3, 3]), zero).map(drop),
            timed_out
        );
        assert_eq!(Fence::wait_all(&each(&fences, &[1, 3, 3]), zero), timed_out);
        assert_eq!(updates(bench), before);
        fences[1].signal(5).unwrap();
        assert_eq!(patient.join(), Ok(()));
    });
}

/// What is reached after the time-out, while the wait is being taken out of the lists, counts.
///
/// Kills `a-time-out-forgets-what-came` and `who-gives-up-does-not-look`.
#[test]
fn nf_22_what_comes_while_a_wait_gives_up_counts() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fences = fences(bench, 2);
        let first = native(&fences[0]).id();
        let stores = [store(&fences[0]), store(&fences[1])];
        bench.spy.hook(move |moment, updates| {
            let gives_up = updates.contains(&(first, u64::MAX));
            if moment == Moment::AfterUpdateOfMonitoredValues && gives_up {
                // No interrupt tells of it.
                stores.iter().for_each(|store| store(1));
            }
        });
        bench.until_parked();
        let waits = each(&fences, &[1, 1]);
        assert_eq!(Fence::wait_all(&waits, BRIEF), Ok(()));
        for fence in &fences {
            fence.rewind(0).unwrap();
        }
        assert_eq!(Fence::wait_any(&waits, BRIEF), Ok(0));
        assert!(nobody_waits(&fences));
        bench.spy.unhook();
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
        all.until_asleep();
        assert_eq!(monitored_values(&fences[..32]), [0; 32]);
        // 11 and 32 have no common divisor: each comes once, the last of them first.
        for at in (0..32).map(|at| (31 + 11 * at) % 32) {
            assert!(!all.is_finished());
            let mut list = CommandList::new();
            queue.submit(list.signal(&fences[at], 1)).unwrap();
        }
        assert_eq!(any.join(), Ok(31));
        assert_eq!(all.join(), Ok(()));
        assert!(nobody_waits(&fences));

        let before = updates(bench);
        let many = Fence::wait_any(&waits, LONG);
        assert_eq!(many, Err(WaitManyError::TooMany));
        let says = many.unwrap_err().to_string();
        assert_eq!(says, "one call waits for at most 32 fences");
        assert_eq!(Fence::wait_all(&waits, LONG), Err(WaitManyError::TooMany));
        assert_eq!(Fence::wait_any(&[], LONG), Err(WaitManyError::NoFence));
        assert_eq!(Fence::wait_all(&[], LONG), Err(WaitManyError::NoFence));
        assert_eq!(updates(bench), before);
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
        let timed_out = Fence::wait_any(&twice, BRIEF);
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
        assert_eq!(updates(bench), 0);
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
