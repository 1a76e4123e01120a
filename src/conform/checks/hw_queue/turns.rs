//! Turns: queues that wait, beside queues that run, and the order of what one does.

use super::scene::words;
use crate::conform::bench::{complete, until_completed};
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG, Wanted};
use crate::{CommandList, Fence, HwQueue};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "HQ-06",
        "a queue that waits does not hold its engine",
        waiting_beside_running,
    ),
    Check::by(
        "HQ-07",
        "queues that wait on each other in any order that has a solution complete",
        any_order,
    ),
    Check::by(
        "HQ-08",
        "work between fence operations runs in order and sees what the awaited work wrote",
        work,
    ),
];

/// More than an engine looks at in one step: lanes of a subgroup, say.
const MANY: usize = 40;

fn queues(bench: &Bench, count: usize) -> anyhow::Result<Vec<HwQueue>> {
    (0..count).map(|_| bench.queue()).collect()
}

fn fences(bench: &Bench, count: usize) -> anyhow::Result<Vec<Fence>> {
    (0..count).map(|_| bench.fence(0)).collect()
}

/// Forty queues stand at a wait; others, made before and after them, run, and one of these lets them go. Then a chain
/// through all, in which each waits for the one that is submitted after it.
fn waiting_beside_running(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let gate = bench.fence(0)?;
    let mut runs = vec![bench.queue()?];
    let mut waits = queues(&bench, MANY)?;
    runs.push(bench.queue()?);
    let done = fences(&bench, MANY)?;
    for (queue, done) in waits.iter_mut().zip(&done) {
        queue.submit(CommandList::new().wait(&gate, 1).signal(done, 1))?;
    }
    let ran = bench.fence(0)?;
    for round in 1..=3 {
        for queue in &mut runs {
            complete(queue, CommandList::new().nop().signal(&ran, round))?;
        }
    }
    let stood = waits.iter().all(|queue| queue.read_index() == 0);
    ensure!(stood, "a queue went on at a wait that is not satisfied");
    runs[0].submit(CommandList::new().signal(&gate, 1))?;
    for (queue, done) in waits.iter().zip(&done) {
        until_completed(queue, 1)?;
        same(
            "what a queue signals behind its wait",
            &done.current_value(),
            &1,
        )?;
    }
    let chain = fences(&bench, MANY + 1)?;
    for (at, queue) in waits.iter_mut().enumerate() {
        let list = &mut CommandList::new();
        queue.submit(list.wait(&chain[at + 1], 1).signal(&chain[at], 1))?;
    }
    chain[MANY].signal(1)?;
    same(
        "a wait for the end of a chain through all queues",
        &chain[0].wait(1, LONG),
        &Ok(()),
    )
}

/// Steps that each wait for up to two of the thirty before, on queues of their own choice, of one node and of two, which
/// are submitted in any order. That one core and one queue of the device are enough is shown by `tests/one_core.rs`.
fn any_order(ground: &Ground) -> anyhow::Result<()> {
    for nodes in [1, 2] {
        if let Some(bench) = more_nodes(ground, nodes)? {
            steps(&bench, nodes)?;
        }
    }
    Ok(())
}

/// So many nodes; more than one may not be there.
fn more_nodes(ground: &Ground, nodes: u32) -> anyhow::Result<Option<Bench>> {
    let wanted = Wanted::nodes(nodes);
    match nodes {
        1 => ground.bench_with(&wanted).map(Some),
        _ => ground.bench_if(&wanted),
    }
}

fn steps(bench: &Bench, nodes: u32) -> anyhow::Result<()> {
    const STEPS: usize = 200;
    let mut state = 7_u64;
    let mut below = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let fences = fences(bench, STEPS)?;
    let mut lists: Vec<_> = (0..16).map(|_| CommandList::new()).collect();
    for step in 0..STEPS {
        let list = &mut lists[below(16)];
        for _ in 0..below(3) {
            if let Some(before) = step.checked_sub(1 + below(30)) {
                list.wait(&fences[before], 1);
            }
        }
        list.signal(&fences[step], 1);
    }
    let mut running = Vec::new();
    while !lists.is_empty() {
        let list = lists.swap_remove(below(lists.len()));
        let mut queue = bench.queue_on(running.len() as u32 % nodes)?;
        queue.submit(&list)?;
        running.push(queue);
    }
    for queue in &running {
        until_completed(queue, 1)?;
    }
    ensure!(
        fences.iter().all(|fence| fence.current_value() == 1),
        "a step was not signalled"
    );
    Ok(())
}

/// Fills and copies of a queue in its order; and what one queue wrote before its signal, seen by another behind its wait,
/// on the same node and on another. Kernels of a user, which need code for the subject's engines, are asked by
/// `tests/dispatch.rs`.
fn work(ground: &Ground) -> anyhow::Result<()> {
    for nodes in [1, 2] {
        if let Some(bench) = more_nodes(ground, nodes)? {
            transfers(&bench, nodes)?;
        }
    }
    Ok(())
}

fn transfers(bench: &Bench, nodes: u32) -> anyhow::Result<()> {
    const BYTES: u64 = 100_008;
    let (mut producer, mut consumer) = (bench.queue_on(0)?, bench.queue_on(nodes - 1)?);
    let (from, to) = (
        bench.device.create_allocation(BYTES)?,
        bench.device.create_allocation(2 * BYTES)?,
    );
    let (there, back) = (bench.fence(0)?, bench.fence(0)?);
    for round in 1..=4_u64 {
        let list = &mut CommandList::new();
        // Not before the consumer has read the round before.
        list.wait(&back, round - 1)
            .fill(&from, 0..BYTES, round)
            .fill(&from, 8..16, 90 + round);
        list.fill(&from, 0..0, 5).signal(&there, round);
        producer.submit(list)?;
        let list = &mut CommandList::new();
        let at = 16 * (round - 1);
        list.wait(&there, round)
            .copy(&from, 0..BYTES, &to, at)
            .fill(&to, at..at + 8, 70 + round);
        let end = consumer.submit(list.signal(&back, round))?;
        until_completed(&consumer, end)?;
        let seen = words(&to);
        let (first, end) = (2 * (round as usize - 1), 2 * (round as usize - 1) + 12_501);
        let what = format!("words that were filled, copied and filled in round {round}");
        same(
            &what,
            &&seen[first..first + 3],
            &&[70 + round, 90 + round, round][..],
        )?;
        let odd = seen[first + 2..end].iter().position(|word| *word != round);
        same(
            &format!("a word of the rest that is not {round}"),
            &odd,
            &None,
        )?;
        let behind = seen[end..].iter().position(|word| *word != 0);
        same("a word behind it that was written", &behind, &None)?;
    }
    Ok(())
}
