//! Waits that stand without a thread: what they do to MonitoredValue, and how they end.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::shared::Block;
use native_fence::{ArmedWait, CommandList, Fence, WaitError};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use support::bench::{
    Bench, LONG, complete, monitored_value, native, on_every_bench, signal, until, until_sleeping,
};

const BRIEF: Duration = Duration::from_millis(5);

/// Waiters on one fence.
const MANY: u64 = 100_000;

/// Stores CurrentValue as an engine would: into the memory, with no call.
fn store(fence: &Fence, value: u64) {
    let (region, offset) = native(fence).current_value_place();
    let words = Block::whole(&region.map().unwrap());
    words.word(offset).publish(value);
}

/// Those that have not ended.
fn standing(waits: &[ArmedWait]) -> Vec<u64> {
    let last = waits.iter().filter(|wait| !wait.is_ended());
    last.map(ArmedWait::value).collect()
}

/// MonitoredValue is right when a wait is armed, when it is released, by CPU or GPU, and when it is
/// dropped; it is posted only when it changes. A wait for what is there never stands.
///
/// Kills `a-dropped-wait-stays-monitored` and `an-arm-always-posts`.
#[test]
fn nf_04_armed_waits_count_for_the_monitored_value() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(2);
        let mut queue = bench.then_parked(|| bench.queue());
        let posts = bench.spy.updates();
        let there = [0, 1, 2].map(|value| fence.arm(value));
        assert!(there.iter().all(|wait| wait.outcome() == Some(Ok(()))));
        assert_eq!(native(&fence).waits(), 0);
        assert_eq!(monitored_value(&fence), u64::MAX);
        assert_eq!(bench.spy.updates(), posts);

        let nine = fence.arm(9);
        assert_eq!(monitored_value(&fence), 8);
        let five = fence.arm(5);
        assert_eq!(monitored_value(&fence), 4);
        assert_eq!(bench.spy.updates(), posts + 2);
        let [seven, twelve, other_five] = [7, 12, 5].map(|value| fence.arm(value));
        assert_eq!(monitored_value(&fence), 4);
        drop(twelve);
        drop(five);
        assert_eq!(monitored_value(&fence), 4, "another waits for the same");
        assert_eq!(bench.spy.updates(), posts + 2, "it did not change");

        fence.signal(5).unwrap();
        assert_eq!(other_five.outcome(), Some(Ok(())));
        assert_eq!(monitored_value(&fence), 6);
        signal(bench, &mut queue, &fence, 7);
        assert_eq!(seven.wait(LONG), Ok(()));
        assert_eq!(monitored_value(&fence), 8);
        drop(nine);
        assert_eq!(monitored_value(&fence), u64::MAX);
        assert_eq!(native(&fence).waits(), 5);
    });
}

/// One thread has 100,000 waits outstanding on a fence. A signal of the GPU releases those that it
/// satisfies and no other, with one interrupt, and MonitoredValue is that of the rest.
///
/// Kills `armed-waits-are-released-with-the-first`.
#[test]
fn nf_04_a_hundred_thousand_waits_stand_on_one_fence() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.then_parked(|| bench.queue());
        let mut waits: Vec<_> = (1..=MANY).map(|value| fence.arm(value)).collect();
        assert_eq!(native(&fence).waits(), MANY);
        assert_eq!(monitored_value(&fence), 0);
        for reached in [1, MANY / 2] {
            bench.then_parked(|| signal(bench, &mut queue, &fence, reached));
            assert_eq!(monitored_value(&fence), reached);
            let (over, last) = waits.split_at(reached as usize);
            assert!(standing(over).is_empty());
            assert_eq!(standing(last).len() as u64, MANY - reached);
        }
        let id = native(&fence).id();
        assert_eq!(bench.spy.raised(id), [1, MANY / 2]);
        // The first that stand go first: each changes MonitoredValue.
        for value in MANY / 2 + 1..=MANY / 2 + 10 {
            drop(waits.remove((MANY / 2) as usize));
            assert_eq!(monitored_value(&fence), value);
        }
        drop(waits);
        assert_eq!(monitored_value(&fence), u64::MAX);
    });
}

/// A value that can be seen satisfies a wait that somebody asks about, though nothing has told of it
/// and no slice will: MonitoredValue is right then too.
///
/// Kills `an-armed-wait-asks-nothing`.
#[test]
fn nf_26_a_value_that_is_there_satisfies_an_armed_wait() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        bench.until_parked();
        let [three, four] = [3, 4].map(|value| fence.arm(value));
        assert_eq!(three.outcome(), None);
        store(&fence, 3);
        assert_eq!(three.outcome(), Some(Ok(())));
        assert_eq!(monitored_value(&fence), 3);
        store(&fence, 4);
        assert_eq!(four.wait(Duration::ZERO), Ok(()));
        assert_eq!(monitored_value(&fence), u64::MAX);
    });
}

/// What was satisfied stays satisfied, although CurrentValue goes back, or the handle is closed,
/// before anybody asks.
///
/// Kills `an-armed-wait-is-taken-back`.
#[test]
fn nf_26_an_armed_wait_stays_satisfied() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let wait = fence.arm(5);
        fence.signal(5).unwrap();
        fence.rewind(0).unwrap();
        assert_eq!(wait.outcome(), Some(Ok(())));
        fence.close();
        assert_eq!(wait.wait(LONG), Ok(()));
    });
}

