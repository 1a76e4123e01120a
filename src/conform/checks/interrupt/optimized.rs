//! Optimized: payloads that name the hardware queue alone, whose log says who was signalled.
//!
//! Where a rule is about what the OS reads, the check writes the entries itself, inside `UpdateNativeFenceLogs`, and
//! leaves CurrentValue alone: nothing but an entry that was read after that call can have released a waiter.

use super::payload::{of_queue, optimized, publish_entries, write_signals};
use crate::abi::{LogHeader, LogType};
use crate::conform::bench::{complete, monitored_value};
use crate::conform::ground::most_nodes;
use crate::conform::listener::Listener;
use crate::conform::raw_fence::RawFence;
use crate::conform::seen::same;
use crate::conform::spy::{Call, Moment};
use crate::conform::{Bench, Check, Ground};
use crate::{CommandList, Fence, HwQueue};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "IN-07",
        "the optimized payload is the queue, whose signal log releases whoever stands in it",
        by_log,
    ),
    Check::by(
        "IN-08",
        "a NULL queue makes the OS read the logs of all queues of that engine",
        null_queue,
    ),
    Check::by(
        "IN-09",
        "after an overrun the OS reads every fence of the same device",
        overrun,
    ),
];

/// Has an engine log signals: the index at once, and the entries at the last moment, when the driver is told that they
/// will be read.
fn logs_when_told(bench: &Bench, queue: &HwQueue, signals: &[(&Fence, u64)]) {
    let log = bench.spy.log(queue.os().handle(), LogType::Signals);
    let signals = signals.iter().map(|(f, value)| (f.handle().raw(), *value));
    let signals: Vec<_> = signals.collect();
    publish_entries(&log, signals.len());
    bench.spy.once(Moment::InUpdateOfLogs, move || {
        write_signals(&log, &signals);
    });
}

fn reads_of(bench: &Bench, queue: &HwQueue) -> usize {
    let handle = queue.os().handle();
    let is_it =
        |call: &Call| matches!(call, Call::UpdateNativeFenceLogs(of) if of.contains(&handle));
    bench.spy.count(is_it)
}

/// The article's example: F1 at V1, F1 at V2, F2 at V3 and F2 at V3 again are logged. Then the same interrupt again,
/// which finds nothing new. Then the engine's own signals, whose payloads name the queue.
fn by_log(ground: &Ground) -> anyhow::Result<()> {
    let bench = optimized(ground, 1)?;
    let queue = bench.queue()?;
    let (f1, f2, f3) = (bench.fence(0)?, bench.fence(0)?, bench.fence(0)?);
    let (v1, v2, v3) = (10, 20, 30);
    let waits = [
        (&f1, v1),
        (&f1, v2),
        (&f2, v3),
        (&f1, v2 + 1),
        (&f2, v3 + 1),
        (&f3, 1),
    ];
    let waits = waits
        .into_iter()
        .map(|(fence, value)| Listener::of(fence, value));
    let waits = waits.collect::<Result<Vec<_>, _>>()?;
    let heard = || -> Vec<_> { waits.iter().map(Listener::heard).collect() };
    logs_when_told(
        &bench,
        &queue,
        &[(&f1, v1), (&f1, v2), (&f2, v3), (&f2, v3)],
    );
    bench.spy.take();
    bench.spy.interrupt(of_queue(0, Some(queue.os().handle())));
    same(
        "reads of the log, by UpdateNativeFenceLogs",
        &reads_of(&bench, &queue),
        &1,
    )?;
    same(
        "waits for F1 at V1, V2, F2 at V3, and for more, that the log released",
        &heard(),
        &[1, 1, 1, 0, 0, 0],
    )?;
    let monitored = [&f1, &f2, &f3].map(monitored_value);
    same("MonitoredValues afterwards", &monitored, &[v2, v3, 0])?;
    bench.spy.interrupt(of_queue(0, Some(queue.os().handle())));
    same("waits that a second interrupt released", &heard(), &[0; 6])?;
    by_its_engine(&bench)
}

