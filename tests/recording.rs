//! Rules of the trace (LG-09, LG-10, LG-12): what a recording of an adapter holds of what was done there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod logs;
}

use native_fence::gpu::NodePolicy;
use native_fence::trace::{
    ClockSource, Command, FenceName, InterruptKind, LostFrom, Operation, Releaser, Trace, What,
};
use native_fence::{
    CommandList, Fence, HwQueue, HwQueueOptions, RecordError, Recording, RecordingOptions, Tracing,
};
use std::sync::{Arc, Mutex, mpsc};
use support::bench::{Bench, LONG, Moment, complete, on_every_bench, until};
use support::logs::now;

fn record(bench: &Bench) -> Recording {
    bench.adapter.record(&RecordingOptions::default()).unwrap()
}

fn stop(recording: Recording) -> Trace {
    recording.stop(vec![("workload".into(), "a test".into())])
}

/// The number of a fence in a trace.
fn number_of(trace: &Trace, fence: &Fence) -> u32 {
    let name = FenceName::from(fence.object().fence().id());
    let found = trace.fences.iter().position(|known| *known == name);
    found.expect("the trace names the fence") as u32
}

fn commands_of(trace: &Trace, fence: &Fence, operation: Operation) -> Vec<Command> {
    let number = number_of(trace, fence);
    let commands = trace.commands().map(|(_, command)| *command);
    commands
        .filter(|command| (command.fence, command.operation) == (number, operation))
        .collect()
}

/// LG-10: each wait and signal has the CPU's time at which its user queued it, and is paired with what its engine logged
/// of it, on one clock: queued, observed and end are in this order. Each submission is done between two looks at the
/// clock, so a command that is paired with another's entry shows.
///
/// Mutants: `commands-are-noted-after-they-are-rung`, `an-entry-is-taken-for-the-next-command`,
/// `times-of-engines-are-not-brought-over`.
#[test]
fn lg_10_queued_observed_and_end_are_in_order_on_one_clock() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let (mut producer, mut consumer) = (bench.queue(), bench.queue());
        // What was queued before is nobody's question.
        complete(&mut producer, CommandList::new().signal(&fence, 1));
        let recording = record(bench);
        let mut asked = Vec::new();
        for value in 2..40 {
            let before = now();
            let mut list = CommandList::new();
            let waited = consumer.submit(list.wait(&fence, value)).unwrap();
            let between = now();
            complete(&mut producer, CommandList::new().signal(&fence, value));
            consumer.progress_fence().wait(waited, LONG).unwrap();
            asked.push((value, before, between, now()));
        }
        let trace = stop(recording);
        let since = |ns: u64| ns - trace.began_ns;
        let error = trace.clocks[0].max_error_ns;
        let waits = commands_of(&trace, &fence, Operation::Wait);
        let signals = commands_of(&trace, &fence, Operation::Signal);
        assert_eq!((waits.len(), signals.len()), (asked.len(), asked.len()));
        for (((value, before, between, end), wait), signal) in
            asked.into_iter().zip(waits).zip(signals)
        {
            assert_eq!((wait.value, signal.value), (value, value));
            let [queued, observed, waited] =
                [wait.queued, wait.observed, wait.end].map(Option::unwrap);
            assert!(since(before) <= queued && queued <= since(between));
            assert!(queued <= observed + error && observed <= waited);
            assert!(waited <= since(end) + error);
            let (queued, done) = (signal.queued.unwrap(), signal.end.unwrap());
            assert!(since(between) <= queued && queued <= done + error);
            assert!(done <= waited + error, "the signal's end comes first");
        }
        assert_eq!(trace.lost().count(), 0);
    });
}

