//! Submission: how a user hands work to a queue, and what the doorbell's status asks of him then.

use super::scene::{Ring, disconnected, signals_logged, told, told_by, with_ring};
use crate::abi::{DoorbellStatus, FaultCode, Opcode, PACKET_BYTES, Packet};
use crate::conform::bench::{complete, until_completed};
use crate::conform::seen::same;
use crate::conform::spy::{Failing, Moment};
use crate::conform::{Bench, Check, Ground, LONG, Wanted, until};
use crate::gpu::NodePolicy;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, RingError, SubmitError};
use anyhow::ensure;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "HQ-01",
        "a submission is commands, last queued value, ring, doorbell, and what its status asks",
        submission,
    ),
    Check::by(
        "HQ-02",
        "a doorbell starts disconnected; connecting and disconnecting lose no command",
        connecting,
    ),
];

fn submission(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    steps(&bench)?;
    busy(ground)?;
    retry(&bench)?;
    not_rung(&bench)?;
    stopped(&bench)
}

/// What lies in memory after each step, and when the driver is called; it is where an engine that sleeps has its
/// doorbells CONNECTED_NOTIFY.
fn steps(bench: &Bench) -> anyhow::Result<()> {
    let mut queue = bench.queue()?;
    let fence = bench.fence(0)?;
    let handle = queue.os().handle();
    // An engine may look by itself for ever.
    let sleeps = until("an idle engine is to be notified", || {
        queue.doorbell_status() == DoorbellStatus::ConnectedNotify
    });
    for submission in 1..=3_u64 {
        if sleeps.is_ok() {
            until("the engine sleeps again", || {
                queue.doorbell_status() == DoorbellStatus::ConnectedNotify
            })?;
        }
        let write = 4 * submission;
        let list = &mut CommandList::new();
        list.nop()
            .signal(&fence, submission)
            .wait(&fence, submission);
        let value = queue.queue_commands(list)?;
        same(
            "the value that a submission completes with",
            &value,
            &submission,
        )?;
        same(
            "the last queued value, as the OS reads it",
            &queue.os().last_queued_value(),
            &value,
        )?;
        let expected = [value, write, submission - 1];
        same(
            "last queued value, write index and rings before it rings",
            &told_by(&queue),
            &expected,
        )?;
        let at = (write - 1) * PACKET_BYTES;
        let last: Packet = bytemuck::cast(queue.raw_memory().1.peek_words::<8>(at));
        let progress = queue.progress_fence().handle();
        let seen = (last.opcode(), last.handle(), last.value);
        same(
            "the last packet of a submission",
            &seen,
            &(Some(Opcode::Progress), progress, value),
        )?;
        let at_notify = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&at_notify);
        let (control, doorbell) = (queue.raw_memory().0.clone(), queue.raw_doorbell().clone());
        bench.spy.once(Moment::InNotify, move || {
            *lock(&seen) = Some(told(&control, &doorbell));
        });
        queue.ring_doorbell()?;
        if sleeps.is_ok() {
            let expected = Some([value, write, submission]);
            same(
                "last queued value, write index and rings when the driver is notified",
                &*lock(&at_notify),
                &expected,
            )?;
            same(
                "notifications",
                &(bench.spy.notifies(handle) as u64),
                &submission,
            )?;
        }
        until_completed(&queue, value)?;
    }
    same(
        "connects of a queue that was made connected",
        &bench.spy.connects(handle),
        &1,
    )
}

/// An engine that is busy has its doorbells CONNECTED at times: then nobody is called, and the work is done. The status may
/// change between a look and the ring, though not each of twenty times.
fn busy(ground: &Ground) -> anyhow::Result<()> {
    let short = Duration::from_micros(20);
    let bench = ground.bench_with(&Wanted {
        policy: NodePolicy {
            slice_time: short,
            idle_window: short,
            ..NodePolicy::default()
        },
        ..Wanted::default()
    })?;
    let mut works = bench.device.create_hw_queue_with(with_ring(1 << 13))?;
    let mut queue = bench.queue()?;
    let handle = queue.os().handle();
    let mut work = CommandList::new();
    (0..3000).for_each(|_| {
        work.nop();
    });
    let mut connected = 0;
    for _ in 0..300 {
        if works.room() > 3000 {
            works.submit(&work)?;
        }
        connected += u32::from(queue.doorbell_status() == DoorbellStatus::Connected);
        let notified = bench.spy.notifies(handle);
        complete(&mut queue, CommandList::new().nop())?;
        if bench.spy.notifies(handle) == notified {
            return until_completed(&works, works.last_queued_value());
        }
    }
    ensure!(
        connected < 20,
        "of 300 rings {connected} found CONNECTED, and the driver was notified of all"
    );
    Ok(())
}

/// A doorbell that was taken away: the user connects, and rings again.
fn retry(bench: &Bench) -> anyhow::Result<()> {
    let mut queue = bench.queue()?;
    let fence = bench.fence(0)?;
    let handle = queue.os().handle();
    for value in 1..=5 {
        queue.os().disconnect_doorbell();
        same(
            "the status of a doorbell that was taken",
            &queue.doorbell_status(),
            &DoorbellStatus::DisconnectedRetry,
        )?;
        let (connects, rings) = (bench.spy.connects(handle), told_by(&queue)[2]);
        complete(&mut queue, CommandList::new().signal(&fence, value))?;
        same(
            "connects of a submission that found it",
            &(bench.spy.connects(handle) - connects),
            &1,
        )?;
        same("rings of it", &(told_by(&queue)[2] - rings), &2)?;
        same("the fence that it signals", &fence.current_value(), &value)?;
    }
    Ok(())
}

