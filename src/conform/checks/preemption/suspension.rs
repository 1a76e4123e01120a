//! Suspension: contexts leave the GPU wherever their queues stand, and go on from there.

use super::scene::{
    context, copy, fill, initialised, is_full_of, large, last_word, short, taken_out_in_the_middle,
};
use crate::abi::DoorbellStatus;
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG, until};
use crate::kmd::Interrupt;
use crate::sync::Arc;
use crate::{Allocation, CommandList, HwQueueOptions};
use anyhow::{Context, ensure};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "PR-02",
        "a queue is preempted at its wait, and goes on waiting for the same since the first look",
        at_a_wait,
    ),
    Check::by(
        "PR-09",
        "a suspension is answered with the newest fence, and nothing of the context runs from then on",
        suspended,
    ),
    Check::by(
        "PR-10",
        "a queue of the highest priority that disables its time-out is preempted like any other",
        without_a_time_out,
    ),
];

/// Taken out at its wait, over which the value passes by what is too little, and comes while the queue is out.
fn at_a_wait(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (suspended, other) = (context(&bench)?, context(&bench)?);
    let mut queue = suspended.create_hw_queue(64)?;
    let mut beside = other.create_hw_queue(64)?;
    let (gate, done, passed) = (bench.fence(0)?, bench.fence(0)?, bench.fence(0)?);
    queue.submit(CommandList::new().wait(&gate, 5).signal(&done, 1))?;
    let handle = queue.os().handle();
    let stands = || bench.spy.driver().hw_queue_wait(handle);
    until("the queue stands at its wait", || stands().is_some())?;
    let first_look = stands().context("it stands at its wait")?.observed_ticks;

    suspended.suspend(LONG)?;
    suspended.resume();
    gate.signal(4)?;
    for value in 1..=3 {
        complete(&mut beside, CommandList::new().signal(&passed, value))?;
    }
    same(
        "the signal behind a wait for 5, of a fence at 4",
        &done.current_value(),
        &0,
    )?;

    suspended.suspend(LONG)?;
    gate.signal(5)?;
    for value in 4..=6 {
        complete(&mut beside, CommandList::new().signal(&passed, value))?;
    }
    same(
        "the signal behind the wait, while its context is suspended",
        &done.current_value(),
        &0,
    )?;
    same(
        "waits logged meanwhile",
        &queue.read_wait_log()?.entries.len(),
        &0,
    )?;

    suspended.resume();
    done.wait(1, LONG)?;
    let logged = queue.read_wait_log()?.entries;
    same("waits logged", &logged.len(), &1)?;
    same(
        "the observed time of the wait, which is that of its first look",
        &logged[0].observed_ticks,
        &first_look,
    )
}

/// Suspend fences of the answers, oldest first.
fn answers(bench: &Bench) -> Vec<u64> {
    let fence = |told| match told {
        Interrupt::SuspendContextCompleted { suspend_fence, .. } => Some(suspend_fence),
        _ => None,
    };
    let told = bench.spy.interrupts().into_iter();
    told.filter_map(fence).collect()
}

/// A context with queues of both kinds, one in a fill. Of two requests the older one's fence alone is no answer; what is queued after
/// the answer runs after the resume, with another context's queue at work all the time.
fn suspended(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&short())?;
    let (suspended, other) = (context(&bench)?, context(&bench)?);
    let mut queue = suspended.create_hw_queue(64)?;
    let mut kernel = suspended.create_kernel_queue()?;
    let mut beside = other.create_hw_queue(64)?;
    let (fence, passed) = (bench.fence(0)?, bench.fence(0)?);
    let target = large(&bench)?;
    complete(&mut queue, CommandList::new().signal(&fence, 1))?;
    initialised(&bench, 0)?;
    queue.submit(&fill(&target, 7))?;
    let os = suspended.os();
    bench
        .spy
        .hold_interrupts(|told| matches!(told, Interrupt::SuspendContextCompleted { .. }));
    let (first, second) = (os.begin_suspend()?, os.begin_suspend()?);
    ensure!(second > first, "suspend fences rise: {first}, {second}");
    // Unless the call has answered, of a context that no engine knows any more.
    if !os.is_suspended() {
        let answer = |suspend_fence| Interrupt::SuspendContextCompleted {
            context: os.handle(),
            suspend_fence,
        };
        bench.spy.interrupt(answer(first));
        let is_early = os.is_suspended();
        ensure!(
            !is_early,
            "the answer to the older of two requests counts for the newer one"
        );
        until("the driver answers the newest request", || {
            answers(&bench).last() == Some(&second)
        })?;
        let answers = answers(&bench);
        ensure!(answers.is_sorted(), "answers rise: {answers:?}");
    }
    bench.spy.pass_held_interrupts();
    os.wait_suspended(second, Some(LONG))?;

    let ran = queue.submit(CommandList::new().signal(&fence, 2))?;
    let handed = kernel.submit(CommandList::new().nop())?;
    let stored = queue.progress_fence().current_value();
    let last = last_word(&target);
    for value in 1..=5 {
        complete(&mut beside, CommandList::new().signal(&passed, value))?;
    }
    let values = || {
        (
            fence.current_value(),
            queue.progress_fence().current_value(),
            kernel.progress_fence().current_value(),
            last_word(&target),
        )
    };
    let expected = (1, stored, handed - 1, last);
    same(
        "what a suspended context's queues have stored",
        &values(),
        &expected,
    )?;
    ensure!(
        stored < ran,
        "what was queued to a suspended context has completed"
    );
    let status = queue.doorbell_status();
    let is_connected = matches!(
        status,
        DoorbellStatus::Connected | DoorbellStatus::ConnectedNotify
    );
    ensure!(
        is_connected,
        "the doorbell of a suspended queue is {status:?}"
    );

    suspended.resume();
    fence.wait(2, LONG)?;
    kernel.progress_fence().wait(handed, LONG)?;
    ensure!(
        !os.is_suspended(),
        "a context that was resumed is suspended"
    );
    Ok(())
}

/// How many words are not 0.
fn stored(memory: &Allocation) -> usize {
    let mut words = vec![0; memory.bytes() as usize / 8];
    memory.read(0, &mut words);
    words.iter().filter(|word| **word != 0).count()
}

/// One of the highest priority. It leaves the engine in the middle of a fill and of a copy, of which nothing more is stored
/// while another context's queue runs, and both are right when it has gone on.
fn without_a_time_out(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&short())?;
    let options = HwQueueOptions {
        disable_gpu_timeout: true,
        ..HwQueueOptions::default()
    };
    let mut queue = bench.device.create_hw_queue_with(options)?;
    let context = Arc::clone(queue.os().context());
    context.set_priority(7)?;
    let (mut beside, passed) = (bench.queue()?, bench.fence(0)?);
    let [from, to] = [large(&bench)?, large(&bench)?];
    for (list, target) in [(fill(&from, 7), &from), (copy(&from, &to), &to)] {
        let end = taken_out_in_the_middle(&context, &mut queue, &list, target)?;
        let before = stored(target);
        for _ in 0..5 {
            let value = passed.current_value() + 1;
            complete(&mut beside, CommandList::new().signal(&passed, value))?;
        }
        same(
            "words of a transfer that was taken out, when another context's queue has run",
            &stored(target),
            &before,
        )?;
        context.resume();
        queue.progress_fence().wait(end, LONG)?;
        ensure!(
            is_full_of(target, 0, 7),
            "a word of the transfer is not what was to be stored"
        );
    }
    Ok(())
}