/// LG-10: a command that has not been executed is in the trace as queued alone; verbosely, a wait that was found
/// unsatisfied says when. One that was queued before the recording has no such time.
///
/// Mutants: `what-is-not-done-is-left-out`, `a-verbose-trace-observes-nothing`.
#[test]
fn lg_10_what_is_not_done_yet_and_what_was_queued_before_are_told_apart() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, other) = (bench.fence(0), bench.fence(0));
        let mut queue = bench.queue();
        let before = queue.submit(CommandList::new().wait(&fence, 1)).unwrap();
        let options = RecordingOptions {
            verbose: true,
            ..RecordingOptions::default()
        };
        let recording = bench.adapter.record(&options).unwrap();
        fence.signal(1).unwrap();
        queue.progress_fence().wait(before, LONG).unwrap();
        let waits = queue.submit(CommandList::new().wait(&other, 7)).unwrap();
        // It has been found unsatisfied when the queue stands at it.
        let handle = queue.os().handle();
        until("the queue stands at its wait", || {
            let wait = bench.adapter.os().ddi().hw_queue_wait(handle);
            wait.is_some_and(|wait| wait.value == 7)
        });
        let trace = stop(recording);

        let done = commands_of(&trace, &fence, Operation::Wait);
        let [done] = done[..] else { panic!("{done:?}") };
        assert_eq!(done.queued, None);
        assert!(done.end.is_some());
        let open = commands_of(&trace, &other, Operation::Wait);
        let [open] = open[..] else { panic!("{open:?}") };
        assert_eq!((open.end, open.is_lost), (None, false));
        let error = trace.clocks[0].max_error_ns;
        assert!(open.queued.unwrap() <= open.observed.unwrap() + error);

        other.signal(7).unwrap();
        queue.progress_fence().wait(waits, LONG).unwrap();
        assert_eq!(bench.adapter.os().tracing(), Tracing::Off, "as before");
    });
}

/// LG-10: the arrow from a signal goes to the wait that it let go, whoever signalled, and whoever waited.
///
/// Mutant: `any-signal-releases`.
#[test]
fn lg_10_a_wait_is_released_by_the_signal_that_reached_its_value() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let (mut producer, mut consumer) = (bench.queue(), bench.queue());
        let recording = record(bench);
        let waiter = bench.waiter(&fence, 3);
        let waited = consumer.submit(CommandList::new().wait(&fence, 2)).unwrap();
        let handle = consumer.os().handle();
        until("the queue stands at its wait", || {
            bench.adapter.os().ddi().hw_queue_wait(handle).is_some()
        });
        complete(&mut producer, CommandList::new().signal(&fence, 1));
        complete(&mut producer, CommandList::new().signal(&fence, 2));
        consumer.progress_fence().wait(waited, LONG).unwrap();
        fence.signal(3).unwrap();
        waiter.join().unwrap();
        let trace = stop(recording);

        let number = number_of(&trace, &fence);
        let mut released = Vec::new();
        for release in trace.releases() {
            let wait = match &trace.events[release.wait].what {
                What::Command(wait) if wait.fence == number => ("queue", wait.value),
                What::CpuWait(wait) if wait.fence == number => ("thread", wait.value),
                _ => continue,
            };
            let signal = match release.signal {
                Releaser::Command(signal) => match &trace.events[signal].what {
                    What::Command(signal) => ("queue", signal.value),
                    other => panic!("{other:?}"),
                },
                Releaser::CpuSignal(signal) => match &trace.events[signal].what {
                    What::CpuSignal { value, .. } => ("thread", *value),
                    other => panic!("{other:?}"),
                },
            };
            released.push((wait, signal));
        }
        released.sort_unstable();
        let expected = [(("queue", 2), ("queue", 2)), (("thread", 3), ("thread", 3))];
        assert_eq!(released, expected);
    });
}

