//! What the Vulkan CTS asserts of timeline semaphores, of native fences: waits and signals of queues and of the host,
//! values near and far. Data that they order is in `port_vulkan_timeline_data.rs`; `tests/ports/README.md` has the
//! table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod engines;
    pub(crate) mod syncobj;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::DriverOptions;
use native_fence::{CommandList, EventHandle, Fence, HwQueue, WaitManyError};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use support::bench::{
    Bench, LONG, on_benches_of, on_every_bench, on_monitored_benches_with, signal, until,
    until_completed,
};
use support::engines::Random;
use support::syncobj::{Jobs, Kind, Needs, Syncobj, climbs, wait};

fn on_benches(body: impl Fn(&Bench)) {
    on_every_bench(NodePolicy::default(), body);
}

fn submit(queue: &mut HwQueue, wait: Option<(&Fence, u64)>, signal: (&Fence, u64)) -> u64 {
    let mut list = CommandList::new();
    if let Some((fence, value)) = wait {
        list.wait(fence, value);
    }
    queue
        .submit_blocking(list.signal(signal.0, signal.1), LONG)
        .unwrap()
}

/// A signal of one submission, and a wait for it by the next of the same queue.
#[test]
fn vulkan_basic_timeline_semaphore_one_queue() {
    on_benches(|bench| {
        let (fence, done, mut queue) = (bench.fence(0), bench.fence(0), bench.queue());
        submit(&mut queue, None, (&fence, 1));
        submit(&mut queue, Some((&fence, 1)), (&done, 1));
        assert_eq!(done.wait(1, LONG), Ok(()));
        assert_eq!(fence.current_value(), 1);
    });
}

/// The same across queues, of one engine and of two, whichever is submitted first.
#[test]
fn vulkan_basic_timeline_semaphore_multi_queue() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        for nodes in [[0, 0], [0, 1], [1, 0]] {
            let (fence, done) = (bench.fence(0), bench.fence(0));
            let [mut first, mut second] = nodes.map(|node| bench.queue_on(node));
            submit(&mut first, None, (&fence, 1));
            submit(&mut second, Some((&fence, 1)), (&done, 1));
            submit(&mut second, Some((&fence, 2)), (&done, 2));
            assert_eq!(done.wait(1, LONG), Ok(()), "{nodes:?}");
            submit(&mut first, None, (&fence, 2));
            assert_eq!(done.wait(2, LONG), Ok(()), "{nodes:?}");
        }
    });
}

/// A long chain of submissions, each of which waits for the one before, completes in its order.
#[test]
fn vulkan_basic_timeline_semaphore_chain() {
    const LINKS: u64 = 2_000;
    on_benches(|bench| {
        let fence = bench.fence(0);
        let mut queues = [bench.queue(), bench.queue()];
        for value in 1..=LINKS {
            let queue = &mut queues[value as usize % 2];
            submit(queue, Some((&fence, value - 1)), (&fence, value));
        }
        let mut last = 0;
        for value in (1..=LINKS).step_by(97).chain([LINKS]) {
            assert_eq!(fence.wait(value, LONG), Ok(()));
            let now = fence.current_value();
            assert!(value <= now && last <= now);
            last = now;
        }
        assert_eq!(fence.current_value(), LINKS);
    });
}

/// A thread of the host waits while another submits.
#[test]
fn vulkan_basic_timeline_semaphore_two_threads() {
    on_benches(|bench| {
        let (fence, mut queue) = (bench.fence(0), bench.queue());
        for value in 1..=50 {
            let waiter = bench.waiter(&fence, value);
            thread::scope(|scope| {
                scope.spawn(|| submit(&mut queue, None, (&fence, value)));
            });
            assert_eq!(waiter.join(), Ok(()));
        }
    });
}

/// Fences that have been signalled, and what they stand at.
fn signalled(bench: &Bench) -> (Vec<Fence>, Vec<u64>) {
    let (mut queue, mut random) = (bench.queue(), Random(1));
    let made = (0..32).map(|at| {
        let (fence, value) = (bench.fence(0), 1 + random.below(10_000));
        if at % 2 == 0 {
            fence.signal(value).unwrap();
        } else {
            let end = submit(&mut queue, None, (&fence, value));
            until_completed(&queue, end);
        }
        (fence, value)
    });
    made.unzip()
}

