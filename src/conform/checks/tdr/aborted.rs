//! Aborted: LastAbortedFenceId, and the ids that an engine's queues have come to.

use super::scene::{
    ADAPTER, ENGINE, FOR_EVER, blame, codes, hanging, is_one_engine_reset, queue_of, tdr_calls,
    until_reset, until_stopped,
};
use crate::abi::{DoorbellStatus, StallKind};
use crate::conform::bench::{complete, monitored_value, until_completed};
use crate::conform::checks::preemption::scene::{context, initialised, nop};
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::{Bench, Check, Ground, LONG, Wanted, until};
use crate::kmd::{Interrupt, ResetEngine};
use crate::os::{Features, Record};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, DeviceExecutionState, HwQueue, KernelQueue, TdrPolicy, WaitError};
use anyhow::{bail, ensure};
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "TD-03",
        "LastAbortedFenceId is in the hardware queue as of the snapshot, or stops the adapter",
        invalid,
    ),
    Check::by(
        "TD-04",
        "the last completed id advances by completions and by resets alone",
        last_completed,
    ),
    Check::by(
        "TD-05",
        "a packet that completes between snapshot and reset is taken for aborted",
        completes_late,
    ),
];

/// Commands of a suspended context: one has completed, one was preempted and has another id, and two are in the
/// hardware queue.
struct Ids {
    kernel: KernelQueue,
    completed: u64,
}

impl Ids {
    fn new(bench: &Bench) -> anyhow::Result<Self> {
        let context = bench.adapter.create_device().create_context(0, 1)?;
        let mut kernel = context.create_kernel_queue()?;
        let value = nop(&mut kernel)?;
        kernel.progress_fence().wait(value, LONG)?;
        let completed = initialised(bench, 0)?;
        context.suspend(LONG)?;
        nop(&mut kernel)?;
        bench.preempt(0)?;
        let ids = || bench.adapter.os().submission_ids(0);
        until("the preempted command has another id", || {
            ids() == (completed + 2, completed)
        })?;
        nop(&mut kernel)?;
        Ok(Self { kernel, completed })
    }

    /// The same of one that is submitted after the snapshot.
    fn abort_behind(self, bench: &Bench, id: u64) {
        blame(bench, self.kernel.os().handle(), id);
        let (kernel, os) = (Mutex::new(self.kernel), Arc::downgrade(bench.adapter.os()));
        bench.spy.before_tdr(move |call| {
            if let (TdrCall::CollectDbgInfo(_), Some(os)) = (call, os.upgrade()) {
                let _ = nop(&mut lock(&kernel));
                let _ = until("it is handed over", || os.submission_ids(0).0 == id);
            }
        });
        bench.spy.lose_engine(0);
    }

    /// The engine is lost, and this was aborted, as the driver says.
    fn abort(&self, bench: &Bench, id: u64) {
        blame(bench, self.kernel.os().handle(), id);
        bench.spy.lose_engine(0);
    }
}

fn is_invalid(bench: &Bench, what: &str, id: u64, completed: u64) -> anyhow::Result<()> {
    let record = until_stopped(bench)?;
    let seen = (record.code, &record.parameters[..3]);
    let parameters = [Record::INVALID_ABORTED_FENCE, id, completed];
    let should = (Record::VIDEO_SCHEDULER_INTERNAL_ERROR, &parameters[..]);
    same(&format!("the record, after {what}"), &seen, &should)
}

