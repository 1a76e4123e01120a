//! The values of a native fence: where it starts, what the OS monitors, when a signal interrupts.
//!
//! Each test runs on the model engine and on the shader engine of a Vulkan device.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::shared::Block;
use native_fence::{CommandList, Fence, WaitError};
use std::thread;
use std::time::Duration;
use support::bench::{Bench, LONG, complete, monitored_value, on_every_bench, until};

const NOBODY: u64 = u64::MAX;

fn until_monitored(fence: &Fence, value: u64) {
    until(&format!("MonitoredValue is {value}"), || {
        monitored_value(fence) == value
    });
}

/// What the engine raised and what the OS was told, when all is told.
fn raises(bench: &Bench) -> (u64, u64) {
    bench.until_told();
    let told = bench.adapter.os().interrupts();
    let counters = bench.counters();
    (
        counters.records - counters.kept_records,
        told.fences_named() + told.null_array(),
    )
}

/// NF-04: MonitoredValue is the least value that a CPU waiter waits for, less 1, and `UINT64_MAX`
/// while nobody waits: after an add, an add of a smaller value, a wait satisfied by the GPU, one
/// satisfied by the CPU, one that timed out, and a closed handle. A wait for 0 never reaches it.
///
/// Open: cancelled waits (no call cancels one yet), a parked engine as a waiter, and cross-adapter
/// fences.
///
/// Mutants: `mv-never-lowered`, `mv-never-raised`, `mv-not-posted-on-time-out`,
/// `mv-not-posted-after-a-cpu-signal`, `mv-posted-before-the-release`, `mv-not-posted-on-close`,
/// `wait-for-zero-is-a-waiter`.
#[test]
fn nf_04_monitored_value_is_least_minus_one() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = &bench.device;
        let fence = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        assert_eq!(monitored_value(&fence), NOBODY, "nobody waits");
        fence.wait(0, LONG).unwrap();
        assert_eq!(monitored_value(&fence), NOBODY, "a wait for 0 is no waiter");

        thread::scope(|scope| {
            let at_42 = scope.spawn(|| fence.wait(42, LONG));
            until_monitored(&fence, 41);
            let at_10 = scope.spawn(|| fence.wait(10, LONG));
            until_monitored(&fence, 9);
            let at_20 = scope.spawn(|| fence.wait(20, LONG));
            fence.wait(0, LONG).unwrap();
            assert_eq!(monitored_value(&fence), 9, "a greater value, and 0");

            queue.submit(CommandList::new().signal(&fence, 10)).unwrap();
            assert_eq!(at_10.join().unwrap(), Ok(()));
            until_monitored(&fence, 19);
            queue.submit(CommandList::new().signal(&fence, 25)).unwrap();
            assert_eq!(at_20.join().unwrap(), Ok(()));
            until_monitored(&fence, 41);

            assert_eq!(
                fence.wait(30, Duration::from_millis(1)),
                Err(WaitError::TimedOut)
            );
            assert_eq!(monitored_value(&fence), 41, "after a time-out");
            assert_eq!(fence.wait(30, Duration::ZERO), Err(WaitError::TimedOut));
            assert_eq!(monitored_value(&fence), 41, "after a mere look");

            fence.signal(42).unwrap();
            assert_eq!(
                monitored_value(&fence),
                NOBODY,
                "when a CPU signal returns that satisfied the last"
            );
            assert_eq!(at_42.join().unwrap(), Ok(()));

            let greatest = scope.spawn(|| fence.wait(u64::MAX, LONG));
            until_monitored(&fence, u64::MAX - 1);
            let smaller = scope.spawn(|| fence.wait(70, LONG));
            until_monitored(&fence, 69);
            fence.close();
            assert_eq!(monitored_value(&fence), NOBODY, "when the handle is closed");
            for waiter in [greatest, smaller] {
                assert_eq!(waiter.join().unwrap(), Err(WaitError::Closed));
            }
        });
    });
}

/// NF-05, the article's pictures: CurrentValue 41 and MonitoredValue 41 with the least waiter at
/// 42; storing 42 raises, and the next waiter being 43, MonitoredValue becomes 42.
///
/// Each signal finds no slice in flight, so that it is compared with what was posted before.
///
/// Mutants: `signal-raises-at-mv`, `signal-raises-late-by-one`,
/// `broken-a-later-signal-releases-waits-above-it`.
#[test]
fn nf_05_the_numbers_of_the_article() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(40);
        let mut queue = bench.queue();
        let mut signal = |value| complete(&mut queue, CommandList::new().signal(&fence, value));
        let at_42 = bench.waiter(&fence, 42);
        let at_43 = bench.waiter(&fence, 43);
        assert_eq!(monitored_value(&fence), 41);
        assert_eq!(raises(bench), (0, 0));

        signal(41);
        assert_eq!(raises(bench), (0, 0), "41 is not greater than 41");
        assert_eq!((fence.current_value(), monitored_value(&fence)), (41, 41));

        signal(42);
        assert_eq!(at_42.join(), Ok(()));
        assert_eq!(raises(bench), (1, 1));
        assert_eq!((fence.current_value(), monitored_value(&fence)), (42, 42));

        signal(43);
        assert_eq!(at_43.join(), Ok(()));
        assert_eq!(raises(bench), (2, 2));
        assert_eq!(monitored_value(&fence), NOBODY);
    });
}