/// Waits for what fences stand at, or for less by `lesser`, are over at once.
fn wait_for_what_is_there(lesser: u64, all: bool) {
    on_benches(|bench| {
        let (fences, values) = signalled(bench);
        let values = values.iter().map(|value| value - lesser);
        let waits: Vec<_> = fences.iter().zip(values).collect();
        for timeout in [Duration::ZERO, LONG] {
            if all {
                assert_eq!(Fence::wait_all(&waits, timeout), Ok(()));
            } else {
                assert_eq!(Fence::wait_any(&waits, timeout), Ok(0));
            }
        }
    });
}

#[test]
fn vulkan_basic_timeline_semaphore_wait_for_all_current_value() {
    wait_for_what_is_there(0, true);
}

#[test]
fn vulkan_basic_timeline_semaphore_wait_for_any_current_value() {
    wait_for_what_is_there(0, false);
}

#[test]
fn vulkan_basic_timeline_semaphore_wait_for_all_lesser_value() {
    wait_for_what_is_there(1, true);
}

#[test]
fn vulkan_basic_timeline_semaphore_wait_for_any_lesser_value() {
    wait_for_what_is_there(1, false);
}

/// A hundred fences, each with a value by chance.
fn hundred(bench: &Bench) -> Vec<(Fence, u64)> {
    let mut random = Random(1234);
    let fence = |_| (bench.fence(0), 1 + random.below(10_000));
    (0..100).map(fence).collect()
}

/// All of a hundred fences are signalled; one call waits for 32.
fn all_signal(by_queue: bool) {
    on_benches(|bench| {
        let (fences, mut queue) = (hundred(bench), bench.queue());
        let waits: Vec<_> = fences
            .iter()
            .map(|(fence, value)| (fence, *value))
            .collect();
        let begun = Instant::now();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut calls = waits.chunks(32);
                calls.try_for_each(|waits| Fence::wait_all(waits, LONG))
            });
            for (fence, value) in &waits {
                if by_queue {
                    submit(&mut queue, None, (fence, *value));
                } else {
                    fence.signal(*value).unwrap();
                }
            }
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
        // A call that finds its values when its time is over was woken by nobody.
        assert!(begun.elapsed() < LONG);
    });
}

#[test]
fn vulkan_wait_all_signal_from_device() {
    all_signal(true);
}

#[test]
fn vulkan_wait_all_signal_from_host() {
    all_signal(false);
}

/// One of a hundred fences is signalled, and ends a wait for any; one call waits for 32, and an event for as many as
/// one likes.
fn one_signal(by_queue: bool) {
    on_benches(|bench| {
        let (fences, mut queue) = (hundred(bench), bench.queue());
        for chosen in [37, 99] {
            let event = EventHandle::new().unwrap();
            let armed = fences
                .iter()
                .map(|(fence, value)| fence.wait_event(*value, &event));
            let armed: Vec<_> = armed.collect();
            let waits: Vec<_> = fences
                .iter()
                .map(|(fence, value)| (fence, *value))
                .collect();
            let near = &waits[chosen - 31..=chosen];
            let timed_out = Fence::wait_any(near, Duration::ZERO);
            assert_eq!(timed_out, Err(WaitManyError::TimedOut));
            let (fence, value) = waits[chosen];
            if by_queue {
                signal(bench, &mut queue, fence, value);
            } else {
                fence.signal(value).unwrap();
            }
            assert_eq!(Fence::wait_any(near, LONG), Ok(31));
            let over = armed.iter().filter(|wait| wait.outcome().is_some());
            let before = usize::from(chosen == 99);
            assert_eq!(over.count(), 1 + before);
            assert_eq!(event.reset(), 1 + before as u64);
            assert_eq!(armed[chosen].outcome(), Some(Ok(())));
        }
    });
}

#[test]
fn vulkan_wait_one_signal_from_device() {
    one_signal(true);
}

#[test]
fn vulkan_wait_one_signal_from_host() {
    one_signal(false);
}

/// The host waits before anything is submitted. Then comes a chain of submissions that all stand, since the host has not
/// signalled the first value: another wait for any of theirs times out. When it signals, the last one comes, and ends the
/// wait that began before them.
///
/// Kills `a-released-thread-sleeps-on`.
#[test]
fn vulkan_wait_host_wait_before_signal() {
    on_benches(|bench| {
        let (fence, mut queue, mut random) = (bench.fence(0), bench.queue(), Random(1234));
        let mut values = vec![1 + random.below(10_000)];
        for _ in 0..12 {
            let last = *values.last().unwrap();
            values.push(last + 1 + random.below(10_000));
        }
        let last = *values.last().unwrap();
        let early = bench.waiter(&fence, last);
        early.until_asleep();
        for link in values.windows(2) {
            submit(&mut queue, Some((&fence, link[0])), (&fence, link[1]));
        }
        for value in &values {
            assert!(fence.wait(*value, Duration::ZERO).is_err());
        }
        assert!(!early.is_finished());
        fence.signal(values[0]).unwrap();
        assert_eq!(early.join(), Ok(()));
        assert_eq!(fence.current_value(), last);
    });
}