/// LG-12: the log of a queue is overrun while the recording reads it. The trace has a mark with the queue and the number of
/// entries lost; those that were read are still paired with their commands, and the waiter is woken.
///
/// Mutant: `an-overrun-leaves-no-mark`.
#[test]
fn lg_12_an_overrun_leaves_a_mark_with_the_queue_and_the_number() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let options = HwQueueOptions {
            ring_capacity: 2048,
            ..HwQueueOptions::default()
        };
        let queue = bench.device.create_hw_queue_with(options).unwrap();
        let handle = queue.os().handle();
        // Of so many queues each has the shortest log.
        let _others: Vec<HwQueue> = (0..40).map(|_| bench.queue()).collect();
        let queue = Arc::new(Mutex::new(queue));
        let recording = record(bench);
        let entries = {
            let queue = queue.lock().unwrap();
            queue.os().log_entries(native_fence::abi::LogType::Signals)
        };
        assert!((84..2000).contains(&entries), "{entries}");

        let (engine, goes_on) = (Arc::clone(&queue), fence.clone());
        let (says, done) = mpsc::channel();
        bench.spy.once(Moment::InUpdateOfLogs, move || {
            let mut list = CommandList::new();
            for value in 2..=2000 {
                list.signal(&goes_on, value);
            }
            complete(&mut engine.lock().unwrap(), &list);
            says.send(()).unwrap();
        });
        let waiter = bench.waiter(&fence, 1000);
        let value = {
            let mut queue = queue.lock().unwrap();
            queue.submit(CommandList::new().signal(&fence, 1)).unwrap()
        };
        done.recv_timeout(LONG).unwrap();
        waiter.join().unwrap();
        let trace = stop(recording);

        // Maybe in two parts: what the reader found overwritten before it began, and what while it copied.
        let LostFrom::SignalLog(of) = trace.lost().next().unwrap().from else {
            panic!("{:?}", trace.lost().collect::<Vec<_>>())
        };
        assert!(
            trace
                .lost()
                .all(|lost| lost.from == LostFrom::SignalLog(of))
        );
        let lost: u64 = trace.lost().map(|lost| lost.count).sum();
        let name = trace.queues[of as usize];
        assert_eq!(
            (name.node_ordinal, name.number),
            (handle.node_ordinal, handle.number)
        );
        // Signals of the fence, and two of progress.
        let commands: Vec<_> = trace.commands().filter(|(_, c)| c.queue == of).collect();
        let (read, unread): (Vec<_>, Vec<_>) = commands.iter().partition(|(_, c)| c.end.is_some());
        assert_eq!(read.len() as u64 + lost, 2002);
        assert_eq!(unread.len() as u64, lost);
        assert!(lost >= 2002 - entries, "{lost}");
        for (_, command) in read {
            assert!(command.queued.is_some(), "{command:?}");
        }
        for (_, command) in unread {
            assert!(command.is_lost, "{command:?}");
        }
        let progress = queue.lock().unwrap().progress_fence().current_value();
        assert_eq!(progress, value + 1);
    });
}

/// LG-09: the waits and signals of a kernel-mode queue, which the OS executes, are in the trace in the same form.
///
/// Mutant: `kernel-mode-queues-are-not-traced`.
#[test]
fn lg_09_the_trace_has_what_the_os_executed() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (gate, done) = (bench.fence(0), bench.fence(0));
        let mut user = bench.queue();
        let recording = record(bench);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let handle = queue.os().handle();
        let before = now();
        queue.wait_native(&gate, 1).unwrap();
        queue.signal_native(&done, 5).unwrap();
        let queued = now();
        complete(&mut user, CommandList::new().signal(&gate, 1));
        done.wait(5, LONG).unwrap();
        let end = now();
        // It is noted after it is made.
        until("the signal is logged", || {
            !queue.read_signal_log().entries.is_empty()
        });
        let trace = stop(recording);

        let since = |ns: u64| ns - trace.began_ns;
        let of_queue = |command: &&(usize, &Command)| {
            let name = trace.queues[command.1.queue as usize];
            name.is_kernel_mode && name.number == handle.number
        };
        let commands: Vec<_> = trace.commands().collect();
        let commands: Vec<_> = commands.iter().filter(of_queue).map(|(_, c)| **c).collect();
        let [wait, signal] = commands[..] else {
            panic!("{commands:?}")
        };
        assert_eq!(
            (wait.operation, wait.fence, wait.value),
            (Operation::Wait, number_of(&trace, &gate), 1)
        );
        assert_eq!(
            (signal.operation, signal.fence, signal.value),
            (Operation::Signal, number_of(&trace, &done), 5)
        );
        for command in [wait, signal] {
            let asked = command.queued.expect("when it was queued");
            assert!(since(before) <= asked && asked <= since(queued));
        }
        let observed = wait.observed.unwrap();
        assert!(wait.queued.unwrap() <= observed && observed <= wait.end.unwrap());
        assert!(wait.end.unwrap() <= signal.end.unwrap());
        assert!(since(queued) <= wait.end.unwrap());
        assert!(signal.end.unwrap() <= since(end));
        // It is the queue's signal that let the thread go, and nobody else's.
        let done = number_of(&trace, &done);
        for event in &trace.events {
            let is_there = matches!(event.what, What::CpuSignal { fence, .. } if fence == done);
            assert!(!is_there, "{event:?}");
        }
    });
}

