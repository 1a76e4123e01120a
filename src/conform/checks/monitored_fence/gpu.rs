//! GPU: signals and waits of kernel-mode queues, and which interrupt makes the OS look at whom.

use super::scene::{on_both, starts_at, store_silently};
use crate::abi::{FaultCode, Packet, RingControl};
use crate::conform::bench::{complete, finish};
use crate::conform::checks::sleeper::{ended, sleeper, woken};
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::{Bench, Check, Ground, LONG, Wanted, until};
use crate::kmd::{DriverOptions, Interrupt, NativeFenceSignaled};
use crate::{CommandList, EventHandle, KernelQueueError, MonitoredFenceOptions, WaitError};
use anyhow::{bail, ensure};
use std::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "MF-02",
        "a GPU signal is a store; engines of the advanced form interrupt for each, of the basic form for none",
        signals,
    ),
    Check::by(
        "MF-03",
        "a GPU wait flushes what was recorded and holds back what follows, until the value is there",
        waits,
    ),
    Check::by(
        "MF-05",
        "a queue that cannot store to the fence signals by the OS, at the head of the queue",
        software_signal,
    ),
    Check::by(
        "MF-07",
        "after a command buffer completes every pending wait of its process is looked at",
        completion,
    ),
    Check::by(
        "MF-09",
        "a user-mode queue takes no monitored fence, and is refused without native fences",
        user_mode,
    ),
];

fn basic() -> Wanted {
    Wanted::with(DriverOptions {
        basic_monitored_fences: true,
        ..DriverOptions::default()
    })
}

/// Interrupts for signals of monitored fences so far.
fn raised(bench: &Bench) -> usize {
    bench.spy.count(|call| {
        matches!(
            call,
            Call::Interrupt(Interrupt::MonitoredFenceSignaled { .. })
        )
    })
}

/// Eight signals of a queue, without a waiter and with one, by engines of either form. A subject that has none of the basic
/// form says so when it is asked for such a driver.
fn signals(ground: &Ground) -> anyhow::Result<()> {
    on_both(ground, &Wanted::default(), |bench| {
        let fence = starts_at(bench, 0)?;
        let mut queue = bench.device.create_kernel_queue()?;
        for value in 1..=8 {
            queue.signal(&fence, value)?;
        }
        finish(&mut queue)?;
        until("eight signals interrupt eight times", || raised(bench) >= 8)?;
        let waiter = sleeper(&fence, 9)?;
        queue.signal(&fence, 9)?.flush()?;
        same("a wait for the ninth signal", &ended(waiter), &Ok(()))?;
        finish(&mut queue)?;
        until("the ninth interrupts", || raised(bench) >= 9)?;
        same("interrupts of nine signals", &raised(bench), &9)?;
        let native = bench.spy.payloads().len();
        same("interrupts that tell of native fences", &native, &0)?;
        looks_at_its_own(bench)
    })?;
    on_both(ground, &basic(), |bench| {
        let fence = starts_at(bench, 0)?;
        let waiter = sleeper(&fence, 8)?;
        let mut queue = bench.device.create_kernel_queue()?;
        for value in 1..=8 {
            queue.signal(&fence, value)?;
        }
        finish(&mut queue)?;
        same(
            "a wait for a signal that nobody interrupts for",
            &ended(waiter),
            &Ok(()),
        )?;
        same(
            "interrupts of engines of the basic form for eight signals",
            &raised(bench),
            &0,
        )
    })
}

/// The interrupt alone, of a value that nobody has told of: monitored waiters are looked at, and no native ones.
fn looks_at_its_own(bench: &Bench) -> anyhow::Result<()> {
    let (fence, event) = (starts_at(bench, 0)?, EventHandle::new()?);
    let _wait = fence.wait_event(1, &event);
    store_silently(&fence, 1)?;
    // None where there are no native fences.
    let (native, native_event) = (bench.device.create_fence(0).ok(), EventHandle::new()?);
    let of_native = native
        .as_ref()
        .map(|native| native.wait_event(1, &native_event));
    if let Some(native) = &native {
        let (region, offset) = native.object().fence().current_value_place();
        region.host()?.word(offset).publish(1);
    }
    bench.spy.interrupt(Interrupt::MonitoredFenceSignaled {
        node_ordinal: 0,
        engine_ordinal: 0,
    });
    let told = (event.reset(), native_event.reset());
    same(
        "waits of monitored and of native fences that the interrupt ended",
        &told,
        &(1, 0),
    )?;
    if of_native.is_some() {
        bench
            .spy
            .interrupt(Interrupt::NativeFenceSignaled(NativeFenceSignaled {
                node_ordinal: 0,
                engine_ordinal: 0,
                fences: None,
                hw_queue: None,
                evaluate_legacy_monitored_fences: false,
                taken: Instant::now(),
            }));
        same(
            "waits of native fences that their own ended",
            &native_event.reset(),
            &1,
        )?;
    }
    Ok(())
}