/// Of kernel-mode queues ids at each side of each border; of a user-mode queue one below; and ids that could be or could
/// not be by the snapshot alone, since more was submitted and has completed after it.
fn invalid(ground: &Ground) -> anyhow::Result<()> {
    // Beside what has completed: the preempted command's id is the next one, and the last submitted two more.
    let wrong = [
        ("an id below the last completed", 0),
        ("an id of a preempted command", 2),
        ("an id above the last submitted", 5),
    ];
    for (what, at) in wrong {
        let bench = ground.bench()?;
        let ids = Ids::new(&bench)?;
        let id = ids.completed + at - 1;
        ids.abort(&bench, id);
        is_invalid(&bench, what, id, ids.completed)?;
        let ended = ids.kernel.progress_fence().wait(99, LONG);
        let stopped = Err(WaitError::AdapterStopped);
        same("a wait on a stopped adapter", &ended, &stopped)?;
    }
    let bench = ground.bench()?;
    for (resets, above) in (1..).zip([0, 2, 3]) {
        let ids = Ids::new(&bench)?;
        ids.abort(&bench, ids.completed + above);
        let what =
            format!("records, after ids that can be, the last {above} above the last completed");
        same(&what, &codes(&bench, resets)?, &vec![ENGINE; resets])?;
        until_reset(&bench, 0, resets)?;
    }

    let bench = ground.bench()?;
    let ids = Ids::new(&bench)?;
    let (id, completed) = (ids.completed + 4, ids.completed);
    ids.abort_behind(&bench, id);
    let what = "an id that was submitted after the snapshot";
    is_invalid(&bench, what, id, completed)?;

    for is_below in [true, false] {
        let late = Late::new(ground)?;
        let id = if is_below {
            late.completed - 1
        } else {
            late.completed
        };
        late.complete_before_the_reset(id);
        late.bench.spy.lose_engine(0);
        if is_below {
            is_invalid(
                &late.bench,
                "an id below a queue's last completed one",
                id,
                late.completed,
            )?;
        } else {
            is_one_engine_reset(&late.bench)?;
            let ended = late.queue.progress_fence().current_value();
            same("progress since the snapshot", &ended, &late.value)?;
        }
    }
    match ground.bench_if(&hanging(1))? {
        Some(bench) => of_the_driver(&bench),
        None => Ok(()),
    }
}

/// What the driver itself says, where engines hang, of a kernel-mode queue with a completed command before the one that
/// hangs, and another one behind it.
fn of_the_driver(bench: &Bench) -> anyhow::Result<()> {
    let mut kernel = bench.device.create_kernel_queue()?;
    let before = initialised(bench, 0)?;
    let said = Arc::<Mutex<Vec<ResetEngine>>>::default();
    let noted = Arc::clone(&said);
    bench.spy.answer_reset(move |reset| {
        lock(&noted).push(reset);
        Ok(reset)
    });
    let value = nop(&mut kernel)?;
    kernel.progress_fence().wait(value, LONG)?;
    kernel.submit(CommandList::new().stall(StallKind::HeedsAbort, FOR_EVER))?;
    nop(&mut kernel)?;
    until_reset(bench, 0, 1)?;
    same(
        "LastAbortedFenceId, of the second of three commands, and its queue",
        &*lock(&said),
        &vec![ResetEngine {
            last_aborted_fence_id: before + 2,
            hw_queue: Some(kernel.os().handle()),
        }],
    )?;
    same("codes of the records", &codes(bench, 1)?, &vec![ENGINE])
}

/// A user-mode queue, one of whose submissions has completed, at a wait of the next.
struct Late {
    bench: Bench,
    queue: HwQueue,
    gate: crate::Fence,
    stored: crate::Fence,
    completed: u64,
    value: u64,
}

impl Late {
    fn new(ground: &Ground) -> anyhow::Result<Self> {
        let bench = ground.bench()?;
        let (mut queue, gate, stored) = (bench.queue()?, bench.fence(0)?, bench.fence(0)?);
        let completed = complete(&mut queue, CommandList::new().nop())?;
        let value = queue.submit(CommandList::new().wait(&gate, 1).signal(&stored, 5))?;
        // What an engine asks for while it is reset is not heard: it is not to be on its way to sleep.
        until("the engine sleeps at its wait", || {
            monitored_value(&gate) == 0
        })?;
        Ok(Self {
            bench,
            queue,
            gate,
            stored,
            completed,
            value,
        })
    }

    /// It completes when the OS has made up its mind to reset the engine, and the driver says that this was aborted.
    fn complete_before_the_reset(&self, says: u64) {
        blame(&self.bench, self.queue.os().handle(), says);
        let (gate, progress) = (self.gate.clone(), self.queue.progress_fence().clone());
        let value = self.value;
        self.bench.spy.before_tdr(move |call| {
            if call == TdrCall::ResetEngine(0) {
                let _ = gate.signal(1);
                let _ = until("it completes late", || progress.current_value() >= value);
            }
        });
    }
}