/// Slices, interrupts, MonitoredValues and waits of threads are in the trace, each where it was; and the engine's clock was
/// had by the driver's readings, which its slices bear out.
///
/// Mutants: `slices-are-not-kept`, `interrupts-are-not-noted`.
#[test]
fn a_trace_shows_what_the_engine_and_the_operating_system_did() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        let recording = record(bench);
        // An interrupt is noted when its deferred call has ended, which lets the waiter go before: the last may be missing.
        for value in 1..=3 {
            let waiter = bench.waiter(&fence, value);
            complete(&mut queue, CommandList::new().signal(&fence, value));
            waiter.join().unwrap();
        }
        bench.until_parked();
        let trace = stop(recording);

        let clock = trace.clocks[0];
        assert_eq!(clock.source, ClockSource::Calibrated);
        assert!(clock.max_error_ns < 1_000_000, "{clock:?}");
        let number = number_of(&trace, &fence);
        let mut signaled = 0;
        let (mut monitored, mut waits, mut slices) = (Vec::new(), Vec::new(), 0);
        for event in &trace.events {
            match &event.what {
                What::Interrupt { kind, done, .. } => {
                    assert!(event.at <= *done);
                    signaled += u32::from(*kind == InterruptKind::NativeFenceSignaled);
                }
                What::MonitoredValue { fence, value } if *fence == number => monitored.push(*value),
                What::CpuWait(wait) if wait.fence == number => waits.push(*wait),
                What::Slice(slice) => {
                    let error = clock.max_error_ns;
                    assert!(slice.submitted <= slice.begin + error, "{slice:?}");
                    assert!(slice.begin <= slice.end && slice.end <= slice.seen + error);
                    slices += 1;
                }
                _ => {}
            }
        }
        assert!(signaled > 0 && slices > 0, "{trace:?}");
        assert_eq!(
            (monitored.first(), monitored.last()),
            (Some(&0), Some(&u64::MAX))
        );
        assert_eq!(waits.len(), 3);
        for wait in waits {
            assert!(wait.is_satisfied() && wait.began <= wait.woke, "{wait:?}");
        }
        assert!(trace.events.is_sorted_by_key(|event| event.at));
    });
}

/// One recording of an adapter at a time; when it is over the logs are as they were, and nothing is noted.
///
/// Mutants: `two-recordings-at-a-time`, `logs-stay-large`.
#[test]
fn a_recording_is_alone_and_leaves_everything_as_it_was() {
    on_every_bench(NodePolicy::default(), |bench| {
        let signals = native_fence::abi::LogType::Signals;
        let queue = bench.queue();
        let recording = record(bench);
        until("the logs are enlarged", || {
            queue.os().log_entries(signals) > 84
        });
        let second = bench.adapter.record(&RecordingOptions::default());
        assert!(matches!(second, Err(RecordError::Taken)), "{second:?}");
        drop(recording);
        assert_eq!(queue.os().log_entries(signals), 84);
        let trace = stop(record(bench));
        assert_eq!(trace.commands().count(), 0);
        assert_eq!(queue.os().log_entries(signals), 84);
    });
}

/// Queues and fences that come and go while the collector is elsewhere are in the trace.
///
/// Mutants: `queues-that-are-gone-are-not-read`, `handles-that-were-closed-are-not-known`.
#[test]
fn what_was_destroyed_meanwhile_is_in_the_trace() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut first = bench.queue();
        let recording = record(bench);
        let (says, is_held) = mpsc::channel();
        let (lets_go, held) = mpsc::channel::<()>();
        bench.spy.once(Moment::InUpdateOfLogs, move || {
            says.send(()).unwrap();
            held.recv_timeout(LONG).unwrap();
        });
        complete(&mut first, CommandList::new().nop());
        is_held.recv_timeout(LONG).unwrap();
        let mut names = Vec::new();
        for value in 1..10 {
            let fence = bench.fence(0);
            let mut queue = bench.queue();
            complete(&mut queue, CommandList::new().signal(&fence, value));
            names.push((FenceName::from(fence.object().fence().id()), value));
        }
        lets_go.send(()).unwrap();
        let trace = stop(recording);
        for (name, value) in names {
            let found = trace.commands().any(|(_, command)| {
                let is_this = trace.fences[command.fence as usize] == name;
                is_this && command.value == value && command.end.is_some()
            });
            assert!(found, "{name} = {value}");
        }
    });
}