/// Whoever reads a value again and again, while another thread signals or submits, sees it come as a whole, and nothing
/// but the one from before until then. Each fence is signalled when it has been looked at.
fn poll_signal(by_queue: bool) {
    on_benches(|bench| {
        let (mut fences, mut queue) = (hundred(bench), bench.queue());
        for (_, value) in &mut fences {
            // In both halves: one that comes before the other is seen.
            *value |= *value << 32;
        }
        let (fences, queue) = (&fences, &mut queue);
        thread::scope(|scope| {
            // Dropped where a look fails: then the other thread ends too.
            let (look, looked) = mpsc::channel();
            scope.spawn(move || {
                for ((fence, value), ()) in fences.iter().zip(looked) {
                    if by_queue {
                        submit(queue, None, (fence, *value));
                    } else {
                        fence.signal(*value).unwrap();
                    }
                }
            });
            for (fence, value) in fences {
                assert_eq!(fence.current_value(), 0);
                look.send(()).unwrap();
                until("the value is read", || {
                    let read = fence.current_value();
                    assert!(read == 0 || read == *value, "{read:#x} of {value:#x}");
                    read == *value
                });
            }
        });
    });
}

#[test]
fn vulkan_wait_poll_signal_from_device() {
    poll_signal(true);
}

/// Kills `a-signal-is-stored-by-halves`.
#[test]
fn vulkan_wait_poll_signal_from_host() {
    poll_signal(false);
}

/// Signals at the edge of the greatest difference of values, while another thread reads: the value never goes back. A
/// native fence has no such limit, so that the steps are of half of all values too; of fences that are kept by 32-bit
/// stores it is UINT_MAX/2, Vulkan's least (MF-06).
#[test]
fn vulkan_device_host_misc_max_difference_value() {
    let climb = |bench: &Bench, kind: Kind, difference: u64| {
        let (object, mut jobs) = (Syncobj::new(bench, kind), Jobs::new(bench, kind));
        climbs(&object, || {
            let mut back = 1;
            object.signal(back);
            for _ in 0..(u64::MAX / difference - 1).min(20) {
                for value in back + 1..=back + 10 {
                    jobs.submit(&object, value);
                }
                for value in back + difference - 9..=back + difference {
                    jobs.submit(&object, value);
                }
                back += difference;
                assert_eq!(wait(&[(&object, back)], Needs::All, LONG), Ok(0));
                jobs.until_done();
            }
            assert_eq!(object.point(), back);
        });
    };
    let least = u64::from(u32::MAX / 2);
    on_benches(|bench| {
        for difference in [least, u64::MAX / 2] {
            climb(bench, Kind::Native, difference);
        }
    });
    let narrow = DriverOptions {
        no_64_bit_atomics: true,
        ..DriverOptions::default()
    };
    on_monitored_benches_with(1, NodePolicy::default(), &narrow, |bench| {
        climb(bench, Kind::Monitored, least);
    });
}

/// A fence has the value that it was made with: the host reads it, and waits of the host and of queues for it pass.
///
/// Kills `a-look-in-no-time-is-for-one-less`.
#[test]
fn vulkan_device_host_misc_initial_value() {
    on_benches(|bench| {
        let (mut queue, done) = (bench.queue(), bench.fence(0));
        let values = [0, 1, 1 << 31, 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX];
        for (initial, step) in values.into_iter().zip(1..) {
            let fence = bench.fence(initial);
            assert_eq!(fence.current_value(), initial);
            assert_eq!(fence.wait(initial, Duration::ZERO), Ok(()));
            submit(&mut queue, Some((&fence, initial)), (&done, step));
            assert_eq!(done.wait(step, LONG), Ok(()), "{initial:#x}");
            assert_eq!(fence.current_value(), initial);
            if let Some(more) = initial.checked_add(1) {
                assert!(fence.wait(more, Duration::ZERO).is_err());
            }
        }
    });
}
