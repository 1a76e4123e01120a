//! Value: what a program has of a monitored fence, and waits and signals of its CPU.

use super::scene::{on_both, starts_at};
use crate::conform::bench::finish;
use crate::conform::checks::sleeper::{ended, sleeper};
use crate::conform::seen::same;
use crate::conform::waiter::told_within;
use crate::conform::{Bench, Check, Ground, LONG, Wanted, until};
use crate::os::CpuWait;
use crate::sync::{AtomicBool, Ordering};
use crate::{
    CreateError, EventHandle, KernelQueueError, MonitoredFenceOptions, SignalError, WaitError,
    WaitManyError,
};
use anyhow::{Context, ensure};
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "MF-01",
        "a monitored fence is one 64-bit value, which the CPU reads and cannot write, and the GPU stores",
        value,
    ),
    Check::by(
        "MF-04",
        "a CPU signal is stored on return and releases every kind of CPU wait that it satisfies",
        cpu,
    ),
];

/// Beside native fences and without.
fn value(ground: &Ground) -> anyhow::Result<()> {
    on_both(ground, &Wanted::default(), |bench| {
        mapping(bench)?;
        torn(bench)?;
        rights(bench)
    })
}

/// It starts at its value; a thread that only reads its mapping, which no store reaches, follows signals of CPU and GPU.
fn mapping(bench: &Bench) -> anyhow::Result<()> {
    let (fence, other) = (starts_at(bench, 5)?, starts_at(bench, 9)?);
    ensure!(
        fence.handle() != other.handle(),
        "two fences have one handle"
    );
    same(
        "their initial values",
        &(fence.current_value(), other.current_value()),
        &(5, 9),
    )?;
    let (_, offset) = fence.object().fence().current_value_place();
    same("the alignment of the value in memory", &(offset % 8), &0)?;
    if let Some(address) = fence.current_value_address() {
        ensure!(address.is_aligned(), "the CPU has the value at {address:?}");
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let holds = |line: &&str| {
            let bounds = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'));
            let bound = |text| usize::from_str_radix(text, 16).unwrap_or_default();
            bounds.is_some_and(|(from, to)| (bound(from)..bound(to)).contains(&address.addr()))
        };
        let mapping = maps
            .lines()
            .find(holds)
            .context("its address is mapped nowhere")?;
        ensure!(
            mapping.contains(" r--"),
            "the user's mapping of the value can be written: {mapping}"
        );
    }
    let mut queue = bench.device.create_kernel_queue()?;
    for value in 6..16 {
        if value % 2 == 0 {
            fence.signal(value)?;
            same(
                "the mapping when a CPU signal has returned",
                &fence.current_value(),
                &value,
            )?;
        } else {
            queue.signal(&fence, value)?.flush()?;
            until("the mapping shows what the GPU signalled", || {
                fence.current_value() == value
            })?;
        }
    }
    same("the other fence", &other.current_value(), &9)
}

/// A thread reads all the time while engine and CPU store values whose halves are the same.
fn torn(bench: &Bench) -> anyhow::Result<()> {
    let fence = starts_at(bench, 0)?;
    if !fence.is_64_bit() {
        return Ok(());
    }
    let mut queue = bench.device.create_kernel_queue()?;
    let ended = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let is_torn = |value: u64| value >> 32 != value & 0xffff_ffff;
            let mut torn = None;
            while torn.is_none() && !ended.load(Ordering::Acquire) {
                torn = Some(fence.current_value()).filter(|value| is_torn(*value));
            }
            torn
        });
        let mut store = || -> anyhow::Result<()> {
            for round in 0..20_u64 {
                for value in round * 40 + 1..=round * 40 + 40 {
                    queue.signal(&fence, value << 32 | value)?;
                }
                queue.flush()?;
                // Backwards, so that both halves change.
                fence.rewind(0)?;
            }
            finish(&mut queue)
        };
        let stored = store();
        ended.store(true, Ordering::Release);
        let seen = reader.join().unwrap_or(None);
        stored.map(|()| seen)
    })?;
    ensure!(
        seen.is_none(),
        "a reader has seen {seen:#x?}, half of one value and half of another"
    );
    Ok(())
}

