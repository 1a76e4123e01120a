//! What a recording holds of the CPU's waits, whoever waits, and of its signals, of whichever fence.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod logs;
    pub(crate) mod task;
}

use native_fence::gpu::NodePolicy;
use native_fence::os::SyncObject;
use native_fence::trace::{
    CpuWait, FenceName, Operation, Releaser, Trace, WaitEnd, WaiterKind, What,
};
use native_fence::{
    CommandList, EventHandle, Fence, Recording, RecordingOptions, SignalError, WaitError,
};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use support::bench::{Bench, Waiter, complete, monitored, native, on_every_bench, until};
use support::logs::now;
use support::task::Woken;

use WaitEnd::{AtOnce, GivenUp, Released};
use WaiterKind::{Armed, Event, Future, Thread};

const KINDS: [WaiterKind; 4] = [Thread, Future, Event, Armed];

fn record(bench: &Bench) -> Recording {
    bench.adapter.record(&RecordingOptions::default()).unwrap()
}

fn stop(recording: Recording) -> Trace {
    recording.stop(Vec::new())
}

fn number_of(trace: &Trace, name: FenceName) -> u32 {
    let found = trace.fences.iter().position(|known| *known == name);
    found.expect("the trace names the fence") as u32
}

fn name(fence: &Fence) -> FenceName {
    native(fence).id().into()
}

/// The waits for a fence, with their places among the events.
fn waits_for(trace: &Trace, name: FenceName) -> Vec<(usize, CpuWait)> {
    let Some(number) = trace.fences.iter().position(|known| *known == name) else {
        return Vec::new();
    };
    let waits = trace.events.iter().enumerate();
    let waits = waits.filter_map(|(place, event)| match &event.what {
        What::CpuWait(wait) if wait.fence == number as u32 => Some((place, *wait)),
        _ => None,
    });
    waits.collect()
}

/// Who waited for what, and how it ended, sorted.
fn told(trace: &Trace, name: FenceName) -> Vec<(u64, &'static str, WaitEnd)> {
    let waits = waits_for(trace, name).into_iter();
    let told = waits.map(|(_, wait)| (wait.value, wait.waiter.name(), wait.end));
    let mut told: Vec<_> = told.collect();
    told.sort_unstable_by_key(|(value, waiter, _)| (*value, *waiter));
    told
}

/// Each kind once, for one value, with that end.
fn each_kind(value: u64, end: WaitEnd) -> Vec<(u64, &'static str, WaitEnd)> {
    let mut all: Vec<_> = KINDS.map(|kind| (value, kind.name(), end)).into();
    all.sort_unstable_by_key(|(_, waiter, _)| *waiter);
    all
}

/// A wait of each kind for 5 stands, and is let go by a signal of 5, by a queue or by the CPU. Each is in the trace: it began
/// after it was asked for and before the signal, and was told after the signal's end and before who waited went on; and the
/// arrow of each comes from that signal.
///
/// Mutants: `standing-waits-are-not-noted`, `a-wait-wakes-when-it-began`, `a-standing-wait-is-a-thread`,
/// `released-waits-are-told-at-once`.
#[test]
fn whoever_waits_is_in_the_trace_from_the_call_to_the_wake_up() {
    for by_queue in [true, false] {
        on_every_bench(NodePolicy::default(), |bench| {
            let fence = bench.fence(4);
            let mut queue = bench.queue();
            let recording = record(bench);
            let before = now();
            let thread = bench.waiter(&fence, 5);
            let (woken, event) = (Woken::new(), EventHandle::new().unwrap());
            let mut future = fence.wait_async(5);
            assert_eq!(woken.poll(&mut future), Poll::Pending);
            let readable = fence.wait_event(5, &event);
            let armed = fence.arm(5);
            assert_eq!(native(&fence).waits(), 4, "they stand");
            let standing = now();
            if by_queue {
                complete(&mut queue, CommandList::new().signal(&fence, 5));
            } else {
                fence.signal(5).unwrap();
            }
            thread.join().unwrap();
            woken.until(1);
            assert_eq!(woken.poll(&mut future), Poll::Ready(Ok(())));
            until("the others are released", || {
                armed.is_ended() && readable.outcome().is_some()
            });
            // It is signalled when its wait has ended, with no lock held.
            until("the event is signalled", || event.reset() == 1);
            let after = now();
            let trace = stop(recording);

            let waits = waits_for(&trace, name(&fence));
            assert_eq!(told(&trace, name(&fence)), each_kind(5, Released));
            let number = number_of(&trace, name(&fence));
            // Within what the engine's clock may be off; the CPU's is the trace's.
            let (signal, done, error) = if by_queue {
                let mut commands = trace.commands();
                let signal = commands.find(|(_, command)| {
                    (command.fence, command.operation) == (number, Operation::Signal)
                });
                let (place, signal) = signal.unwrap();
                let end = signal.end.unwrap();
                (place, end, trace.clocks[0].max_error_ns)
            } else {
                let is_it =
                    |what: &What| matches!(what, What::CpuSignal { fence, .. } if *fence == number);
                let place = trace.events.iter().position(|event| is_it(&event.what));
                let place = place.unwrap();
                (place, trace.events[place].at, 0)
            };
            let since = |ns: u64| ns - trace.began_ns;
            for (place, wait) in waits {
                assert!(since(before) <= wait.began, "{wait:?}");
                assert!(wait.began <= since(standing), "{wait:?}");
                assert!(done <= wait.woke + error, "{wait:?}: signalled at {done}");
                assert!(wait.woke <= since(after), "{wait:?}");
                let releases = trace.releases().into_iter();
                let mut by = releases.filter(|release| release.wait == place);
                let (Releaser::Command(by) | Releaser::CpuSignal(by)) = by.next().unwrap().signal;
                assert_eq!(by, signal, "{wait:?}");
            }
        });
    }
}

