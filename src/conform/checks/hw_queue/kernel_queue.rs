//! Kernel-mode queues, and nodes: what the OS hands an engine, and which.

use super::scene::words;
use crate::abi::LogType;
use crate::conform::bench::{complete, finish, until_completed};
use crate::conform::ground::most_nodes;
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::{Bench, Check, Ground, LONG, Wanted, until};
use crate::kmd::{
    CreateDoorbell, CreateDoorbellFlags, Ddi, DoorbellId, HwQueueHandle, Interrupt, Place,
    SubmitCommand, SubmitCommandFlags,
};
use crate::{CommandList, HwQueueOptions};
use anyhow::ensure;
use std::collections::BTreeMap;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "HQ-10",
        "a kernel-mode queue's commands have ids that rise, wait in the OS, and complete by interrupts",
        by_the_os,
    ),
    Check::by(
        "HQ-11",
        "a queue is made on a node that there is, for its one engine, and interrupts name it",
        nodes,
    ),
];

/// Commands that were handed to a queue's engine.
fn handed(bench: &Bench, of: HwQueueHandle) -> usize {
    bench
        .spy
        .count(|call| matches!(call, Call::SubmitCommand { hw_queue, .. } if *hw_queue == of))
}

fn by_the_os(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    ids(&bench)?;
    held_back(&bench)?;
    other_kind(&bench)
}

