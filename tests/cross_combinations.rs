//! Propagated fences (XA-03, XA-04, NF-23) beside what else a system may be: three adapters, two nodes, an interrupt that
//! names a queue alone, records that are watched, kernels between a wait and a signal, and a right that is missing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod kernels;
    pub(crate) mod two_benches;
}

use native_fence::abi::{Delivery, FaultCode};
use native_fence::gpu::{ModelOptions, NodePolicy};
use native_fence::kmd::DriverOptions;
use native_fence::{
    CommandList, CrossAdapter, Fence, FenceOptions, HwQueue, SignalError, WaitError,
};
use std::time::Duration;
use support::bench::{
    Bench, LONG, complete, monitored_value, on_benches_with, until, until_completed, words,
};
use support::kernels::{add_words, groups_for, sums};
use support::two_benches::{Seen, cross_adapter, on_two_benches, seen};

/// What two adapters have, alike.
#[derive(Default)]
struct Row {
    nodes: u32,
    policy: NodePolicy,
    options: DriverOptions,
}

impl Row {
    /// Runs a body on models and devices, each beside each.
    fn on_both(&self, body: impl Fn(&Bench, &Bench)) {
        let each = |body: &dyn Fn(&Bench)| {
            on_benches_with(self.nodes, self.policy, &self.options, body);
        };
        each(&|one| each(&|other| body(one, other)));
    }

    /// Each signal on one is heard on the other, by whoever waits there and by the driver where nobody does, which is told
    /// of no value but by notifications; MonitoredValue is 0 on both.
    fn is_heard(&self) {
        self.on_both(|one, other| {
            let (here, there) = cross_adapter(one, other, 0);
            let last = self.nodes - 1;
            let mut signals = one.queue_on(last);
            let mut waits: Vec<_> = (0..self.nodes).map(|node| other.queue_on(node)).collect();
            let mut signalled = Vec::new();
            for value in 1..=6 {
                let ends = if value % 2 == 0 {
                    standing(other, &mut waits, &there, value)
                } else {
                    Vec::new()
                };
                let waiter = (value % 3 == 0).then(|| other.waiter(&there, value));
                other.spy.take();
                complete(&mut signals, CommandList::new().signal(&here, value));
                for (queue, end) in waits.iter().zip(ends) {
                    until_completed(queue, end);
                }
                if let Some(waiter) = waiter {
                    waiter.join().unwrap();
                }
                signalled.push(Seen::Notified(value));
                until("the other adapter is notified", || {
                    seen(&other.spy, &there).contains(&Seen::Notified(value))
                });
                let heard = seen(&other.spy, &there);
                assert!(
                    heard.iter().all(|seen| signalled.contains(seen)),
                    "{heard:?}"
                );
                assert_eq!((monitored_value(&here), monitored_value(&there)), (0, 0));
            }
        });
    }
}

/// Waits of all queues for a value, that stand: their ends.
fn standing(bench: &Bench, queues: &mut [HwQueue], fence: &Fence, value: u64) -> Vec<u64> {
    let list = CommandList::new().wait(fence, value).clone();
    let ends = queues.iter_mut().map(|queue| queue.submit(&list).unwrap());
    let ends = ends.collect();
    bench.until_parked();
    ends
}

/// XA-03: on the signaller's second node the signal, on each of the waiter's nodes a queue.
///
/// Kills `a-side-is-on-one-node`.
#[test]
fn xa_03_engines_of_every_node_look() {
    Row {
        nodes: 2,
        ..Row::default()
    }
    .is_heard();
}

/// XA-03 and IN-07: the interrupt names a queue, and its log which values.
///
/// Kills `what-a-log-tells-stays-on-its-adapter`.
#[test]
fn xa_03_what_a_log_tells_is_propagated() {
    let options = DriverOptions {
        optimized_interrupt: true,
        ..DriverOptions::default()
    };
    Row {
        nodes: 1,
        options,
        ..Row::default()
    }
    .is_heard();
}

/// XA-03: where waiters watch records, those of another adapter's engine reach who waits here.
///
/// Kills `nobody-propagates`.
#[test]
fn xa_03_watched_records_are_propagated() {
    let policy = NodePolicy {
        delivery: Delivery::Polled,
        wait_spin: Duration::ZERO,
        ..NodePolicy::default()
    };
    Row {
        nodes: 1,
        policy,
        ..Row::default()
    }
    .is_heard();
}

/// XA-03: of three adapters each signals once; both others hear of it, in a queue and in a thread, and the signaller is
/// notified of nothing.
///
/// Kills `one-other-adapter-hears`, `the-signaller-is-told-of-its-own-signal`.
#[test]
fn xa_03_a_value_passes_among_three_adapters() {
    on_two_benches(|one, other| {
        let third = if one.is_model() {
            Some(Bench::on_model(ModelOptions::default(), NodePolicy::default()).0)
        } else {
            Bench::on_device(1, NodePolicy::default())
        };
        let third = &third.unwrap();
        let (here, there) = cross_adapter(one, other, 0);
        // From the side that was opened, not from the one that was made.
        let yonder = third.device.open_fence(&there.share().unwrap()).unwrap();
        let sides = [(one, &here), (other, &there), (third, &yonder)];
        let mut queues = sides.map(|(bench, _)| bench.queue());
        for (value, signaller) in [(1, 0), (2, 1), (3, 2)] {
            let mut waits = Vec::new();
            for (at, (bench, side)) in sides.into_iter().enumerate() {
                if at != signaller {
                    let end = queues[at]
                        .submit(CommandList::new().wait(side, value))
                        .unwrap();
                    waits.push((at, end, bench.waiter(side, value)));
                }
            }
            for (bench, _) in sides {
                bench.until_parked();
                bench.spy.take();
            }
            complete(
                &mut queues[signaller],
                CommandList::new().signal(sides[signaller].1, value),
            );
            for (at, end, waiter) in waits {
                until_completed(&queues[at], end);
                waiter.join().unwrap();
                let (bench, side) = sides[at];
                assert_eq!(seen(&bench.spy, side), [Seen::Notified(value)]);
            }
            let (bench, side) = sides[signaller];
            assert_eq!(seen(&bench.spy, side), [Seen::Raised(value)]);
            assert_eq!(sides.map(|(_, side)| monitored_value(side)), [0; 3]);
        }
    });
}

