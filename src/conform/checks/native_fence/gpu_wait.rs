//! GPU wait: which values let a queue go on, and what it costs when they are there.

use crate::CommandList;
use crate::conform::bench::{complete, until_completed};
use crate::conform::seen::same;
use crate::conform::{Check, Ground, LONG, Wanted};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "NF-09",
        "a GPU wait passes iff CurrentValue is at least its value, whoever signals",
        passes,
    ),
    Check::by(
        "NF-10",
        "a wait that is already satisfied does not stall its queue",
        does_not_stall,
    ),
];

/// A wait for 5 stands at 4 and passes at 7; then two queues, on two nodes where the subject has them, hand over to each
/// other, and the engine that has left is brought back each time. That nothing of it needs the CPU while both have a
/// slice in flight is `tests/cross_engine.rs`: from outside the threads of a driver cannot be held still.
fn passes(ground: &Ground) -> anyhow::Result<()> {
    let nodes = ground.bench_if(&Wanted::nodes(2))?;
    let other_node = u32::from(nodes.is_some());
    let bench = nodes.map_or_else(|| ground.bench(), Ok)?;
    let (mut waits, mut signals) = (bench.queue()?, bench.queue_on(other_node)?);
    let fence = bench.fence(0)?;
    let value = waits.submit(CommandList::new().wait(&fence, 5))?;
    for below in [1, 4] {
        complete(&mut signals, CommandList::new().signal(&fence, below))?;
        bench.until_told(&mut signals)?;
        let passed = waits.progress_fence().current_value() >= value;
        same("whether a wait for 5 passes below it", &passed, &false)?;
    }
    complete(&mut signals, CommandList::new().signal(&fence, 7))?;
    until_completed(&waits, value)?;
    let (there, back) = (bench.fence(0)?, bench.fence(0)?);
    let (mut first, mut second) = (CommandList::new(), CommandList::new());
    for value in 1..=10 {
        first.signal(&there, value).wait(&back, value);
        second.wait(&there, value).signal(&back, value);
    }
    let ends = [waits.submit(&first)?, signals.submit(&second)?];
    until_completed(&waits, ends[0])?;
    until_completed(&signals, ends[1])?;
    for value in 11..=12 {
        let end = waits.submit(CommandList::new().wait(&there, value))?;
        bench.until_told(&mut signals)?;
        complete(&mut signals, CommandList::new().signal(&there, value))?;
        until_completed(&waits, end)?;
    }
    Ok(())
}

/// Waits for 5 and less on a fence that starts there: nobody signals, the queue goes on, and each is logged as observed
/// and ended at the same tick.
fn does_not_stall(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (fence, done) = (bench.fence(5)?, bench.fence(0)?);
    let mut queue = bench.queue()?;
    let mut list = CommandList::new();
    for value in [5, 4, 1, 0] {
        list.wait(&fence, value);
    }
    queue.submit(list.signal(&done, 1))?;
    same(
        "a signal behind waits that are satisfied",
        &done.wait(1, LONG),
        &Ok(()),
    )?;
    let log = queue.read_wait_log()?.entries;
    let values: Vec<_> = log.iter().map(|entry| entry.fence_value).collect();
    same("waits that are logged", &values, &[5, 4, 1, 0])?;
    for entry in log {
        let what = "the observed time of a satisfied wait, against its end";
        same(what, &entry.observed_ticks, &entry.end_ticks)?;
    }
    Ok(())
}
