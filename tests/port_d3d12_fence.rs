//! What vkd3d-proton's tests of `ID3D12Fence` assert, of native fences and hardware queues: values, events, waits of
//! queues and of threads. Those that it has for plain and for shared fences are in `port_d3d12_fence_pairs.rs`;
//! `tests/ports/README.md` has the table.
//!
//! `Signal` of a D3D12 fence stores any value, as a rewind does here; an event resets itself when it is looked at.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod kernels;
}

use native_fence::gpu::NodePolicy;
use native_fence::{CommandList, EventHandle, EventWait, Fence, FenceOptions, ShareError};
use rustix::io::write;
use std::thread;
use support::bench::{Bench, Call, LONG, Waiter, complete, native, on_every_bench, signal, until};
use support::kernels::{add_words, groups_for, sums};

fn on_benches(body: impl Fn(&Bench)) {
    on_every_bench(NodePolicy::default(), body);
}

/// Whether an event is signalled, which it then is no more (`wait_event(event, 0)`).
fn is_signalled(event: &EventHandle) -> bool {
    event.reset() > 0
}

/// A queue that waits goes on when the CPU, or another queue, has signalled, and not before: its copy has what the CPU
/// stored in between.
#[test]
fn d3d12_test_queue_wait() {
    on_benches(|bench| {
        let [from, to] = [0; 2].map(|_| bench.device.create_allocation(8).unwrap());
        let (fence, done) = (bench.fence(0), bench.fence(0));
        let (mut queue, mut other) = (bench.queue(), bench.queue());
        let mut round = 0;
        let mut copy_behind = |value: u64, release: &mut dyn FnMut()| {
            round += 1;
            from.write(0, &[u64::MAX]);
            let mut list = CommandList::new();
            list.wait(&fence, value).copy(&from, 0..8, &to, 0);
            queue.submit(list.signal(&done, round)).unwrap();
            bench.until_parked();
            let is_free = fence.current_value() >= value;
            assert_eq!(
                done.current_value(),
                if is_free { round } else { round - 1 }
            );
            if !is_free {
                from.write(0, &[round]);
            }
            release();
            done.wait(round, LONG).unwrap();
            let mut copied = [0];
            to.read(0, &mut copied);
            assert_eq!(copied[0], if is_free { u64::MAX } else { round });
        };
        copy_behind(1, &mut || fence.rewind(1).unwrap());
        // What is there already stops nobody.
        copy_behind(1, &mut || {});
        copy_behind(2, &mut || {
            complete(&mut other, CommandList::new().signal(&fence, 2));
        });
        // More than is waited for is enough, too little is not.
        copy_behind(10, &mut || {
            complete(&mut other, CommandList::new().signal(&fence, 9));
            bench.until_parked();
            complete(&mut other, CommandList::new().signal(&fence, 11));
        });
        fence.rewind(0).unwrap();
        copy_behind(5, &mut || fence.rewind(u64::MAX).unwrap());
    });
}

/// Two queues with kernels whose order matters, each waiting for the other: the sum is that of the order.
#[test]
fn d3d12_test_graphics_compute_queue_synchronization() {
    on_benches(|bench| {
        let kernel = bench.device.create_kernel(add_words()).unwrap();
        let [a, b] = [0; 2].map(|_| bench.device.create_allocation(8).unwrap());
        let (to_graphics, to_compute) = (bench.fence(0), bench.fence(0));
        let (mut compute, mut graphics) = (bench.queue(), bench.queue());
        let rounds = 8;
        for round in 1..=rounds {
            // Behind its wait and before its signal, whichever is submitted first.
            let mut list = CommandList::new();
            list.wait(&to_graphics, round)
                .dispatch(&kernel, groups_for(1), &sums(&b, &a, 2))
                .unwrap();
            graphics.submit(list.signal(&to_compute, round)).unwrap();
        }
        for round in 1..=rounds {
            let mut list = CommandList::new();
            list.wait(&to_compute, round - 1)
                .dispatch(&kernel, groups_for(1), &sums(&a, &b, 10))
                .unwrap();
            compute.submit(list.signal(&to_graphics, round)).unwrap();
        }
        to_compute.wait(rounds, LONG).unwrap();
        let mut sum = [0];
        a.read(0, &mut sum);
        assert_eq!(sum[0], rounds * 12);
    });
}

/// Values are read as they were stored, however large and however far apart: the first one, those of queues and of the
/// CPU, and 0 again, by either.
///
/// Kills `a-rewind-is-a-signal`.
#[test]
fn d3d12_test_fence_values() {
    on_benches(|bench| {
        let high = 1 << 60;
        let (fence, mut queue) = (bench.fence(high), bench.queue());
        assert_eq!(fence.current_value(), high);
        for value in high + 1..=high + 100 {
            complete(&mut queue, CommandList::new().signal(&fence, value));
            assert_eq!(fence.current_value(), value);
        }
        for step in 1..=100 {
            let value = high + 100 + step * 10_000;
            fence.rewind(value).unwrap();
            assert_eq!(fence.current_value(), value);
        }
        let fence = bench.fence(0);
        for value in [high, 0] {
            fence.rewind(value).unwrap();
            assert_eq!(fence.current_value(), value);
        }
        for value in [high, 0] {
            complete(&mut queue, CommandList::new().signal(&fence, value));
            assert_eq!(fence.current_value(), value);
        }
    });
}

