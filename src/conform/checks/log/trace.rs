//! Trace: what the operating system makes of the logs: times, pairs, marks of what was lost.

use super::scene::{logs, signals, until_logged};
use crate::abi::{LogOperation, LogType};
use crate::conform::bench::{complete, until_completed, until_stands};
use crate::conform::seen::same;
use crate::conform::spy::{Call, Moment};
use crate::conform::{Bench, Check, Ground, LONG, until};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::trace::{Command, FenceName, LostFrom, Operation, Releaser, Trace, What};
use crate::{CommandList, Fence, Recording, RecordingOptions};
use anyhow::{Context, bail, ensure};
use std::sync::mpsc;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "LG-09",
        "a kernel-mode queue has no log: the OS executes its waits and signals and takes the times",
        by_the_os,
    ),
    Check::by(
        "LG-10",
        "what a user queues pairs with what the GPU logs: queued, observed, end in order",
        pairs,
    ),
    Check::by(
        "LG-12",
        "after an overrun every waiter wakes, and the trace has a mark with the number lost",
        marked,
    ),
];

/// CLOCK_MONOTONIC, in nanoseconds.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn record(bench: &Bench) -> anyhow::Result<Recording> {
    Ok(bench.adapter.record(&RecordingOptions::default())?)
}

/// Waits or signals of a fence in a trace.
fn commands_of(trace: &Trace, fence: &Fence, operation: Operation) -> Vec<Command> {
    let name = FenceName::from(fence.object().fence().id());
    let number = trace.fences.iter().position(|known| *known == name);
    let commands = trace.commands().map(|(_, command)| *command);
    let is_its = |command: &Command| {
        Some(command.fence as usize) == number && command.operation == operation
    };
    commands.filter(is_its).collect()
}

/// A wait of a native fence and a signal of another, by a kernel-mode queue beside a user-mode one: when they are executed,
/// what the OS logs of them, and that it is in the trace.
fn by_the_os(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (gate, done) = (bench.fence(0)?, bench.fence(0)?);
    let mut user = bench.queue()?;
    let recording = record(&bench)?;
    let mut queue = bench.device.create_kernel_queue()?;
    let handle = queue.os().handle();
    let begin = now();
    queue.wait_native(&gate, 4)?.signal_native(&done, 5)?;
    let queued = now();
    same(
        "the fence while its signal stands behind a wait",
        &done.current_value(),
        &0,
    )?;
    complete(&mut user, CommandList::new().signal(&gate, 4))?;
    done.wait(5, LONG)?;
    let mut signals = Vec::new();
    until("the OS has logged the signal", || {
        signals.extend(queue.read_signal_log().entries);
        !signals.is_empty()
    })?;
    let (end, waits) = (now(), queue.read_wait_log().entries);
    let ([wait], [signal]) = (&waits[..], &signals[..]) else {
        bail!("the OS has logged {waits:?} and {signals:?}: it should be one wait and one signal");
    };
    let seen = (wait.fence_value, wait.native_fence, wait.operation);
    let expected = (4, gate.handle().raw(), LogOperation::WaitUnblocked as u32);
    same("the wait's entry", &seen, &expected)?;
    let seen = (signal.fence_value, signal.native_fence, signal.operation);
    let expected = (5, done.handle().raw(), LogOperation::SignalExecuted as u32);
    same("the signal's entry", &seen, &expected)?;
    let times = [
        begin,
        wait.observed_ticks,
        queued,
        wait.end_ticks,
        signal.end_ticks,
        end,
    ];
    ensure!(
        times.is_sorted(),
        "begin, observed, queued, the wait's end, the signal's, end: not in order: {times:?}"
    );
    let set = bench
        .spy
        .logs()
        .iter()
        .filter(|set| set.0 == handle)
        .count();
    same(
        "logs that the driver was given for a kernel-mode queue",
        &set,
        &0,
    )?;

    let trace = recording.stop(Vec::new());
    for (fence, operation, value) in [(&gate, Operation::Wait, 4), (&done, Operation::Signal, 5)] {
        let of_queue = |command: &Command| {
            let name = trace.queues.get(command.queue as usize);
            name.is_some_and(|name| name.is_kernel_mode && name.number == handle.number)
        };
        let mut commands = commands_of(&trace, fence, operation);
        commands.retain(of_queue);
        let [command] = commands[..] else {
            bail!(
                "the trace has of the {} of a kernel-mode queue: {commands:?}",
                operation.name()
            );
        };
        let is_whole = command.queued.is_some() && command.end.is_some();
        ensure!(
            command.value == value && is_whole,
            "its value and times in the trace: {command:?}"
        );
    }
    Ok(())
}