/// NF-05: with no CPU waiter any number of GPU signals raises none; a waiter of another fence
/// changes nothing in that.
///
/// Mutants: `signal-always-raises`.
#[test]
fn nf_05_without_a_waiter_nothing_is_raised() {
    const SIGNALS: u64 = 2_000;
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, other) = (bench.fence(0), bench.fence(0));
        let mut queue = bench.queue();
        let mut list = CommandList::new();
        for first in (1..=SIGNALS).step_by(500) {
            list.clear();
            for value in first..first + 500 {
                list.signal(&fence, value);
            }
            // Seen by looking alone: a wait would be a waiter.
            complete(&mut queue, &list);
        }
        assert_eq!(raises(bench), (0, 0));

        let waiter = bench.waiter(&other, 1);
        list.clear();
        for value in 1..=100 {
            list.signal(&fence, SIGNALS + value);
        }
        complete(&mut queue, list.signal(&other, 1));
        assert_eq!(waiter.join(), Ok(()));
        assert_eq!(raises(bench), (1, 1), "the one that was waited for");
    });
}

/// NF-05: a fence whose raise is unanswered raises no more.
///
/// Mutants: `raise-leaves-the-lane-s-shadow`.
#[test]
fn nf_05_one_raise_until_it_is_answered() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.then_parked(|| bench.queue());
        let waiter = bench.waiter(&fence, 1);
        let mut list = CommandList::new();
        for value in 1..=200 {
            list.signal(&fence, value);
        }
        complete(&mut queue, &list);
        assert_eq!(waiter.join(), Ok(()));
        assert_eq!(raises(bench), (1, 1));
        assert_eq!(monitored_value(&fence), NOBODY);

        // The answer has armed it again.
        let next = bench.waiter(&fence, 201);
        complete(&mut queue, CommandList::new().signal(&fence, 201));
        assert_eq!(next.join(), Ok(()));
        assert_eq!(raises(bench), (2, 2));
    });
}

/// NF-10: a wait that is satisfied already does not stall its queue: nobody signals, the queue goes
/// on, and the log has the wait observed and ended at the same tick.
///
/// Mutants: `satisfied-wait-stalls`, `every-wait-stalls-once`.
#[test]
fn nf_10_a_satisfied_wait_does_not_stall() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = &bench.device;
        let (fence, done) = (
            device.create_fence(5).unwrap(),
            device.create_fence(0).unwrap(),
        );
        let mut queue = device.create_hw_queue().unwrap();
        let mut list = CommandList::new();
        for value in [5, 4, 1, 0] {
            list.wait(&fence, value);
        }
        queue.submit(list.signal(&done, 1)).unwrap();
        done.wait(1, LONG).unwrap();
        assert_eq!(fence.current_value(), 5, "nobody signalled");
        let log = queue.read_wait_log().unwrap();
        let values: Vec<u64> = log.entries.iter().map(|entry| entry.fence_value).collect();
        assert_eq!(values, [5, 4, 1, 0]);
        for entry in log.entries {
            assert_eq!(entry.native_fence, fence.handle().raw());
            assert_ne!(entry.end_ticks, 0);
            assert_eq!(entry.observed_ticks, entry.end_ticks, "{entry:?}");
        }
    });
}

/// NF-28: a fence starts at the value it was created with. Every mapping reads it, CPU waits and
/// GPU waits for it or less are satisfied at once, and for one more they are not.
///
/// Mutants: `initial-value-is-forgotten`, `initial-value-has-32-bits`.
#[test]
fn nf_28_initial_value() {
    on_every_bench(NodePolicy::default(), |bench| {
        let device = &bench.device;
        let done = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        for (round, initial) in [0, 1, 1 << 32, u64::MAX - 1, u64::MAX]
            .into_iter()
            .enumerate()
        {
            let fence = device.create_fence(initial).unwrap();
            let native = fence.object().fence();
            assert_eq!(fence.current_value(), initial, "the user's mapping");
            assert_eq!(native.current_value(), initial, "the OS's mapping");
            let (region, offset) = native.current_value_place();
            let fresh = Block::whole(&region.map().unwrap());
            assert_eq!(fresh.word(offset).observe(), initial, "a new mapping");
            assert_eq!(monitored_value(&fence), NOBODY);

            for value in [0, initial / 2, initial] {
                assert_eq!(fence.wait(value, Duration::ZERO), Ok(()));
            }
            let mut list = CommandList::new();
            list.wait(&fence, 0).wait(&fence, initial / 2);
            list.wait(&fence, initial).signal(&done, round as u64 + 1);
            queue.submit(&list).unwrap();
            done.wait(round as u64 + 1, LONG).unwrap();
            assert_eq!(fence.current_value(), initial, "a wait stores nothing");

            if let Some(more) = initial.checked_add(1) {
                let timed_out = Err(WaitError::TimedOut);
                assert_eq!(fence.wait(more, Duration::ZERO), timed_out);
                let mut waits = device.create_hw_queue().unwrap();
                let completed = waits.submit(CommandList::new().wait(&fence, more)).unwrap();
                // The engine has looked at both queues when this one's next signal is done.
                queue.submit(CommandList::new().signal(&done, 0)).unwrap();
                until("the other queue is done", || done.current_value() == 0);
                assert_eq!(waits.read_index(), 0, "the GPU waits for {more}");
                fence.signal(more).unwrap();
                waits.progress_fence().wait(completed, LONG).unwrap();
            }
        }
    });
}