/// Waits are armed while the GPU signals, one step ahead of it, beside it and behind it: none is
/// lost, whether its thread sleeps for it, asks, or comes back to it later.
///
/// Kills `nobody-sleeps-for-an-armed-wait` and `no-second-look-after-the-post`.
#[test]
fn nf_06_load_no_armed_wait_is_lost() {
    const SIGNALS: u64 = 2_000;
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        let mut later = Vec::new();
        for value in 1..=SIGNALS {
            let before = (value % 3 == 0).then(|| fence.arm(value));
            queue
                .submit_blocking(CommandList::new().signal(&fence, value), LONG)
                .unwrap();
            let wait = before.unwrap_or_else(|| fence.arm(value));
            match value % 4 {
                0 => assert_eq!(wait.wait(LONG), Ok(())),
                1 => until("a wait has ended", || wait.is_ended()),
                2 => later.push((wait, fence.arm(value + 1))),
                _ => later.push((wait, fence.arm(value))),
            }
        }
        for (wait, next) in later {
            assert_eq!(wait.wait(LONG), Ok(()));
            assert_eq!(next.wait(LONG), Ok(()));
        }
        assert_eq!(monitored_value(&fence), u64::MAX);
    });
}

/// Several threads sleep for one wait that was armed before: its end wakes all of them.
///
/// Kills `nobody-sleeps-for-an-armed-wait` and `one-sleeper-is-woken`.
#[test]
fn nf_06_the_end_of_an_armed_wait_wakes_who_sleeps_for_it() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        for value in 1..=5 {
            let wait = fence.arm(value);
            let (tell, told) = mpsc::channel();
            thread::scope(|scope| {
                let sleepers: Vec<_> = (0..3)
                    .map(|_| {
                        let (wait, tell) = (&wait, tell.clone());
                        scope.spawn(move || {
                            tell.send(rustix::thread::gettid()).unwrap();
                            wait.wait(LONG)
                        })
                    })
                    .collect();
                for number in told.iter().take(3) {
                    until_sleeping(number);
                }
                complete(&mut queue, CommandList::new().signal(&fence, value));
                for sleeper in sleepers {
                    assert_eq!(sleeper.join().unwrap(), Ok(()));
                }
            });
        }
    });
}

/// A time-out leaves the wait where it stands, and it is waited for again.
///
/// Kills `a-time-out-cancels-an-armed-wait`.
#[test]
fn nf_22_a_time_out_leaves_an_armed_wait_standing() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let wait = fence.arm(3);
        for timeout in [Duration::ZERO, BRIEF] {
            assert_eq!(wait.wait(timeout), Err(WaitError::TimedOut));
            assert_eq!(wait.outcome(), None);
            assert_eq!(monitored_value(&fence), 2);
        }
        signal(bench, &mut bench.queue(), &fence, 3);
        assert_eq!(wait.wait(LONG), Ok(()));
    });
}

/// A handle that is closed ends the waits that stand, and those that are armed afterwards end at
/// once, whatever the value; a clone that is dropped ends none, and a wait keeps the handle open.
///
/// Kills `an-armed-wait-does-not-ask-the-handle` and `closing-ends-no-wait`.
#[test]
fn nf_22_a_closed_handle_ends_armed_waits() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(1);
        let [two, seven] = [2, 7].map(|value| fence.arm(value));
        let kept = fence.clone();
        drop(fence);
        kept.signal(2).unwrap();
        assert_eq!((two.outcome(), seven.outcome()), (Some(Ok(())), None));
        kept.close();
        assert_eq!(seven.outcome(), Some(Err(WaitError::Closed)));
        assert_eq!(seven.wait(LONG), Err(WaitError::Closed));
        for value in [0, 2, 3] {
            assert_eq!(kept.arm(value).outcome(), Some(Err(WaitError::Closed)));
        }
        assert_eq!(monitored_value(&kept), u64::MAX);

        let alone = bench.fence(0);
        let wait = alone.arm(1);
        drop(alone);
        assert_eq!(wait.wait(BRIEF), Err(WaitError::TimedOut));
    });
}

/// A queue that is stopped ends the waits for its progress, and a device that is lost those for its
/// fences, with the error of each; later ones end so at once.
///
/// Open: a device that the driver reports as lost; here the engine says so in its stead.
///
/// Kills `lost-device-leaves-waiters`.
#[test]
fn nf_22_a_stopped_queue_and_a_lost_device_end_armed_waits() {
    let bench = Bench::new();
    let closed = bench.fence(0);
    closed.close();
    let mut stopped = bench.queue();
    let progress = stopped.progress_fence().arm(1);
    stopped
        .submit(CommandList::new().signal(&closed, 1))
        .unwrap();
    let fault = progress.wait(LONG);
    assert!(
        matches!(fault, Err(WaitError::QueueFaulted(_))),
        "{fault:?}"
    );
    assert_eq!(progress.outcome(), Some(fault));

    let bench = Bench::new();
    let fence = bench.fence(0);
    let gate = bench.engine.close();
    let queue = bench.queue();
    until("a slice is in flight", || bench.engine.at_gate() > 0);
    let waits = [fence.arm(1), queue.progress_fence().arm(1)];
    bench.engine.lose();
    for wait in &waits {
        assert_eq!(wait.wait(LONG), Err(WaitError::DeviceLost));
    }
    assert_eq!(fence.arm(1).outcome(), Some(Err(WaitError::DeviceLost)));
    drop(gate);
}