/// Preempted commands advance nothing; a reset advances to the aborted id, with a lesser one outstanding; a reset of
/// the adapter to the last submitted id of every node.
fn last_completed(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (waits, well) = (context(&bench)?, context(&bench)?);
    let (mut innocent, mut guilty) = (waits.create_kernel_queue()?, waits.create_kernel_queue()?);
    let mut beside = well.create_kernel_queue()?;
    let before = initialised(&bench, 0)?;
    let ids = || bench.adapter.os().submission_ids(0);
    let value = nop(&mut beside)?;
    beside.progress_fence().wait(value, LONG)?;
    until("the first one's completion is known", || {
        ids() == (before + 1, before + 1)
    })?;
    waits.suspend(LONG)?;
    nop(&mut innocent)?;
    let value = nop(&mut beside)?;
    beside.progress_fence().wait(value, LONG)?;
    bench.spy.until_handled(|told| {
        matches!(told, Interrupt::DmaCompleted { submission_id, .. } if *submission_id == before + 3)
    })?;
    same(
        "last submitted and completed, with a command between that cannot run",
        &ids(),
        &(before + 3, before + 1),
    )?;
    bench.preempt(0)?;
    until("the command has another id", || ids().0 == before + 4)?;
    same(
        "ids after a preemption of the one between",
        &ids(),
        &(before + 4, before + 1),
    )?;

    nop(&mut guilty)?;
    nop(&mut innocent)?;
    blame(&bench, guilty.os().handle(), before + 5);
    let seen = ids_at(&bench, TdrCall::ResumeHwEngine(0), 1);
    bench.spy.lose_engine(0);
    // The call is counted before it is looked at.
    until("the engine is about to go on", || !lock(&seen).is_empty())?;
    same(
        "ids after a reset that has aborted the second of three",
        &*lock(&seen),
        &vec![(before + 6, before + 5)],
    )?;
    same("codes of the records", &codes(&bench, 1)?, &vec![ENGINE])?;
    adapter_completes_all(ground)
}

/// Ids of nodes at each such call.
fn ids_at(bench: &Bench, at: TdrCall, nodes: u32) -> Arc<Mutex<Vec<(u64, u64)>>> {
    let (os, seen) = (Arc::downgrade(bench.adapter.os()), Arc::default());
    let noted: Arc<Mutex<Vec<(u64, u64)>>> = Arc::clone(&seen);
    bench.spy.before_tdr(move |call| {
        if let (true, Some(os)) = (call == at, os.upgrade()) {
            lock(&noted).extend((0..nodes).map(|node| os.submission_ids(node)));
        }
    });
    seen
}

fn adapter_completes_all(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&Wanted::nodes(2))?;
    let contexts = [0, 1].map(|node| bench.adapter.create_device().create_context(node, 1));
    let [one, other] = contexts;
    let (one, other) = (one?, other?);
    let (mut on_one, mut on_other) = (one.create_kernel_queue()?, other.create_kernel_queue()?);
    let before = [initialised(&bench, 0)?, initialised(&bench, 1)?];
    one.suspend(LONG)?;
    other.suspend(LONG)?;
    nop(&mut on_one)?;
    nop(&mut on_other)?;
    nop(&mut on_other)?;
    let ids = ids_at(&bench, TdrCall::RestartFromTimeout, 2);
    bench.spy.fail_tdr(TdrCall::ResetEngine(0));
    bench.spy.lose_engine(0);
    same("codes of the records", &codes(&bench, 1)?, &vec![ADAPTER])?;
    let last = [before[0] + 1, before[1] + 2].map(|last| (last, last));
    same(
        "ids of both nodes after a reset of the adapter",
        &*lock(&ids),
        &last.to_vec(),
    )
}

