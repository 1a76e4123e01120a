//! Effects: what a reset ends and what it leaves, of packets and of those who wait.

use super::scene::{
    ENGINE, Trouble, codes, goes_on, hanging, is_one_engine_reset, queue_of, tdr_calls, until_reset,
};
use crate::abi::{DoorbellStatus, LogType, StallKind};
use crate::conform::bench::{complete, logged, until_stands};
use crate::conform::checks::preemption::scene::short;
use crate::conform::seen::same;
use crate::conform::spy::{Call, TdrCall};
use crate::conform::{Bench, Check, Ground, LONG, Waiter, until};
use crate::kmd::{Interrupt, UpdateCurrentValuesFlags};
use crate::shared::Block;
use crate::{
    Allocation, CommandList, DeviceExecutionState, EventHandle, Fence, FenceOptions, HwContext,
    HwQueue, MonitoredFenceOptions, SubmitError, WaitError,
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
    // Else the driver may take its packet for what the engine was in.
    until_stands(bench, &stands, 9)?;
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
    // A wait has ended before anybody is told.
    let mut told = 0;
    until("the event of a wait that has ended is signalled", || {
        told += event.reset();
        told > 0
    })?;
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
    same("signals of the event", &(told + event.reset()), &1)?;
    is_one_engine_reset(bench)
}

/// The packet ends long after its engine was reset, and the engine goes on to a signal behind it, and to the other
/// queue, in the middle of whose work it was. Meanwhile the one that has its place now rests, so that the old one has a
/// processor, and nothing is stored over what it stores; then that one works, and takes it for its own. A machine so slow
/// that the old one comes back later yet is not found out.
fn comes_back(ground: &Ground) -> anyhow::Result<()> {
    let mut wanted = hanging(1);
    wanted.policy = short().policy;
    let bench = ground.bench_with(&wanted)?;
    let mut passes = 1000;
    for _ in 0..20 {
        let mut overtaken = Overtaken::new(&bench)?;
        let (ended, took) = overtaken.until_ended(&bench, passes)?;
        // One that came to its end before the reset counts for nothing, nor does one of whose end only the OS did not hear.
        if ended.is_ok() || overtaken.behind.current_value() != 0 {
            passes *= if took < Duration::from_millis(200) {
                4
            } else {
                2
            };
            continue;
        }
        same("the wait for a packet that was aborted", &ended, &LOST)?;
        overtaken.changes_nothing(&bench, took)?;
        let codes = codes(&bench, 1)?;
        ensure!(
            codes.iter().all(|code| *code == ENGINE),
            "codes of the records: {codes:?}"
        );
        return Ok(());
    }
    bail!("in 20 attempts no packet was longer than its engine had to answer")
}

/// Queues of two devices that an engine has when it is reset, and what they signal and store.
struct Overtaken {
    innocent: HwContext,
    guilty: HwContext,
    queue: HwQueue,
    hung: HwQueue,
    mirror: Fence,
    behind: Fence,
    memory: Allocation,
}

/// What there is of one queue.
#[derive(Debug, PartialEq, Eq)]
struct Stands {
    ring_and_doorbell: [Vec<u64>; 3],
    logs: [Vec<u8>; 2],
    read_index: u64,
    progress: u64,
    saved: Vec<Vec<u64>>,
}

impl Overtaken {
    fn new(bench: &Bench) -> anyhow::Result<Self> {
        let [well, hangs] = [(); 2].map(|()| bench.adapter.create_device());
        let (innocent, guilty) = (well.create_context(0, 1)?, hangs.create_context(0, 1)?);
        Ok(Self {
            queue: innocent.create_hw_queue(64)?,
            hung: guilty.create_hw_queue(64)?,
            innocent,
            guilty,
            mirror: well.create_fence(0)?,
            behind: hangs.create_fence(0)?,
            memory: well.create_allocation(4096)?,
        })
    }

    /// Runs a packet of so many passes, and the other queue beside it: how the packet ended, and when. Somebody waits for
    /// each signal, as the engine has seen before: so it would interrupt, whenever it comes to it.
    fn until_ended(
        &mut self,
        bench: &Bench,
        passes: u64,
    ) -> anyhow::Result<(Result<(), WaitError>, Duration)> {
        let of_mirror = Waiter::standing(&self.mirror, 1, LONG)?;
        let of_behind = Waiter::standing(&self.behind, 77, LONG)?;
        let begin = Instant::now();
        let mut list = CommandList::new();
        list.stall(StallKind::HeedsNothing, passes)
            .signal(&self.behind, 77);
        let value = self.hung.submit(&list)?;
        let mut list = CommandList::new();
        list.fill(&self.memory, 0..4096, 3).signal(&self.mirror, 1);
        self.queue.submit(&list)?;
        let ended = self.hung.progress_fence().wait(value, LONG);
        let took = begin.elapsed();
        let of_behind = of_behind.join();
        same("the innocent queue", &of_mirror.join(), &Ok(()))?;
        if ended.is_err() {
            // One of an attempt before may have been late, and reset for nothing.
            until_reset(bench, 0, tdr_calls(bench, TdrCall::ResetEngine(0)))?;
            let is_told = of_behind == LOST || self.behind.current_value() != 0;
            ensure!(
                is_told,
                "the wait for a signal behind what was aborted: {of_behind:?}"
            );
        }
        Ok((ended, took))
    }