/// The caller of a wait has returned; what was recorded before runs, what follows is not handed to the engine, though it
/// runs other work, until the value is there. Then two engines, where there are two, hand over to and fro.
fn waits(ground: &Ground) -> anyhow::Result<()> {
    on_both(ground, &Wanted::default(), |bench| {
        let [earlier, gate, later] = [
            starts_at(bench, 0)?,
            starts_at(bench, 0)?,
            starts_at(bench, 0)?,
        ];
        let mut queue = bench.device.create_kernel_queue()?;
        queue.signal(&earlier, 1)?;
        // It returns, or nothing goes on: nobody signals the gate.
        queue.wait(&gate, 2)?;
        same(
            "what was recorded before a wait, flushed by it",
            &woken(&earlier, 1),
            &Ok(()),
        )?;
        queue.signal(&later, 1)?.flush()?;
        gate.signal(1)?;
        let mut beside = bench.device.create_kernel_queue()?;
        beside.submit(CommandList::new().nop())?;
        finish(&mut beside)?;
        let handle = queue.os().handle();
        let handed = bench.spy.count(
            |call| matches!(call, Call::SubmitCommand { hw_queue, .. } if *hw_queue == handle),
        );
        // And what initialises its context, which is of another queue.
        same(
            "commands handed to the engine while the wait is not satisfied",
            &handed,
            &1,
        )?;
        same("what follows the wait", &later.current_value(), &0)?;
        gate.signal(2)?;
        same(
            "a wait for what follows, when the value is there",
            &woken(&later, 1),
            &Ok(()),
        )?;
        queue.wait(&gate, 1)?.signal(&later, 2)?.flush()?;
        same(
            "a wait for what follows a wait that is satisfied",
            &woken(&later, 2),
            &Ok(()),
        )
    })?;
    let two = on_both(ground, &Wanted::nodes(2), |bench| {
        let (there, back) = (starts_at(bench, 0)?, starts_at(bench, 0)?);
        let mut first = bench.device.create_kernel_queue_on(0)?;
        let mut second = bench.device.create_kernel_queue_on(1)?;
        for value in 1..=10 {
            first.signal(&there, value)?.wait(&back, value)?;
            second.wait(&there, value)?.signal(&back, value)?;
        }
        second.flush()?;
        same(
            "a wait for the last of ten hand-overs",
            &woken(&back, 10),
            &Ok(()),
        )?;
        same(
            "what the other engine signalled",
            &there.current_value(),
            &10,
        )
    });
    // One node has told the rest.
    ground.if_fit(two).map(|_| ())
}

/// A fence without GPU access: its signals are stored when what was queued before is executed, in their order, and not
/// before.
fn software_signal(ground: &Ground) -> anyhow::Result<()> {
    on_both(ground, &Wanted::default(), |bench| {
        let target = bench.device.create_allocation(64 * 1024)?;
        let gate = starts_at(bench, 0)?;
        let done = bench
            .device
            .create_monitored_fence_with(MonitoredFenceOptions {
                no_gpu_access: true,
                ..MonitoredFenceOptions::default()
            })?;
        let mut queue = bench.device.create_kernel_queue()?;
        let refused = queue.signal(&done, 1).err();
        same(
            "a GPU signal of a fence without GPU access",
            &refused,
            &Some(KernelQueueError::NoGpuAccess),
        )?;
        queue.wait(&gate, 1)?;
        for round in 1..=20 {
            queue.record(CommandList::new().fill(&target, 0..target.bytes(), round))?;
            queue.signal_by_os(&done, round)?;
        }
        same(
            "the fence while its signals stand behind a wait",
            &done.current_value(),
            &0,
        )?;
        gate.signal(1)?;
        let mut last = [0];
        for round in 1..=20 {
            same(
                "a wait for a signal of the OS",
                &woken(&done, round),
                &Ok(()),
            )?;
            target.read(target.bytes() - 8, &mut last);
            ensure!(
                last[0] >= round,
                "signal {round} was made before the fill ahead of it had ended"
            );
        }
        finish(&mut queue)?;
        let mut logged = Vec::new();
        until("the signals are logged", || {
            logged.extend(queue.read_signal_log().entries);
            logged.len() >= 20
        })?;
        let values: Vec<_> = logged.iter().map(|entry| entry.fence_value).collect();
        same(
            "signals of the OS, in their order",
            &values,
            &(1..=20).collect::<Vec<u64>>(),
        )
    })
}