/// What both tests of events ask, of whoever signals: an event is signalled once for each value that it was set for
/// and that is reached, or passed, and for no other.
fn events_of(fence: &Fence, mut signal: impl FnMut(u64)) {
    let mut waits: Vec<EventWait> = Vec::new();
    let mut set = |value, event: &EventHandle| waits.push(fence.wait_event(value, event));
    let [one, other] = [(); 2].map(|()| EventHandle::new().unwrap());
    for value in [10, 0] {
        signal(value);
        assert_eq!(fence.current_value(), value);
    }

    // One event: what is reached, what is passed, and nothing more.
    set(5, &one);
    assert!(!is_signalled(&one));
    signal(5);
    assert!(is_signalled(&one) && !is_signalled(&one));
    set(6, &one);
    assert!(!is_signalled(&one));
    signal(7);
    assert!(is_signalled(&one) && !is_signalled(&one));
    signal(10);
    assert!(!is_signalled(&one));

    // One event for several values, for one of them twice.
    signal(0);
    for value in [3, 5, 9, 12, 12] {
        set(value, &one);
    }
    for value in 1..13 {
        signal(value);
        assert_eq!(
            is_signalled(&one),
            [3, 5, 9, 12].contains(&value),
            "{value}"
        );
    }

    // Two events, one for the greatest value there is.
    signal(0);
    set(100, &one);
    set(u64::MAX, &other);
    for (value, first, last) in [
        (50, false, false),
        (99, false, false),
        (100, true, false),
        (101, false, false),
        (0, false, false),
        (100, false, false),
        (u64::MAX, false, true),
        (u64::MAX, false, false),
        (0, false, false),
    ] {
        signal(value);
        assert_eq!(is_signalled(&one), first, "{value}");
        assert_eq!(is_signalled(&other), last, "{value}");
    }

    // Two events for one value.
    set(1, &one);
    set(1, &other);
    assert!(!is_signalled(&one) && !is_signalled(&other));
    signal(3);
    assert!(is_signalled(&one) && is_signalled(&other));
    assert!(!is_signalled(&one) && !is_signalled(&other));
    assert!(waits.iter().all(|wait| wait.outcome() == Some(Ok(()))));
}

/// Events of what the CPU signals; one for a value that is there is signalled at once, and one that somebody else has
/// signalled as well is signalled again.
#[test]
fn d3d12_test_cpu_signal_fence() {
    on_benches(|bench| {
        let fence = bench.fence(0);
        events_of(&fence, |value| fence.rewind(value).unwrap());

        let event = EventHandle::new().unwrap();
        fence.rewind(10).unwrap();
        for value in 0..=10 {
            let wait = fence.wait_event(value, &event);
            assert!(is_signalled(&event) && !is_signalled(&event), "{value}");
            assert_eq!(wait.outcome(), Some(Ok(())));
        }
        let wait = fence.wait_event(30, &event);
        write(&event, &1_u64.to_ne_bytes()).unwrap();
        assert!(is_signalled(&event) && !is_signalled(&event));
        assert_eq!(wait.outcome(), None);
        fence.rewind(30).unwrap();
        assert!(is_signalled(&event) && !is_signalled(&event));
    });
}

/// Events of what a queue signals, also when it takes the value back.
#[test]
fn d3d12_test_gpu_signal_fence() {
    on_benches(|bench| {
        let (fence, mut queue) = (bench.fence(0), bench.queue());
        events_of(&fence, |value| signal(bench, &mut queue, &fence, value));
    });
}

/// Threads that sleep for a value and threads that look for it all go on, whether the CPU signals it or a queue.
#[test]
fn d3d12_test_multithread_fence_wait() {
    const THREADS: usize = 8;
    on_benches(|bench| {
        let (fence, mut queue) = (bench.fence(0), bench.queue());
        for value in 1..=4 {
            let sleepers = (0..THREADS).map(|_| bench.waiter(&fence, value));
            let sleepers: Vec<_> = sleepers.collect();
            sleepers.iter().for_each(Waiter::until_asleep);
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| until("it is reached", || fence.current_value() >= value));
                }
                if value % 2 == 0 {
                    queue
                        .submit(CommandList::new().signal(&fence, value))
                        .unwrap();
                } else {
                    fence.signal(value).unwrap();
                }
                for sleeper in sleepers {
                    assert_eq!(sleeper.join(), Ok(()));
                }
            });
        }
    });
}

/// A fence has the value that it was made with, is its device's, and is destroyed with the last that has it; its flags
/// say whether it can be shared.
#[test]
fn d3d12_test_create_fence() {
    on_benches(|bench| {
        for initial in [0, 99] {
            let fence = bench.fence(initial);
            assert_eq!(fence.current_value(), initial);
            assert!(std::sync::Arc::ptr_eq(
                fence.object().process(),
                bench.device.process()
            ));
            let id = native(&fence).id();
            let is_destroyed = || {
                bench
                    .spy
                    .count(|call| *call == Call::DestroyNativeFence(id))
                    == 1
            };
            let again = fence.clone();
            drop(fence);
            assert_eq!(again.current_value(), initial);
            assert!(!is_destroyed());
            drop(again);
            assert!(is_destroyed());
        }
        for shared in [false, true] {
            let options = FenceOptions {
                initial: 99,
                shared,
                ..FenceOptions::default()
            };
            let fence = bench.device.create_fence_with(options).unwrap();
            assert_eq!(fence.current_value(), 99);
            assert_eq!(fence.share().is_ok(), shared);
            if !shared {
                assert!(matches!(fence.share(), Err(ShareError::NotShared)));
            }
        }
    });
}
