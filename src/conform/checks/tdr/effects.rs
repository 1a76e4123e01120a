//! Effects: what a reset ends and what it leaves, of packets and of those who wait.

use super::scene::{
    ENGINE, Trouble, codes, goes_on, hanging, is_one_engine_reset, logged, queue_of, tdr_calls,
    until_reset,
};
use crate::abi::{DoorbellStatus, StallKind};
use crate::conform::bench::complete;
use crate::conform::checks::preemption::scene::short;
use crate::conform::seen::same;
use crate::conform::spy::{Call, TdrCall};
use crate::conform::{Check, Ground, LONG, Waiter, until};
use crate::kmd::UpdateCurrentValuesFlags;
use crate::{
    CommandList, DeviceExecutionState, EventHandle, Fence, FenceOptions, HwQueue,
    MonitoredFenceOptions, SubmitError, WaitError,
};
use anyhow::{bail, ensure};
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "TD-06",
        "the device of an aborted packet is in error, and every other queue completes all its work",
        guilty_and_innocent,
    ),
    Check::by(
        "TD-14",
        "waits of a lost device end with its error, and fences that it could signal are AlwaysSignaled",
        waits_and_fences,
    ),
    Check::by(
        "TD-23",
        "nothing that an old engine still does changes anything after its reset",
        comes_back,
    ),
];

const LOST: Result<(), WaitError> = Err(WaitError::DeviceLost);

/// The guilty device has queues on two engines; an innocent one has a queue beside each, whose signals and waits go to
/// and fro.
fn guilty_and_innocent(ground: &Ground) -> anyhow::Result<()> {
    let trouble = Trouble::new(ground, 2)?;
    let bench = &trouble.bench;
    let mut guilty = trouble.guilty(0)?;
    let mut elsewhere = queue_of(&guilty.device, 1)?;
    let innocent = bench.adapter.create_device();
    let (mut same_engine, mut other) = (queue_of(&innocent, 0)?, queue_of(&innocent, 1)?);
    let (here, there) = (innocent.create_fence(0)?, innocent.create_fence(0)?);
    let of_guilty = guilty.device.create_fence(0)?;
    let waiter = Waiter::standing(&of_guilty, 1, LONG)?;
    trouble.befall(&mut guilty)?;
    for value in 1..=20 {
        same_engine.submit(CommandList::new().signal(&here, value))?;
        other.submit(CommandList::new().wait(&here, value).signal(&there, value))?;
    }
    same("a wait of the guilty device", &waiter.join(), &LOST)?;
    same(
        "the innocent queue on the other engine",
        &there.wait(20, LONG),
        &Ok(()),
    )?;
    let (on_same, on_other) = (logged(&same_engine, &here)?, logged(&other, &there)?);
    let all: Vec<u64> = (1..=20).collect();
    same("signals logged on the reset engine", &on_same, &all)?;
    same("signals logged on the other engine", &on_other, &all)?;
    until_reset(bench, 0, 1)?;
    same(
        "errors of innocent queues",
        &(same_engine.error(), other.error()),
        &(None, None),
    )?;

    for queue in [&guilty.queue, &elsewhere] {
        same(
            "the error of a guilty queue",
            &queue.error(),
            &Some(WaitError::DeviceLost),
        )?;
        let status = queue.doorbell_status();
        same(
            "the doorbell of a guilty queue",
            &status,
            &DoorbellStatus::DisconnectedAbort,
        )?;
    }
    let submitted = elsewhere.submit(CommandList::new().nop());
    ensure!(
        matches!(submitted, Err(SubmitError::Lost)),
        "a submission of a guilty device: {submitted:?}"
    );
    let states = (guilty.device.execution_state(), innocent.execution_state());
    let expected = (DeviceExecutionState::HUNG, DeviceExecutionState::ACTIVE);
    same(
        "states of the guilty and the innocent device",
        &states,
        &expected,
    )?;
    is_one_engine_reset(bench)?;
    goes_on(bench, 0)
}

