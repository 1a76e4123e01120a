//! CurrentValue: where it starts, how whole it is, who sees it and when, and what a wait makes of it.

use crate::conform::bench::{complete, monitored_value, until_completed};
use crate::conform::listener::Listener;
use crate::conform::raw_fence::RawFence;
use crate::conform::seen::same;
use crate::conform::until::until;
use crate::conform::{Bench, Check, Ground, LONG};
use crate::kmd::Interrupt;
use crate::sync::plain::{Mutex, lock};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::{CommandList, HwQueue, SignalError, WaitError};
use anyhow::{Context, ensure};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "NF-01",
        "CurrentValue is 64 bits, aligned, and never torn",
        never_torn,
    ),
    Check::by(
        "NF-26",
        "a wait is satisfied by the value, stays so, and an error leaves the value readable",
        satisfied_by_value,
    ),
    Check::by(
        "NF-27",
        "who only reads the mapping sees every signal, and none go back",
        reader,
    ),
    Check::by(
        "NF-28",
        "a fence starts at its initial value, which satisfies waits for it or less",
        initial,
    ),
];

/// Stops the threads of a check that has failed, too.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A value whose halves say the same, so that a torn one says two things.
fn halves(number: u64) -> u64 {
    number << 32 | number
}

fn are_same(value: u64) -> bool {
    value >> 32 == value & 0xFFFF_FFFF
}

/// Each bit, from the CPU and from the GPU; then both store values while a thread reads the user's mapping, and while a
/// queue and the OS wait for one that is never stored. What a program's own kernel reads is `tests/load_torn_values.rs`.
fn never_torn(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let mut queue = bench.queue()?;
    each_bit(&bench, &mut queue)?;
    read_while_stored(&bench, &mut queue)?;
    awaited_while_stored(&bench, &mut queue)
}

fn each_bit(bench: &Bench, queue: &mut HwQueue) -> anyhow::Result<()> {
    let (from_cpu, from_gpu) = (bench.fence(0)?, bench.fence(0)?);
    for fence in [&from_cpu, &from_gpu] {
        let address = fence
            .current_value_address()
            .map_or(0, |address| address as usize);
        let (_, offset) = fence.object().fence().current_value_place();
        same(
            "how far CurrentValue is off a multiple of 8",
            &(address % 8, offset % 8),
            &(0, 0),
        )?;
    }
    for value in (0..64).map(|bit| 1 << bit).chain([u64::MAX]) {
        from_cpu.signal(value)?;
        same("a value from the CPU", &from_cpu.current_value(), &value)?;
        let mut list = CommandList::new();
        complete(queue, list.signal(&from_gpu, value).wait(&from_gpu, value))?;
        same("a value from the GPU", &from_gpu.current_value(), &value)?;
    }
    Ok(())
}

fn read_while_stored(bench: &Bench, queue: &mut HwQueue) -> anyhow::Result<()> {
    let (fence, next, over) = (bench.fence(0)?, AtomicU64::new(1), AtomicBool::new(false));
    thread::scope(|scope| {
        let over = Ends(&over);
        let reader = scope.spawn(|| {
            let mut torn = None;
            while torn.is_none() && !over.0.load(Ordering::Acquire) {
                torn = Some(fence.current_value()).filter(|value| !are_same(*value));
            }
            torn
        });
        for _ in 0..20 {
            let mut list = CommandList::new();
            let first = next.fetch_add(200, Ordering::Relaxed);
            for number in first..first + 200 {
                list.signal(&fence, halves(number));
            }
            let end = queue.submit(&list)?;
            while queue.progress_fence().current_value() < end {
                match fence.signal(halves(next.fetch_add(1, Ordering::Relaxed))) {
                    Ok(()) => {}
                    // The engine was faster.
                    Err(SignalError::Backward { current }) => {
                        ensure!(
                            are_same(current),
                            "the OS read a torn value: {current:#018x}"
                        );
                    }
                    Err(error) => return Err(error.into()),
                }
                thread::yield_now();
            }
        }
        drop(over);
        let torn = reader.join().ok().context("the reader panicked")?;
        same("a torn value that a reader saw", &torn, &None)
    })
}

/// Stores of the CPU while an engine looks, and for how long they are made where an engine is too fast for so many.
const REWINDS: u64 = 5000;
const REWINDS_TIME: Duration = Duration::from_secs(3);
/// Stores to memory alone behind each of them.
const STORES: usize = 200;