/// XA-03: a waiter on one of three alone: MonitoredValue is 0 on each while it stands and when it has gone, and no driver
/// is told to post any; the side that goes first takes nobody along.
///
/// Kills `a-monitored-value-that-is-fixed-is-posted`.
#[test]
fn xa_03_a_waiter_on_one_adapter_moves_no_monitored_value() {
    on_two_benches(|one, other| {
        let (here, there) = cross_adapter(one, other, 0);
        let third = Bench::on_model(ModelOptions::default(), NodePolicy::default()).0;
        let yonder = third.device.open_fence(&here.share().unwrap()).unwrap();
        let waiter = third.waiter(&yonder, 7);
        let sides = [&here, &there, &yonder];
        assert_eq!(sides.map(monitored_value), [0; 3]);
        drop(there);
        let mut queue = one.queue();
        complete(&mut queue, CommandList::new().signal(&here, 7));
        waiter.join().unwrap();
        assert_eq!([&here, &yonder].map(monitored_value), [0; 2]);
        let posted = |(bench, side): (&Bench, &Fence)| {
            seen(&bench.spy, side)
                .into_iter()
                .any(|seen| matches!(seen, Seen::Posted(_)))
        };
        assert!(![(one, &here), (&third, &yonder)].into_iter().any(posted));
    });
}

/// XA-03, HQ-08: a kernel between a wait for one adapter and a signal to it has run when the signal is heard.
///
/// Kills `model-a-dispatch-is-passed-over`, `shader-a-dispatch-is-passed-over`.
#[test]
fn xa_03_a_kernel_between_two_adapters_has_run() {
    const WORDS: u64 = 200;
    on_two_benches(|one, other| {
        let (asks, asked) = cross_adapter(one, other, 0);
        let (answers, answered) = cross_adapter(other, one, 0);
        let (mut first, mut second) = (one.queue(), other.queue());
        let kernel = other.device.create_kernel(add_words()).unwrap();
        let memory = other.device.create_allocation(WORDS * 8).unwrap();
        complete(
            &mut second,
            CommandList::new().fill(&memory, 0..memory.bytes(), 0),
        );
        for value in 1..=3 {
            let mut list = CommandList::new();
            list.wait(&asked, value);
            list.dispatch(&kernel, groups_for(WORDS), &sums(&memory, &memory, 1))
                .unwrap();
            list.signal(&answers, value);
            second.submit(&list).unwrap();
            other.until_parked();
            assert_eq!(
                words(&memory),
                [value - 1; WORDS as usize],
                "before it is asked for"
            );
            let mut list = CommandList::new();
            list.signal(&asks, value).wait(&answered, value);
            complete(&mut first, &list);
            assert_eq!(words(&memory), [value; WORDS as usize]);
        }
    });
}

/// NF-23 across adapters: who opens the fence there may do no more than its maker asked for, and what is refused is heard
/// nowhere.
///
/// Kills `a-side-has-every-right`.
#[test]
fn xa_03_a_right_is_missing_on_every_adapter() {
    on_two_benches(|one, other| {
        let with = |no_signal, no_wait| {
            let options = FenceOptions {
                initial: 3,
                no_signal,
                no_wait,
                cross_adapter: Some(CrossAdapter::Propagated),
                ..FenceOptions::default()
            };
            let here = one.device.create_fence_with(options).unwrap();
            let there = other.device.open_fence(&here.share().unwrap()).unwrap();
            (here, there)
        };
        let is_stopped = |bench: &Bench, list: &CommandList| {
            let mut queue = bench.queue();
            let end = queue.submit(list).unwrap();
            match queue.progress_fence().wait(end, LONG) {
                Err(WaitError::QueueFaulted(fault)) => {
                    assert_eq!(fault.code, FaultCode::AccessDenied);
                }
                other => panic!("the queue was not stopped: {other:?}"),
            }
        };
        let (silent, silent_too) = with(true, false);
        for (bench, side) in [(one, &silent), (other, &silent_too)] {
            assert_eq!(side.signal(9), Err(SignalError::AccessDenied));
            is_stopped(bench, CommandList::new().signal(side, 9));
            assert_eq!(side.wait(3, LONG), Ok(()));
        }
        for (bench, side) in [(one, &silent), (other, &silent_too)] {
            assert_eq!((side.current_value(), seen(&bench.spy, side)), (3, vec![]));
        }
        let (deaf, deaf_too) = with(false, true);
        for (bench, side) in [(one, &deaf), (other, &deaf_too)] {
            assert_eq!(side.wait(3, LONG), Err(WaitError::AccessDenied));
            is_stopped(bench, CommandList::new().wait(side, 3));
        }
        complete(&mut one.queue(), CommandList::new().signal(&deaf, 4));
        until("it is heard all the same", || {
            seen(&other.spy, &deaf_too) == [Seen::Notified(4)]
        });
        deaf_too.signal(5).unwrap();
        assert_eq!(seen(&one.spy, &deaf).last(), Some(&Seen::Notified(5)));
    });
}