/// A wait for what is there is in the trace as a moment, and no signal let it go.
///
/// Mutants: `a-look-is-not-noted`, `a-future-s-look-is-not-noted`.
#[test]
fn who_looks_and_finds_the_value_is_in_the_trace_at_once() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(4);
        let recording = record(bench);
        fence.signal(5).unwrap();
        fence.wait(5, Duration::ZERO).unwrap();
        let woken = Woken::new();
        assert_eq!(woken.poll(&mut fence.wait_async(5)), Poll::Ready(Ok(())));
        let event = EventHandle::new().unwrap();
        assert_eq!(fence.wait_event(5, &event).outcome(), Some(Ok(())));
        assert!(fence.arm(5).is_ended());
        // Who looks and goes on has not waited.
        assert_eq!(fence.wait(6, Duration::ZERO), Err(WaitError::TimedOut));
        let trace = stop(recording);

        assert_eq!(told(&trace, name(&fence)), each_kind(5, AtOnce));
        let waits = waits_for(&trace, name(&fence));
        for release in trace.releases() {
            assert!(waits.iter().all(|(place, _)| *place != release.wait));
        }
        for (_, wait) in waits {
            assert!(wait.began <= wait.woke, "{wait:?}");
        }
    });
}

/// Waits that end without their value: by a time-out, or since nobody wants them any more.
///
/// Mutant: `who-gives-up-has-never-waited`.
#[test]
fn who_gives_up_is_in_the_trace_too() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let recording = record(bench);
        let soon = Duration::from_millis(1);
        assert_eq!(fence.wait(9, soon), Err(WaitError::TimedOut));
        let mut future = fence.wait_async(9);
        assert_eq!(Woken::new().poll(&mut future), Poll::Pending);
        drop(future);
        drop(fence.wait_event(9, &EventHandle::new().unwrap()));
        drop(fence.arm(9));
        // Nobody has polled it: it has not begun.
        drop(fence.wait_async(9));
        let trace = stop(recording);
        assert_eq!(told(&trace, name(&fence)), each_kind(9, GivenUp));
        assert_eq!(trace.releases().len(), 0);
    });
}

/// A wait for several fences has a line in each of them: of one for any it is the fence that came that released it, and the
/// other was waited for in vain.
///
/// Mutant: `any-fence-counts`.
#[test]
fn a_wait_for_several_fences_is_told_of_each() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (left, right) = (bench.fence(0), bench.fence(0));
        let waits = [(&left, 1), (&right, 1)];
        let recording = record(bench);
        let any = Waiter::for_any(&waits);
        let event = EventHandle::new().unwrap();
        let any_event = Fence::wait_any_event(&waits, &event).unwrap();
        let all_event = Fence::wait_all_event(&waits, &event).unwrap();
        right.signal(1).unwrap();
        assert_eq!(any.join(), Ok(1));
        assert_eq!(any_event.outcome(), Some(Ok(1)));
        assert_eq!(all_event.outcome(), None);
        left.signal(1).unwrap();
        assert_eq!(all_event.outcome(), Some(Ok(())));
        let trace = stop(recording);
        let (thread, event) = (Thread.name(), Event.name());
        let mut in_vain = told(&trace, name(&left));
        in_vain.sort_unstable_by_key(|(_, waiter, end)| (*waiter, *end == Released));
        let expected = [
            (1, event, GivenUp),
            (1, event, Released),
            (1, thread, GivenUp),
        ];
        assert_eq!(in_vain, expected);
        let came = told(&trace, name(&right));
        let expected = [
            (1, event, Released),
            (1, event, Released),
            (1, thread, Released),
        ];
        assert_eq!(came, expected);
    });
}