    /// The engine was reset after so long, which was more than half of its packet's time: within four times as long it is
    /// back.
    fn changes_nothing(&mut self, bench: &Bench, took: Duration) -> anyhow::Result<()> {
        // Else the new engine may save the queue's state, though it has nothing to do for it.
        self.innocent.os().suspend(Some(LONG))?;
        self.memory.write(0, &[8]);
        let (before, has_collapsed) = (self.stands(bench), bench.spy.has_collapsed());
        let never = bench.fence(0)?;
        let rest = |time| {
            let ended = never.wait(1, time);
            same("a wait that nobody ends", &ended, &Err(WaitError::TimedOut))
        };
        rest(3 * took)?;
        let (mut beside, end) = (bench.queue()?, Instant::now() + took);
        while Instant::now() < end {
            let value = beside.submit(CommandList::new().nop())?;
            let ended = beside.progress_fence().wait(value, LONG);
            same("the new engine's work", &ended, &Ok(()))?;
            rest(Duration::from_millis(20))?;
        }
        ensure!(
            self.stands(bench) == before,
            "an engine that comes back after its reset has changed a ring, a doorbell, a log, the progress or a saved state \
             of its queues"
        );
        self.have_not_interrupted(bench)?;
        same(
            "whether an interrupt names nothing, after the old engine came back",
            &bench.spy.has_collapsed(),
            &has_collapsed,
        )?;
        same(
            "the fences, after the old engine came back",
            &(self.mirror.current_value(), self.behind.current_value()),
            &(1, 0),
        )?;
        let mut words = [0; 2];
        self.memory.read(0, &mut words);
        same("memory that the old engine was to fill", &words, &[8, 3])?;
        self.innocent.os().resume();
        self.queue
            .submit(CommandList::new().signal(&self.mirror, 2))?;
        let goes_on = self.mirror.wait(2, LONG);
        same("the innocent queue, afterwards", &goes_on, &Ok(()))
    }

    fn stands(&self, bench: &Bench) -> [Stands; 2] {
        let both = [(&self.queue, &self.innocent), (&self.hung, &self.guilty)];
        both.map(|(queue, context)| {
            let (control, packets) = queue.raw_memory();
            let logs = [LogType::Waits, LogType::Signals];
            Stands {
                ring_and_doorbell: [control, packets, queue.raw_doorbell()].map(words),
                logs: logs.map(|log| bench.spy.log(queue.os().handle(), log).bytes()),
                read_index: queue.read_index(),
                progress: queue.progress_fence().current_value(),
                saved: save_areas(bench, context).iter().map(words).collect(),
            }
        })
    }

    /// Of the fences of the two queues one was signalled for somebody who waits, by the new engine, and no queue has
    /// faulted.
    fn have_not_interrupted(&self, bench: &Bench) -> anyhow::Result<()> {
        let fences = [
            &self.behind,
            self.queue.progress_fence(),
            self.hung.progress_fence(),
        ];
        let named = |fence: &Fence| bench.spy.raised(fence.object().fence().id());
        same(
            "values of interrupts for the signal behind the aborted packet, and for the progress of both queues",
            &fences.map(named),
            &[const { Vec::<u64>::new() }; 3],
        )?;
        let of_mirror = named(&self.mirror);
        ensure!(
            of_mirror.is_empty() || of_mirror == [1],
            "interrupts for the innocent queue's signal: {of_mirror:?}"
        );
        let is_fault =
            |call: &Call| matches!(call, Call::Interrupt(Interrupt::HwQueueFaulted { .. }));
        same("queues that have faulted", &bench.spy.count(is_fault), &0)
    }
}

fn words(block: &Block) -> Vec<u64> {
    let words = (0..block.bytes() as u64).step_by(8);
    words.map(|at| block.word(at).observe()).collect()
}

/// Where the states of a context's queues are saved, as far as the host reaches it; none where the driver asks for none.
fn save_areas(bench: &Bench, context: &HwContext) -> Vec<Block> {
    let handle = context.os().handle();
    let asked = bench.spy.calls().into_iter();
    let asked = asked.filter_map(|call| match call {
        Call::CreateContextAllocation(asked, _) if asked.context == Some(handle) => {
            Some(asked.bytes)
        }
        _ => None,
    });
    let areas = bench.spy.save_areas(handle).into_iter().zip(asked);
    let blocks =
        areas.filter_map(|(area, bytes)| Some(area.region.host().ok()?.part(area.offset, bytes)));
    blocks.collect()
}
