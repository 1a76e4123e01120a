//! End: what becomes of the queues of a process that ends.

use super::scene::{disconnected, words};
use crate::abi::DoorbellStatus;
use crate::conform::bench::{complete, until_stands};
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::{Bench, Check, Ground, LONG, until};
use crate::kmd::HwQueueHandle;
use crate::{CommandList, EndError, Fence, SubmitError, WaitError};
use anyhow::{anyhow, ensure};
use std::thread;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "HQ-12",
    "a process that ends has its work done first, or is suspended and destroyed in order",
    ends,
)];

fn ends(ground: &Ground) -> anyhow::Result<()> {
    normally(&ground.bench()?)?;
    abnormally(&ground.bench()?)
}

fn destroyed(bench: &Bench) -> Vec<HwQueueHandle> {
    let destroyed = |call| match call {
        Call::DestroyHwQueue(queue) => Some(queue),
        _ => None,
    };
    bench
        .spy
        .calls()
        .into_iter()
        .filter_map(destroyed)
        .collect()
}

/// Of the queues one waits for the other's signal, that for the CPU's, one was never connected, and one is of kernel mode.
/// An end without time destroys nothing; one with time takes the doorbells, waits for what is queued, and destroys.
fn normally(bench: &Bench) -> anyhow::Result<()> {
    let [gate, first, second, never_rung, by_os] = [
        bench.fence(0)?,
        bench.fence(0)?,
        bench.fence(0)?,
        bench.fence(0)?,
        bench.fence(0)?,
    ];
    let (mut waits, mut serves) = (bench.queue()?, bench.queue()?);
    let mut silent = disconnected(&bench.device, 64)?;
    let mut kernel = bench.device.create_kernel_queue()?;
    waits.submit(CommandList::new().wait(&first, 1).signal(&second, 1))?;
    serves.submit(CommandList::new().wait(&gate, 1).signal(&first, 1))?;
    silent.queue_commands(CommandList::new().signal(&never_rung, 1))?;
    kernel.wait_native(&second, 1)?.signal_native(&by_os, 1)?;
    until_stands(bench, &serves, 1)?;
    let handles = [&waits, &serves, &silent].map(|queue| queue.os().handle());

    let ended = bench.device.end(Duration::ZERO);
    ensure!(
        matches!(ended, Err(EndError::TimedOut(_))),
        "an end without time, of queues that wait: {ended:?}"
    );
    same("queues that it destroyed", &destroyed(bench), &Vec::new())?;
    let status = serves.doorbell_status();
    same(
        "the status of a doorbell after it",
        &status,
        &DoorbellStatus::DisconnectedRetry,
    )?;

    let before = bench.spy.withdrawals();
    thread::scope(|scope| -> anyhow::Result<()> {
        let end = scope.spawn(|| bench.device.end(LONG));
        let taken = until(
            "all doorbells are taken, and a queue that was never rung runs",
            || bench.spy.withdrawals() >= before + 3 && never_rung.current_value() == 1,
        );
        let seen = (
            first.current_value(),
            second.current_value(),
            end.is_finished(),
            destroyed(bench).len(),
        );
        let refused = bench.device.create_hw_queue().is_err();
        gate.signal(1)?;
        let ended = end.join().map_err(|_| anyhow!("the end panicked"))?;
        taken?;
        same(
            "values, whether it is over, and queues destroyed while a wait stands",
            &seen,
            &(0, 0, false, 0),
        )?;
        ensure!(refused, "a queue was made while the process ends");
        ensure!(ended.is_ok(), "the end: {ended:?}");
        Ok(())
    })?;
    let values = [&first, &second, &by_os].map(Fence::current_value);
    same("what was queued before the end", &values, &[1, 1, 1])?;
    let calls = bench.spy.calls();
    let place = |which: &Call| calls.iter().rposition(|call| call == which);
    let taken = handles.map(|queue| place(&Call::WithdrawDoorbell(queue)));
    let gone = handles.map(|queue| place(&Call::DestroyHwQueue(queue)));
    ensure!(
        gone.iter().all(Option::is_some) && taken.iter().max() < gone.iter().min(),
        "doorbells were taken at calls {taken:?}, their queues destroyed at {gone:?}: all of the first should come first"
    );
    ensure!(
        destroyed(bench).contains(&kernel.os().handle()),
        "the kernel-mode queue was not destroyed"
    );
    let late = waits.submit(CommandList::new().signal(&second, 2));
    ensure!(
        matches!(late, Err(SubmitError::Stopped(_))),
        "a submission after the end: {late:?}"
    );
    let gone = destroyed(bench);
    drop((waits, serves, silent, kernel));
    same("queues destroyed, each once", &destroyed(bench), &gone)
}