/// A doorbell that does not connect: the commands are queued, as the error says, and run once when it does.
fn not_rung(bench: &Bench) -> anyhow::Result<()> {
    let mut queue = disconnected(&bench.device, 64)?;
    let fence = bench.fence(0)?;
    bench.spy.fail(Failing::ConnectDoorbell);
    let refused = queue.submit(CommandList::new().signal(&fence, 1));
    bench.spy.succeed();
    let says = matches!(
        refused,
        Err(SubmitError::NotRung {
            value: 1,
            why: RingError::Connect(_)
        })
    );
    ensure!(
        says,
        "a submission whose doorbell does not connect ended so: {refused:?}"
    );
    same(
        "last queued value and write index after it",
        &&told_by(&queue)[..2],
        &&[1, 2][..],
    )?;
    same("the fence while nothing rang", &fence.current_value(), &0)?;
    queue.ring_doorbell()?;
    until_completed(&queue, 1)?;
    complete(&mut queue, CommandList::new().signal(&fence, 2))?;
    until("both ran, once", || signals_logged(bench, &queue) >= 4)?;
    same(
        "entries of two signals with their progress",
        &signals_logged(bench, &queue),
        &4,
    )
}

/// DISCONNECTED_ABORT: a stopped queue takes nothing and never connects; a new one, and a kernel-mode queue where no
/// doorbell can be had, go on with the fences.
fn stopped(bench: &Bench) -> anyhow::Result<()> {
    let mut ring = Ring::new(&bench.device)?;
    ring.submit(&[Packet {
        control: 0,
        ..Packet::nop()
    }]);
    same(
        "why a queue with a bad packet was stopped, and where",
        &ring.fault()?,
        &(FaultCode::Opcode, 0),
    )?;
    let mut queue = ring.queue;
    let before = told_by(&queue);
    for _ in 0..2 {
        let status = queue.doorbell_status();
        same(
            "its doorbell's status",
            &status,
            &DoorbellStatus::DisconnectedAbort,
        )?;
        let refused = queue.submit(CommandList::new().nop());
        ensure!(
            matches!(refused, Err(SubmitError::Faulted(_))),
            "a submission to it ended so: {refused:?}"
        );
        ensure!(
            queue.connect_doorbell().is_err(),
            "its doorbell was connected"
        );
    }
    same("what its user told", &told_by(&queue), &before)?;
    drop(queue);
    let fence = bench.fence(0)?;
    complete(&mut bench.queue()?, CommandList::new().signal(&fence, 1))?;
    same(
        "the fence that a new queue signalled",
        &fence.current_value(),
        &1,
    )?;

    bench.spy.fail(Failing::CreateDoorbell);
    let refused = bench.device.create_hw_queue();
    ensure!(
        refused.is_err(),
        "a queue was made without the doorbell that the driver refused"
    );
    let mut kernel = bench.device.create_kernel_queue()?;
    kernel.signal_native(&fence, 2)?.flush()?;
    bench.spy.succeed();
    same(
        "a wait for the kernel-mode queue",
        &fence.wait(2, LONG),
        &Ok(()),
    )
}

/// What is queued before the first connect, and while the doorbell is away, beside a queue that runs: nothing is
/// executed then, and all of it, once, afterwards. So with a doorbell that is destroyed and another in its stead.
fn connecting(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let mut other = bench.queue()?;
    let beside = bench.fence(0)?;
    let mut runs_beside = || {
        complete(
            &mut other,
            CommandList::new().signal(&beside, beside.current_value() + 1),
        )
    };
    let mut queue = disconnected(&bench.device, 1024)?;
    let (gate, fence) = (bench.fence(0)?, bench.fence(0)?);
    let retry = DoorbellStatus::DisconnectedRetry;
    same(
        "the status of a new doorbell",
        &queue.doorbell_status(),
        &retry,
    )?;
    same(
        "connects of it",
        &bench.spy.connects(queue.os().handle()),
        &0,
    )?;
    let value = queue.queue_commands(CommandList::new().signal(&fence, 1))?;
    runs_beside()?;
    let seen = |queue: &crate::HwQueue| (queue.read_index(), fence.current_value());
    same(
        "read index and value before it is connected",
        &seen(&queue),
        &(0, 0),
    )?;
    // No ring: connecting alone makes the engine look.
    queue.connect_doorbell()?;
    until_completed(&queue, value)?;
    let mut entries = 2;
    for round in 1..=6 {
        // By turns it stands at a wait, and is in the midst of signals.
        let mut list = CommandList::new();
        list.wait(&gate, round);
        for value in round * 50..(round + 1) * 50 {
            list.signal(&fence, value);
        }
        let value = queue.submit(&list)?;
        if round % 2 == 0 {
            gate.signal(round)?;
        }
        if round % 3 == 0 {
            queue.destroy_doorbell()?;
        } else {
            queue.os().disconnect_doorbell();
        }
        same(
            "the status of a doorbell that was taken",
            &queue.doorbell_status(),
            &retry,
        )?;
        let stood = seen(&queue);
        if gate.current_value() < round {
            gate.signal(round)?;
        }
        runs_beside()?;
        runs_beside()?;
        same(
            "read index and value while it is away",
            &seen(&queue),
            &stood,
        )?;
        if round % 3 == 0 {
            queue.create_doorbell()?;
            same(
                "the status of its next doorbell",
                &queue.doorbell_status(),
                &retry,
            )?;
        }
        queue.connect_doorbell()?;
        until_completed(&queue, value)?;
        same(
            "the fence when all is executed",
            &fence.current_value(),
            &(round * 50 + 49),
        )?;
        entries += 51;
    }
    until("all is logged", || {
        signals_logged(&bench, &queue) >= entries
    })?;
    same(
        "entries of its signals, each of which ran once",
        &signals_logged(&bench, &queue),
        &entries,
    )
}