/// By the spy's answer: the OS takes it for aborted, its device is in error, and what it stored stays. Where engines
/// hang, by the driver's own: the packet ends by itself while the OS is about to reset its engine.
fn completes_late(ground: &Ground) -> anyhow::Result<()> {
    let late = Late::new(ground)?;
    late.complete_before_the_reset(late.value);
    let innocent = late.bench.adapter.create_device();
    let (open, mut waits) = (innocent.create_fence(0)?, queue_of(&innocent, 0)?);
    let behind = waits.submit(CommandList::new().wait(&open, 1))?;
    until("the engine sleeps at its waits", || {
        monitored_value(&open) == 0
    })?;
    late.bench.spy.lose_engine(0);
    until_reset(&late.bench, 0, 1)?;
    let state = late.bench.device.execution_state();
    same(
        "the state of the device",
        &state,
        &DeviceExecutionState::HUNG,
    )?;
    let status = late.queue.doorbell_status();
    same("its doorbell", &status, &DoorbellStatus::DisconnectedAbort)?;
    let values = (
        late.stored.current_value(),
        late.queue.progress_fence().current_value(),
    );
    same(
        "what the packet stored, and its progress",
        &values,
        &(5, late.value),
    )?;
    open.signal(1)?;
    same(
        "another device's wait",
        &waits.progress_fence().wait(behind, LONG),
        &Ok(()),
    )?;
    is_one_engine_reset(&late.bench)?;

    let tdr = TdrPolicy {
        delay: Duration::from_millis(300),
        limit_count: 1000,
        ..TdrPolicy::default()
    };
    let bench = ground.bench_watched(&hanging(1), Features::default(), tdr);
    ground
        .if_fit(bench)?
        .map_or(Ok(()), |bench| ends_by_itself(&bench))
}

/// A stall that takes longer than its engine has, and ends when its reset has begun; other attempts count for nothing.
fn ends_by_itself(bench: &Bench) -> anyhow::Result<()> {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&answers);
    bench.spy.answer_reset(move |reset| {
        lock(&noted).push(reset);
        Ok(reset)
    });
    // Of the queue that stalls, its value, and whether that was not reached when the reset began.
    let current = Arc::new(Mutex::new(None::<(crate::Fence, u64, bool)>));
    let watched = Arc::clone(&current);
    bench.spy.before_tdr(move |call| {
        if let (TdrCall::ResetEngine(0), Some(current)) = (call, lock(&watched).as_mut()) {
            let (progress, value, is_in_it) = current;
            *is_in_it = progress.current_value() < *value;
            let _ = until("it completes late", || progress.current_value() >= *value);
        }
    });
    let mut passes = 1000;
    for _ in 0..40 {
        let device = bench.adapter.create_device();
        let mut queue = queue_of(&device, 0)?;
        let value = queue.last_queued_value() + 1;
        *lock(&current) = Some((queue.progress_fence().clone(), value, false));
        let begin = Instant::now();
        queue.submit(CommandList::new().stall(StallKind::HeedsNothing, passes))?;
        until_completed(&queue, value)?;
        let took = begin.elapsed();
        // Whoever is reset has come to the reset by now, or soon.
        let resets = tdr_calls(bench, TdrCall::ResetEngine(0));
        until("the reset is over", || lock(&answers).len() >= resets)?;
        let last = lock(&answers).last().copied();
        let is_in_it = lock(&current)
            .as_ref()
            .is_some_and(|(.., is_in_it)| *is_in_it);
        if let (true, Some(answer)) = (is_in_it, last) {
            let expected = ResetEngine {
                last_aborted_fence_id: value,
                hw_queue: Some(queue.os().handle()),
            };
            same(
                "what ResetEngine says of a packet that has completed",
                &answer,
                &expected,
            )?;
            until_reset(bench, 0, resets)?;
            let state = device.execution_state();
            same(
                "the state of its device",
                &state,
                &DeviceExecutionState::HUNG,
            )?;
            let codes = codes(bench, resets)?;
            ensure!(
                codes.iter().all(|code| *code == ENGINE),
                "codes of the records: {codes:?}"
            );
            return Ok(());
        }
        passes *= if took < Duration::from_millis(100) {
            4
        } else {
            2
        };
    }
    bail!("in 40 attempts no engine timed out in a packet that ends by itself")
}