/// Two values whose halves, mixed, are above both: a wait for what lies between passes by none that was stored. The engine
/// looks at it all the time that it signals by the other queue; the CPU stores as the OS does, and between that to memory
/// alone. Where looks and signals of an engine are in step with each other, stores of the CPU alone come between the halves
/// of a look: so there are many, and such close behind each other.
fn awaited_while_stored(bench: &Bench, queue: &mut HwQueue) -> anyhow::Result<()> {
    const STORED: [u64; 2] = [1 << 32, 0xFFFF_FFFF];
    const AWAITED: u64 = 0x1_8000_0000;
    let (fence, mut waits) = (bench.fence(0)?, bench.queue()?);
    let raw = RawFence::of(&fence)?;
    let end = waits.submit(CommandList::new().wait(&fence, AWAITED))?;
    let thread = Listener::of(&fence, AWAITED)?;
    let mut list = CommandList::new();
    for value in STORED.into_iter().cycle().take(200) {
        list.signal(&fence, value);
    }
    let (mut rewinds, began) = (0, Instant::now());
    for round in 0.. {
        let is_enough = rewinds >= REWINDS || began.elapsed() >= REWINDS_TIME;
        if round >= 40 && is_enough {
            break;
        }
        let stored = queue.submit(&list)?;
        for value in STORED.into_iter().cycle().take(200) {
            if queue.progress_fence().current_value() >= stored {
                break;
            }
            fence.rewind(value)?;
            rewinds += 1;
            for value in STORED.into_iter().cycle().take(STORES) {
                raw.store(value);
            }
            thread::yield_now();
        }
        until_completed(queue, stored)?;
    }
    bench.until_told(queue)?;
    let ended = (
        waits.progress_fence().current_value() >= end,
        thread.is_told()?,
    );
    same(
        "whether a wait of a queue and one of the CPU are over by half of one value and half of another",
        &ended,
        &(false, false),
    )?;
    fence.signal(AWAITED)?;
    until_completed(&waits, end)?;
    same("the wait of the CPU", &thread.ended()?, &Ok(()))
}

/// A wait whose queue goes on to stand at another; a value that is taken back at once, by the engine and by a rewind while
/// the interrupt is under way, of which a later wait has nothing; and a closed handle.
fn satisfied_by_value(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (mut queue, fence, gate) = (bench.queue()?, bench.fence(0)?, bench.fence(0)?);
    let waiter = bench.waiter(&fence, 5)?;
    let end = queue.submit(CommandList::new().signal(&fence, 5).wait(&gate, 1))?;
    same(
        "a wait while its queue has not completed",
        &waiter.join(),
        &Ok(()),
    )?;
    same(
        "the progress of that queue",
        &queue.progress_fence().current_value(),
        &(end - 1),
    )?;
    gate.signal(1)?;
    until_completed(&queue, end)?;

    let wait = fence.arm(8);
    bench.until_told(&mut queue)?;
    complete(
        &mut queue,
        CommandList::new().signal(&fence, 9).signal(&fence, 0),
    )?;
    same(
        "a wait for 8 after the GPU has signalled 9 and 0",
        &wait.wait(LONG),
        &Ok(()),
    )?;
    same("CurrentValue afterwards", &fence.current_value(), &0)?;
    rewound(&bench, &mut queue)?;

    let closed = bench.fence(6)?;
    let waiter = bench.waiter(&closed, 7)?;
    closed.close();
    same(
        "a wait whose handle is closed",
        &waiter.join(),
        &Err(WaitError::Closed),
    )?;
    same("the last good value", &closed.current_value(), &6)
}