/// Submissions of two queues, each done between two looks at the clock: their times in the trace are in order, on one clock.
/// A wait of a queue and of a thread are released by the signals that have their values, and by no other.
fn pairs(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let fence = bench.fence(0)?;
    let (mut producer, mut consumer) = (bench.queue()?, bench.queue()?);
    // What was queued before is nobody's question.
    complete(&mut producer, CommandList::new().signal(&fence, 1))?;
    let recording = record(&bench)?;
    let mut asked = Vec::new();
    for value in 2..22 {
        let before = now();
        let waited = consumer.submit(CommandList::new().wait(&fence, value))?;
        let between = now();
        complete(&mut producer, CommandList::new().signal(&fence, value))?;
        until_completed(&consumer, waited)?;
        asked.push((value, before, between));
    }
    let steps = bench.fence(0)?;
    let thread = bench.waiter(&steps, 3)?;
    let waited = consumer.submit(CommandList::new().wait(&steps, 2))?;
    until_stands(&bench, &consumer, 2)?;
    for value in [1, 2] {
        complete(&mut producer, CommandList::new().signal(&steps, value))?;
    }
    until_completed(&consumer, waited)?;
    steps.signal(3)?;
    same("a wait for the CPU's signal", &thread.join(), &Ok(()))?;
    let trace = recording.stop(Vec::new());

    let error = trace
        .clocks
        .iter()
        .map(|clock| clock.max_error_ns)
        .max()
        .unwrap_or(0);
    let waits = commands_of(&trace, &fence, Operation::Wait);
    let signals = commands_of(&trace, &fence, Operation::Signal);
    let counts = (waits.len(), signals.len(), trace.lost().count());
    same(
        "waits, signals and losses in the trace",
        &counts,
        &(asked.len(), asked.len(), 0),
    )?;
    for ((asked, wait), signal) in asked.iter().zip(waits).zip(signals) {
        let (value, before, between) = *asked;
        same(
            "the values of a pair",
            &(wait.value, signal.value),
            &(value, value),
        )?;
        let all = (
            wait.queued,
            wait.observed,
            wait.end,
            signal.queued,
            signal.end,
        );
        let (Some(queued), Some(observed), Some(end), Some(signal), Some(done)) = all else {
            bail!("a time is missing of a wait or its signal: {wait:?}, {signal:?}");
        };
        let since = |ns: u64| ns - trace.began_ns;
        let cpu = since(before) <= queued && queued <= since(between) && since(between) <= signal;
        let gpu = queued <= observed + error && observed <= end && signal <= done + error;
        ensure!(
            cpu && gpu && done <= end + error,
            "the wait for {value} was queued between {} and {}, its signal after that; in the trace: {all:?}, with an \
             error of {error}",
            since(before),
            since(between)
        );
    }
    released(&trace, &steps)
}

/// The queue's wait for 2 by the queue's signal of 2, the thread's for 3 by the CPU's of 3.
fn released(trace: &Trace, fence: &Fence) -> anyhow::Result<()> {
    let name = FenceName::from(fence.object().fence().id());
    let number = trace.fences.iter().position(|known| *known == name);
    let number = number.context("the trace does not know the fence")? as u32;
    let mut released = Vec::new();
    for release in trace.releases() {
        let wait = match &trace.events[release.wait].what {
            What::Command(wait) if wait.fence == number => ("queue", wait.value),
            What::CpuWait(wait) if wait.fence == number => ("thread", wait.value),
            _ => continue,
        };
        let (Releaser::Command(signal) | Releaser::CpuSignal(signal)) = release.signal;
        let signal = match &trace.events[signal].what {
            What::Command(signal) => ("queue", signal.value),
            What::CpuSignal { value, .. } => ("thread", *value),
            other => bail!("this released a wait: {other:?}"),
        };
        released.push((wait, signal));
    }
    released.sort_unstable();
    let expected = vec![(("queue", 2), ("queue", 2)), (("thread", 3), ("thread", 3))];
    same(
        "waits with the signals that released them",
        &released,
        &expected,
    )
}

/// A queue logs more than its log holds while the recording reads it.
fn marked(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let fence = bench.fence(0)?;
    let queue = bench.queue()?;
    let handle = queue.os().handle();
    let recording = record(&bench)?;
    // The shortest that there is, whatever recordings have.
    queue.resize_logs(84)?;
    let queue = Arc::new(Mutex::new(queue));
    let waiter = bench.waiter(&fence, 500)?;
    let (engine, goes_on) = (Arc::clone(&queue), fence.clone());
    let (tell, went) = mpsc::channel();
    let log = bench.spy.log(handle, LogType::Signals);
    bench.spy.once(Moment::InUpdateOfLogs, move || {
        let done = complete(&mut lock(&engine), &signals(&goes_on, 2..=900));
        // Who asks has the error. The first signal and two of progress.
        let _ = tell.send(done.and_then(|_| until_logged(&log, 902)));
    });
    lock(&queue).submit(CommandList::new().signal(&fence, 1))?;
    went.recv_timeout(LONG)??;
    same(
        "who waited for a value whose entry is lost",
        &waiter.join(),
        &Ok(()),
    )?;
    let trace = recording.stop(Vec::new());
    let read = bench
        .spy
        .count(|call| matches!(call, Call::UpdateNativeFenceLogs(_)));
    ensure!(read > 0, "nobody read the log");
    // Maybe in parts: what was overwritten before the reader began, and what while it copied.
    let mut lost = 0;
    for part in trace.lost() {
        let LostFrom::SignalLog(of) = part.from else {
            bail!("the trace says that this was lost: {part:?}");
        };
        let name = trace
            .queues
            .get(of as usize)
            .context("the mark names no queue")?;
        let named = (name.node_ordinal, name.number);
        same(
            "the queue that the mark names",
            &named,
            &(handle.node_ordinal, handle.number),
        )?;
        lost += part.count;
    }
    ensure!(
        lost >= 902 - 84,
        "{lost} entries are said to be lost, of 902 in a log of 84"
    );
    let of_queue = |(_, command): &(usize, &Command)| {
        let name = trace.queues.get(command.queue as usize);
        name.is_some_and(|name| {
            name.number == handle.number && name.node_ordinal == handle.node_ordinal
        })
    };
    let commands: Vec<_> = trace.commands().filter(of_queue).map(|(_, c)| *c).collect();
    let ended = commands
        .iter()
        .filter(|command| command.end.is_some())
        .count() as u64;
    same(
        "commands with an end, and entries lost",
        &(ended + lost),
        &902,
    )?;
    let marked = commands.iter().filter(|command| command.is_lost).count() as u64;
    same("commands that are marked as lost", &marked, &lost)?;
    let [_, log] = logs(&bench, &lock(&queue));
    same("entries that were logged", &log.total(), &902)
}