fn by_its_engine(bench: &Bench) -> anyhow::Result<()> {
    let (mut queue, fence) = (bench.queue()?, bench.fence(0)?);
    let handle = queue.os().handle();
    bench.spy.take();
    for value in 1..=30 {
        let waiter = bench.waiter(&fence, value)?;
        complete(&mut queue, CommandList::new().signal(&fence, value))?;
        same("a wait for an engine's signal", &waiter.join(), &Ok(()))?;
    }
    let payloads = bench.spy.payloads();
    ensure!(
        !payloads.is_empty(),
        "30 signals that were waited for sent no interrupt"
    );
    for payload in payloads {
        ensure!(
            payload.fences.is_none(),
            "an optimized payload names fences: {payload:?}"
        );
        ensure!(
            payload.hw_queue.is_none_or(|named| named == handle),
            "an optimized payload names a queue that signalled nothing: {payload:?}"
        );
    }
    Ok(())
}

/// Three queues, one of them of another engine where the subject has two, each of which has logged a signal; then a queue
/// that is gone, of which there is no log: every fence is looked at, as for a raise that stands in none.
fn null_queue(ground: &Ground) -> anyhow::Result<()> {
    let (nodes, bench) = most_nodes(2, |nodes| optimized(ground, nodes))?;
    let other_node = nodes - 1;
    let queues = [bench.queue()?, bench.queue()?, bench.queue_on(other_node)?];
    let fences = [bench.fence(0)?, bench.fence(0)?, bench.fence(0)?];
    let waits = fences.each_ref().map(|fence| Listener::of(fence, 4));
    let [first, second, third] = waits;
    let waits = [first?, second?, third?];
    for (queue, fence) in queues.iter().zip(&fences) {
        let log = bench.spy.log(queue.os().handle(), LogType::Signals);
        write_signals(&log, &[(fence.handle().raw(), 4)]);
        publish_entries(&log, 1);
    }
    bench.spy.take();
    bench.spy.interrupt(of_queue(0, None));
    let of_other = usize::from(other_node == 0);
    let read = queues
        .each_ref()
        .map(|queue| reads_of(&bench, queue).min(1));
    same("whose logs were read", &read, &[1, 1, of_other])?;
    let heard = waits.each_ref().map(|wait| wait.heard() as usize);
    same("waits that were released", &heard, &[1, 1, of_other])?;
    bench.spy.interrupt(of_queue(other_node, None));
    same(
        "the same by the other engine",
        &waits[2].heard(),
        &(1 - of_other as u64),
    )?;

    let gone = bench.queue()?.os().handle();
    for hw_queue in [None, Some(gone)] {
        let fence = bench.fence(0)?;
        let wait = Listener::of(&fence, 7)?;
        RawFence::of(&fence)?.store(7);
        bench.spy.interrupt(of_queue(0, hw_queue));
        same(
            "waits that an interrupt without a log released",
            &wait.heard(),
            &1,
        )?;
    }
    Ok(())
}

/// The log has gone round twice and five entries since it was last read: every fence of its device is looked at, and none
/// of another. Then an engine that signals more in one submission than a log holds.
fn overrun(ground: &Ground) -> anyhow::Result<()> {
    let bench = optimized(ground, 1)?;
    let other = bench.adapter.create_device();
    let mut queue = bench.queue()?;
    let fences = [bench.fence(0)?, bench.fence(0)?, other.create_fence(0)?];
    let [first, second, foreign] = fences.each_ref().map(|fence| Listener::of(fence, 6));
    let waits = [first?, second?, foreign?];
    for fence in &fences {
        RawFence::of(fence)?.store(6);
    }
    let log = bench.spy.log(queue.os().handle(), LogType::Signals);
    log.block.word(LogHeader::INDEX).publish(2 << 32 | 5);
    bench.spy.interrupt(of_queue(0, Some(queue.os().handle())));
    let heard = waits.each_ref().map(Listener::heard);
    same(
        "waits of this device's and of another's fences that ended",
        &heard,
        &[1, 1, 0],
    )?;

    queue = bench.queue()?;
    let (early, last) = (bench.fence(0)?, bench.fence(0)?);
    let waits = [Listener::of(&early, 1)?, Listener::of(&last, 300)?];
    let mut list = CommandList::new();
    list.signal(&early, 1);
    for value in 1..=300 {
        list.signal(&last, value);
    }
    complete(&mut queue, &list)?;
    for wait in &waits {
        same(
            "a wait whose entry may be overwritten",
            &wait.ended()?,
            &Ok(()),
        )?;
    }
    Ok(())
}