/// A device is ended with a queue at a wait, one in a long fill and one of kernel mode: contexts are suspended, then
/// doorbells and queues go; nothing of it is touched afterwards, and another device goes on.
fn abnormally(bench: &Bench) -> anyhow::Result<()> {
    let doomed = bench.adapter.create_device();
    let (mut waits, mut fills) = (doomed.create_hw_queue()?, doomed.create_hw_queue()?);
    let mut kernel = doomed.create_kernel_queue()?;
    let (gate, done) = (doomed.create_fence(0)?, doomed.create_fence(0)?);
    let memory = doomed.create_allocation(8 << 20)?;
    let end = waits.submit(CommandList::new().wait(&gate, 1).signal(&done, 1))?;
    until_stands(bench, &waits, 1)?;
    kernel.wait_native(&gate, 1)?.signal_native(&done, 5)?;
    let mut list = CommandList::new();
    for value in 1..=4 {
        list.fill(&memory, 0..memory.bytes(), value);
    }
    fills.submit(&list)?;
    let handles = [waits.os().handle(), fills.os().handle()];
    let before = bench.spy.calls().len();
    doomed.terminate();
    let calls = bench.spy.calls().split_off(before);
    let places = |which: &dyn Fn(&Call) -> bool| -> Vec<usize> {
        let at = calls.iter().enumerate();
        at.filter(|(_, call)| which(call))
            .map(|(at, _)| at)
            .collect()
    };
    let suspended = places(&|call| matches!(call, Call::SuspendContext(_)));
    let doorbells = places(&|call| matches!(call, Call::DestroyDoorbell(_)));
    let queues =
        places(&|call| matches!(call, Call::DestroyHwQueue(queue) if handles.contains(queue)));
    ensure!(
        suspended.len() >= 2 && doorbells.len() == 2 && queues.len() == 2,
        "contexts suspended, doorbells and queues destroyed at calls {suspended:?}, {doorbells:?}, {queues:?}"
    );
    let in_order = suspended.iter().max() < doorbells.iter().min()
        && doorbells.iter().zip(&queues).all(|(d, q)| d < q);
    ensure!(
        in_order,
        "suspended, doorbells, queues: these calls are not in order: {suspended:?}, {doorbells:?}, {queues:?}"
    );
    ensure!(
        doomed.process().is_in_error(),
        "a device that was ended abnormally is in no error"
    );
    let stopped = waits.progress_fence().wait(end, LONG);
    ensure!(
        matches!(stopped, Err(WaitError::QueueStopped(_))),
        "a wait for a queue of it: {stopped:?}"
    );
    let refused = doomed.create_hw_queue().err();
    ensure!(
        refused.is_some(),
        "a queue was made on a device that is in error"
    );

    let left = words(&memory);
    gate.signal(1)?;
    let mut other = bench.queue()?;
    let fence = bench.fence(0)?;
    for value in 1..=5 {
        complete(&mut other, CommandList::new().signal(&fence, value))?;
    }
    bench.until_told(&mut other)?;
    same(
        "a fence that its queues would signal",
        &done.current_value(),
        &0,
    )?;
    ensure!(
        words(&memory) == left,
        "memory of the device was written after its end"
    );
    Ok(())
}