/// NoSignal and NoWait forbid each its operation, from the CPU and by queues, and are not given at once.
fn rights(bench: &Bench) -> anyhow::Result<()> {
    let no_signal = MonitoredFenceOptions {
        no_signal: true,
        ..MonitoredFenceOptions::default()
    };
    let no_wait = MonitoredFenceOptions {
        no_wait: true,
        ..MonitoredFenceOptions::default()
    };
    let both = MonitoredFenceOptions {
        no_wait: true,
        ..no_signal
    };
    let create = |options| bench.device.create_monitored_fence_with(options);
    let refused = create(both);
    ensure!(
        matches!(refused, Err(CreateError::NoSignalAndNoWait)),
        "a fence with both flags: {refused:?}"
    );
    let mut queue = bench.device.create_kernel_queue()?;
    let denied = SignalError::AccessDenied;
    let fence = create(no_signal)?;
    same(
        "a CPU signal of a NoSignal fence",
        &fence.signal(1),
        &Err(denied),
    )?;
    let by_queue = [
        queue.signal(&fence, 1).err(),
        queue.signal_by_os(&fence, 1).err(),
    ];
    same(
        "signals of it by a queue",
        &by_queue,
        &[(); 2].map(|()| Some(KernelQueueError::Signal(denied))),
    )?;
    same("a wait for it", &fence.wait(0, LONG), &Ok(()))?;
    let denied = WaitError::AccessDenied;
    let fence = create(no_wait)?;
    same(
        "a wait for a NoWait fence",
        &fence.wait(0, LONG),
        &Err(denied),
    )?;
    same(
        "a queue's wait for it",
        &queue.wait(&fence, 0).err(),
        &Some(KernelQueueError::Wait(denied)),
    )?;
    same("a CPU signal of it", &fence.signal(1), &Ok(()))
}

/// A thread, an armed wait, an event and a future; one wait for fences of both kinds; backward values; the closed handle.
fn cpu(ground: &Ground) -> anyhow::Result<()> {
    on_both(ground, &Wanted::default(), |bench| {
        every_kind(bench)?;
        if bench.adapter.os().native_fence_caps().is_ok() {
            both_kinds(bench)?;
        }
        Ok(())
    })
}

fn every_kind(bench: &Bench) -> anyhow::Result<()> {
    let fence = starts_at(bench, 1)?;
    let event = EventHandle::new()?;
    let (blocking, armed) = (sleeper(&fence, 3)?, fence.arm(3));
    let (evented, later) = (fence.wait_event(3, &event), fence.arm(4));
    fence.signal(2)?;
    let early = (blocking.is_finished(), armed.is_ended(), evented.outcome());
    same(
        "whether waits for 3 are over at 2",
        &early,
        &(false, false, None),
    )?;
    fence.signal(3)?;
    same(
        "the value when the signal of 3 has returned",
        &fence.current_value(),
        &3,
    )?;
    // Before anybody asks for an outcome, which would look at the value itself.
    same(
        "how often the event was signalled by then",
        &event.reset(),
        &1,
    )?;
    same("a thread's wait for 3", &ended(blocking), &Ok(()))?;
    let outcomes = (armed.outcome(), evented.outcome(), later.outcome());
    same(
        "an armed wait, an event's, and one for 4",
        &outcomes,
        &(Some(Ok(())), Some(Ok(())), None),
    )?;
    let timed_out = fence.wait(4, Duration::ZERO);
    same(
        "a wait for 4 with no time",
        &timed_out,
        &Err(WaitError::TimedOut),
    )?;
    same(
        "a signal of 2 at 3",
        &fence.signal(2),
        &Err(SignalError::Backward { current: 3 }),
    )?;
    fence.rewind(2)?;
    let rewound = (fence.current_value(), armed.outcome());
    same(
        "the value that was rewound, and a wait that was satisfied before",
        &rewound,
        &(2, Some(Ok(()))),
    )?;
    fence.close();
    same(
        "a wait that stood when the handle was closed",
        &later.outcome(),
        &Some(Err(WaitError::Closed)),
    )?;
    let closed = (fence.wait(1, LONG), fence.signal(9));
    same(
        "wait and signal by a closed handle",
        &closed,
        &(Err(WaitError::Closed), Err(SignalError::Closed)),
    )
}

/// Any and all of a native and a monitored fence.
fn both_kinds(bench: &Bench) -> anyhow::Result<()> {
    let (native, monitored) = (bench.fence(0)?, starts_at(bench, 0)?);
    let waits = [
        CpuWait {
            object: native.object().as_ref(),
            value: 1,
        },
        CpuWait {
            object: monitored.object().as_ref(),
            value: 1,
        },
    ];
    let (any, all, early) = std::thread::scope(|scope| -> anyhow::Result<_> {
        let any = scope.spawn(|| {
            told_within(LONG, WaitManyError::TimedOut, || {
                CpuWait::any(&waits, Some(LONG))
            })
        });
        let all = scope.spawn(|| {
            told_within(LONG, WaitManyError::TimedOut, || {
                CpuWait::all(&waits, Some(LONG))
            })
        });
        let stands = until("both stand in both lists", || {
            native
                .object()
                .fence()
                .waits()
                .min(monitored.object().fence().waits())
                >= 2
        });
        monitored.signal(1)?;
        let any = any.join();
        let early = all.is_finished();
        native.signal(1)?;
        let all = all.join();
        stands?;
        Ok((any.ok(), all.ok(), early))
    })?;
    same(
        "a wait for any of both kinds, by the monitored one",
        &any,
        &Some(Ok(1)),
    )?;
    same("whether a wait for all is over by that", &early, &false)?;
    same("a wait for all of both kinds", &all, &Some(Ok(())))
}
