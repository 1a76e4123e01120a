//! Recordings of two adapters, which give one trace.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod two_benches;
}

use native_fence::trace::{Command, FenceName, Operation, Releaser, Trace, WaiterKind, What};
use native_fence::{Adapter, CommandList, CrossAdapter, RecordError, RecordingOptions, Recordings};
use support::bench::{Bench, complete, until, until_completed};
use support::two_benches::{cross_adapter_by, of_two_kinds, on_two_benches, on_two_kinds};

fn record(one: &Bench, other: &Bench) -> Recordings {
    let adapters = [one.adapter.clone(), other.adapter.clone()];
    Adapter::record_together(&adapters, &RecordingOptions::default()).unwrap()
}

/// The adapter of a queue of the trace.
fn adapter_of(trace: &Trace, command: &Command) -> usize {
    let queue = trace.queues[command.queue as usize];
    trace.adapter_of_node(queue.node_ordinal).unwrap().0
}

fn cross_fences(trace: &Trace) -> Vec<u32> {
    let fences = (0..).zip(&trace.fences);
    let fences = fences.filter(|(_, name)| matches!(name, FenceName::CrossAdapter { .. }));
    fences.map(|(number, _)| number).collect()
}

/// A queue of one adapter signals a fence that both have, in whichever way they hear of it. In the trace it is one fence:
/// the wait of the other adapter's queue was released by that signal, and so was a thread there; the signal ended before
/// both, as far as the clocks of the two engines are known. Fences that each has alone are two, though they are called alike.
///
/// Mutants: `a-propagated-fence-is-of-each-adapter`, `a-doorbell-fence-is-of-each-adapter`,
/// `an-open-fence-has-another-name`.
#[test]
fn a_signal_on_one_adapter_releases_who_waits_on_the_other() {
    for mode in [CrossAdapter::Propagated, CrossAdapter::Doorbell] {
        for is_open_before in [true, false] {
            on_two_benches(|one, other| {
                let early = is_open_before.then(|| cross_adapter_by(mode, one, other, 0));
                let (mut signals, mut waits) = (one.queue(), other.queue());
                let recording = record(one, other);
                let (here, there) = early.unwrap_or_else(|| cross_adapter_by(mode, one, other, 0));
                let own = [one.fence(0), other.fence(0)];
                let end = waits.submit(CommandList::new().wait(&there, 7)).unwrap();
                let handle = waits.os().handle();
                until("the queue stands at its wait", || {
                    other.adapter.os().ddi().hw_queue_wait(handle).is_some()
                });
                let thread = other.waiter(&there, 7);
                complete(&mut signals, CommandList::new().signal(&here, 7));
                until_completed(&waits, end);
                thread.join().unwrap();
                for fence in &own {
                    fence.signal(1).unwrap();
                }
                let trace = recording.stop(Vec::new());

                assert_eq!(trace.adapters.len(), 2);
                let [fence] = cross_fences(&trace)[..] else {
                    panic!("{:?}", trace.fences)
                };
                let error = trace
                    .clocks
                    .iter()
                    .map(|clock| clock.max_error_ns)
                    .sum::<u64>();
                let mut released = Vec::new();
                for release in trace.releases() {
                    let (who, waited) = match &trace.events[release.wait].what {
                        What::Command(wait) if wait.fence == fence => {
                            assert_eq!(adapter_of(&trace, wait), 1);
                            ("queue", wait.end.unwrap())
                        }
                        What::CpuWait(wait) if wait.fence == fence => {
                            assert_eq!(wait.waiter, WaiterKind::Thread);
                            ("thread", wait.woke)
                        }
                        _ => continue,
                    };
                    let Releaser::Command(by) = release.signal else {
                        panic!("{release:?}")
                    };
                    let What::Command(signal) = &trace.events[by].what else {
                        panic!("{release:?}")
                    };
                    assert_eq!((adapter_of(&trace, signal), signal.value), (0, 7));
                    assert_eq!(signal.operation, Operation::Signal);
                    assert!(
                        signal.end.unwrap() <= waited + error,
                        "{signal:?}: {waited}"
                    );
                    released.push(who);
                }
                released.sort_unstable();
                assert_eq!(released, ["queue", "thread"]);
                let mut of_cpu: Vec<_> = trace
                    .events
                    .iter()
                    .filter_map(|event| match event.what {
                        What::CpuSignal { fence, .. } => Some(trace.fences[fence as usize]),
                        _ => None,
                    })
                    .map(|name| match name {
                        FenceName::Native { adapter, .. } => adapter,
                        other => panic!("{other:?}"),
                    })
                    .collect();
                of_cpu.sort_unstable();
                assert_eq!(of_cpu, [0, 1]);
            });
        }
    }
}