/// A trace that has as many events as it may is cut there: it has no holes, no mark of an overrun, and says how many events
/// there were after it.
///
/// Mutant: `a-full-trace-goes-on-with-what-fits`.
#[test]
fn a_trace_that_is_full_is_cut_and_says_so() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        let options = RecordingOptions {
            most_events: 30,
            ..RecordingOptions::default()
        };
        let recording = bench.adapter.record(&options).unwrap();
        // What one round finds is kept as a whole or not at all: the first signal is in a round of its own.
        let (says, is_read) = mpsc::channel();
        bench
            .spy
            .once(Moment::InUpdateOfLogs, move || says.send(()).unwrap());
        complete(&mut queue, CommandList::new().signal(&fence, 1));
        is_read.recv_timeout(LONG).unwrap();
        for value in 2..=200 {
            complete(&mut queue, CommandList::new().signal(&fence, value));
        }
        let trace = stop(recording);
        let lost: Vec<_> = trace.lost().collect();
        let [lost] = lost[..] else { panic!("{lost:?}") };
        assert_eq!(lost.from, LostFrom::Trace);
        // 400 are queued and 400 done, beside slices and interrupts.
        assert!(lost.count >= 800 - 30, "{lost:?}");
        assert!(trace.events.len() <= 31, "{}", trace.events.len());
        let values: Vec<_> = commands_of(&trace, &fence, Operation::Signal)
            .iter()
            .map(|command| command.value)
            .collect();
        let whole: Vec<_> = (1..=values.len() as u64).collect();
        assert_eq!(values, whole, "the first of them, one after the other");
    });
}

/// LG-10: whoever looks at a recording while it goes on has each command once when it is done, and in every cut before as one
/// that is not; queues and fences keep their numbers, and time goes on.
///
/// Mutants: `a-cut-gives-what-was-given`, `a-cut-forgets-what-is-queued`, `a-cut-leaves-no-room`,
/// `what-was-skipped-is-not-done`.
#[test]
fn lg_10_a_cut_holds_what_is_new_and_what_is_not_done() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (first, second) = (bench.fence(0), bench.fence(0));
        let mut queue = bench.queue();
        let options = RecordingOptions {
            most_events: 3000,
            ..RecordingOptions::default()
        };
        let mut recording = bench.adapter.record(&options).unwrap();
        let signals = |queue: &mut HwQueue, fence: &Fence, values: std::ops::Range<u64>| {
            // As many at a time as find room in the ring.
            let values: Vec<_> = values.collect();
            for values in values.chunks(500) {
                let mut list = CommandList::new();
                for value in values {
                    list.signal(fence, *value);
                }
                complete(queue, &list);
            }
        };
        signals(&mut queue, &first, 1..1200);
        let waits = queue.submit(CommandList::new().wait(&second, 7)).unwrap();
        let early = recording.cut();
        let done = commands_of(&early, &first, Operation::Signal);
        assert_eq!(done.len(), 1199);
        let open = commands_of(&early, &second, Operation::Wait);
        let [open] = open[..] else { panic!("{open:?}") };
        assert_eq!((open.end, open.is_lost), (None, false));

        let still = recording.cut();
        assert_eq!(still.began_ns, early.began_ns);
        assert!(still.length >= early.length);
        assert!(commands_of(&still, &first, Operation::Signal).is_empty());
        let waiting = commands_of(&still, &second, Operation::Wait);
        assert_eq!(waiting.len(), 1);
        assert_eq!((waiting[0].end, waiting[0].queued), (None, open.queued));

        second.signal(7).unwrap();
        queue.progress_fence().wait(waits, LONG).unwrap();
        // With what was cut it would be more than is kept.
        signals(&mut queue, &first, 1200..2400);
        let late = recording.cut();
        let waited = commands_of(&late, &second, Operation::Wait);
        let [waited] = waited[..] else {
            panic!("{waited:?}")
        };
        assert_eq!((waited.queued, waited.queue), (open.queued, open.queue));
        assert!(waited.end.unwrap() + late.clocks[0].max_error_ns >= still.length);
        let done = commands_of(&late, &first, Operation::Signal);
        assert!(done.iter().map(|signal| signal.value).eq(1200..2400));
        assert!(done.iter().all(|signal| signal.queued.is_some()));

        // More than is kept: what is known to be queued is known to be done, and is not told of again.
        for value in 2400..6000 {
            signals(&mut queue, &first, value..value + 1);
        }
        let full = recording.cut();
        assert!(full.lost().any(|lost| lost.from == LostFrom::Trace));
        let told = commands_of(&full, &first, Operation::Signal);
        assert!(!told.is_empty());
        let is_done = |command: &Command| command.end.is_some() != command.is_lost;
        assert!(told.iter().all(is_done), "{told:?}");

        signals(&mut queue, &first, 6000..6010);
        let rest = stop(recording);
        let told = commands_of(&rest, &first, Operation::Signal);
        assert!(told.iter().map(|signal| signal.value).eq(6000..6010));
        assert!(commands_of(&rest, &second, Operation::Wait).is_empty());
        for trace in [&early, &still, &late, &rest] {
            assert_eq!(trace.lost().next(), None);
        }
    });
}
