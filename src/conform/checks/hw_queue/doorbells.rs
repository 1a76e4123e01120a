//! Doorbells: fewer than queues.

use super::scene::signals_logged;
use crate::abi::{DoorbellStatus, QueueProgress};
use crate::conform::bench::{complete, until_completed};
use crate::conform::seen::same;
use crate::conform::spy::{Call, Moment};
use crate::conform::{Bench, Check, Ground, LONG, Unfit, Wanted, until};
use crate::kmd::DriverOptions;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, Fence, HwQueue};
use anyhow::ensure;
use std::num::NonZeroU32;
use std::thread;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "HQ-13",
    "with fewer doorbells than queues one is taken away: all go on by turns, no command is lost",
    by_turns,
)];

fn taken(bench: &Bench) -> usize {
    bench
        .spy
        .count(|call| matches!(call, Call::DoorbellTaken(_)))
}

fn by_turns(ground: &Ground) -> anyhow::Result<()> {
    for doorbells in [1, 2] {
        let bench = ground.bench_with(&Wanted::with(DriverOptions {
            doorbells: NonZeroU32::new(doorbells),
            ..DriverOptions::default()
        }))?;
        let mut queues = (0..3)
            .map(|_| bench.queue())
            .collect::<Result<Vec<_>, _>>()?;
        let fences = (0..3)
            .map(|_| bench.fence(0))
            .collect::<Result<Vec<_>, _>>()?;
        turns(&bench, &mut queues, &fences)?;
        if doorbells == 1 {
            status_first(&bench, &mut queues)?;
        }
        streams(&bench, queues)?;
    }
    Ok(())
}

/// One thread rings for each in its turn.
fn turns(bench: &Bench, queues: &mut [HwQueue], fences: &[Fence]) -> anyhow::Result<()> {
    for round in 1..=10 {
        for (queue, fence) in queues.iter_mut().zip(fences) {
            complete(queue, CommandList::new().signal(fence, round))?;
            same(
                "a fence that a queue signals in its turn",
                &fence.current_value(),
                &round,
            )?;
        }
    }
    if taken(bench) == 0 {
        return Err(Unfit("it has a doorbell for every queue".into()).into());
    }
    ensure!(
        taken(bench) >= 10,
        "three queues took turns over fewer doorbells, of which {} were taken",
        taken(bench)
    );
    for queue in queues {
        until("all is logged", || signals_logged(bench, queue) >= 20)?;
        same(
            "entries of ten signals with their progress, each once",
            &signals_logged(bench, queue),
            &20,
        )?;
    }
    Ok(())
}

/// The OS has said DISCONNECTED_RETRY while the queue still runs, and what is in its ring by then is executed without a
/// connect.
fn status_first(bench: &Bench, queues: &mut [HwQueue]) -> anyhow::Result<()> {
    let [first, second, _] = queues else {
        return Ok(());
    };
    let (fence, other) = (bench.fence(0)?, bench.fence(0)?);
    for value in 1..=3 {
        complete(first, CommandList::new().signal(&fence, value))?;
    }
    let connects = bench.spy.connects(first.os().handle());
    let seen = Arc::new(Mutex::new(Vec::new()));
    for moment in [
        Moment::BeforeDoorbellIsTaken,
        Moment::AfterStatusOfTakenDoorbell,
    ] {
        let (progress, seen) = (first.os().memory().progress.clone(), Arc::clone(&seen));
        bench.spy.once(moment, move || {
            let status = progress.word(QueueProgress::DOORBELL_STATUS).observe();
            lock(&seen).push(DoorbellStatus::from_word(status));
        });
    }
    // Written before the status changes, and not rung for.
    let value = first.queue_commands(CommandList::new().signal(&fence, 4))?;
    let retry = DoorbellStatus::DisconnectedRetry;
    let mut last = 0;
    until("the doorbell of a queue that is quiet is taken", || {
        last += 1;
        complete(second, CommandList::new().signal(&other, last)).is_err()
            || first.doorbell_status() == retry
    })?;
    let seen = lock(&seen).clone();
    ensure!(
        matches!(seen[..], [before, after] if before != retry && after == retry),
        "the status before it is told, and when the OS has told it: {seen:?}"
    );
    until_completed(first, value)?;
    same("the fence that it signals", &fence.current_value(), &4)?;
    same(
        "connects of it since",
        &(bench.spy.connects(first.os().handle()) - connects),
        &0,
    )
}

/// Each queue of a thread, which wait for each other: doorbells are taken from queues that stand at waits.
fn streams(bench: &Bench, queues: Vec<HwQueue>) -> anyhow::Result<()> {
    const ROUNDS: u64 = 60;
    let fences = (0..3)
        .map(|_| bench.fence(0))
        .collect::<Result<Vec<_>, _>>()?;
    let logged_before: Vec<_> = queues
        .iter()
        .map(|queue| (queue.os().handle(), signals_logged(bench, queue)))
        .collect();
    let queues = thread::scope(|scope| {
        let threads = queues.into_iter().enumerate().map(|(place, mut queue)| {
            let fences = &fences;
            scope.spawn(move || -> anyhow::Result<HwQueue> {
                for round in 1..=ROUNDS {
                    // Not before the one behind it has made the round before.
                    let list = &mut CommandList::new();
                    list.wait(&fences[(place + 1) % 3], round - 1)
                        .signal(&fences[place], round);
                    queue.submit_blocking(list, LONG)?;
                }
                until_completed(&queue, queue.last_queued_value())?;
                Ok(queue)
            })
        });
        let threads: Vec<_> = threads.collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads
            .into_iter()
            .map(join)
            .collect::<anyhow::Result<Vec<_>>>()
    })?;
    for (((_, before), queue), fence) in logged_before.iter().zip(&queues).zip(&fences) {
        same(
            "a fence at the end of a stream",
            &fence.current_value(),
            &ROUNDS,
        )?;
        until("all is logged", || {
            signals_logged(bench, queue) >= before + 2 * ROUNDS
        })?;
        same(
            "entries of a stream, each command once",
            &(signals_logged(bench, queue) - before),
            &(2 * ROUNDS),
        )?;
    }
    Ok(())
}