/// With engines of the basic form: what a command stored, and what somebody else stored of whom nobody tells; what it
/// stored before a fault; a completion of a queue that is gone.
fn completion(ground: &Ground) -> anyhow::Result<()> {
    on_both(ground, &basic(), |bench| {
        let (fence, other) = (starts_at(bench, 0)?, starts_at(bench, 0)?);
        let mut queue = bench.device.create_kernel_queue()?;
        let (waiter, bystander) = (sleeper(&fence, 3)?, sleeper(&other, 1)?);
        store_silently(&other, 1)?;
        for value in 1..=3 {
            queue.signal(&fence, value)?;
        }
        queue.flush()?;
        same(
            "a wait for what the command stored",
            &ended(waiter),
            &Ok(()),
        )?;
        same(
            "a wait for what a stranger stored",
            &ended(bystander),
            &Ok(()),
        )?;

        let event = EventHandle::new()?;
        let wait = fence.wait_event(4, &event);
        let target = bench.device.create_allocation(64)?;
        queue.signal(&fence, 4)?;
        let value = queue.submit(CommandList::new().fill(&target, 0..128, 1))?;
        let faults = queue.progress_fence().wait(value, LONG);
        ensure!(
            matches!(faults, Err(WaitError::QueueFaulted(_))),
            "a fill past its allocation: {faults:?}"
        );
        let mut told = 0;
        until(
            "who waits for what was stored before a fault is told",
            || {
                told += event.reset();
                told > 0
            },
        )?;
        same("that wait", &wait.outcome(), &Some(Ok(())))?;

        drop(queue);
        let _wait = other.wait_event(2, &event);
        store_silently(&other, 2)?;
        bench.spy.interrupt(Interrupt::DmaCompleted {
            submission_id: 1,
            node_ordinal: 0,
            engine_ordinal: 0,
        });
        same(
            "waits ended by a completion of a queue that is gone",
            &event.reset(),
            &1,
        )
    })
}

/// A packet that names one stops its queue with that reason, and touches nothing; without native fences there is no such
/// queue.
fn user_mode(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let fence = starts_at(&bench, 5)?;
    for packet in [
        Packet::wait(fence.handle(), 5, 0),
        Packet::signal(fence.handle(), 6, 0),
    ] {
        let queue = bench.queue()?;
        let (control, packets) = queue.raw_memory();
        packets.put_words(0, &packet.words());
        control.word(RingControl::WRITE_INDEX).publish(1);
        // It may be stopped by then, which refuses the ring.
        let _ = queue.ring_doorbell();
        let stopped = queue.progress_fence().wait(u64::MAX, LONG);
        let Err(WaitError::QueueFaulted(fault)) = stopped else {
            bail!(
                "{packet:?} names a monitored fence, and its queue's progress waits so: {stopped:?}"
            );
        };
        let seen = (fault.code, fault.packet);
        same(
            "why its queue was stopped, and where",
            &seen,
            &(FaultCode::MonitoredFence, 0),
        )?;
    }
    same("the fence that they named", &fence.current_value(), &5)?;
    complete(&mut bench.queue()?, CommandList::new().nop())?;
    match ground.if_fit(ground.bench_without_native_fences(&Wanted::default()))? {
        None => Ok(()),
        Some(without) => {
            let refused = without.device.create_hw_queue();
            ensure!(
                refused.is_err(),
                "a user-mode queue was made on an adapter without native fences"
            );
            let fence = starts_at(&without, 0)?;
            let mut queue = without.device.create_kernel_queue()?;
            queue.signal(&fence, 1)?.flush()?;
            same(
                "a wait for a kernel-mode queue there",
                &woken(&fence, 1),
                &Ok(()),
            )
        }
    }
}