/// Three queues, each of a thread, beside each other: the ids of their engine rise by one from 1, whoever submits, and each
/// is told to have completed once.
fn ids(bench: &Bench) -> anyhow::Result<()> {
    let target = bench.device.create_allocation(24)?;
    let mut queues = (0..3)
        .map(|_| bench.device.create_kernel_queue())
        .collect::<Result<Vec<_>, _>>()?;
    std::thread::scope(|scope| {
        let threads = queues.iter_mut().zip(0_u64..).map(|(queue, at)| {
            let target = &target;
            scope.spawn(move || -> anyhow::Result<()> {
                for value in 1..=10 {
                    queue.submit(CommandList::new().fill(target, 8 * at..8 * at + 8, value))?;
                }
                finish(queue)
            })
        });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .try_for_each(|thread| match thread.join() {
                Ok(ended) => ended,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })?;
    same(
        "what three queues have filled",
        &words(&target),
        &vec![10; 3],
    )?;
    let submitted: Vec<_> = {
        let id = |call| match call {
            Call::SubmitCommand { submission_id, .. } => Some(submission_id),
            _ => None,
        };
        bench.spy.calls().into_iter().filter_map(id).collect()
    };
    ensure!(
        submitted.len() >= 30,
        "{} commands were handed to the engine, of 30",
        submitted.len()
    );
    same(
        "ids in the order of submission",
        &submitted,
        &(1..=submitted.len() as u64).collect::<Vec<_>>(),
    )?;
    let completed = || {
        let mut completed = BTreeMap::new();
        for interrupt in bench.spy.interrupts() {
            if let Interrupt::DmaCompleted {
                submission_id,
                node_ordinal: 0,
                engine_ordinal: 0,
            } = interrupt
            {
                *completed.entry(submission_id).or_insert(0) += 1;
            }
        }
        completed
    };
    // A program may see the progress before the interrupt is handled.
    until("each command has completed", || {
        completed().len() >= submitted.len()
    })?;
    let once = submitted
        .iter()
        .map(|id| (*id, 1))
        .collect::<BTreeMap<_, _>>();
    same(
        "how often each id was told to have completed",
        &completed(),
        &once,
    )
}

/// What follows a wait is not handed to the engine before the value is there; what does not fit its ring is held back too.
fn held_back(bench: &Bench) -> anyhow::Result<()> {
    const WORDS: u64 = 1500;
    let (gate, done) = (bench.fence(0)?, bench.fence(0)?);
    let target = bench.device.create_allocation(8 * WORDS)?;
    let mut queue = bench.device.create_kernel_queue()?;
    let handle = queue.os().handle();
    queue.submit(CommandList::new().fill(&target, 0..8, 9))?;
    finish(&mut queue)?;
    let before = handed(bench, handle);
    queue
        .wait_native(&gate, 2)?
        .submit(CommandList::new().fill(&target, 0..8, 3))?;
    queue.signal_native(&done, 1)?;
    gate.signal(1)?;
    let mut beside = bench.device.create_kernel_queue()?;
    beside.submit(CommandList::new().nop())?;
    finish(&mut beside)?;
    same(
        "commands handed to the engine behind a wait",
        &(handed(bench, handle) - before),
        &0,
    )?;
    same("the word that it fills", &words(&target)[0], &9)?;
    gate.signal(2)?;
    same("a wait for what follows", &done.wait(1, LONG), &Ok(()))?;
    same("the word that it fills then", &words(&target)[0], &3)?;

    let mut list = CommandList::new();
    for word in 0..WORDS {
        list.fill(&target, 8 * word..8 * word + 8, word + 1);
    }
    queue.submit(&list)?;
    for value in 1..=100 {
        queue.submit(CommandList::new().fill(&target, 0..8, value))?;
    }
    finish(&mut queue)?;
    let filled = words(&target);
    let odd = (1..)
        .zip(&filled)
        .skip(1)
        .find(|(value, word)| value != *word);
    ensure!(
        odd.is_none(),
        "of words that are filled with 1, 2, … one is another (should be, is): {odd:?}"
    );
    same(
        "the first word, filled by the commands behind",
        &filled[0],
        &100,
    )
}

/// A queue of one kind refuses what the other is given, and goes on.
fn other_kind(bench: &Bench) -> anyhow::Result<()> {
    let mut user = bench.queue()?;
    let mut kernel = bench.device.create_kernel_queue()?;
    let refused = bench.spy.submit_command_to_hw_queue(&SubmitCommand {
        hw_queue: user.os().handle(),
        submission_id: 1,
        packets: &[],
        flags: SubmitCommandFlags::default(),
        progress_value: 1,
    });
    ensure!(
        refused.is_err(),
        "a user-mode queue took a command by SubmitCommandToHwQueue"
    );
    let fence = bench.fence(0)?;
    let (region, offset) = fence.object().fence().current_value_place();
    let refused = bench.spy.create_doorbell(&CreateDoorbell {
        hw_queue: kernel.os().handle(),
        doorbell: DoorbellId(u64::MAX),
        ring: Place { region, offset },
        ring_packets: 0,
        ring_capacity: 2,
        words: user.raw_doorbell(),
        flags: CreateDoorbellFlags::default(),
    });
    ensure!(refused.is_err(), "a kernel-mode queue was given a doorbell");
    let refused = bench
        .spy
        .remove_native_fence_log_buffer(kernel.os().handle(), LogType::Verbose);
    ensure!(
        refused.is_err(),
        "a log of a kernel-mode queue was taken away"
    );
    complete(&mut user, CommandList::new().signal(&fence, 1))?;
    kernel.submit(CommandList::new().nop())?;
    finish(&mut kernel)
}

/// As many nodes as there are, up to three: queues of both kinds on each, in contexts and without; what is not there is
/// refused. Preemptions and resets name a node too, which PR and TD ask.
fn nodes(ground: &Ground) -> anyhow::Result<()> {
    let of = |nodes| ground.bench_with(&Wanted::nodes(nodes));
    let (nodes, bench) = most_nodes(3, of)?;
    same(
        "nodes that the adapter reports",
        &bench.adapter.os().ddi().node_count(),
        &nodes,
    )?;
    let create = |node_ordinal, engine_affinity| {
        let options = HwQueueOptions {
            node_ordinal,
            engine_affinity,
            ..HwQueueOptions::default()
        };
        bench.device.create_hw_queue_with(options)
    };
    for (node, affinity) in [
        (0, 0),
        (nodes - 1, 2),
        (0, 3),
        (0, u32::MAX),
        (nodes, 1),
        (u32::MAX, 1),
    ] {
        let what = format!(
            "node {node} with affinity {affinity:#x}, of {nodes} nodes with one engine each"
        );
        ensure!(
            create(node, affinity).is_err(),
            "a queue was made on {what}"
        );
        let context = bench.device.create_context(node, affinity);
        ensure!(context.is_err(), "a context was made on {what}");
    }
    for node in 0..nodes {
        let fence = bench.fence(0)?;
        let mut queue = create(node, 1)?;
        same(
            "the node of a queue",
            &queue.os().handle().node_ordinal,
            &node,
        )?;
        let waiter = bench.waiter(&fence, 1)?;
        let end = queue.submit(CommandList::new().signal(&fence, 1))?;
        same("a wait for a signal of the node", &waiter.join(), &Ok(()))?;
        until_completed(&queue, end)?;
        bench.until_told(&mut queue)?;
        let id = fence.object().fence().id();
        let of_fence = |payload: &crate::kmd::NativeFenceSignaled| {
            payload
                .fences
                .iter()
                .flatten()
                .any(|named| named.fence == id)
        };
        let payloads = bench.spy.payloads();
        let of_fence: Vec<_> = payloads
            .iter()
            .filter(|payload| of_fence(payload))
            .collect();
        ensure!(
            !of_fence.is_empty() || bench.spy.has_collapsed(),
            "node {node} raised no interrupt for its signal"
        );
        for payload in of_fence {
            let named = (payload.node_ordinal, payload.engine_ordinal);
            same(
                "node and engine that an interrupt names",
                &named,
                &(node, 0),
            )?;
        }
        let context = bench.device.create_context(node, 1)?;
        let (mut user, mut kernel) = (context.create_hw_queue(64)?, context.create_kernel_queue()?);
        let of_context = (
            user.os().handle().node_ordinal,
            kernel.os().handle().node_ordinal,
        );
        same(
            "the nodes of a context's queues",
            &of_context,
            &(node, node),
        )?;
        complete(&mut user, CommandList::new().nop())?;
        kernel.submit(CommandList::new().nop())?;
        finish(&mut kernel)?;
        bench.spy.until_handled(|interrupt| {
            matches!(interrupt, Interrupt::DmaCompleted { node_ordinal, engine_ordinal: 0, .. } if *node_ordinal == node)
        })?;
    }
    Ok(())
}
