//! Waits for several fences that end without what they wait for: closed handles, lost devices,
//! stopped queues, time-outs.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::shared::Block;
use native_fence::{CommandList, Fence, Timeout, WaitError, WaitManyError};
use std::time::Duration;
use support::bench::{
    Bench, LONG, Moment, Waiter, each, fences, monitored_values, native, nobody_waits,
    on_every_bench, signal, until,
};

const BRIEF: Duration = Duration::from_millis(5);

fn closed<T>(index: usize) -> Result<T, WaitManyError> {
    let error = WaitError::Closed;
    Err(WaitManyError::Failed { index, error })
}

/// Stores CurrentValue as an engine would: into the memory, with no call.
fn store(fence: &Fence) -> impl Fn(u64) + Send + Sync + 'static {
    let (region, offset) = native(fence).current_value_place();
    let block = Block::whole(&region.map().unwrap());
    move |value| block.word(offset).publish(value)
}

/// A wait for any goes on while one of its fences can still come; then it ends with the last that
/// could. One that is there wins over others that failed.
///
/// Kills `any-fails-with-the-first`.
#[test]
fn nf_22_wait_any_passes_over_closed_handles() {
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

        let before = bench.spy.updates();
        for timeout in [Duration::ZERO, LONG] {
            assert_eq!(Fence::wait_all(&waits, timeout), closed(0));
            assert_eq!(Fence::wait_all(&waits[1..], timeout), closed(0));
        }
        assert_eq!(bench.spy.updates(), before, "it came to stand nowhere");
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
        let before = bench.spy.updates();
        let zero = Duration::ZERO;
        let timed_out = Err(WaitManyError::TimedOut);
        assert_eq!(
            Fence::wait_any(&each(&fences, &[2, 3, 3]), zero).map(drop),
            timed_out
        );
        assert_eq!(Fence::wait_all(&each(&fences, &[1, 3, 3]), zero), timed_out);
        assert_eq!(bench.spy.updates(), before);
        fences[1].signal(5).unwrap();
        assert_eq!(patient.join(), Ok(()));
    });
}

/// How a wait ends that times out, and both fences of which come as it gives up the first.
fn comes_late<T>(bench: &Bench, wait: impl FnOnce(&[(&Fence, u64)]) -> T) -> T {
    let fences = fences(bench, 2);
    let first = native(&fences[0]).id();
    let stores = [store(&fences[0]), store(&fences[1])];
    bench.until_parked();
    bench.spy.hook(move |moment, updates| {
        let gives_up = updates.contains(&(first, u64::MAX));
        if moment == Moment::AfterUpdateOfMonitoredValues && gives_up {
            // No interrupt tells of it.
            for store in &stores {
                store(1);
            }
        }
    });
    let ended = wait(&each(&fences, &[1, 1]));
    bench.spy.unhook();
    assert!(nobody_waits(&fences));
    assert!(fences.iter().all(|fence| native(fence).waits() == 1));
    ended
}

/// What is reached after the time-out, while the wait is being taken out of the lists, counts.
///
/// Kills `a-time-out-forgets-what-came` and `who-gives-up-does-not-look`.
#[test]
fn nf_22_what_comes_while_a_wait_gives_up_counts() {
    on_every_bench(NodePolicy::default(), |bench| {
        let any = comes_late(bench, |waits| Fence::wait_any(waits, BRIEF));
        assert_eq!(any, Ok(0));
        let all = comes_late(bench, |waits| Fence::wait_all(waits, BRIEF));
        assert_eq!(all, Ok(()));
    });
}