/// Waits of every kind; fences that the guilty device made and shared, in each way; monitored fences; and those of
/// others. (A thousand resets: `tests/reset_leaks.rs`.)
fn waits_and_fences(ground: &Ground) -> anyhow::Result<()> {
    let trouble = Trouble::by_losses(ground, 1)?;
    let bench = &trouble.bench;
    let mut guilty = trouble.guilty(0)?;
    let (well, device) = (bench.adapter.create_device(), guilty.device.clone());
    let shared = |goes_on| -> anyhow::Result<(Fence, Fence)> {
        let made = device.create_fence_with(FenceOptions {
            shared: true,
            no_signal_max_value_on_tdr: goes_on,
            ..FenceOptions::default()
        })?;
        let opened = well.open_fence(&made.share()?)?;
        Ok((made, opened))
    };
    let ((made, opened), (kept, kept_opened)) = (shared(false)?, shared(true)?);
    made.signal(5)?;
    let (alone, own) = (well.create_fence(0)?, device.create_fence(0)?);
    let monitored = |no_max| {
        device.create_monitored_fence_with(MonitoredFenceOptions {
            no_signal_max_value_on_tdr: no_max,
            ..MonitoredFenceOptions::default()
        })
    };
    let (maximal, stays) = (monitored(false)?, monitored(true)?);
    let mut stands = queue_of(&well, 0)?;
    let passed = stands.submit(CommandList::new().wait(&opened, 9))?;
    let of_lost = Waiter::standing(&own, 1, LONG)?;
    let of_both = Waiter::standing(&opened, 9, LONG)?;
    let of_kept = Waiter::standing(&kept, 2, LONG)?;
    let kept_by_well = Waiter::standing(&kept_opened, 2, LONG)?;
    let untouched = Waiter::standing(&alone, 1, LONG)?;
    let any = Waiter::for_any(&[(&own, 2), (&made, 8)])?;
    let (event, armed) = (EventHandle::new()?, own.arm(4));
    let by_event = own.wait_event(3, &event);
    let max = maximal.arm(7);
    let not_max = stays.arm(7);
    bench.spy.take();
    trouble.befall(&mut guilty)?;

    same("a wait of the lost device", &of_lost.join(), &LOST)?;
    same(
        "another device's wait on a fence that it could signal",
        &of_both.join(),
        &LOST,
    )?;
    same("its wait on a fence that goes on", &of_kept.join(), &LOST)?;
    let any = any.join();
    ensure!(any.is_err(), "its wait for any: {any:?}");
    until("armed waits end", || {
        armed.outcome().is_some() && by_event.outcome().is_some()
    })?;
    same(
        "armed waits",
        &(armed.outcome(), by_event.outcome()),
        &(Some(LOST), Some(LOST)),
    )?;
    same("signals of the event", &event.reset(), &1)?;
    until("waits on monitored fences end", || {
        max.outcome().is_some() && not_max.outcome().is_some()
    })?;
    let outcomes = (max.outcome(), not_max.outcome());
    same(
        "waits on monitored fences, the second without a maximum",
        &outcomes,
        &(Some(Ok(())), Some(LOST)),
    )?;
    same(
        "their values",
        &(maximal.current_value(), stays.current_value()),
        &(u64::MAX, 0),
    )?;

    same(
        "a GPU wait on what is AlwaysSignaled",
        &stands.progress_fence().wait(passed, LONG),
        &Ok(()),
    )?;
    let mut signals = queue_of(&well, 0)?;
    complete(
        &mut signals,
        CommandList::new().signal(&opened, 8).wait(&opened, 12),
    )?;
    same(
        "its value, after a signal of 8",
        &opened.current_value(),
        &5,
    )?;
    let always = |call: &Call| {
        matches!(call, Call::UpdateCurrentValuesFromCpu(values, flags)
            if *flags == UpdateCurrentValuesFlags::ALWAYS_SIGNALED
                && values.iter().any(|(fence, _)| *fence == made.object().fence().id()))
    };
    ensure!(
        bench.spy.count(always) > 0,
        "the driver was not told that the fence is AlwaysSignaled"
    );
    ensure!(
        !kept_by_well.is_finished() && !untouched.is_finished(),
        "a wait ends that the loss is not about"
    );
    complete(
        &mut signals,
        CommandList::new().signal(&kept_opened, 2).signal(&alone, 1),
    )?;
    same(
        "a wait on a fence that goes on",
        &kept_by_well.join(),
        &Ok(()),
    )?;
    same(
        "a wait that the loss is not about",
        &untouched.join(),
        &Ok(()),
    )?;
    until_reset(bench, 0, 1)?;
    is_one_engine_reset(bench)
}