/// A fence that is monitored on one adapter and native on the other is one too (XA-08).
///
/// Mutant: `a-monitored-side-is-a-fence-of-its-own`.
#[test]
fn a_fence_of_two_kinds_is_one() {
    on_two_kinds(|without, with| {
        let (monitored, native) = of_two_kinds(without, with, true);
        let recording = record(without, with);
        let waits = with.waiter(&native, 3);
        monitored.signal(3).unwrap();
        waits.join().unwrap();
        let trace = recording.stop(Vec::new());
        let [fence] = cross_fences(&trace)[..] else {
            panic!("{:?}", trace.fences)
        };
        let releases = trace.releases();
        let [release] = releases[..] else {
            panic!("{releases:?}")
        };
        let Releaser::CpuSignal(signal) = release.signal else {
            panic!("{release:?}")
        };
        let signal = &trace.events[signal].what;
        assert!(matches!(signal, What::CpuSignal { fence: of, value: 3, .. } if *of == fence));
    });
}

/// Whoever looks at both while they go on finds each queue and fence under the number that it had, whatever comes on
/// either adapter; and each command once when it is done.
#[test]
fn numbers_stay_while_recordings_are_cut() {
    on_two_benches(|one, other| {
        let (here, there) = cross_adapter_by(CrossAdapter::Propagated, one, other, 0);
        let (mut first, mut second) = (one.queue(), other.queue());
        let mut recording = record(one, other);
        complete(&mut first, CommandList::new().signal(&here, 1));
        complete(&mut second, CommandList::new().wait(&there, 1));
        let before = recording.cut();
        // On the first adapter something comes, which must not move what the other one has.
        let (mut late, fence) = (one.queue(), one.fence(0));
        complete(&mut late, CommandList::new().signal(&fence, 9));
        complete(&mut second, CommandList::new().signal(&there, 2));
        let after = recording.cut();
        let queues = before.queues.len();
        assert_eq!(before.queues[..], after.queues[..queues]);
        assert_eq!(before.fences[..], after.fences[..before.fences.len()]);
        assert_eq!(after.queues.len(), queues + 1);
        let [fence] = cross_fences(&after)[..] else {
            panic!("{:?}", after.fences)
        };
        let done = |trace: &Trace| -> Vec<_> {
            let commands = trace
                .commands()
                .filter(|(_, command)| command.fence == fence);
            let done = commands.filter(|(_, command)| command.end.is_some());
            done.map(|(_, command)| (adapter_of(trace, command), command.operation, command.value))
                .collect()
        };
        let mut first_cut = done(&before);
        first_cut.sort_unstable();
        assert_eq!(
            first_cut,
            [(0, Operation::Signal, 1), (1, Operation::Wait, 1)]
        );
        assert_eq!(done(&after), [(1, Operation::Signal, 2)]);
        assert_eq!(done(&recording.stop(Vec::new())), []);
    });
}

/// All adapters are recorded or none is.
#[test]
fn one_that_is_recorded_already_leaves_the_other_alone() {
    on_two_benches(|one, other| {
        let options = RecordingOptions::default();
        let taken = other.adapter.record(&options).unwrap();
        let adapters = [one.adapter.clone(), other.adapter.clone()];
        let refused = Adapter::record_together(&adapters, &options);
        assert!(matches!(refused, Err(RecordError::Taken)), "{refused:?}");
        drop(taken);
        drop(record(one, other));
    });
}
