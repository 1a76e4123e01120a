//! Named: what an array of a payload names, who is looked at for it, and names that cannot be.

use super::payload::{naming, null_array, optimized, plain};
use crate::abi::FenceId;
use crate::abi::LogType;
use crate::conform::bench::{complete, monitored_value};
use crate::conform::listener::Listener;
use crate::conform::raw_fence::RawFence;
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::until::until;
use crate::conform::{Bench, Check, Ground, LONG, Wanted};
use crate::kmd::{HwQueueHandle, Interrupt, NativeFenceSignaled};
use crate::sync::{AtomicU64, Ordering};
use crate::{CommandList, WaitError};
use anyhow::ensure;
use std::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "IN-02",
        "the payload names the engine that raised, and the fences; only their waiters are looked at",
        names,
    ),
    Check::by(
        "IN-05",
        "a handle of a destroyed fence stops the adapter with 0x119, P1 = 1",
        destroyed,
    ),
];

/// What payloads of each node say; who is looked at, with a value that was stored behind the OS's back beside; that a
/// wrong queue in them changes nothing; and with the optimized cap, where the subject has it, that the array does not.
fn names(ground: &Ground) -> anyhow::Result<()> {
    for nodes in [2, 1] {
        if let Some(bench) = ground.bench_if(&Wanted::nodes(nodes))? {
            payloads(&bench, nodes)?;
            break;
        }
    }
    let plain = plain(ground)?;
    looked_at(&plain)?;
    queue_is_ignored(&plain)?;
    ground.if_fit(array_is_ignored(ground)).map(|_| ())
}

fn payloads(bench: &Bench, nodes: u32) -> anyhow::Result<()> {
    // A place that was used before, so that a handle is more than its number.
    drop(bench.fence(0)?);
    for node in 0..nodes {
        let mut queue = bench.queue_on(node)?;
        let fence = bench.fence(0)?;
        let id = fence.object().fence().id();
        let waiter = bench.waiter(&fence, 5)?;
        complete(&mut queue, CommandList::new().signal(&fence, 7))?;
        same("a wait for 5", &waiter.join(), &Ok(()))?;
        bench.until_told(&mut queue)?;
        for payload in bench.spy.payloads() {
            let raised_by = (payload.node_ordinal, payload.engine_ordinal);
            for named in payload.fences.iter().flatten() {
                let made = |call: &Call| *call == Call::CreateNativeFence(named.fence);
                ensure!(
                    bench.spy.count(made) == 1,
                    "an interrupt names {:?}, and the OS has created no such fence",
                    named.fence
                );
                if named.fence == id {
                    same("the value that an interrupt says", &named.value, &7)?;
                    same("node and engine that raised", &raised_by, &(node, 0))?;
                }
            }
        }
    }
    Ok(())
}

fn looked_at(bench: &Bench) -> anyhow::Result<()> {
    let (mut queue, named, unnamed) = (bench.queue()?, bench.fence(0)?, bench.fence(0)?);
    let bystander = Listener::of(&unnamed, 3)?;
    // The engine has what was posted for it, and looks at the fence no more.
    bench.until_told(&mut queue)?;
    let raw = RawFence::of(&unnamed)?;
    raw.store(3);
    for value in 1..=5 {
        let waiter = bench.waiter(&named, value)?;
        complete(&mut queue, CommandList::new().signal(&named, value))?;
        same("a wait for a fence that is named", &waiter.join(), &Ok(()))?;
    }
    bench.until_told(&mut queue)?;
    same(
        "waits that were released of a fence that no interrupt named",
        &bystander.heard(),
        &0,
    )?;
    bench.spy.interrupt(naming(raw.id, 3, Instant::now()));
    same("the same when one has named it", &bystander.heard(), &1)
}

/// A queue in the payload, another than signalled, or none: no log is read, and waiters are released as ever.
fn queue_is_ignored(bench: &Bench) -> anyhow::Result<()> {
    let (mut queue, wrong) = (bench.queue()?, bench.queue()?.os().handle());
    let fence = bench.fence(0)?;
    let round = AtomicU64::new(0);
    bench.spy.on_interrupt(move |interrupt| {
        let Interrupt::NativeFenceSignaled(payload) = interrupt else {
            return;
        };
        let round = 1 + round.fetch_add(1, Ordering::AcqRel);
        let odd = HwQueueHandle {
            node_ordinal: 9,
            number: 12345,
        };
        payload.hw_queue = [None, Some(odd), Some(wrong)][(round % 3) as usize];
        for named in payload.fences.iter_mut().flatten() {
            named.hw_queue = payload.hw_queue;
        }
    });
    for value in 1..=9 {
        let waiter = bench.waiter(&fence, value)?;
        complete(&mut queue, CommandList::new().signal(&fence, value))?;
        same("a wait", &waiter.join(), &Ok(()))?;
    }
    let reads = |call: &Call| matches!(call, Call::UpdateNativeFenceLogs(_));
    same("logs that were read", &bench.spy.count(reads), &0)
}