fn rewound(bench: &Bench, queue: &mut HwQueue) -> anyhow::Result<()> {
    let fence = bench.fence(0)?;
    let id = fence.object().fence().id();
    let before = Listener::of(&fence, 5)?;
    bench.until_told(queue)?;
    let (come, has_come) = mpsc::channel();
    let (let_go, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    bench.spy.on_interrupt(move |interrupt| {
        let Interrupt::NativeFenceSignaled(payload) = interrupt else {
            return;
        };
        if payload
            .fences
            .iter()
            .flatten()
            .any(|named| named.fence == id)
        {
            let _ = come.send(());
            // Ends with a check that failed, too.
            let _ = lock(&held).recv();
        }
    });
    complete(queue, CommandList::new().signal(&fence, 5))?;
    if has_come.recv_timeout(LONG).is_err() {
        anyhow::bail!("no interrupt names a fence that is waited for");
    }
    fence.rewind(0)?;
    same(
        "a wait for 5, rewound before its interrupt was handled",
        &before.ended()?,
        &Ok(()),
    )?;
    let after = Listener::of(&fence, 3)?;
    let_go.send(())?;
    drop(let_go);
    bench.until_told(queue)?;
    same(
        "waits for 3, begun after the rewind, that the late interrupt of 5 released",
        &after.heard(),
        &0,
    )?;
    same(
        "MonitoredValue of a wait for 3",
        &monitored_value(&fence),
        &2,
    )?;
    complete(queue, CommandList::new().signal(&fence, 3))?;
    same("a wait for 3", &after.ended()?, &Ok(()))
}

/// 300 signals of the CPU and 20 submissions of 50 of the GPU: the reader sees each last one, no interrupt is sent, and
/// nobody waits.
fn reader(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (fence, mut queue) = (bench.fence(0)?, bench.queue()?);
    let (seen, back, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let id = fence.object().fence().id();
    thread::scope(|scope| {
        let _over = Ends(&over);
        scope.spawn(|| {
            let mut last = 0;
            while !over.load(Ordering::Acquire) {
                let value = fence.current_value();
                back.fetch_add(u64::from(value < last), Ordering::Relaxed);
                last = value;
                seen.store(value, Ordering::Release);
                thread::yield_now();
            }
        });
        let is_seen = |value| {
            until("a reader sees a signal", || {
                seen.load(Ordering::Acquire) >= value
            })
        };
        for value in 1..=300 {
            fence.signal(value)?;
            same(
                "CurrentValue when a signal returns",
                &fence.current_value(),
                &value,
            )?;
            is_seen(value)?;
        }
        for round in 0..20 {
            let mut list = CommandList::new();
            for value in 1..=50 {
                list.signal(&fence, 300 + round * 50 + value);
            }
            queue.submit(&list)?;
            is_seen(300 + round * 50 + 50)?;
        }
        same(
            "MonitoredValue while nobody waits",
            &monitored_value(&fence),
            &u64::MAX,
        )?;
        same(
            "how often what is read went back",
            &back.load(Ordering::Relaxed),
            &0,
        )
    })?;
    bench.until_told(&mut queue)?;
    same(
        "interrupts while nobody waits",
        &bench.spy.raised(id),
        &Vec::<u64>::new(),
    )
}

/// Several initial values, on every mapping that there is, for waits of the CPU and of a queue; and one more than it.
fn initial(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let mut queue = bench.queue()?;
    for initial in [0, 1, 7, 1 << 32, u64::MAX - 1, u64::MAX] {
        let fence = bench.fence(initial)?;
        let views = [
            fence.current_value(),
            fence.object().fence().current_value(),
            RawFence::of(&fence)?.current(),
        ];
        same(
            "CurrentValue of a new fence, for its user, the OS and in memory",
            &views,
            &[initial; 3],
        )?;
        same(
            "MonitoredValue of a new fence",
            &monitored_value(&fence),
            &u64::MAX,
        )?;
        for value in [0, initial / 2, initial] {
            let waited = fence.wait(value, Duration::ZERO);
            same("a CPU wait for the initial value or less", &waited, &Ok(()))?;
        }
        let mut list = CommandList::new();
        list.wait(&fence, 0)
            .wait(&fence, initial / 2)
            .wait(&fence, initial);
        complete(&mut queue, &list)?;
        let Some(more) = initial.checked_add(1) else {
            continue;
        };
        let waited = fence.wait(more, Duration::ZERO);
        same(
            "a CPU wait for one more",
            &waited,
            &Err(WaitError::TimedOut),
        )?;
        let mut waits = bench.queue()?;
        let end = waits.submit(CommandList::new().wait(&fence, more))?;
        bench.until_told(&mut queue)?;
        same(
            "the progress of a queue that waits for one more",
            &waits.progress_fence().current_value(),
            &(end - 1),
        )?;
        fence.signal(more)?;
        until_completed(&waits, end)?;
    }
    Ok(())
}
