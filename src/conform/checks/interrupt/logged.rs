//! Logged: what the log of signals says by the time of the interrupt, and what the OS reads there.

use super::payload::plain;
use crate::abi::{LogEntry, LogOperation, LogType};
use crate::conform::bench::{complete, until_completed};
use crate::conform::seen::same;
use crate::conform::spy::{Call, DdiSpy, RawLog};
use crate::conform::{Check, Ground};
use crate::kmd::{Ddi, HwQueueHandle, Interrupt};
use crate::os::SignalAttribution;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, FenceOptions};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "IN-01",
        "when the OS handles an interrupt, value and log entry of its signal are readable",
        readable,
    ),
    Check::by(
        "IN-10",
        "without the optimized cap the logs say which queue signalled, and when",
        attributed,
    ),
];

/// Whether a log ends in a signal of that value by that handle, once the driver was told that it will be read.
fn is_logged(spy: &DdiSpy, queue: HwQueueHandle, log: &RawLog, handle: u32, value: u64) -> bool {
    let is_it = |entry: &LogEntry| {
        (entry.fence_value, entry.native_fence) == (value, handle)
            && entry.operation == LogOperation::SignalExecuted as u32
            && entry.end_ticks != 0
    };
    spy.update_native_fence_logs(&[queue]).is_ok()
        && log.last(log.total().min(84)).iter().any(is_it)
}

/// Each of 40 signals is waited for and interrupts, while its queue stands at a wait behind it and logs no other signal.
/// Before the OS gets an interrupt, CurrentValue and the log are looked at in memory. That each step of the order comes
/// before the next also to who looks between them, a device's own text shows: `tests/engine_shader.rs`.
fn readable(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (mut queue, fence, gate) = (bench.queue()?, bench.fence(0)?, bench.fence(0)?);
    let (id, handle) = (fence.object().fence().id(), fence.handle().raw());
    let hw_queue = queue.os().handle();
    let log = bench.spy.log(hw_queue, LogType::Signals);
    let wrong = Arc::new(Mutex::new(Vec::new()));
    let (complain, read) = (Arc::clone(&wrong), fence.clone());
    let spy = Arc::downgrade(&bench.spy);
    bench.spy.on_interrupt(move |interrupt| {
        let (Interrupt::NativeFenceSignaled(payload), Some(spy)) = (interrupt, spy.upgrade())
        else {
            return;
        };
        for named in payload.fences.iter().flatten().filter(|f| f.fence == id) {
            if read.current_value() < named.value {
                lock(&complain).push(format!("CurrentValue is not yet {}", named.value));
            }
            if !is_logged(&spy, hw_queue, &log, handle, named.value) {
                lock(&complain).push(format!("the log has no entry of {} yet", named.value));
            }
        }
    });
    for value in 1..=40 {
        let waiter = bench.waiter(&fence, value)?;
        // Nothing but the interrupt releases it.
        waiter.until_asleep()?;
        let end = queue.submit(CommandList::new().signal(&fence, value).wait(&gate, value))?;
        same("a wait", &waiter.join(), &Ok(()))?;
        gate.signal(value)?;
        until_completed(&queue, end)?;
    }
    bench.until_told(&mut queue)?;
    same(
        "complaints when an interrupt came",
        &*lock(&wrong),
        &Vec::<String>::new(),
    )
}

/// Two queues of the device that made a fence and one of a device that opened it signal by turns, and interrupts lie of
/// the queue and say too small a value. Waiters are released by the value that stands, and each signal is attributed to
/// its queue, with the time of its entry, after `UpdateNativeFenceLogs` was called for it.
fn attributed(ground: &Ground) -> anyhow::Result<()> {
    let bench = plain(ground)?;
    let os = bench.adapter.os();
    let other = bench.adapter.create_device();
    let fence = bench.device.create_fence_with(FenceOptions {
        shared: true,
        ..FenceOptions::default()
    })?;
    let opened = other.open_fence(&fence.share()?)?;
    let mut queues = [bench.queue()?, bench.queue()?, other.create_hw_queue()?];
    let (id, liar) = (fence.object().fence().id(), queues[0].os().handle());
    complete(&mut queues[0], CommandList::new().signal(&fence, 1))?;
    os.attribute_signals(true);
    bench.spy.on_interrupt(move |interrupt| {
        if let Interrupt::NativeFenceSignaled(payload) = interrupt {
            payload.hw_queue = Some(liar);
            for named in payload.fences.iter_mut().flatten() {
                (named.hw_queue, named.value) = (Some(liar), 0);
            }
        }
    });
    for value in 2..=13 {
        let by = value as usize % 3;
        let named = if by == 2 { &opened } else { &fence };
        let waiter = bench.waiter(named, value)?;
        complete(&mut queues[by], CommandList::new().signal(named, value))?;
        same("a wait", &waiter.join(), &Ok(()))?;
        // All three are one engine's, whose interrupts come in their order.
        bench.until_told(&mut queues[0])?;
        let hw_queue = queues[by].os().handle();
        let log = bench.spy.log(hw_queue, LogType::Signals);
        let mut entries = log.last(log.total().min(84)).into_iter();
        let logged = entries.rfind(|e| e.native_fence == named.handle().raw());
        let signals = os.take_attributions().signals.into_iter();
        let seen: Vec<_> = signals.filter(|signal| signal.fence == id).collect();
        let should = SignalAttribution {
            fence: id,
            value,
            hw_queue,
            end_ticks: logged.map_or(0, |entry| entry.end_ticks),
        };
        same("whom a signal is attributed to", &seen, &[should])?;
        let asked =
            |call: &Call| matches!(call, Call::UpdateNativeFenceLogs(of) if of.contains(&hw_queue));
        same(
            "whether UpdateNativeFenceLogs was called",
            &(bench.spy.count(asked) > 0),
            &true,
        )?;
    }
    Ok(())
}