/// With the optimized cap an array names a fence that the queue's log does not: its waiter is not looked at.
fn array_is_ignored(ground: &Ground) -> anyhow::Result<()> {
    let bench = optimized(ground, 1)?;
    let (queue, fence) = (bench.queue()?, bench.fence(0)?);
    let waits = Listener::of(&fence, 3)?;
    same(
        "signals that a new queue has logged",
        &bench.spy.log(queue.os().handle(), LogType::Signals).total(),
        &0,
    )?;
    let raw = RawFence::of(&fence)?;
    if let Interrupt::NativeFenceSignaled(payload) = naming(raw.id, 3, Instant::now()) {
        bench
            .spy
            .interrupt(Interrupt::NativeFenceSignaled(NativeFenceSignaled {
                hw_queue: Some(queue.os().handle()),
                ..payload
            }));
    }
    same(
        "waits that an array released with the optimized cap",
        &waits.heard(),
        &0,
    )
}

/// Ids that no fence has, each on an adapter of its own; then names that are right although their fence is destroyed by
/// the time that they come; and a queued signal of a fence that is closed before, which the driver does not tell of.
fn destroyed(ground: &Ground) -> anyhow::Result<()> {
    type Id = fn(&Bench) -> anyhow::Result<FenceId>;
    let ids: [(&str, Id); 3] = [
        ("a fence that is destroyed", |bench| {
            Ok(bench.fence(0)?.object().fence().id())
        }),
        ("a fence whose place is used again", |bench| {
            let id = bench.fence(0)?.object().fence().id();
            let mut held = Vec::new();
            until("the place of a destroyed fence is used again", || {
                held.extend(bench.device.create_fence(0).ok());
                let mut slots = held.iter().map(|fence| fence.object().fence().id().slot);
                slots.any(|slot| slot == id.slot)
            })?;
            Ok(id)
        }),
        ("a fence to come", |bench| {
            let id = bench.fence(0)?.object().fence().id();
            let generation = id.generation + 1;
            Ok(FenceId { generation, ..id })
        }),
    ];
    for (what, id) in ids {
        let bench = ground.bench()?;
        let fence = bench.fence(0)?;
        let waiter = bench.waiter(&fence, 5)?;
        let id = id(&bench)?;
        bench.spy.interrupt(naming(id, 1, Instant::now()));
        let ended = waiter.join();
        same(what, &ended, &Err(WaitError::AdapterStopped))?;
        let records = bench.take_records();
        let seen: Vec<_> = records.iter().map(|r| (r.code, r.parameters[0])).collect();
        same(what, &seen, &[(0x119, 1)])?;
        ensure!(
            bench.device.create_fence(0).is_err(),
            "{what}: an adapter that is stopped makes a fence"
        );
    }
    let bench = ground.bench()?;
    for again in [false, true] {
        let fence = bench.fence(0)?;
        let (id, taken) = (fence.object().fence().id(), Instant::now());
        drop(fence);
        let _same_place = again.then(|| bench.fence(0)).transpose()?;
        bench.spy.interrupt(naming(id, 1, taken));
    }
    signals_what_is_closed(&bench)
}

fn signals_what_is_closed(bench: &Bench) -> anyhow::Result<()> {
    let (mut queue, mut well) = (bench.queue()?, bench.queue()?);
    let (gate, closed) = (bench.fence(0)?, bench.fence(0)?);
    let raw = RawFence::of(&closed)?;
    // Behind the OS's back, so that any signal of it would interrupt.
    raw.posted(&bench.spy, 0)?;
    let mut list = CommandList::new();
    let value = queue.submit(list.wait(&gate, 1).signal(&closed, 1))?;
    drop((list, closed));
    gate.signal(1)?;
    let ended = queue.progress_fence().wait(value, LONG);
    ensure!(
        matches!(ended, Err(WaitError::QueueFaulted(_))),
        "a queue that signals a fence which is closed: {ended:?}, and should be stopped there"
    );
    bench.until_told(&mut well)?;
    same(
        "interrupts of a fence that is destroyed",
        &bench.spy.raised(raw.id),
        &Vec::<u64>::new(),
    )?;
    bench
        .spy
        .interrupt(Interrupt::NativeFenceSignaled(null_array(0)));
    same(
        "MonitoredValue when nobody waits",
        &monitored_value(&gate),
        &u64::MAX,
    )
}