/// The packet ends long after its engine was reset, and the engine goes on to a signal behind it, and to the other
/// queue, in the middle of whose work it was. A machine so slow that the engine comes back later yet is not found out.
fn comes_back(ground: &Ground) -> anyhow::Result<()> {
    let mut wanted = hanging(1);
    wanted.policy = short().policy;
    let bench = ground.bench_with(&wanted)?;
    let mut passes = 1000;
    for _ in 0..20 {
        let (innocent, guilty) = (bench.adapter.create_device(), bench.adapter.create_device());
        let (mut queue, mut hung) = (queue_of(&innocent, 0)?, queue_of(&guilty, 0)?);
        let (mirror, behind) = (innocent.create_fence(0)?, guilty.create_fence(0)?);
        let memory = innocent.create_allocation(4096)?;
        let begin = Instant::now();
        let mut list = CommandList::new();
        list.stall(StallKind::HeedsNothing, passes)
            .signal(&behind, 77);
        let value = hung.submit(&list)?;
        let mut list = CommandList::new();
        list.fill(&memory, 0..4096, 3).signal(&mirror, 1);
        queue.submit(&list)?;
        let ended = hung.progress_fence().wait(value, LONG);
        let took = begin.elapsed();
        if ended.is_ok() {
            passes *= if took < Duration::from_millis(200) {
                4
            } else {
                2
            };
            continue;
        }
        same("the wait for a packet that was aborted", &ended, &LOST)?;
        same("the innocent queue", &mirror.wait(1, LONG), &Ok(()))?;
        memory.write(0, &[8]);
        let stands = |queue: &HwQueue| {
            let (control, packets) = queue.raw_memory();
            let words = [control, packets, queue.raw_doorbell()].map(|block| {
                let words = (0..block.bytes() as u64).step_by(8);
                words.map(|at| block.word(at).observe()).collect::<Vec<_>>()
            });
            let logs = [crate::abi::LogType::Waits, crate::abi::LogType::Signals];
            let logs = logs.map(|log| bench.spy.log(queue.os().handle(), log).bytes());
            (words, logs, queue.progress_fence().current_value())
        };
        // One of an attempt before may have been late, and reset for nothing.
        let resets = tdr_calls(&bench, TdrCall::ResetEngine(0));
        until_reset(&bench, 0, resets)?;
        let before = [stands(&queue), stands(&hung)];
        // It was reset when more than half of its time was over.
        let end = Instant::now() + 2 * took;
        let beside = bench.adapter.create_device();
        let mut beside = queue_of(&beside, 0)?;
        while Instant::now() < end {
            complete(&mut beside, CommandList::new().nop())?;
        }
        ensure!(
            [stands(&queue), stands(&hung)] == before,
            "an engine that comes back after its reset has changed a ring, a doorbell, a log or the progress of its queues"
        );
        same(
            "the fences, after the old engine came back",
            &(mirror.current_value(), behind.current_value()),
            &(1, 0),
        )?;
        let mut words = [0; 2];
        memory.read(0, &mut words);
        same("memory that the old engine was to fill", &words, &[8, 3])?;
        let codes = codes(&bench, 1)?;
        ensure!(
            codes.iter().all(|code| *code == ENGINE),
            "codes of the records: {codes:?}"
        );
        return Ok(());
    }
    bail!("in 20 attempts no packet was longer than its engine had to answer")
}
