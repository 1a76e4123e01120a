//! Life: a global object and its local handles, from the creation to the end.

use super::scene::{SHARED, opened};
use crate::conform::bench::{complete, monitored_value, until_completed};
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::until::until;
use crate::conform::waiter::woken;
use crate::conform::{Bench, Check, Ground, LONG};
use crate::sync::Arc;
use crate::{CommandList, FenceOptions, WaitError};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "NF-14",
        "the article's story is Create, Open(A), Open(B), Close(A), Close(B), Destroy",
        story,
    ),
    Check::by(
        "NF-15",
        "who opens a shared fence sees the same value, and waits and signals on CPU and GPU",
        opener,
    ),
    Check::by(
        "NF-31",
        "queued work keeps the storage of its fences; old packets touch nothing that is new",
        queued_work,
    ),
];

/// The calls of it, and that the storage is there until the last one; then what a closed handle ends: its own waits.
fn story(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    bench.spy.take();
    let (a, other, b) = opened(&bench, SHARED)?;
    let id = a.object().fence().id();
    let storage = Arc::downgrade(a.object().fence().current_value_place().0);
    let (process_a, process_b) = (bench.device.process().id(), other.process().id());
    let (handle_a, handle_b) = (a.handle(), b.handle());
    drop(a);
    b.signal(3)?;
    same(
        "CurrentValue when the creator has closed",
        &b.current_value(),
        &3,
    )?;
    ensure!(
        storage.upgrade().is_some(),
        "the storage goes with the creator's handle"
    );
    drop(b);
    let should = [
        Call::CreateNativeFence(id),
        Call::OpenNativeFence(id, process_a, handle_a),
        Call::OpenNativeFence(id, process_b, handle_b),
        Call::CloseNativeFence(process_a, handle_a),
        Call::CloseNativeFence(process_b, handle_b),
        Call::DestroyNativeFence(id),
    ];
    let calls = bench.spy.calls_of_os();
    let is_of_it = |call: &Call| should.contains(call);
    let seen: Vec<_> = calls.into_iter().filter(is_of_it).collect();
    same("the calls of a fence's life", &seen, &should)?;

    let (a, _other, b) = opened(&bench, SHARED)?;
    let (of_a, of_b) = (bench.waiter(&a, 5)?, bench.waiter(&b, 9)?);
    a.close();
    same(
        "a wait by the handle that is closed",
        &of_a.join(),
        &Err(WaitError::Closed),
    )?;
    same(
        "MonitoredValue of the other's wait",
        &monitored_value(&b),
        &8,
    )?;
    b.signal(9)?;
    same("a wait by the other handle", &of_b.join(), &Ok(()))
}

/// Two devices in one process, each with a queue. That the VAs of other processes are their own, and that they see the
/// same value, is `tests/peer_processes.rs`.
fn opener(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (a, other, b) = opened(
        &bench,
        FenceOptions {
            initial: 40,
            ..SHARED
        },
    )?;
    same(
        "CurrentValue for both",
        &(a.current_value(), b.current_value()),
        &(40, 40),
    )?;
    same(
        "the storage of both",
        &(a.object().fence().id()),
        &b.object().fence().id(),
    )?;
    let second = bench.device.open_fence(&a.share()?)?;
    ensure!(
        a.handle() != second.handle(),
        "two handles of one device are one"
    );
    same(
        "the mapping of two handles of one device",
        &second.current_value_address(),
        &a.current_value_address(),
    )?;
    let (mut queue_a, mut queue_b) = (bench.queue()?, other.create_hw_queue()?);
    let waiter = bench.waiter(&b, 41)?;
    a.signal(41)?;
    same("a wait for the other's CPU signal", &waiter.join(), &Ok(()))?;
    let waiter = bench.waiter(&a, 42)?;
    b.signal(42)?;
    same(
        "a wait for the opener's CPU signal",
        &waiter.join(),
        &Ok(()),
    )?;
    let waiter = bench.waiter(&b, 43)?;
    complete(&mut queue_a, CommandList::new().signal(&a, 43))?;
    same("a wait for the other's GPU signal", &waiter.join(), &Ok(()))?;
    let waiter = bench.waiter(&a, 44)?;
    complete(&mut queue_b, CommandList::new().signal(&b, 44))?;
    same(
        "a wait for the opener's GPU signal",
        &waiter.join(),
        &Ok(()),
    )?;
    let ends = [
        queue_b.submit(CommandList::new().wait(&b, 45).signal(&b, 46))?,
        queue_a.submit(CommandList::new().wait(&a, 46).signal(&second, 47))?,
    ];
    a.signal(45)?;
    same(
        "a wait for what queues of both have handed on",
        &woken(&b, 47, LONG),
        &Ok(()),
    )?;
    until_completed(&queue_b, ends[0])?;
    until_completed(&queue_a, ends[1])?;
    same(
        "CurrentValue for both",
        &(a.current_value(), b.current_value()),
        &(47, 47),
    )
}

/// A queue stands at a wait, with a signal behind it, when their fences are dropped; then as many new fences are made as
/// use the places and numbers of old ones again. The queue ends, the queue of another opener goes on, and no new fence
/// is signalled.
fn queued_work(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    for _ in 0..5 {
        dropped_while_queued(&bench)?;
    }
    let (a, other, b) = opened(&bench, SHARED)?;
    let (mut queue_a, mut queue_b) = (bench.queue()?, other.create_hw_queue()?);
    let end_a = queue_a.submit(CommandList::new().wait(&a, 5))?;
    let end_b = queue_b.submit(CommandList::new().wait(&b, 5).signal(&b, 6))?;
    drop(a);
    let ended = queue_a.progress_fence().wait(end_a, LONG);
    ensure!(
        matches!(ended, Err(WaitError::QueueFaulted(_))),
        "a queue at a wait by a handle that is closed: {ended:?}, and should be stopped there"
    );
    b.signal(5)?;
    until_completed(&queue_b, end_b)?;
    same("CurrentValue by the other's queue", &b.current_value(), &6)
}

fn dropped_while_queued(bench: &Bench) -> anyhow::Result<()> {
    let (gate, gone) = (bench.fence(0)?, bench.fence(0)?);
    let (mut queue, handle) = (bench.queue()?, gone.handle());
    let id = gone.object().fence().id();
    let mut list = CommandList::new();
    let end = queue.submit(list.wait(&gate, 1).signal(&gone, 77))?;
    drop((list, gone));
    // Some get the number of the handle, some the place, when nothing refers to them any more.
    let mut fences = Vec::new();
    let more = |fences: &mut Vec<_>| -> anyhow::Result<()> {
        for _ in 0..40 {
            fences.push(bench.fence(0)?);
        }
        Ok(())
    };
    more(&mut fences)?;
    gate.signal(1)?;
    // With an error or well, but it ends.
    let ended = queue.progress_fence().wait(end, LONG);
    ensure!(
        ended != Err(WaitError::TimedOut),
        "work that names a dropped fence never ends"
    );
    until("the place of a dropped fence is used again", || {
        let made = more(&mut fences);
        let again = |fence: &crate::Fence| fence.object().fence().id().slot == id.slot;
        made.is_err() || fences.iter().any(again)
    })?;
    let touched = fences.iter().filter(|fence| fence.current_value() != 0);
    same(
        "new fences that an old packet signalled",
        &touched.count(),
        &0,
    )?;
    let alive = fences.iter().filter(|fence| fence.handle() == handle);
    same(
        "new handles that are equal to an old one",
        &alive.count(),
        &0,
    )
}