/// Monitored fences: signals of the CPU are in the trace, by one call each or among several fences, and what is refused is
/// not; waits are as those of native fences, and the arrow comes from the CPU's signal. What a queue in kernel mode signals is
/// the queue's alone.
///
/// Mutants: `signals-of-monitored-fences-are-not-noted`, `monitored-fences-of-a-batch-are-not-noted`,
/// `refused-signals-are-noted`.
#[test]
fn cpu_signals_and_waits_of_monitored_fences_are_in_the_trace() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = monitored::starts_at(bench, 0);
        let named = FenceName::from(fence.object().fence().id());
        let beside = bench.fence(0);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let recording = record(bench);
        let before = now();
        let thread = monitored::sleeper(&fence, 1);
        let woken = Woken::new();
        let mut future = fence.wait_async(1);
        assert_eq!(woken.poll(&mut future), Poll::Pending);
        let event = EventHandle::new().unwrap();
        let readable = fence.wait_event(1, &event);
        let armed = fence.arm(1);
        fence.signal(1).unwrap();
        thread.join().unwrap().unwrap();
        assert_eq!(woken.poll(&mut future), Poll::Ready(Ok(())));
        assert_eq!(readable.outcome(), Some(Ok(())));
        assert!(armed.is_ended());
        let back = fence.signal(0);
        assert!(
            matches!(back, Err(SignalError::Backward { .. })),
            "{back:?}"
        );
        let native = SyncObject::Native(Arc::clone(beside.object()));
        let both = SyncObject::Monitored(Arc::clone(fence.object()));
        SyncObject::signal_all(&[(&native, 3), (&both, 2)], false).unwrap();
        SyncObject::signal_all(&[(&both, 3)], false).unwrap();
        assert!(SyncObject::signal_all(&[(&both, 1)], false).is_err());
        let after = now();
        queue.signal_by_os(&fence, 4).unwrap();
        until("the queue has signalled", || fence.current_value() == 4);
        let trace = stop(recording);

        let since = |ns: u64| ns - trace.began_ns;
        let signals = |name| {
            let number = number_of(&trace, name);
            let events = trace.events.iter();
            let signals = events.filter_map(move |event| match event.what {
                What::CpuSignal { fence, value, done } if fence == number => {
                    Some((value, event.at, done))
                }
                _ => None,
            });
            signals.collect::<Vec<_>>()
        };
        let of_monitored = signals(named);
        let values: Vec<_> = of_monitored.iter().map(|(value, ..)| *value).collect();
        assert_eq!(values, [1, 2, 3]);
        for (_, at, done) in of_monitored {
            assert!(since(before) <= at && at <= done && done <= since(after));
        }
        let beside: Vec<_> = signals(name(&beside)).iter().map(|s| s.0).collect();
        assert_eq!(beside, [3]);
        assert_eq!(told(&trace, named), each_kind(1, Released));
        let waits = waits_for(&trace, named);
        for release in trace.releases() {
            if waits.iter().any(|(place, _)| *place == release.wait) {
                let Releaser::CpuSignal(by) = release.signal else {
                    panic!("{release:?}")
                };
                assert!(matches!(
                    trace.events[by].what,
                    What::CpuSignal { value: 1, .. }
                ));
            }
        }
    });
}

/// What stood before the recording began is not in it, and neither is what ends after it.
///
/// Mutant: `a-recording-knows-what-it-has-not-seen`.
#[test]
fn a_wait_that_began_before_is_left_out() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let early = fence.arm(1);
        let recording = record(bench);
        let late = fence.arm(2);
        fence.signal(1).unwrap();
        assert!(early.is_ended());
        let trace = stop(recording);
        fence.signal(2).unwrap();
        assert!(late.is_ended());
        assert_eq!(told(&trace, name(&fence)), []);
    });
}
