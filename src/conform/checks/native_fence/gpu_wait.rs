//! GPU wait: which values let a queue go on, who has a hand in it, and what it costs when they are there.

use crate::CommandList;
use crate::conform::bench::{complete, until_completed};
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::until::until_tried;
use crate::conform::waiter::woken;
use crate::conform::{Bench, Check, Ground, LONG, Unfit, Wanted};
use crate::gpu::NodePolicy;
use crate::kmd::{Interrupt, Parking};
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "NF-09",
        "a GPU wait passes iff CurrentValue is at least its value, and between engines that run without the CPU",
        passes,
    ),
    Check::by(
        "NF-10",
        "a wait that is already satisfied does not stall its queue",
        does_not_stall,
    ),
];

/// On two nodes where the subject has them, which then hand over without the CPU if they run together.
fn passes(ground: &Ground) -> anyhow::Result<()> {
    let nodes = ground.bench_if(&Wanted::nodes(2))?;
    let other_node = u32::from(nodes.is_some());
    let bench = nodes.map_or_else(|| ground.bench(), Ok)?;
    by_value(&bench, other_node)?;
    brought_back(&bench, other_node)?;
    drop(bench);
    if other_node == 0 {
        return Ok(());
    }
    let apart = Unfit("its engines need not run at the same time".into());
    let together = ground.subject().engines_run_together();
    let together = together.then_some(()).ok_or(apart.into());
    match ground.if_fit(together)? {
        Some(()) => without_the_cpu(&ground.bench_with(&staying())?),
        None => Ok(()),
    }
}

/// A wait for 5 stands at 4 and passes at 7.
fn by_value(bench: &Bench, other_node: u32) -> anyhow::Result<()> {
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
    until_completed(&waits, value)
}

/// Two queues hand over to each other, on engines that may leave between; then one has left, and is brought back each
/// time.
fn brought_back(bench: &Bench, other_node: u32) -> anyhow::Result<()> {
    let (mut waits, mut signals) = (bench.queue()?, bench.queue_on(other_node)?);
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

/// Engines that stay at waits for longer than others take to answer, on a busy machine too, and in a crowd.
fn staying() -> Wanted {
    let stay = Duration::from_millis(200);
    Wanted {
        policy: NodePolicy {
            slice_time: Duration::from_secs(1),
            idle_window: stay,
            company_window: stay,
            crowded_window: stay,
            ..NodePolicy::default()
        },
        ..Wanted::nodes(2)
    }
}

/// Queues of two engines hand two fences to and fro: there is a time at which driver and OS tell each other nothing of any
/// fence from the first wait's start to the last one's end. An engine that leaves between is brought back by an interrupt,
/// rightly: then it is tried again.
fn without_the_cpu(bench: &Bench) -> anyhow::Result<()> {
    const ROUNDS: u64 = 4;
    let (mut first, mut second) = (bench.queue()?, bench.queue_on(1)?);
    let (there, back) = (bench.fence(0)?, bench.fence(0)?);
    let mut value = 0;
    let hand_over = || -> anyhow::Result<bool> {
        // Both run, and stand at nothing.
        complete(&mut first, CommandList::new().nop())?;
        complete(&mut second, CommandList::new().nop())?;
        bench.spy.take();
        let (mut list, mut answers) = (CommandList::new(), CommandList::new());
        for _ in 0..ROUNDS {
            value += 1;
            list.signal(&there, value).wait(&back, value);
            answers.wait(&there, value).signal(&back, value);
        }
        let answered = second.submit(&answers)?;
        let ended = first.submit(&list)?;
        until_completed(&first, ended)?;
        until_completed(&second, answered)?;
        Ok(bench.spy.count(is_of_a_fence) == 0)
    };
    let what = "four hand-overs to and fro between two engines, all without the CPU";
    until_tried(what, hand_over)
}

/// By which the CPU has a hand in a wait: a value is raised, posted, stored or to be looked at, or the OS waits in an
/// engine's stead.
fn is_of_a_fence(call: &Call) -> bool {
    match call {
        Call::UpdateMonitoredValues(_) | Call::UpdateCurrentValuesFromCpu(..) => true,
        Call::Interrupt(interrupt) => matches!(
            interrupt,
            Interrupt::NativeFenceSignaled(_)
                | Interrupt::ResampleFences { .. }
                | Interrupt::EngineParking {
                    parking: Parking::Asked { .. },
                    ..
                }
        ),
        _ => false,
    }
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
        &woken(&done, 1, LONG),
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
